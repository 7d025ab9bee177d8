package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/pool"
)

// List returns all pools, ordered by owner and name.
func (p *Pools) List(ctx context.Context) ([]api.PoolSummary, error) {
	p.mu.Lock()
	all := p.all()
	p.mu.Unlock()
	out := make([]api.PoolSummary, 0, len(all))
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
func (p *Pools) summary(ctx context.Context, h *held) (api.PoolSummary, pool.View, error) {
	p.mu.Lock()
	one, ref := h.pool, h.record.ref()
	p.mu.Unlock()
	view, err := one.View(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.pools[ref] != h:
		return api.PoolSummary{}, view, notFound(ref)
	case err != nil:
		return api.PoolSummary{}, view, err
	}
	s := api.PoolSummary{PoolRef: ref, Spec: h.record.Spec, Executors: len(h.executors), Wanted: h.target, Why: h.why}
	registered := 0
	for i := range view.Executors {
		e := &view.Executors[i]
		if h.executors[e.Executor] == nil || e.State == api.ExecutorExpired || e.State == api.ExecutorLost {
			continue
		}
		registered++
		if e.Running > 0 || e.State == api.ExecutorAttached {
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
func (p *Pools) Detail(ctx context.Context, r api.PoolRef) (api.PoolDetail, error) {
	p.mu.Lock()
	h := p.pools[r]
	p.mu.Unlock()
	if h == nil {
		return api.PoolDetail{}, notFound(r)
	}
	s, view, err := p.summary(ctx, h)
	if err != nil {
		return api.PoolDetail{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	d := api.PoolDetail{PoolSummary: s, Enrolled: view.Applications, Counters: view.Counters, Synced: view.Synced,
		Broken: view.Broken}
	there := map[int]bool{}
	for _, e := range view.Executors {
		one := api.PoolExecutor{PoolMember: e}
		if l := h.executors[e.Executor]; l != nil {
			one.Job = l.job
			one.Why = cmp.Or(l.ordered, e.Why)
			if l.still {
				one.Why = cmp.Or(l.ordered, fmt.Sprintf("its programs are stopped: `bellows explain %d` says why", l.job))
			}
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
				api.PoolExecutor{PoolMember: api.PoolMember{Executor: number, State: l.state(), Why: p.whyNot(l)}, Job: l.job})
		}
	}
	slices.SortFunc(d.Members, func(a, b api.PoolExecutor) int {
		return cmp.Compare(a.Executor, b.Executor)
	})
	return d, nil
}

// state is that of an executor that has not registered.
func (l *launched) state() api.ExecutorState {
	switch {
	case l.ordered != "":
		return api.ExecutorDraining
	case l.begun.IsZero():
		return api.ExecutorQueued
	}
	return api.ExecutorStarting
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
