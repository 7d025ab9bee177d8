package fusedisk

import (
	"testing"
	"time"
)

// The arm serves transfers one after the other, at its speed: those that come late catch up by a little, those after a
// pause do not get what was left, and moving costs time.
func TestArm(t *testing.T) {
	a := Arm{pace: Pace{Rate: 1000, Seek: 10 * time.Millisecond}}
	at := func(d time.Duration) time.Time { return time.Unix(1000, 0).Add(d) }
	for _, c := range []struct {
		what          string
		comes         time.Duration
		offset, bytes int64
		done          time.Duration
	}{
		{"the first begins at once", 0, 0, 1000, time.Second},
		{"the second waits for the first", 100 * time.Millisecond, 1000, 500, 1500 * time.Millisecond},
		{"one that comes late catches up", 1500*time.Millisecond + late/2, 1500, 1000, 2500 * time.Millisecond},
		{"one after a pause does not", time.Minute, 2500, 1000, time.Minute + time.Second},
		{"one elsewhere needs the arm to move", time.Minute, 0, 1000, time.Minute + 2010*time.Millisecond},
	} {
		if got := a.schedule(at(c.comes), c.offset, c.bytes); !got.Equal(at(c.done)) {
			t.Errorf("%s: done after %v, want %v", c.what, got.Sub(at(0)), c.done)
		}
	}
	if got := (&Arm{}).schedule(at(0), 0, 1000); !got.Equal(at(0)) {
		t.Errorf("without a rate a transfer is done after %v", got.Sub(at(0)))
	}
}
