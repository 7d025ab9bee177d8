package mira

import (
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// sparkManager says how Spark with dynamic allocation gets executors, from YARN's CapacityScheduler or from Spark's
// standalone manager. The zero values of its times are none.
type sparkManager struct {
	name string
	idle time.Duration // spark.dynamicAllocation.executorIdleTimeout
	// start is the time from the grant of a container until its executor has registered.
	start time.Duration
	// yarn: nodes take one container with each heartbeat, the application learns of it with its next one, and the
	// application master needs a container too.
	yarn bool
	// most is how many containers an application may have. guaranteed is what the preemption of YARN restores; 0 is no
	// preemption.
	most, guaranteed int
	preemption       yarnPreemption
}

// yarnPreemption has the settings of YARN's preemption that Table I changes.
type yarnPreemption struct {
	perRound float64       // total_preemption_per_round: the share of the cluster that a round may take
	kills    time.Duration // max_wait_before_kill
	monitor  time.Duration // monitoring_interval
}

// The settings of Table I, and YARN's defaults.
var (
	yarnTableOne = yarnPreemption{1, time.Second, time.Second}
	yarnDefaults = yarnPreemption{0.1, 15 * time.Second, 3 * time.Second}
)

// What Spark and YARN do by default (Spark 2.2 configuration and running on YARN; yarn-default.xml 2.7).
const (
	sparkAsksEvery = time.Second // sustainedSchedulerBacklogTimeout: the next request, of twice as many
	// yarn.scheduler.initial-allocation.interval, which doubles while requests are open
	sparkFirstBeat   = 200 * time.Millisecond
	sparkSlowestBeat = 3 * time.Second // yarn.scheduler.heartbeat.interval-ms
	yarnBeat         = time.Second     // heartbeats of nodes
	yarnIgnored      = 0.1             // max_ignored_over_capacity
	yarnTermination  = 0.2             // natural_termination_factor
)

// spark is a model of applications that hold executors, as a policy of a cluster whose node 0 is for drivers and
// whose other nodes are executors, perNode on each server. It has a state of its own, which no snapshot has, so
// it serves simulations alone.
type spark struct {
	sparkManager
	slots   []sparkSlot // by node
	apps    []*sparkApp // in the order of submission
	monitor timeline.Time
	grants  int
}

// sparkSlot is what runs in the place of an executor.
type sparkSlot struct {
	owner  *sparkApp // nil if there is no container
	master bool      // the container is that of the application master
	grant  int       // its number among all grants
	picked bool      // its application has learned of it
	usable timeline.Time
	idle   timeline.Time // since when it has no task; Never while it has one
	marked timeline.Time // since when YARN wants it back; Never if it does not
	free   timeline.Time // without an owner: until then a heartbeat has not reported that
}

// sparkApp is an application's side of dynamic allocation.
type sparkApp struct {
	job    *book.JobState
	target int           // executors that it wants
	add    int           // the next request
	asks   timeline.Time // when it requests more; Never without a backlog
	beat   timeline.Time // the next heartbeat of its master
	pause  time.Duration // after that
	held   int           // containers, without the master
}

func newSpark(m sparkManager) *spark { return &spark{sparkManager: m} }

// Name implements policy.Policy.
func (s *spark) Name() string { return s.name }

// Traits implements policy.Policy.
func (s *spark) Traits() policy.Traits { return policy.Traits{} }

// executors is how many executors an application has that have registered, and how many it wants.
func (s *spark) executors(now timeline.Time, j *book.JobState) (n, wanted int) {
	for i := range s.slots {
		if o := &s.slots[i]; s.registered(now, o) && o.owner.job == j {
			n++
		}
	}
	for _, a := range s.apps {
		if a.job == j {
			wanted = a.target
		}
	}
	return n, wanted
}

// held is how many executors there are, those that start included.
func (s *spark) held() (n int) {
	for _, a := range s.apps {
		n += a.held
	}
	return n
}

// Decide implements policy.Policy.
func (s *spark) Decide(now timeline.Time, p *book.Plan) {
	if !p.Synced {
		return
	}
	s.follow(now, p)
	for _, a := range s.apps {
		if driverWaits(a.job) {
			p.Start(a.job, 0, p.Nodes[0], a.job.Stages[0].Ideal[resource.Memory], cluster.BecauseFits(0))
		}
	}
	for _, a := range s.apps {
		s.dispatch(now, p, a)
		s.retire(now, p, a)
		s.request(now, a)
	}
	if s.yarn {
		s.heartbeats(now)
		if s.guaranteed > 0 && now >= s.monitor {
			s.preempt(now, p)
			s.monitor = now.Add(s.preemption.monitor)
		}
	} else {
		s.grantAll(now)
	}
	s.wake(now, p)
}

// follow takes in jobs that came or went, and which executors have become idle.
func (s *spark) follow(now timeline.Time, p *book.Plan) {
	for len(s.slots) < len(p.Nodes) {
		s.slots = append(s.slots, sparkSlot{marked: timeline.Never})
	}
	for i := range s.slots {
		o := &s.slots[i]
		switch {
		case o.owner != nil && o.owner.job.Status.Ended():
			s.release(now, i)
		case o.owner != nil && len(p.Nodes[i].Tasks) > 0:
			o.idle = timeline.Never
		case o.owner != nil && o.idle == timeline.Never:
			o.idle = now
		}
	}
	s.apps = slices.DeleteFunc(s.apps, func(a *sparkApp) bool { return a.job.Status.Ended() })
	for _, j := range p.Jobs {
		if !j.Status.Ended() && !slices.ContainsFunc(s.apps, func(a *sparkApp) bool { return a.job == j }) {
			a := &sparkApp{job: j, add: 1, asks: timeline.Never, beat: timeline.Never}
			s.apps = append(s.apps, a)
			if i := s.freeSlot(now); s.yarn && i > 0 {
				s.slots[i] = sparkSlot{owner: a, master: true, idle: now, marked: timeline.Never}
			}
		}
	}
}

// freeSlot is the first slot without a container, 0 if there is none.
func (s *spark) freeSlot(now timeline.Time) int {
	for i := range s.slots {
		if i > 0 && s.slots[i].owner == nil && s.slots[i].free <= now {
			return i
		}
	}
	return 0
}

// release ends a container. On YARN its server reports that with its next heartbeat.
func (s *spark) release(now timeline.Time, slot int) {
	o := &s.slots[slot]
	if !o.master {
		o.owner.held--
	}
	*o = sparkSlot{marked: timeline.Never}
	if s.yarn {
		o.free = s.nextBeat(now, slot)
	}
}

// dispatch starts tasks on idle executors, the first stage first, as Spark's FIFO scheduling of stages does.
func (s *spark) dispatch(now timeline.Time, p *book.Plan, a *sparkApp) {
	for i := range s.slots {
		o := &s.slots[i]
		if o.owner != a || !s.registered(now, o) || len(p.Nodes[i].Tasks) > 0 {
			continue
		}
		stage, ok := a.job.NextStage()
		if !ok || stage == 0 {
			return
		}
		p.Start(a.job, stage, p.Nodes[i], a.job.Stages[stage].Ideal[resource.Memory], cluster.BecauseFits(0))
		o.idle = timeline.Never
	}
}

// retire gives up executors that have been idle for too long, but for one.
func (s *spark) retire(now timeline.Time, p *book.Plan, a *sparkApp) {
	for i := range s.slots {
		o := &s.slots[i]
		if o.owner == a && s.registered(now, o) && len(p.Nodes[i].Tasks) == 0 && o.idle.Add(s.idle) <= now && a.held > 1 {
			s.release(now, i)
		}
	}
}

// registered reports whether a slot has an executor that can run tasks.
func (s *spark) registered(now timeline.Time, o *sparkSlot) bool {
	return o.owner != nil && !o.master && o.picked && o.usable <= now
}

// request is Spark's ExecutorAllocationManager: while tasks wait, the number of executors that it wants grows by one,
// then by two more, and so on, every second, up to the number of tasks; it falls at once.
func (s *spark) request(now timeline.Time, a *sparkApp) {
	needed := load(a.job)
	if most := max(needed, 1); a.target > most {
		a.target, a.add = most, 1
	}
	if needed == 0 || !s.backlog(a) {
		a.asks, a.add = timeline.Never, 1
		return
	}
	if a.asks == timeline.Never {
		a.asks = now
	}
	if now < a.asks {
		return
	}
	before := a.target
	a.target = min(a.target+a.add, needed, s.most)
	if a.target-before == a.add {
		a.add *= 2
	} else {
		a.add = 1
	}
	a.asks = now.Add(sparkAsksEvery)
	if a.target > before && s.yarn { // the master reports at once
		s.pick(now, a)
		a.beat, a.pause = now.Add(sparkFirstBeat), 2*sparkFirstBeat
	}
}

// backlog reports whether a task waits for an executor.
func (s *spark) backlog(a *sparkApp) bool {
	stage, ok := a.job.NextStage()
	return ok && stage > 0
}

// open is how many containers an application has requested and not been granted.
func (s *spark) open(a *sparkApp) int { return max(0, min(a.target, s.most)-a.held) }

// grantTo gives an application the slot for an executor.
func (s *spark) grantTo(a *sparkApp, slot int) {
	s.grants++
	s.slots[slot] = sparkSlot{owner: a, grant: s.grants, marked: timeline.Never, idle: timeline.Never}
	a.held++
}

// grantAll is the standalone manager, which starts executors as soon as they are requested.
func (s *spark) grantAll(now timeline.Time) {
	for _, a := range s.apps {
		for s.open(a) > 0 {
			i := s.freeSlot(now)
			if i == 0 {
				return
			}
			s.grantTo(a, i)
			s.slots[i].picked, s.slots[i].usable, s.slots[i].idle = true, now.Add(s.start), now.Add(s.start)
		}
	}
}

// pick makes an application learn of its new containers, in which it starts executors.
func (s *spark) pick(now timeline.Time, a *sparkApp) {
	for i := range s.slots {
		if o := &s.slots[i]; o.owner == a && !o.master && !o.picked {
			o.picked, o.usable, o.idle = true, now.Add(s.start), now.Add(s.start)
		}
	}
}

// server is the server of a slot, from 0 on.
func server(slot int) int { return (slot - 1) / perNode }

// nextBeat is the next heartbeat of the server of a slot. The heartbeats of the servers are spread over a second.
func (s *spark) nextBeat(now timeline.Time, slot int) timeline.Time {
	phase := timeline.Time(int64(server(slot)) * int64(yarnBeat) / servers)
	at := now - now%timeline.Time(yarnBeat) + phase
	if at <= now {
		at = at.Add(yarnBeat)
	}
	return at
}

// heartbeats are those of applications that are due, and those of servers that come now: each server is granted one
// container, for the application with the smallest share.
func (s *spark) heartbeats(now timeline.Time) {
	for _, a := range s.apps {
		if now >= a.beat {
			s.pick(now, a)
			a.beat, a.pause = now.Add(a.pause), min(2*a.pause, sparkSlowestBeat)
			if s.open(a) == 0 {
				a.beat = timeline.Never
			}
		}
	}
	served := -1
	for i := 1; i < len(s.slots); i++ {
		if o := &s.slots[i]; o.owner != nil || o.free > now || server(i) == served || s.nextBeat(now-1, i) != now {
			continue
		}
		var poorest *sparkApp
		for _, a := range s.apps {
			if s.open(a) > 0 && (poorest == nil || a.held < poorest.held) {
				poorest = a
			}
		}
		if poorest == nil {
			return
		}
		s.grantTo(poorest, i)
		if poorest.beat == timeline.Never {
			poorest.beat, poorest.pause = now.Add(sparkFirstBeat), 2*sparkFirstBeat
		}
		served = server(i)
	}
}

// preempt is a round of YARN's ProportionalCapacityPreemptionPolicy with one queue for each application: the newest
// containers of a queue that holds more than it should are marked, and end if they are still marked a while later.
func (s *spark) preempt(now timeline.Time, p *book.Plan) {
	for _, a := range s.apps {
		left := s.surplus(a)
		for _, i := range s.newest(a) {
			o := &s.slots[i]
			switch {
			case left <= 0:
				o.marked = timeline.Never
				continue
			case o.marked == timeline.Never:
				o.marked = now
			case now.Sub(o.marked) >= s.preemption.kills:
				for _, t := range p.Nodes[i].Tasks {
					p.Preempt(t, cluster.Because(cluster.PreemptionDue))
				}
				s.release(now, i)
			}
			left--
		}
	}
}

// surplus is how many containers of a queue are to be preempted in a round.
func (s *spark) surplus(a *sparkApp) int {
	wanted := 0 // by others that have less than their guarantee
	for _, b := range s.apps {
		if b != a {
			wanted += max(0, min(s.guaranteed-1, b.held+s.open(b))-b.held)
		}
	}
	over := min(wanted, a.held+1-s.guaranteed)
	if float64(a.held+1) <= float64(s.guaranteed)*(1+yarnIgnored) {
		return 0
	}
	return min(int(math.Ceil(float64(over)*yarnTermination)), int(s.preemption.perRound*executors))
}

// newest are the slots of an application, the last granted first.
func (s *spark) newest(a *sparkApp) (all []int) {
	for i := range s.slots {
		if o := &s.slots[i]; o.owner == a && !o.master {
			all = append(all, i)
		}
	}
	slices.SortFunc(all, func(x, y int) int { return s.slots[y].grant - s.slots[x].grant })
	return all
}

// wake asks for the next step that something of this model needs.
func (s *spark) wake(now timeline.Time, p *book.Plan) {
	next, anyOpen := timeline.Never, false
	at := func(t timeline.Time) {
		if t > now {
			next = min(next, t)
		}
	}
	for _, a := range s.apps {
		at(a.asks)
		at(a.beat)
		anyOpen = anyOpen || s.open(a) > 0
	}
	for i := range s.slots {
		o := &s.slots[i]
		switch {
		case o.owner == nil && anyOpen && s.yarn && i > 0:
			at(s.nextBeat(max(now, o.free-1), i))
		case o.owner != nil && !o.master && o.picked && o.idle != timeline.Never:
			at(o.usable)
			at(o.idle.Add(s.idle))
		}
	}
	if s.guaranteed > 0 && len(s.apps) > 1 && anyOpen {
		at(s.monitor)
	}
	if next != timeline.Never {
		// A simulation does not end while it has a wake for this reason, though no task runs: executors start.
		p.WakeBy(next, cluster.Because(cluster.LevelingEnds))
	}
}
