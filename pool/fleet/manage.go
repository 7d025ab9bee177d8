package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/pool"
)

const (
	// stepPause is the shortest time between two looks at the sizes of pools, and at the jobs of the machine. The first
	// look after a quiet time comes at once.
	stepPause = 200 * time.Millisecond
	// endsWithin is how long the process of an executor may go on after it was ordered to end, before its job is
	// cancelled.
	endsWithin = 10 * time.Second
)

// follow starts following the jobs of the machine and managing the sizes of pools, unless that has started already: a
// daemon without pools does neither.
func (p *Pools) follow() {
	p.begin.Do(func() {
		p.beside.Go(p.followJobs)
		p.beside.Go(p.followPressure)
		p.beside.Go(p.followMemory)
		p.beside.Go(p.fetchBack)
		p.beside.Go(p.manage)
	})
}

// manage keeps the sizes of pools until they are closed.
func (p *Pools) manage() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-p.dirty:
		case <-timer.C:
		case <-p.ctx.Done():
			return
		}
		if again := p.step(); again > 0 {
			timer.Reset(again)
		} else {
			timer.Reset(time.Hour)
		}
		if !p.pause() {
			return
		}
	}
}

// pause waits for stepPause. It returns false if the pools are closed in the meantime.
func (p *Pools) pause() bool {
	select {
	case <-time.After(stepPause):
		return true
	case <-p.ctx.Done():
		return false
	}
}

// step decides once about the sizes of all pools, and returns when time alone changes the answer; 0 means never.
func (p *Pools) step() (again time.Duration) {
	p.endProcesses()
	p.mu.Lock()
	all := p.all()
	ask := make([]*pool.Pool, len(all))
	for i, h := range all {
		ask[i] = h.pool
	}
	p.mu.Unlock()
	wanted := make([]pool.Wanted, len(all))
	for i := range all {
		wanted[i], _ = ask[i].Wanted(p.ctx) // of a pool that has just been replaced: it is not synced
	}
	lent, taken, again := p.adjustAll(all, wanted)
	p.tellLends(taken, false)
	p.tellLends(lent, true)
	return again
}

// adjustAll brings all pools closer to their sizes. It returns what to report to the driver about executors that
// lend, and when time alone changes what is to be done; 0 means never.
func (p *Pools) adjustAll(all []*held, wanted []pool.Wanted) (lent, taken []cluster.JobID, again time.Duration) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setLimits(now, all, wanted)
	for i, h := range all {
		if p.pools[h.record.ref()] != h {
			continue
		}
		for _, next := range []time.Duration{p.adjust(now, h, &wanted[i]),
			p.lends(h, h.members(now, &wanted[i]), &lent, &taken)} {
			if next > 0 && (again == 0 || next < again) {
				again = next
			}
		}
	}
	return lent, taken, again
}

// adjust brings one pool closer to its size, and returns when time alone changes what is to be done; 0 means never.
func (p *Pools) adjust(now time.Time, h *held, w *pool.Wanted) (again time.Duration) {
	members := h.members(now, w)
	switch {
	case h.record.Removed:
		p.removeFurther(h)
		return stuckAfter(p.insist(now, h, w), endsWithin)
	case p.retiring:
		h.target, h.why = 0, "the daemon is going down"
		for _, m := range members {
			if m.stage != leaving {
				p.end(now, h, ending{m.number, m.stage < idle, h.why})
			}
		}
		return stuckAfter(p.insist(now, h, w), endsWithin)
	case w.Broken != "":
		h.why = w.Broken
		return 0
	case !w.Synced:
		h.why = "it waits for executors of an earlier daemon"
		return 0 // It says when it is.
	}
	s := h.state(now, w, members)
	out := size(s)
	h.target, h.why = out.target, out.why
	switch {
	case !out.over:
		h.surplus = time.Time{}
	case h.surplus.IsZero():
		h.surplus = now
		out.lookAgain(s.idle)
	}
	for _, e := range out.end {
		p.end(now, h, e)
	}
	if room, why := p.room(h.record.ref().Owner()); out.launch > room {
		out.launch, h.why = room, fmt.Sprintf("%s; %s", out.why, why)
	}
	if out.launch > 0 && !h.launching {
		p.launch(h, out.launch)
	}
	if h.limits.warm < s.min {
		out.lookAgain(s.idle)
	}
	return stuckAfter(p.insist(now, h, w), out.again)
}

// room returns how many more executors an owner may have, and why not more.
func (p *Pools) room(owner api.Owner) (more int, why string) {
	most := p.config.MostExecutors
	if most == 0 {
		return NoLimit, ""
	}
	all, own := 0, 0
	for ref, h := range p.pools {
		all += len(h.executors)
		if ref.Owner() == owner {
			own += len(h.executors)
		}
	}
	if most/2-own < most-all {
		return max(0, most/2-own), fmt.Sprintf("all pools of its owner together may have %d executors", most/2)
	}
	return max(0, most-all), fmt.Sprintf("all pools of the machine together may have %d executors", most)
}

// stuckAfter returns again, or endsWithin if an executor was ordered to end and that is sooner.
func stuckAfter(told bool, again time.Duration) time.Duration {
	if told && (again == 0 || endsWithin < again) {
		return endsWithin
	}
	return again
}

// state returns what the size of a pool depends on.
func (h *held) state(now time.Time, w *pool.Wanted, members []member) *state {
	spec := &h.record.Spec
	s := &state{min: spec.Min, max: spec.Max, idle: spec.Idle, recycle: spec.Recycle, demand: w.Tasks, members: members,
		limits: h.limits, holds: h.backoff.holds(now), why: h.backoff.why}
	if !h.surplus.IsZero() {
		s.surplus = now.Sub(h.surplus)
	}
	return s
}

// members returns what the size of a pool depends on, of each executor.
func (h *held) members(now time.Time, w *pool.Wanted) (all []member) {
	registered := map[int]*pool.Member{}
	for i := range w.Members {
		registered[w.Members[i].Number] = &w.Members[i]
	}
	for number, e := range h.executors {
		m := member{number: number, old: number <= h.record.Changed, still: e.still}
		switch r := registered[number]; {
		case r != nil:
			e.registered, e.served = now, e.served || r.Tasks > 0
			m.stage, m.since, m.tasks, m.memory = idle, r.Idle, r.Tasks, resource.Amount(r.Memory)
			if r.Busy {
				m.stage = busy
			}
			if e.quiet = !r.Busy || r.Serves; !e.quiet {
				e.memory = 0
			}
			m.memory = cmp.Or(resource.Amount(e.memory), m.memory)
			if r.Tasks > 0 {
				h.backoff.worked(number)
			}
		case !e.begun.IsZero():
			m.stage, m.since = starting, now.Sub(later(e.begun, e.registered))
		}
		if e.ordered != "" || registered[number] != nil && registered[number].Draining {
			m.stage = leaving
		}
		all = append(all, m)
	}
	return all
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// end tells an executor to end.
func (p *Pools) end(now time.Time, h *held, e ending) {
	l := h.executors[e.number]
	p.log.Debug("ending an executor", "pool", h.record.Spec.Name, "owner", h.record.ref().User, "executor", e.number,
		"now", e.now, "reason", e.why)
	l.ordered, l.orderedAt = e.why, now
	if e.now || h.pool.Drain(p.ctx, e.number, e.why) != nil { // or it has left in the meantime
		p.cancel(h, l)
	}
}

// insist cancels the jobs of executors that were ordered to end and whose processes go on. It returns whether there
// are executors that were ordered to end.
func (p *Pools) insist(now time.Time, h *held, w *pool.Wanted) (told bool) {
	registered := map[int]bool{}
	for i := range w.Members {
		m := &w.Members[i]
		registered[m.Number] = true
		// It was ordered by a pool that has been replaced.
		if l := h.executors[m.Number]; l != nil && l.ordered != "" && !m.Draining {
			_ = h.pool.Drain(p.ctx, m.Number, l.ordered)
		}
	}
	for number, l := range h.executors {
		if l.ordered == "" {
			continue
		}
		told = true
		if l.cancel || !registered[number] && now.Sub(l.orderedAt) >= endsWithin {
			p.cancel(h, l)
		}
	}
	return told
}

// cancel cancels the job of an executor, as soon as it is known.
func (p *Pools) cancel(h *held, l *launched) {
	l.cancel = true
	if l.job == 0 || l.cancelling {
		return
	}
	l.cancelling = true
	as, id := h.record.As, l.job
	p.beside.Go(func() {
		err := p.config.Jobs.Cancel(p.ctx, as, id)
		if err == nil || api.KindOf(err) == api.Invalid || api.KindOf(err) == api.NotFound { // It ends, or has ended.
			return
		}
		p.mu.Lock()
		l.cancelling = false // and is tried again after endsWithin
		p.mu.Unlock()
	})
}

// removeFurther ends the executors of a pool that was removed, and forgets it when none is left.
func (p *Pools) removeFurther(h *held) {
	h.target, h.why = 0, "it ends as soon as its executors have ended"
	for _, l := range h.executors {
		l.ordered = "its pool was removed"
		p.cancel(h, l)
	}
	if len(h.executors) > 0 || h.launching {
		return
	}
	if err := p.book.remove(&h.record); err != nil {
		p.log.Warn("a pool that was removed may come back with the next daemon", "pool", h.record.Spec.Name, "owner",
			h.record.ref().User, "error", err)
	}
	delete(p.pools, h.record.ref())
	p.route()
	h.pool.Close()
	close(h.ended)
}

// setLimits finds out what other owners leave to each pool.
func (p *Pools) setLimits(now time.Time, all []*held, wanted []pool.Wanted) {
	parties, of := p.parties(all, wanted)
	found := divide(p.config.Capacity, parties)
	for i, h := range all {
		l := found[of[i].party][of[i].pool]
		switch {
		case l.waited:
			h.waited = now
		// Executors that ended for others are not kept again at once, unless tasks need them.
		case now.Sub(h.waited) < h.record.Spec.Idle:
			l.warm = h.limits.warm
		}
		h.limits = l
	}
}

// place is that of a pool among the parties.
type place struct{ party, pool int }

// parties returns the owners of pools and of jobs, and where each pool is among them.
func (p *Pools) parties(all []*held, wanted []pool.Wanted) (parties []party, of []place) {
	index := map[api.Owner]int{}
	at := func(o api.Owner) *party {
		i, known := index[o]
		if !known {
			i = len(parties)
			index[o] = i
			parties = append(parties, party{owner: o})
		}
		return &parties[i]
	}
	executors := map[cluster.JobID]bool{}
	for i, h := range all {
		owner, spec := h.record.ref().Owner(), &h.record.Spec
		c := claim{need: needOf(spec), tasks: wanted[i].Tasks, wanted: min(max(wanted[i].Tasks, spec.Min), spec.Max)}
		if h.record.Removed || p.retiring {
			c.wanted = 0
		}
		for _, l := range h.executors {
			executors[l.job] = true
			if !l.begun.IsZero() {
				c.held++
			}
		}
		a := at(owner)
		of = append(of, place{index[owner], len(a.pools)})
		a.pools = append(a.pools, c)
	}
	for id, u := range p.uses {
		at(u.owner).add(&u, executors[id], p.config.Capacity)
	}
	return parties, of
}

// use is what a job has of the machine, and what it waits for.
type use struct {
	owner api.Owner
	held  resource.Vector // by its tasks
	lent  resource.Amount // of held, cores that its tasks lend
	waits resource.Vector // what its tasks need that could start if there were room
	least resource.Vector // what one of them needs; zero if there is none
}

// useOf returns the use of a job.
func useOf(j *api.Job, capacity resource.Vector) (u use) {
	u.owner = api.Owner{UID: j.UID, Name: j.Owner}
	for i := range j.Tasks {
		if t := &j.Tasks[i]; t.State != api.TaskEnded {
			u.held = u.held.Add(resource.Of(resource.Amount(t.CPUMillicores), resource.Amount(t.MemoryBytes)))
			if t.Lends || t.Suspended != nil && t.Suspended.Lends {
				u.lent += resource.Amount(t.CPUMillicores)
			}
		}
	}
	for i := range j.Stages {
		if s := &j.Stages[i]; s.Startable > 0 {
			u.waits = u.waits.Add(times(s.Ideal, s.Startable))
			u.least = smaller(capacity, u.least, s.Ideal)
		}
	}
	return u
}

// smaller returns the need that is the smaller fraction of a capacity. A zero need does not count.
func smaller(capacity, a, b resource.Vector) resource.Vector {
	if b == (resource.Vector{}) || a != (resource.Vector{}) && dominant(capacity, a) <= dominant(capacity, b) {
		return a
	}
	return b
}

// add adds a job to what its owner has and waits for.
func (a *party) add(u *use, executor bool, capacity resource.Vector) {
	a.held = a.held.Add(u.held)
	a.least = smaller(capacity, a.least, u.least)
	if !executor {
		a.jobs, a.waits = a.jobs.Add(u.held), a.waits.Add(u.waits)
	}
}

// Retire ends all executors before the daemon ends for good, unless applications need them: then the error is
// api.Conflict. With kill, it only stops further launches. resume undoes it.
func (p *Pools) Retire(ctx context.Context, kill bool) (resume func(), err error) {
	all, err := p.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if n := s.Applications; n > 0 && !kill {
			return nil, api.Errorf(api.Conflict,
				"pool %q of %s has applications that have not ended, %d of them: wait for the end, or have them killed", s.Name,
				s.User, n)
		}
	}
	jobs, err := p.config.Jobs.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !kill && slices.ContainsFunc(jobs, func(j api.Job) bool { h, _ := p.executorOf(&j); return h == nil }) {
		return func() {}, nil // The driver refuses to end.
	}
	p.retiring = true
	resume = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.retiring = false
		p.kick()
	}
	p.kick()
	if kill {
		return resume, nil
	}
	if err := p.awaitNone(ctx); err != nil {
		p.retiring = false
		p.kick()
		return nil, err
	}
	return resume, nil
}

// retiresWithin is how long Retire waits for executors that run nothing.
const retiresWithin = 3 * endsWithin

// awaitNone waits until there is no executor. The caller holds p.mu, which is free meanwhile.
func (p *Pools) awaitNone(ctx context.Context) error {
	late := time.After(retiresWithin)
	for {
		left := 0
		for _, h := range p.pools {
			left += len(h.executors)
		}
		if left == 0 {
			return nil
		}
		fewer := p.fewer
		p.mu.Unlock()
		var err error
		select {
		case <-fewer:
		case <-late:
			err = api.Errorf(api.Conflict, "%d executors of pools have not ended within %v: have them killed", left,
				retiresWithin)
		case <-ctx.Done():
			err = ctx.Err()
		case <-p.ctx.Done():
			err = errStopped
		}
		p.mu.Lock()
		if err != nil {
			return err
		}
	}
}

// unanswering is an executor that does not answer its pool.
type unanswering struct {
	ref    api.PoolRef
	number int
	why    string
}

// endProcess says that an executor is to be ended, because it does not answer. It does not wait.
func (p *Pools) endProcess(ref api.PoolRef, number int, why string) {
	p.unanswering.Lock()
	p.unanswering.all = append(p.unanswering.all, unanswering{ref, number, why})
	p.unanswering.Unlock()
	p.kick()
}

// endProcesses ends the executors that do not answer. One whose programs are stopped cannot answer: it registers
// again when they go on.
func (p *Pools) endProcesses() {
	p.unanswering.Lock()
	all := p.unanswering.all
	p.unanswering.all = nil
	p.unanswering.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, u := range all {
		h := p.pools[u.ref]
		if h == nil || h.executors[u.number] == nil || h.executors[u.number].still {
			continue
		}
		p.log.Warn("ending an executor that does not answer", "pool", u.ref.Name, "owner", u.ref.User, "executor", u.number,
			"job", h.executors[u.number].job, "reason", u.why)
		p.end(time.Now(), h, ending{u.number, true, fmt.Sprintf("it does not answer: %s", u.why)})
	}
}
