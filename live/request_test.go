package live

import (
	"testing"
	"testing/synctest"

	"github.com/bellows-rm/bellows/internal/testrequest"
	"github.com/bellows-rm/bellows/live/api"
)

// The API refuses what every front door refuses. What it accepts is submitted.
func TestSubmitRefusesWhatNoJobMayRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		for _, c := range testrequest.Cases {
			s := submission(1)
			s.Job = c.Job()
			got := ""
			if _, err := r.Submit(t.Context(), s); err != nil {
				got = err.Error()
				if api.KindOf(err) != api.Invalid {
					t.Errorf("%s: %v", c.Name, api.KindOf(err))
				}
			}
			if want := c.Place(""); got != want {
				t.Errorf("%s:\ngot  %s\nwant %s", c.Name, got, want)
			}
		}
	})
}
