package live

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/admission"
	"github.com/bellows-rm/bellows/live/api"
)

// Quotas of what starts are kept by the engine, which knows what has started (core/book/gate.go). The driver keeps
// those of what is submitted: it asks the engine how many jobs wait, and counts submissions and output itself.

const (
	// quotaPatience is how long a submission waits for a quota at most; a client waits for its answer for a minute.
	quotaPatience = 30 * time.Second
	// quotaPause is the shortest time between two attempts of a submission that waits.
	quotaPause = 200 * time.Millisecond
)

type hurried struct{}

// Hurried returns the context of a submission that does not wait for a quota, because its caller has something
// meanwhile that others wait for.
func Hurried(ctx context.Context) context.Context { return context.WithValue(ctx, hurried{}, true) }

// SetQuotas changes the quotas of users and queues; nil means none. Running tasks that exceed a lower quota keep
// running.
func (d *Driver) SetQuotas(q *cluster.Quotas) error {
	if !d.gate.Set(q) {
		return nil
	}
	return d.do(context.Background(), func() {
		if d.inventory.over() { // or else restore does it
			d.tellQuotas()
			d.boundOpen()
		}
	})
}

// tellQuotas sets the quotas of the engine.
func (d *Driver) tellQuotas() {
	d.step(cluster.Event{Kind: cluster.QuotasSet, Found: &cluster.Condition{Quotas: d.gate.Rules()}})
}

// checkQuotas returns an error if jobs of one user would exceed a quota: one that is Invalid if a job does so
// whatever else runs, or else OverQuota.
func (d *Driver) checkQuotas(jobs ...*cluster.Job) error {
	for _, j := range jobs {
		if w := d.gate.Rules().Never(j); w != nil {
			return api.Errorf(api.Invalid, "%w", w)
		}
	}
	if over, ok := d.engine.Snapshot().OverQuota(jobs...); ok {
		return api.Errorf(api.OverQuota, "job %q %w", jobs[0].Name, &over)
	}
	return d.gate.CheckOutput(jobs[0])
}

// awaitQuotas calls submit until no quota is in the way that lets submissions wait, but not for longer than
// quotaPatience. It returns the last error of submit.
func (d *Driver) awaitQuotas(ctx context.Context, submit func() error) error {
	end := time.After(quotaPatience)
	for {
		newer := d.board.Newer()
		err := submit()
		over, ok := errors.AsType[*cluster.Excess](err)
		if !ok || over.Refuses || over.Needs > over.Most || ctx.Value(hurried{}) != nil {
			return err
		}
		pause := time.After(quotaPause)
		for range 2 { // both must have come
			select {
			case <-newer:
				newer = nil
			case <-pause:
				pause = nil
			case <-end:
				return err
			case <-ctx.Done():
				return ctx.Err()
			case <-d.turns.Ended():
				return errStopped
			}
		}
	}
}

// keepPace waits until quotas permit the submission of jobs, or returns an error that is OverQuota: at once if the
// quota refuses, or if the wait would be too long.
func (d *Driver) keepPace(ctx context.Context, jobs ...*cluster.Job) error {
	until := d.now().Add(quotaPatience)
	for {
		now := d.now()
		over, wait := d.gate.Enter(now, jobs)
		if over == nil {
			return nil
		}
		if over.Refuses || over.Needs > over.Most || now.Add(wait) > until || ctx.Value(hurried{}) != nil {
			return admission.TooFast(jobs[0], over, wait)
		}
		if err := await(ctx, d, time.After(wait)); err != nil {
			return err
		}
	}
}

// QuotaUse returns the quotas of all users and queues that the settings name or that have jobs, and of a user with
// this name: users first, by name. Root and others without a limit have none.
func (d *Driver) QuotaUse(ctx context.Context, user string) ([]api.QuotaUse, error) {
	if d.gate.Rules().None() {
		return []api.QuotaUse{}, nil
	}
	taken, err := d.gate.Taken(ctx, func() (all map[cluster.Party]cluster.Taken, err error) {
		err = d.look(ctx, func() { all = d.engine.Snapshot().Taken() })
		return all, err
	})
	if err != nil {
		return nil, err
	}
	return d.gate.Use(user, taken, d.now()), nil
}

// QueuesOf returns the queues of the jobs of a user that have not ended.
func (d *Driver) QueuesOf(o api.Owner) map[string]bool {
	queues := map[string]bool{}
	for j := range d.board.Newest().Jobs.All() {
		if !j.Ended && j.UID == o.UID && j.Job.Owner == o.Name {
			queues[cmp.Or(j.Queue, cluster.DefaultQueue)] = true
		}
	}
	return queues
}
