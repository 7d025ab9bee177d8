package live

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/live/kept"
)

// TestStatusOfCrowdedMachine: the backend's report of other daemons on its machine is part of the status, but is not
// trouble.
func TestStatusOfCrowdedMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		for _, want := range []string{"there are others", ""} {
			r.fake.crowded = want
			time.Sleep(kept.Old + 1)
			if s, err := r.Status(t.Context()); err != nil || s.Crowded != want || s.Trouble != "" {
				t.Errorf("%q: %+v, %v", want, s, err)
			}
		}
	})
}

// TestStatusOfMendedBooks: the status reports that the books were wrong until the daemon ends.
func TestStatusOfMendedBooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		for n, want := range map[int64]string{0: "",
			2: "the memory manager's books were wrong about 2 containers, and were mended; the log names them"} {
			r.fake.mended = n
			if s, err := r.Status(t.Context()); err != nil || s.Trouble != want {
				t.Errorf("%d mended: %q, %v", n, s.Trouble, err)
			}
		}
	})
}
