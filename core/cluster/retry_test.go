package cluster

import (
	"testing"
	"time"
)

// Pauses double up to five minutes, or stay as long as the first if that is longer.
func TestPauses(t *testing.T) {
	for _, c := range []struct {
		delay time.Duration
		want  []time.Duration // after the first failure, the second and so on
	}{
		{0, []time.Duration{0, 0, 0}},
		{time.Second, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}},
		{2 * time.Minute, []time.Duration{2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute}},
		{time.Hour, []time.Duration{time.Hour, time.Hour}},
	} {
		for i, want := range c.want {
			if got := (&Job{RetryDelay: c.delay}).Pause(i + 1); got != want {
				t.Errorf("delay %v: after failure %d the pause is %v, want %v", c.delay, i+1, got, want)
			}
		}
	}
	if got := (&Job{RetryDelay: time.Second}).Pause(MostAttempts); got != LongestRetryDelay {
		t.Errorf("the longest pause is %v", got)
	}
}
