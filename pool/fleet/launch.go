package fleet

import (
	"cmp"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/live/api"
)

// launched is an executor whose job has not ended.
type launched struct {
	number     int
	job        cluster.JobID // 0 until it is known
	begun      time.Time     // when this daemon first knew that its program had begun; zero if it has not
	registered time.Time     // when it was last known to be registered; zero if never
	still      bool          // its programs are stopped
	held       bool          // bellows has stopped them, and not a user
	served     bool          // it has run a task, as far as that is known
	ordered    string        // why it was ordered to end; empty if it was not
	orderedAt  time.Time
	quiet      bool  // it runs no task of its pool: it is idle, or serves an application that starts its own
	memory     int64 // of its processes, as measured while it was quiet; 0 is unknown
	cancel     bool  // its job is to be cancelled
	cancelling bool  // its job is being cancelled
}

func ownUID() uint32 { return uint32(os.Geteuid()) }

// launch submits executors. Their numbers are stored first, so that no number is used twice, whenever the daemon
// dies; submitted jobs are found by name.
func (p *Pools) launch(h *held, n int) {
	r := h.record
	r.Launched += n
	if err := p.book.write(&r); err != nil {
		p.launchFailed(h, err)
		return
	}
	first := h.record.Launched + 1
	h.record = r
	for number := first; number <= r.Launched; number++ {
		h.executors[number] = &launched{number: number}
	}
	h.launching = true
	p.beside.Go(func() {
		id, accepted, err := p.submit(&r, first, n)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.submitted(h, first, n, id, accepted, err)
	})
}

// submit submits executors with the numbers from first on. If a quota has no room for all of them, it submits fewer.
func (p *Pools) submit(r *record, first, n int) (id cluster.JobID, accepted int, err error) {
	if err := p.sameUser(r.As); err != nil {
		return 0, 0, err
	}
	for number := first; number < first+n; number++ {
		if err := p.handover.give(r.ID, number, p.key.secret(r.ID, number), r.As); err != nil {
			return 0, 0, err
		}
	}
	for ; n > 0; n /= 2 {
		id, accepted, err = p.config.Jobs.SubmitAll(live.Hurried(p.ctx), r.As, live.Key{}, p.submissions(r, first, n))
		if api.KindOf(err) != api.OverQuota {
			break
		}
	}
	return id, accepted, err
}

// submissions are the jobs of executors with the numbers from first on.
func (p *Pools) submissions(r *record, first, n int) iter.Seq2[live.Submission, error] {
	return func(yield func(live.Submission, error) bool) {
		for number := first; number < first+n; number++ {
			job := jobOf(&r.Spec, number)
			command := &job.Stages[0].Command
			if r.Spec.Language == api.PoolPython {
				command.Args = append(command.Args[:len(command.Args):len(command.Args)], p.workerPath())
			}
			command.Env = map[string]string{
				executor.SocketVariable: p.config.Socket, executor.PoolVariable: r.Spec.Name,
				executor.ExecutorVariable: fmt.Sprint(number),
				executor.SecretVariable:   p.handover.secretPath(r.ID, number)}
			if !yield(live.Submission{Job: *job, Caller: r.As, Env: r.Spec.Env, Dir: r.Spec.Dir, Inherited: r.Spec.Inherited},
				nil) {
				return
			}
		}
	}
}

// submitted records which executors were submitted; the ids of their jobs are consecutive, starting with id.
func (p *Pools) submitted(h *held, first, n int, id cluster.JobID, accepted int, err error) {
	defer p.kick()
	h.launching = false
	if err != nil {
		accepted = 0
		p.launchFailed(h, err)
	}
	for i := range n {
		l := h.executors[first+i]
		switch {
		case l == nil: // It has ended already.
		case i >= accepted && l.job == 0:
			p.forget(h, l)
		case i < accepted:
			l.job = id + cluster.JobID(i)
			if l.cancel {
				p.cancel(h, l)
			}
		}
	}
	if err == nil && accepted < n {
		p.launchFailed(h, fmt.Errorf("a quota has room for %d of %d more executors", accepted, n))
	}
}

// launchFailed says why executors were not launched, and delays further launches.
func (p *Pools) launchFailed(h *held, err error) {
	if p.ctx.Err() != nil {
		return
	}
	now := time.Now()
	h.backoff.failed(now, h.record.Launched, fmt.Sprintf("none was launched: %v", err))
	p.kick()
	p.log.Warn("executors cannot be launched", "pool", h.record.Spec.Name, "owner", h.record.ref().User, "error", err,
		"again_in", h.backoff.holds(now))
}

// forget forgets an executor that has ended, or was not submitted.
func (p *Pools) forget(h *held, l *launched) {
	delete(h.executors, l.number)
	p.handover.drop(h.record.ID, l.number)
	close(p.fewer)
	p.fewer = make(chan struct{})
}

// sameUser returns an error if the uid of the owner of a pool now belongs to another user: an executor would have the
// wrong rights.
func (p *Pools) sameUser(c cluster.Credentials) error {
	if c.User == "" {
		return nil
	}
	u, err := p.config.LookUp(fmt.Sprint(c.UID))
	if err == nil && u.Username != c.User {
		return fmt.Errorf("user id %d belongs to %s now, and the pool to %s", c.UID, u.Username, c.User)
	}
	return nil // Users whom this program cannot look up are as they were.
}

// find finds the executors that an earlier daemon launched, and hands their secrets over again.
func (p *Pools) find() error {
	jobs, err := p.config.Jobs.Jobs(p.ctx)
	if err != nil {
		return fmt.Errorf("find the executors of pools: %w", err)
	}
	for i := range jobs {
		p.see(&jobs[i])
	}
	for _, h := range p.pools {
		for number := range h.executors {
			if err := p.handover.give(h.record.ID, number, p.key.secret(h.record.ID, number), h.record.As); err != nil {
				return err
			}
		}
	}
	return nil
}

// followJobs follows the jobs of the machine until the pools are closed.
func (p *Pools) followJobs() {
	for revision := int64(0); ; {
		u, err := p.config.Jobs.Changes(p.ctx, revision)
		if err != nil { // The driver has ended.
			return
		}
		revision = u.Revision
		p.mu.Lock()
		p.learn(&u)
		p.mu.Unlock()
		p.kick()
		if !p.pause() {
			return
		}
	}
}

// learn learns what has changed about the jobs of the machine.
func (p *Pools) learn(u *api.Update) {
	u.Apply(p.jobs)
	if u.Snapshot {
		clear(p.uses)
	}
	for i := range u.Jobs {
		j := &u.Jobs[i]
		if whole, here := p.jobs[j.ID]; here {
			j = &whole
			p.uses[j.ID] = useOf(j, p.config.Capacity)
		} else {
			delete(p.uses, j.ID)
		}
		p.see(j)
	}
	if u.Snapshot {
		p.seeMissing()
	}
}

// see learns of a job, which may be an executor.
func (p *Pools) see(j *api.Job) {
	h, number := p.executorOf(j)
	if h == nil {
		return
	}
	l := h.executors[number]
	if l == nil && !j.Ended { // of an earlier daemon
		l = &launched{number: number}
		h.executors[number] = l
	}
	if l == nil || l.job != 0 && l.job != j.ID {
		return
	}
	was := l.held
	l.job, l.still, l.held = j.ID, false, false
	if l.begun.IsZero() && !j.Started.IsZero() {
		l.begun = time.Now()
	}
	for i := range j.Tasks {
		if s := j.Tasks[i].Suspended; s != nil {
			l.still, l.held = true, s.By&cluster.HeldByOwner == 0
		}
	}
	if l.held != was {
		_ = h.pool.Still(p.ctx, number, l.held)
	}
	if j.Ended {
		p.ended(h, l, j)
	} else if l.cancel {
		p.cancel(h, l)
	}
}

// executorOf returns the pool and the number of the executor that a job is; no pool if the job is not an executor.
func (p *Pools) executorOf(j *api.Job) (h *held, number int) {
	name, ok := strings.CutPrefix(j.App, appPrefix)
	if !ok {
		return nil, 0
	}
	h = p.pools[api.PoolRef{UID: j.UID, User: j.Owner, Name: name}]
	number, ok = numberOf(name, j)
	if h == nil || !ok || number > h.record.Launched {
		return nil, 0
	}
	return h, number
}

// seeMissing looks for the ends of executors whose jobs are not in a snapshot: they ended before it, or were
// submitted after it.
func (p *Pools) seeMissing() {
	for _, h := range p.pools {
		for _, l := range h.executors {
			if _, here := p.jobs[l.job]; here || l.job == 0 {
				continue
			}
			id := l.job
			p.beside.Go(func() {
				j, err := p.config.Jobs.Job(p.ctx, id, false)
				p.mu.Lock()
				defer p.mu.Unlock()
				switch {
				case api.KindOf(err) == api.NotFound:
					p.ended(h, l, &api.Job{ID: id, Status: cluster.StatusCancelled})
				case err == nil && j.Ended:
					p.see(&j)
				}
				p.kick()
			})
		}
	}
}

// ended handles the end of an executor. One that soon ended by itself, without having run a task, delays further
// launches.
func (p *Pools) ended(h *held, l *launched, j *api.Job) {
	if h.executors[l.number] != l {
		return
	}
	p.forget(h, l)
	how := howEnded(j)
	served, _ := h.pool.Left(p.ctx, l.number, l.cause(j), how)
	byItself := l.ordered == "" && (j.Status == cluster.StatusFailed || j.Status == cluster.StatusSucceeded)
	if !byItself || served || l.served || !j.Started.IsZero() && j.Finished.Sub(j.Started) > youngest {
		return
	}
	now := time.Now()
	h.backoff.failed(now, h.record.Launched,
		fmt.Sprintf("executor %d ended before it ran a task: %s; `bellows logs --stderr %d` has what it printed", l.number,
			cmp.Or(how, "its program ended by itself"), j.ID))
	p.log.Warn("an executor ended before it ran a task", "pool", h.record.Spec.Name, "owner", h.record.ref().User,
		"executor", l.number, "job", j.ID, "reason", j.Detail, "again_in", h.backoff.holds(now))
}

// cause is why the job of an executor has ended. What a pool or a user has ordered is not the fault of what ran.
func (l *launched) cause(j *api.Job) executor.Cause {
	outOfMemory := func(t api.Task) bool {
		return t.Outcome == cluster.OutOfMemory || t.Outcome == cluster.Failed && t.Exit != nil && t.Exit.OOMKills > 0
	}
	switch {
	case slices.ContainsFunc(j.Tasks, outOfMemory):
		return executor.CauseMemory
	case l.ordered != "" || j.Status == cluster.StatusCancelled:
		return executor.CauseTaken
	}
	return executor.CauseLost
}

// howEnded says how the process of an executor has ended; empty if it ended by itself, without a failure.
func howEnded(j *api.Job) string {
	how := j.Detail
	if task, rest, found := strings.Cut(how, ": "); found && strings.HasPrefix(task, "task ") {
		how = rest
	}
	if how == "" && j.Status == cluster.StatusCancelled {
		return "its job was cancelled"
	}
	return how
}
