package fleet

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/pool"
)

// Summary is what people see of a pool among others.
type Summary struct {
	Ref
	Spec         Spec   `json:"spec"`
	Executors    int    `json:"executors" doc:"executors whose jobs have not ended"`
	Starting     int    `json:"starting" doc:"of them, those that have not registered: their jobs wait, or their programs begin"`
	Busy         int    `json:"busy" doc:"of them, those that run a task"`
	Idle         int    `json:"idle" doc:"of them, those that run nothing"`
	Wanted       int    `json:"wanted" doc:"executors that there should be now"`
	Applications int    `json:"applications" doc:"applications that have not ended"`
	Why          string `json:"why,omitempty" doc:"why there should be that number, and why there are fewer"`
}

// Detail is what people see of a single pool.
type Detail struct {
	Summary
	Members  []Executor         `json:"members,omitempty" doc:"the executors, and those that were lost in the last minutes"`
	Enrolled []pool.Application `json:"enrolled,omitempty" doc:"the applications"`
	Counters pool.Counters      `json:"counters" doc:"what has happened since the daemon began"`
	Synced   bool               `json:"synced" doc:"false: the pool waits for executors of an earlier daemon"`
	Broken   string             `json:"broken,omitempty" doc:"why the pool decides nothing more; omitted if it does"`
}

// Executor is what people see of an executor: what its pool knows of it, and its job.
type Executor struct {
	pool.Executor
	Job   cluster.JobID `json:"job,omitempty" doc:"the job that the executor is; omitted if it has not been submitted yet, or has ended"`
	Lends bool          `json:"lends,omitempty" doc:"it runs nothing, and lends its cores until it has a task"`
}

// States of executors that have not registered.
const (
	Queued   pool.State = "queued"   // its job has not started
	Starting pool.State = "starting" // its program has begun
)

// List returns all pools, ordered by owner and name.
func (p *Pools) List(ctx context.Context) ([]Summary, error) {
	p.mu.Lock()
	all := p.all()
	p.mu.Unlock()
	out := make([]Summary, 0, len(all))
	for _, h := range all {
		s, _, err := p.summary(ctx, h)
		if api.KindOf(err) == api.NotFound { // It was removed in the meantime.
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// summary returns what people see of a pool, and what it knows itself.
func (p *Pools) summary(ctx context.Context, h *held) (Summary, pool.View, error) {
	p.mu.Lock()
	one, ref := h.pool, h.record.ref()
	p.mu.Unlock()
	view, err := one.View(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.pools[ref] != h:
		return Summary{}, view, notFound(ref)
	case err != nil:
		return Summary{}, view, err
	}
	s := Summary{Ref: ref, Spec: h.record.Spec, Executors: len(h.executors), Wanted: h.target, Why: h.why}
	registered := 0
	for i := range view.Executors {
		e := &view.Executors[i]
		if h.executors[e.Executor] == nil || e.State == pool.Expired || e.State == pool.Lost {
			continue
		}
		registered++
		if e.Running > 0 || e.State == pool.Attached {
			s.Busy++
		} else {
			s.Idle++
		}
	}
	s.Starting = s.Executors - registered
	for i := range view.Applications {
		if a := &view.Applications[i]; a.State == "open" || a.State == "closed" {
			s.Applications++
		}
	}
	return s, view, nil
}

// Detail returns a pool with its executors and applications. The error may be api.NotFound.
func (p *Pools) Detail(ctx context.Context, r Ref) (Detail, error) {
	p.mu.Lock()
	h := p.pools[r]
	p.mu.Unlock()
	if h == nil {
		return Detail{}, notFound(r)
	}
	s, view, err := p.summary(ctx, h)
	if err != nil {
		return Detail{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	d := Detail{Summary: s, Enrolled: view.Applications, Counters: view.Counters, Synced: view.Synced, Broken: view.Broken}
	there := map[int]bool{}
	for _, e := range view.Executors {
		one := Executor{Executor: e}
		if l := h.executors[e.Executor]; l != nil {
			one.Job = l.job
			one.Why = cmp.Or(l.ordered, e.Why)
			if one.Lends = p.lendsCores(l.job); one.Lends && one.Why == "" {
				one.Why = lendsWhy
			}
		}
		there[e.Executor] = true
		d.Members = append(d.Members, one)
	}
	for number, l := range h.executors {
		if !there[number] {
			d.Members = append(d.Members,
				Executor{Executor: pool.Executor{Executor: number, State: l.state(), Why: p.whyNot(l)}, Job: l.job})
		}
	}
	slices.SortFunc(d.Members, func(a, b Executor) int { return cmp.Compare(a.Executor.Executor, b.Executor.Executor) })
	return d, nil
}

// state is that of an executor that has not registered.
func (l *launched) state() pool.State {
	switch {
	case l.ordered != "":
		return pool.Draining
	case l.begun.IsZero():
		return Queued
	}
	return Starting
}

// whyNot says why an executor has not registered.
func (p *Pools) whyNot(l *launched) string {
	if l.ordered != "" {
		return l.ordered
	}
	switch j, ok := p.jobs[l.job]; {
	case !ok:
		return ""
	case l.begun.IsZero():
		return j.Waiting
	default:
		return "its program began at " + j.Started.Format(time.TimeOnly)
	}
}
