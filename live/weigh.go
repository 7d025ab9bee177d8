package live

import (
	"context"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
)

// weighEvery is how often the output of all jobs is measured while there are quotas of output.
const weighEvery = 10 * time.Second

// weigh measures the output of all jobs from time to time, as long as there are quotas of it.
func (d *Driver) weigh(ctx context.Context) {
	for {
		var tick <-chan time.Time
		if d.gate.Rules().Limits(cluster.QuotaOutput) {
			if err := d.weighOnce(ctx); err != nil && ctx.Err() == nil {
				d.log.Warn("cannot measure the output that is kept: quotas of output count what was measured before", "error", err)
			}
			tick = time.After(weighEvery)
		}
		select {
		case <-tick:
		case <-d.gate.Changed():
		case <-ctx.Done():
			return
		}
	}
}

// weighOnce measures the output of all jobs.
func (d *Driver) weighOnce(ctx context.Context) error {
	return d.gate.Output.Weigh(d.config.output(), func(id cluster.JobID) (user string, ok bool, err error) {
		owner, err := d.Owner(ctx, id)
		if api.KindOf(err) == api.NotFound {
			return "", false, nil
		}
		return owner.Name, true, err
	}, func(id cluster.JobID) bool {
		j := d.board.Newest().Jobs.Job(id)
		return j == nil || j.Ended
	})
}
