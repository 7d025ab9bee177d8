package live

import (
	"context"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/format/eventlog"
	"github.com/bellows-rm/bellows/live/api"
)

// Present returns the cluster as it is and a job as it would be submitted now, with forecasts, and who owns the jobs.
// It changes nothing. The ID of the job is one that the next job can get. The error is Invalid if the job cannot be
// submitted. Whether it fits on a node under the policy is not checked.
func (d *Driver) Present(ctx context.Context, s Submission) (*eventlog.Present, map[cluster.JobID]api.Owner, error) {
	if err := d.awaitInventory(ctx); err != nil {
		return nil, nil, err
	}
	j, err := d.prepare(ctx, &s)
	if err != nil {
		return nil, nil, err
	}
	p, owners := &eventlog.Present{Job: j.Request.Job.Estimates()}, map[cluster.JobID]api.Owner{}
	if e := d.inTurn(ctx, func() {
		if err = d.health.broken; err != nil {
			return
		}
		s := d.engine.Snapshot()
		p.Now, p.Header = d.now(), d.config.header(s)
		p.Found = s.Inventory(p.Now)
		p.Job.ID = d.board.Newest().Last
		for id, j := range d.jobs {
			owners[id] = api.OwnerOf(j.Request.As)
			p.Job.ID = max(p.Job.ID, id)
		}
	}); e != nil {
		return nil, nil, e
	}
	p.Job.ID++
	p.Job.Submitted = p.Now
	return p, owners, err
}
