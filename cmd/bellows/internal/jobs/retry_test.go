package jobs

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/format/jobfile"
	"github.com/bellows-rm/bellows/format/workload"
)

// What a file states of retries stays, whatever the flags say, also if it is what a file that states nothing has.
func TestRetryKeepsWhatAFileStates(t *testing.T) {
	for _, c := range []struct {
		states, flags string
		want          cluster.RetryOn
		pause         time.Duration
	}{
		{"retry_on: oom", "--retry-on any", cluster.RetryOnOOM, time.Second},
		{"", "--retry-on error", cluster.RetryOnError, time.Second},
		{"", "--retry-on any", cluster.RetryOnAny, time.Second},
		{"retry_on: any", "--retry-on error", cluster.RetryOnAny, time.Second},
		{"retry_delay: 0s", "", cluster.RetryOnAny, 0},
		{"retry_delay: 0s", "--retry-delay 3s", cluster.RetryOnAny, 0},
		{"retry_delay: 20s", "--retry-delay 3s", cluster.RetryOnAny, 20 * time.Second},
		{"", "--retry-delay 3s", cluster.RetryOnAny, 3 * time.Second},
		{"", "--retry-delay 0s", cluster.RetryOnAny, 0},
	} {
		text := "bellows: 1\nname: j\n" + c.states + "\nstages: [{name: s, memory: 1GiB}]\n"
		w, err := jobfile.ReadToRun(strings.NewReader(text), "x", nil)
		if err != nil {
			t.Fatal(err)
		}
		j, err := &w.Jobs[0], putRetry(t, w.Jobs, "--retry 2 "+c.flags)
		if err != nil || j.RetryOn != c.want || j.RetryDelay != c.pause || j.MaxAttempts != 3 {
			t.Errorf("%q, and %s: %v, pause %v, %d attempts, %v", c.states, c.flags, j.RetryOn, j.RetryDelay, j.MaxAttempts, err)
		}
	}
}

// A flag about retries without retries would have no effect.
func TestRetryFlagsNeedRetries(t *testing.T) {
	for _, flags := range []string{"--retry-delay 0s", "--retry-on oom", "--retry 0 --retry-delay 5s"} {
		err := putRetry(t, make([]workload.Job, 1), flags)
		if err == nil || !strings.HasSuffix(err.Error(), ": needs --retry, which says how often a task is tried again") {
			t.Errorf("%s: %v", flags, err)
		}
	}
}

// putRetry puts flags, in one text, into the first job.
func putRetry(t *testing.T, all []workload.Job, text string) error {
	t.Helper()
	var o retryOptions
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.flags(f, "a task")
	if err := f.Parse(strings.Fields(text)); err != nil {
		t.Fatal(err)
	}
	return o.put(&all[0])
}
