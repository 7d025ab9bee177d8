package live

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
)

// OfJob is the error of one of several jobs that were submitted together. It has the kind of Err.
type OfJob struct {
	Index int // among the jobs, counted from 0
	Err   error
}

// Error names the job by its place in the request.
func (e *OfJob) Error() string { return fmt.Sprintf("jobs[%d]: %v", e.Index, e.Err) }

// Unwrap returns the error of the job.
func (e *OfJob) Unwrap() error { return e.Err }

// SubmitAll checks and accepts jobs of a user, all or none, and returns the id of the first and the number of jobs;
// the ids of the others follow. When it returns, the jobs are stored and survive any crash. Their own Callers and
// Keys do not count. Quotas count all of them. An error that jobs yields ends it. What is wrong with a job is an
// OfJob; the kinds are those of Submit.
func (d *Driver) SubmitAll(ctx context.Context, by cluster.Credentials, key Key,
	jobs iter.Seq2[Submission, error]) (first cluster.JobID, n int, err error) {
	defer func() { d.counts.Submission(err) }()
	named := key.stored(by, d.now())
	earlier, err := d.repeated(ctx, named)
	switch {
	case err != nil:
		return 0, 0, err
	case earlier != nil:
		return earlier.First, earlier.Jobs, nil
	}
	if err := d.awaitInventory(ctx); err != nil {
		return 0, 0, err
	}
	all, err := d.prepareAll(ctx, by, jobs)
	if err != nil {
		return 0, 0, err
	}
	specs := make([]*cluster.Job, len(all))
	for i := range all {
		specs[i] = &all[i].Request.Job
	}
	if err := d.keepPace(ctx, specs...); err != nil {
		return 0, 0, err
	}
	err = d.awaitQuotas(ctx, func() (err error) {
		first, n, err = d.receiveAll(ctx, all, specs, named)
		return err
	})
	return first, n, err
}

// receiveAll stores jobs, with their key unless that is nil, and hands them to the engine. specs are those of the jobs.
func (d *Driver) receiveAll(ctx context.Context, all []store.Job, specs []*cluster.Job,
	named *store.Key) (first cluster.JobID, n int, err error) {
	leave, err := d.enter(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer leave()
	if e := d.do(ctx, func() { err = d.acceptsJobs() }); e != nil || err != nil {
		return 0, 0, cmp.Or(e, err)
	}
	if err := d.inParts(ctx, len(all), func(i int) error { return d.canRun(specs[i], i) }); err != nil {
		return 0, 0, err
	}
	if e := d.do(ctx, func() {
		err = cmp.Or(d.acceptsJobs(), d.checkQuotas(specs...), d.gate.Check(&all[0]))
	}); e != nil || err != nil {
		return 0, 0, cmp.Or(e, err)
	}
	// The loop goes on meanwhile: it waits only if it has to write to the store, too.
	first, earlier, err := d.store.AddJobs(ctx, all, named)
	switch {
	case err != nil:
		if store.IsFull(err) {
			_ = d.do(context.WithoutCancel(ctx), d.runShort)
		}
		return 0, 0, err
	case earlier != nil: // It arrived at the same time.
		return earlier.First, earlier.Jobs, repeats(named, earlier)
	case named != nil:
		d.keeping.KeyAdded()
	}
	d.log.Info("jobs submitted together", "first", first, "jobs", len(all), "owner", all[0].Request.Job.Owner)
	// Now they are accepted, whatever happens: if the loop ends before it has all, the next Start hands the others to
	// its engine.
	_ = d.inParts(context.WithoutCancel(ctx), len(all), func(i int) error {
		d.receiveJob(first+cluster.JobID(i), all[i])
		return nil
	})
	return first, len(all), nil
}

// prepareAll makes the stored form of jobs of a user.
func (d *Driver) prepareAll(ctx context.Context, by cluster.Credentials,
	jobs iter.Seq2[Submission, error]) (all []store.Job, err error) {
	now := d.now()
	for s, err := range jobs {
		var j store.Job
		if s.Caller = by; err == nil {
			j, err = d.prepare(ctx, &s)
		}
		if err != nil {
			return nil, &OfJob{len(all), err}
		}
		j.Submitted = now
		all = append(all, j)
	}
	if len(all) == 0 {
		return nil, api.Errorf(api.Invalid, "jobs: must be at least one")
	}
	return all, nil
}

// canRun returns an error if a job can never run here.
func (d *Driver) canRun(j *cluster.Job, index int) error {
	d.boundAll(j)
	if err := policy.CheckRuns(d.config.Policy, d.engine.Snapshot(), j); err != nil {
		return &OfJob{index, api.Errorf(api.Invalid, "%w", err)}
	}
	if w := d.gate.Rules().Never(j); w != nil {
		return &OfJob{index, api.Errorf(api.Invalid, "%w", w)}
	}
	return nil
}

// The loop is held up for partTime by a part of what is done for many jobs, or for partJobs of them.
const (
	partTime = 2 * time.Millisecond
	partJobs = 256
)

// inParts makes the loop call f for 0 to n-1, until it fails, and do other work in between.
func (d *Driver) inParts(ctx context.Context, n int, f func(i int) error) (err error) {
	for i := 0; i < n && err == nil; {
		gone := d.do(ctx, func() {
			begun := time.Now()
			for end := min(n, i+partJobs); i < end && err == nil && time.Since(begun) < partTime; i++ {
				err = f(i)
			}
		})
		if gone != nil {
			return gone
		}
	}
	return err
}

// enter waits until no other submission is being stored and handed to the engine: jobs enter the engine by ascending
// id. leave lets the next one in.
func (d *Driver) enter(ctx context.Context) (leave func(), err error) {
	return d.gate.Leave, pass(ctx, d, d.gate.Entry(), struct{}{})
}
