package live

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
)

// weighEvery is how often the output of all jobs is measured while there are quotas of output.
const weighEvery = 10 * time.Second

// outputs is how much output of each user is kept.
type outputs struct {
	known   map[cluster.JobID]*weighed       // only weigh uses it
	taken   atomic.Pointer[map[string]int64] // bytes by user; nil before the first measurement
	changed signal                           // has an element if the quotas have changed
}

// weighed is the output of a job.
type weighed struct {
	owner string
	bytes int64
	final bool // the job has ended, and its output was measured afterwards
}

// weigh measures the output of all jobs from time to time, as long as there are quotas of it.
func (d *Driver) weigh(ctx context.Context) {
	for {
		var tick <-chan time.Time
		if d.admission.rules().Limits(cluster.QuotaOutput) {
			if err := d.weighOnce(ctx); err != nil && ctx.Err() == nil {
				d.log.Warn("cannot measure the output that is kept: quotas of output count what was measured before", "error", err)
			}
			tick = time.After(weighEvery)
		}
		select {
		case <-tick:
		case <-d.admission.outputs.changed:
		case <-ctx.Done():
			return
		}
	}
}

// weighOnce measures the output of all jobs. That of a job that has ended is measured once.
func (d *Driver) weighOnce(ctx context.Context) error {
	folders, err := os.ReadDir(filepath.Join(d.config.Dir, "logs"))
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
		w := d.admission.outputs.known[id]
		if w == nil {
			owner, err := d.Owner(ctx, id)
			if api.KindOf(err) == api.NotFound {
				continue // It was removed, and its output is about to be.
			}
			if err != nil {
				return err
			}
			w = &weighed{owner: owner.Name}
		}
		if !w.final {
			j := d.board.Newest().Jobs.Job(id)
			w.final = j == nil || j.Ended
			w.bytes = d.outputSize(id)
		}
		known[id] = w
		taken[w.owner] += w.bytes
	}
	d.admission.outputs.known = known
	d.admission.outputs.taken.Store(&taken)
	return nil
}

// checkOutput returns an error if the owner of a job has as much output as a quota permits, or more.
func (d *Driver) checkOutput(j *cluster.Job) error {
	party := cluster.Party{Name: j.Owner}
	quota := d.admission.rules().Of(party, cluster.QuotaOutput)
	taken := d.admission.outputs.taken.Load()
	if taken == nil || (*taken)[j.Owner] < quota.Most {
		return nil
	}
	return api.Errorf(api.OverQuota, "job %q %w", j.Name,
		&cluster.Excess{Party: party, Kind: cluster.QuotaOutput, Quota: quota,
			Taken: (*taken)[j.Owner]})
}
