package output

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"sync/atomic"

	"github.com/bellows-rm/bellows/core/cluster"
)

// Kept is how much output of each user is kept. One goroutine weighs; any may ask.
type Kept struct {
	known map[cluster.JobID]*weighed
	taken atomic.Pointer[map[string]int64] // bytes by user; nil before the first measurement
}

// weighed is the output of a job.
type weighed struct {
	owner string
	bytes int64
	final bool // the job has ended, and its output was measured afterwards
}

// Of is how many bytes of output a user has; ok is false before the first measurement.
func (k *Kept) Of(user string) (bytes int64, ok bool) {
	taken := k.taken.Load()
	if taken == nil {
		return 0, false
	}
	return (*taken)[user], true
}

// Users calls add with each user who has output.
func (k *Kept) Users(add func(user string)) {
	if taken := k.taken.Load(); taken != nil {
		for user := range *taken {
			add(user)
		}
	}
}

// Weigh measures the output of all jobs. That of a job that has ended is measured once. owner returns the user of a
// job; ok is false if the job was removed.
func (k *Kept) Weigh(f Folder, owner func(cluster.JobID) (user string, ok bool, err error),
	ended func(cluster.JobID) bool) error {
	folders, err := os.ReadDir(string(f))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	known, taken := map[cluster.JobID]*weighed{}, map[string]int64{}
	for _, folder := range folders {
		number, err := strconv.ParseInt(folder.Name(), 10, 64)
		if err != nil {
			continue
		}
		id := cluster.JobID(number)
		w := k.known[id]
		if w == nil {
			user, ok, err := owner(id)
			if err != nil {
				return err
			}
			if !ok {
				continue // Its output is about to be removed.
			}
			w = &weighed{owner: user}
		}
		if !w.final {
			w.final = ended(id)
			w.bytes = f.Size(id)
		}
		known[id] = w
		taken[w.owner] += w.bytes
	}
	k.known = known
	k.taken.Store(&taken)
	return nil
}
