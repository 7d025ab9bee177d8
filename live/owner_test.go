package live

import (
	"math"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
)

// A job belongs to the user of its submission: neither to another user, nor to a user who has got the same uid since.
func TestOwner(t *testing.T) {
	r := newRig(t, fifo(t))
	defer r.end()
	named, nameless := submission(1), submission(1)
	nameless.Caller = cluster.Credentials{UID: 3000, GID: 3000}
	for want, s := range map[api.Owner]Submission{{UID: 2000, Name: "ada"}: named, {UID: 3000, Name: "3000"}: nameless} {
		id := r.submit(s)
		if got, err := r.Owner(t.Context(), id); err != nil || got != want || got != api.OwnerOf(s.Caller) {
			t.Errorf("job %d belongs to %+v, %v, want %+v", id, got, err, want)
		}
		j, err := r.Job(t.Context(), id, false)
		if got := (api.Owner{UID: j.UID, Name: j.Owner}); err != nil || got != want {
			t.Errorf("job %d is shown as that of %+v, %v, want %+v", id, got, err, want)
		}
		for _, other := range []cluster.Credentials{{UID: want.UID, User: "bob"}, {UID: 1, User: want.Name}, {}} {
			if api.OwnerOf(other) == want {
				t.Errorf("%+v owns job %d of %+v", other, id, want)
			}
		}
	}
	for _, id := range []cluster.JobID{0, -1, 99, math.MaxInt64, math.MinInt64} {
		if got, err := r.Owner(t.Context(), id); api.KindOf(err) != api.NotFound {
			t.Errorf("job %d belongs to %+v, %v", id, got, err)
		}
	}
}
