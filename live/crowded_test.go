package live

import (
	"testing"
	"testing/synctest"
)

// TestStatusOfCrowdedMachine: what the backend says of others on its machine is part of the status, and is no trouble.
func TestStatusOfCrowdedMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		for _, want := range []string{"there are others", ""} {
			r.fake.crowded = want
			if s, err := r.Status(t.Context()); err != nil || s.Crowded != want || s.Trouble != "" {
				t.Errorf("%q: %+v, %v", want, s, err)
			}
		}
	})
}
