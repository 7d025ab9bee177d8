package agent

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recordOfOne is the record of a container.
const recordOfOne = `{"container":{"task":{"job":3,"stage":0,"index":1},"run":1},"grant":[500,67108864,0,0],"booked_ns":1,"place":"here",` +
	`"launch":{"args":["true"]},"envelope":{"class":"regular","min_memory_bytes":67108864,"max_memory_bytes":67108864,"rank":3},"supervisor":4}`

// A container that a program from before 0.1.0 started is refused in one sentence, and left as it is.
func TestOlderContainersAreRefused(t *testing.T) {
	older := strings.Replace(recordOfOne, `"supervisor":4`, `"supervisor":3`, 1)
	for _, record := range []string{older, strings.Replace(older, `,"supervisor":3`, "", 1)} {
		state := t.TempDir()
		dir := folder(filepath.Join(state, "containers", "3-0-1-1"))
		if err := os.MkdirAll(string(dir), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir.path("spec.json"), []byte(record), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(Config{Dir: state, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
		want := string(dir) +
			" is of a program from before bellows 0.1.0: finish its job with that program, and start this one with " +
			"another state directory"
		if err == nil || err.Error() != want {
			t.Errorf("opened with %v, want %s", err, want)
		}
		if text, err := os.ReadFile(dir.path("spec.json")); err != nil || string(text) != record {
			t.Errorf("the record is %s, %v", text, err)
		}
	}
	state := t.TempDir()
	if err := os.MkdirAll(filepath.Join(state, "3-0-1-1"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, record := range []string{recordOfOne, "{}", "{"} { // One that cannot be read says nothing.
		if err := os.WriteFile(filepath.Join(state, "3-0-1-1", "spec.json"), []byte(record), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := refuseOlder(state); err != nil {
			t.Errorf("%s: %v", record, err)
		}
	}
}
