// Package pool lends warm executors to applications (Mira, section III). A pool is a second, small cluster: its nodes
// are executors, its jobs are applications, and an engine with a policy, usually mira, decides in milliseconds which
// application has which executor. What a pool knows is in memory alone: executors and applications hold leases, and
// report what they know to a new daemon.
package pool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/engine"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/drive"
)

// Errors of requests. Each is wrapped with one sentence.
var (
	ErrGone     = errors.New("its lease has ended: register again")
	ErrNotFound = errors.New("not found")
	ErrInvalid  = errors.New("invalid")
	ErrFull     = errors.New("no room: ask again when results have been collected")
	ErrSecret   = errors.New("the secret is not that of the executor")
)

// errBroken is the error of a request that hit a bug.
var errBroken = errors.New("a bug of bellows, which the daemon's log describes")

// Defaults of a Config.
const (
	DefaultLease    = 15 * time.Second
	DefaultGrace    = 6 * time.Second // a busy executor finds out with its next beat, a quarter of the lease later
	DefaultPatience = 10 * time.Second
	DefaultRoom     = 64 << 20 // bytes
	DefaultPoll     = 20 * time.Second
)

// RestFor is how long an executor must have had nothing to do for Config.Begins to be called.
const RestFor = time.Second

// Limits of what requests may contain, and leave unconfirmed.
const (
	MostApplications = 1000
	MostTasks        = 1 << 20 // of an application, at a time
	MostChanges      = 1 << 14 // that an application has not confirmed
	MostNumber       = 1 << 30 // of an executor
)

// Config is the configuration of a Pool.
type Config struct {
	Name   string
	Policy policy.Policy
	// Verify reports whether a secret is that of an executor.
	Verify func(executor int, secret string) bool
	// Machine is the capacity of the machine of all executors. Only its bandwidths count: see Pressed.
	Machine resource.Vector
	// Expected are how many executors of an earlier daemon are still there. The pool decides nothing before they have
	// registered, and the applications that they serve have said what they hold, or Grace has passed.
	Expected int
	Grace    time.Duration // 0 is DefaultGrace
	Lease    time.Duration // of executors and applications; 0 is DefaultLease
	// Patience is how long a task that was cancelled may go on before its executor is to be ended; 0 is DefaultPatience.
	Patience time.Duration
	// Poll is how long a request waits for an answer; 0 is DefaultPoll.
	Poll time.Duration
	// Room is how many bytes of arguments and results an application may have in the pool; 0 is DefaultRoom. OfOwner
	// bounds those of all applications of the owner. While results fill the room, tasks wait until the application has
	// collected some: what runs then may exceed it.
	Room    int64
	OfOwner *Room
	// End ends the process of an executor that does not answer. It must not wait. nil does nothing.
	End func(executor int, why string)
	// Begins is called when an executor that has had nothing to do for RestFor gets something: its memory may have gone
	// to others. It must not wait. nil does nothing.
	Begins func(executor int)
	// Changed is called when what Wanted returns may have changed. It must not wait. nil does nothing.
	Changed func()
	Log     *slog.Logger // nil is slog.Default
}

// Pool is one pool. Its methods may be called from any goroutine.
type Pool struct {
	config Config
	log    *slog.Logger
	loop   *drive.Loop

	// Only the loop uses the fields below.
	members   map[int]*member            // by their numbers
	nodes     map[cluster.NodeID]*member // those that have joined
	apps      map[cluster.JobID]*application
	byKey     map[string]*application
	freeNodes []cluster.NodeID // of executors that have left
	nextApp   cluster.JobID
	nextWork  int64         // begins at random: an executor may report again what it has reported to an earlier daemon
	check     timeline.Time // when a lease may have ended
	awake     timeline.Time // when this process last looked for something that is due; Never while nothing will be
	synced    bool
	syncAt    timeline.Time
	orphans   map[place]report // of tasks of applications that have not enrolled yet
	departed  []departed       // the last executors that were lost
	abandoned []abandoned      // the last applications that were
	broken    error
	counters  api.PoolCounters
}

// place names a task across daemons.
type place struct {
	key         string // of the application
	stage, task int
}

// complete fills in what has a default.
func (c *Config) complete() {
	def := func(d *time.Duration, standard time.Duration) {
		if *d == 0 {
			*d = standard
		}
	}
	def(&c.Grace, DefaultGrace)
	def(&c.Lease, DefaultLease)
	def(&c.Patience, DefaultPatience)
	def(&c.Poll, DefaultPoll)
	if c.Room == 0 {
		c.Room = DefaultRoom
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
}

// Start begins a pool.
func Start(c Config) *Pool {
	c.complete()
	p := &Pool{config: c, log: c.Log, members: map[int]*member{}, nodes: map[cluster.NodeID]*member{},
		apps: map[cluster.JobID]*application{}, byKey: map[string]*application{}, nextApp: 1,
		nextWork: mathrand.Int64N(1 << 52), check: timeline.Never, orphans: map[place]report{}}
	p.loop = drive.NewLoop(engine.New(c.Policy, nil), p)
	p.awake = p.loop.Now()
	p.syncAt = p.awake.Add(c.Grace)
	go p.loop.Run()
	return p
}

// Close ends the pool. Executors and applications find that it is gone.
func (p *Pool) Close() {
	p.loop.End()
	for _, a := range p.apps {
		p.hold(a, -a.held)
	}
}

// Due implements drive.Handler: it ends leases, and begins to decide once the executors are there.
func (p *Pool) Due(now timeline.Time) (next timeline.Time) {
	if silence := now.Sub(p.awake); silence > p.config.Lease/2 {
		p.forgive(silence - p.config.Lease/4)
	}
	p.awake = now
	if !p.synced && (len(p.members) >= p.config.Expected && !p.awaitsDriver() || now >= p.syncAt) {
		p.synced = true
		p.dropOrphans()
		for _, m := range p.members {
			p.pauseIfTaken(m)
		}
		for _, a := range p.apps {
			if a.driving != nil {
				p.dropHolds(a, executor.CauseLost)
			}
		}
		p.loop.Event(cluster.Event{Kind: cluster.Synced})
	}
	if now >= p.check {
		p.expire(now)
	}
	next = p.check
	if !p.synced {
		next = min(next, p.syncAt)
	}
	if next == timeline.Never {
		p.awake = timeline.Never // nothing expires before the next message, so there is nothing to extend
		return next
	}
	return min(next, now.Add(p.config.Lease/4)) // to find out whether messages could arrive
}

// forgive extends everything that expires, after a time in which this process took no message: it was stopped, had no
// CPU, or the whole machine was stopped while its clock went on. Other processes may have been stopped too, or their
// messages wait.
func (p *Pool) forgive(silence time.Duration) {
	p.syncAt = p.syncAt.Add(silence)
	for _, m := range p.members {
		if m.expires != timeline.Never {
			m.expires = m.expires.Add(silence)
		}
		if w := m.work; w != nil && w.cancelled != 0 {
			w.cancelled = w.cancelled.Add(silence)
		}
	}
	for _, a := range p.apps {
		if a.expires != timeline.Never {
			a.expires = a.expires.Add(silence)
		}
	}
}

// dropOrphans drops the results of applications that have not enrolled: from now on their tasks run again.
func (p *Pool) dropOrphans() {
	if n := len(p.orphans); n > 0 {
		p.counters.Dropped += int64(n)
		p.log.Warn("results of tasks are dropped: their applications have not come back", "pool", p.config.Name, "results", n)
	}
	p.orphans = nil
}

// expire ends what has lasted too long, and finds out when to look again.
func (p *Pool) expire(now timeline.Time) {
	p.check = timeline.Never
	for _, m := range p.members {
		switch w := m.work; {
		case m.still:
			continue
		case now >= m.expires:
			p.counters.Expired++
			p.log.Warn("the lease of an executor has ended", "pool", p.config.Name, "executor", m.number)
			p.depart(m, api.ExecutorExpired, executor.CauseLease, "its lease ended", "")
			p.end(m.number, "its lease ended")
			continue
		case w != nil && w.cancelled != 0 && now >= w.cancelled.Add(p.config.Patience) && !m.ending:
			m.ending = true
			p.end(m.number, "it still runs a task that was cancelled")
		case w != nil && w.cancelled != 0 && !m.ending:
			p.check = min(p.check, w.cancelled.Add(p.config.Patience))
		}
		p.check = min(p.check, m.expires)
	}
	for _, a := range p.apps {
		if now < a.expires {
			p.check = min(p.check, a.expires)
			p.endPause(now, a)
			continue
		}
		if !a.ended() {
			p.counters.Abandoned++
			p.log.Warn("the lease of an application has ended", "pool", p.config.Name, "application", a.id, "name", a.name)
			p.cancel(a, fmt.Sprintf("its program was not heard of for %v, so that its lease ended", p.config.Lease))
			p.abandoned = append(p.abandoned[max(0, len(p.abandoned)+1-mostDeparted):],
				abandoned{api.PoolApplication{Application: int64(a.id), Name: a.name, Ended: a.done, Drives: a.driving != nil,
					State: "cancelled", Why: a.cancelled}, now})
		}
		p.forget(a)
	}
}

func (p *Pool) end(number int, why string) {
	if p.config.End != nil {
		p.config.End(number, why)
	}
}

// renew returns when a lease that is renewed now ends.
func (p *Pool) renew() timeline.Time {
	until := p.loop.Now().Add(p.config.Lease)
	p.check = min(p.check, until)
	return until
}

// Took implements drive.Handler.
func (p *Pool) Took(now timeline.Time, decisions []cluster.Decision) {
	p.countEvents()
	for i := range decisions {
		d := &decisions[i]
		m := p.nodes[d.Node]
		switch {
		case m == nil:
		case d.Kind == cluster.Start:
			p.start(now, m, d)
		case d.Kind == cluster.Kill:
			p.kill(now, m, d)
		case d.Kind == cluster.Reserve, d.Kind == cluster.Unreserve:
			m.why = d.Reason
		case d.Kind == cluster.Throttle: // of prophet, when executors overuse the machine
			p.loop.Event(cluster.Event{Kind: cluster.DecisionFailed, Decision: d.ID, Task: d.Task, Node: d.Node,
				Detail: "a pool bounds no program"})
		}
	}
	if p.config.Changed != nil {
		p.config.Changed()
	}
}

// countEvents counts the events of a step.
func (p *Pool) countEvents() {
	c := &p.counters
	before := c.Events
	c.Events = p.loop.Events()
	divisions := p.config.Policy.Traits().Divisions
	if divisions == nil {
		return
	}
	if n := divisions(); n == c.Divisions {
		c.Filtered += c.Events - before
	} else {
		c.Divisions = n
	}
}

// Broke implements drive.Handler.
func (p *Pool) Broke(err error) {
	p.broken = fmt.Errorf(
		"pool %s: a bug of bellows or of policy %s, so nothing more is decided until the daemon is started again: %w",
		p.config.Name, p.config.Policy.Name(), err)
	p.log.Error("a pool decides nothing more", "pool", p.config.Name, "policy", p.config.Policy.Name(), "error", err)
}

// do calls f in the loop's goroutine, and returns its error.
func (p *Pool) do(ctx context.Context, f func() error) (err error) {
	err = errBroken // unless f returns
	if ended := p.loop.Do(ctx, func() { err = f() }); ended != nil {
		return fmt.Errorf("pool %s: %w", p.config.Name, ended)
	}
	return err
}

// need is what a task requires: a whole executor.
var need = resource.Of(resource.Core, resource.MiB)
