package machine

import (
	"slices"
	"testing"
)

// A detached daemon gets every flag that was given, in a form that its parser accepts, and no other.
func TestArgumentsOfADetachedDaemon(t *testing.T) {
	given := []string{"--memory=4GiB", "--cpus=1.5", "--disk=0", "--swap-budget=200GB/day", "--policy=fair", "--set",
		"fair.b=2", "--set", "fair.a=1", "--flex=paper", "--puff-ratio=0.2", "--output-limit=1MiB", "--keep-for=1h30m0s",
		"--keep-jobs=7", "--keep-output=1GB", "--keep-events=1GB", "--socket-mode=0660", "--socket-group=root",
		"--operators=0", "--verbose=true", "--listen=127.0.0.1:8443", "--tls-cert=/c", "--tls-key=/k"}
	cmd := upCommand()
	if err := cmd.ParseFlags(append([]string{"-d", "--state", "here"}, given...)); err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{"fair.b": "2", "fair.a": "1"}
	o := upOptions{settings: settings}
	o.place.State, o.place.Socket = "/s", "/s/sock"
	got := o.arguments(cmd.Flags())
	want := slices.Concat([]string{"up", "--state", "/s", "--socket", "/s/sock", "--set", "fair.a=1", "--set", "fair.b=2"},
		slices.DeleteFunc(given, func(a string) bool { return a == "--set" || a[0] == 'f' }))
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if err := upCommand().ParseFlags(o.arguments(cmd.Flags())[1:]); err != nil {
		t.Error(err)
	}
}
