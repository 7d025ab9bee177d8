package admission

import (
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
)

// The largest sizes of the requests of jobs that have not ended: of one user, and of all. A request is as large as
// its arguments and its environment; the daemon has the former in memory, and both in the store. A job with an
// environment of 6 KiB takes that and 1 KiB more, so that a user may have 18,000 of them, or many times that if they
// are submitted together, since then they share the environment.
const (
	MostRequests    = 128 * resource.MiB
	MostAllRequests = 512 * resource.MiB
)

// requests is what the requests of jobs that have not ended take, in bytes. Only the loop uses it.
type requests struct {
	of  map[uint32]resource.Amount // by user
	all resource.Amount
}

func (r *requests) more(j *store.Job) { r.add(j.Request.As.UID, resource.Amount(j.Bytes)) }

func (r *requests) less(j *store.Job) { r.add(j.Request.As.UID, -resource.Amount(j.Bytes)) }

func (r *requests) add(uid uint32, bytes resource.Amount) {
	if r.of == nil {
		r.of = map[uint32]resource.Amount{}
	}
	r.all += bytes
	if r.of[uid] += bytes; r.of[uid] == 0 {
		delete(r.of, uid)
	}
}

// check returns an error, which is OverQuota, if no further request fits. The last one that fits may go beyond the
// bound.
func (r *requests) check(j *store.Job) error {
	whose, taken, most := "your jobs", r.of[j.Request.As.UID], MostRequests
	if taken < most {
		whose, taken, most = "the jobs of all users", r.all, MostAllRequests
	}
	if taken < most {
		return nil
	}
	return api.Errorf(api.OverQuota,
		"job %q: the requests of %s that have not ended take %s, and may take %s: wait until jobs have ended, kill "+
			"some, or submit together what has the same environment", cluster.Printable(j.Request.Job.Name), whose,
		resource.FormatMemory(taken), resource.FormatMemory(most))
}
