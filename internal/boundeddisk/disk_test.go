package boundeddisk

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/internal/fusedisk"
	"github.com/bellows-rm/bellows/resource"
)

// The queue serves transfers one after the other, at its speed: those that come late catch up by a little, those after a
// pause do not get what was left.
func TestQueue(t *testing.T) {
	q := queue{speed: 1000}
	at := func(d time.Duration) time.Time { return time.Unix(1000, 0).Add(d) }
	for _, c := range []struct {
		what  string
		comes time.Duration
		bytes int
		done  time.Duration
	}{
		{"the first begins a little early", 0, 1000, time.Second - late},
		{"the second waits for the first", 100 * time.Millisecond, 500, 1500*time.Millisecond - late},
		{"one that comes late catches up", 1500*time.Millisecond - late/2, 1000, 2500*time.Millisecond - late},
		{"one after a pause does not", time.Minute, 1000, time.Minute + time.Second - late},
	} {
		if got := q.schedule(at(c.comes), c.bytes); !got.Equal(at(c.done)) {
			t.Errorf("%s: done after %v, want %v", c.what, got.Sub(at(0)), c.done)
		}
	}
	if got := (&queue{}).schedule(at(0), 1000); !got.Equal(at(0)) {
		t.Errorf("without a bound a transfer is done after %v", got.Sub(at(0)))
	}
}

// TestVerify: whatever transfers, and however, stays within the bound. On a busy machine it may stay far below.
func TestVerify(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	if why := fusedisk.Need(); why != "" {
		t.Skip(why)
	}
	const speed = 24_000_000
	d, err := New(t.TempDir(), resource.GiB, speed)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := d.Remove(); err != nil {
			t.Error(err)
		}
	})
	checks, err := d.Verify(2 * time.Second)
	if err != nil || len(checks) != 4 {
		t.Fatalf("%v, %v", checks, err)
	}
	for _, c := range checks {
		t.Logf("%s: %.1f MB/s of %.1f", c.What, float64(c.Achieved)/1e6, speed/1e6)
		if c.Achieved > speed*11/10 || c.Achieved < speed/4 {
			t.Errorf("%s: %d bytes/s with a bound of %d", c.What, c.Achieved, speed)
		}
	}
}
