package scenarios

import (
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// world is what really happens in a scenario without heartbeats: jobs arrive, started tasks run and end, failures
// occur. It notifies an engine and carries out the engine's decisions. Times are since the origin.
type world struct {
	s *scenario
	// tell passes an event to the engine and returns its decisions.
	tell func(now timeline.Time, e cluster.Event) []cluster.Decision
	// solve returns the answer to an Ask of the last tell.
	solve  func(*cluster.Decision) cluster.Event
	now    timeline.Time
	agenda []happening // by time; ties by turn
	turn   int         // the newest
	runs   map[cluster.TaskID]*process
	count  map[cluster.TaskID]int // runs so far
	lives  []life
	// returning are the runs whose memory is to come back and is not free yet, in the order in which they were resumed.
	returning []*process
}

type happening struct {
	at   timeline.Time
	turn int
	do   func()
}

// process is one run of a task.
type process struct {
	life
	run      int
	decision cluster.DecisionID
	begun    bool
	over     bool

	cpu, has resource.Amount // granted: CPU and memory
	fated    cluster.Outcome // unless it is killed
	left     float64         // ns at its full pace, at the time since
	since    timeline.Time
	pace     float64
	turn     int              // of its end
	changed  int              // counts changes of its pace
	halted   bool             // the memory of its node holds it still
	held     cluster.Holders  // for whom the engine has it stand still
	told     cluster.Holders  // for whom it stands still, as was reported last
	phase    int32            // that was reported last
	throttle cluster.Decision // that was carried out last
	paging
}

func newWorld(s *scenario) *world {
	w := &world{s: s, runs: map[cluster.TaskID]*process{}, count: map[cluster.TaskID]int{}}
	for i := range s.jobs {
		job := s.jobs[i].submitted()
		w.enter(job.Submitted, func() { w.say(cluster.Event{Kind: cluster.JobSubmitted, Job: job.ID, NewJob: job}) })
	}
	for _, c := range s.cancellations {
		w.enter(c.at, func() { w.say(cluster.Event{Kind: cluster.JobCancelled, Job: s.jobs[c.job].ID}) })
	}
	for _, p := range s.pauses {
		id := s.jobs[p.job].ID
		w.enter(p.at, func() { w.say(p.event(id)) })
		w.enter(p.until, func() { w.say(cluster.Event{Kind: cluster.JobResumed, Job: id}) })
	}
	for _, r := range s.revisions {
		w.enter(r.at, func() {
			if job := r.revised(s); !w.started(job.ID) { // whoever revises it then learned too late
				w.say(cluster.Event{Kind: cluster.JobRevised, Job: job.ID, NewJob: job})
			}
		})
	}
	for _, g := range s.growths {
		w.enter(g.at, func() { w.say(g.event(&s.jobs[g.job])) })
	}
	for _, d := range s.departures {
		w.enter(d.at, func() { w.leave(d.node) })
	}
	gone := func(n cluster.NodeID, at timeline.Time) bool {
		return slices.ContainsFunc(s.departures, func(d departure) bool { return d.node == n && d.at <= at })
	}
	for _, r := range s.reports {
		if !gone(r.node, r.at) {
			w.enter(r.at, func() { w.say(cluster.Event{Kind: cluster.NodeMemory, Node: r.node, Held: r.held}) })
		}
	}
	for _, p := range s.pressures {
		if !gone(p.node, p.at) {
			w.enter(p.at, func() {
				w.say(cluster.Event{Kind: cluster.NodePressed, Node: p.node, Found: &cluster.Condition{Bound: p.gives}})
			})
		}
	}
	for _, h := range s.halts {
		w.enter(h.at, func() { w.halt(w.runs[h.task], h.until) })
	}
	for _, e := range s.entries {
		w.enter(e.at, func() {
			if p := w.runs[e.task]; p != nil && p.begun && p.told == 0 && p.phase != e.phase {
				p.phase = e.phase
				w.say(cluster.Event{Kind: cluster.TaskPhase, Task: e.task, Node: p.node, Run: p.run, Phase: e.phase})
			}
		})
	}
	for _, h := range s.holdings {
		w.enter(h.at, func() {
			if p := w.runs[h.task]; p != nil && p.begun {
				w.say(cluster.Event{Kind: cluster.TaskHolds, Task: h.task, Node: p.node, Run: p.run, Held: h.held})
			}
		})
	}
	return w
}

// started reports whether a task of the job was ever started.
func (w *world) started(job cluster.JobID) bool {
	for id := range w.count {
		if id.Job == job {
			return true
		}
	}
	return false
}

func (w *world) enter(at timeline.Time, do func()) {
	w.turn++
	w.enterAs(at, w.turn, do)
}

// enterAs enters something with a turn that was taken before.
func (w *world) enterAs(at timeline.Time, turn int, do func()) {
	i := len(w.agenda)
	for i > 0 && (w.agenda[i-1].at > at || w.agenda[i-1].at == at && w.agenda[i-1].turn > turn) {
		i--
	}
	w.agenda = slices.Insert(w.agenda, i, happening{at, turn, do})
}

// pass runs the world to the end. Before each change of time it calls until, which may return early with decisions that
// were taken before that time without an event in the world. If nothing is to happen, but tasks stand still, only
// such decisions can let them go on.
func (w *world) pass(until func(timeline.Time) (timeline.Time, []cluster.Decision)) {
	for len(w.agenda) > 0 || len(w.runs) > 0 {
		if len(w.agenda) == 0 {
			at, decisions := until(w.now.Add(time.Hour))
			if w.now = at; len(decisions) == 0 {
				break
			}
			w.carryOut(decisions)
			continue
		}
		next := w.agenda[0]
		if next.at > w.now {
			at, decisions := until(next.at)
			if w.now = at; len(decisions) > 0 {
				w.carryOut(decisions)
				continue
			}
		}
		w.agenda = w.agenda[1:]
		next.do()
		w.bringBack()
	}
	slices.SortStableFunc(w.lives, func(a, b life) int { return lifeOrder(&a, &b) })
}

func lifeOrder(a, b *life) int {
	for _, d := range []int64{int64(a.launched - b.launched), int64(a.task.Job - b.task.Job),
		int64(a.task.Stage - b.task.Stage), int64(a.task.Index - b.task.Index)} {
		if d != 0 {
			return int(max(-1, min(1, d)))
		}
	}
	return 0
}

// say notifies the engine and carries out its decisions.
func (w *world) say(e cluster.Event) { w.carryOut(w.tell(w.now, e)) }

func (w *world) carryOut(decisions []cluster.Decision) {
	for _, d := range decisions {
		switch d.Kind {
		case cluster.Start:
			w.count[d.Task]++
			p := &process{life: life{task: d.Task, node: d.Node, memory: d.Grant[resource.Memory]}, cpu: d.Grant[resource.CPU],
				has: d.Grant[resource.Memory], run: w.count[d.Task], decision: d.ID}
			w.runs[d.Task] = p
			w.enter(w.now, func() { w.launch(p) })
		case cluster.Kill:
			p := w.runs[d.Task]
			w.enter(w.givesBack(p, d.Preempt), func() { w.end(p, cluster.Killed) })
		case cluster.Throttle:
			p := w.runs[d.Task]
			w.enter(w.now, func() { w.slow(p, d) })
		case cluster.Suspend, cluster.Resume:
			p := w.runs[d.Task]
			w.enter(w.now, func() { w.hold(p, d) })
		case cluster.Resize:
			p := w.runs[d.Task]
			w.enter(w.now, func() { w.resize(p, d) })
		case cluster.Ask:
			e := w.solve(&d)
			w.enter(w.now.Add(time.Duration(e.Answer.States)*w.s.each), func() { w.say(e) })
		case cluster.Wake:
			w.enter(d.At, func() { w.say(cluster.Event{Kind: cluster.Woken}) })
		}
	}
}

func (w *world) launch(p *process) {
	if p.over {
		return
	}
	w.turn++
	p.begun, p.launched, p.turn = true, w.now, w.turn
	d, outcome := w.fate(p)
	p.fated, p.left, p.since, p.pace = outcome, float64(d), w.now, 1
	if !w.drives(p) || outcome != cluster.Succeeded {
		w.endIn(p, d)
	}
	w.say(cluster.Event{Kind: cluster.DecisionDone, Decision: p.decision, Task: p.task, Node: p.node, Run: p.run,
		Launched: w.now})
}

// drives reports whether p is the attachment of an executor to a job that starts its own tasks there, one after the
// other.
func (w *world) drives(p *process) bool { return w.s.jobs[p.task.Job-1].Drives }

// givesBack is when a run ends that is killed: at once, unless its job starts its own tasks and is asked to give its
// executor back. Then the task that runs there ends first.
func (w *world) givesBack(p *process, asked bool) timeline.Time {
	each := w.s.jobs[p.task.Job-1].really[p.task.Stage]
	if !asked || !w.drives(p) || !p.begun {
		return w.now
	}
	done := w.now.Sub(p.launched)
	return p.launched.Add((done + each - 1) / each * each)
}

// fate is how long a run really takes and how it ends.
func (w *world) fate(p *process) (time.Duration, cluster.Outcome) {
	j := &w.s.jobs[p.task.Job-1]
	stage := &j.Stages[p.task.Stage]
	for _, f := range w.s.failures {
		if f.task == p.task && p.run <= f.runs {
			return f.after, f.outcome
		}
	}
	return stage.Elasticity.Duration(j.really[p.task.Stage], stage.Ideal[resource.Memory], p.memory), cluster.Succeeded
}

// endIn enters the end of a run that goes on as it does now. Runs that end at the same time end in the order of their
// launches, as simulated.
func (w *world) endIn(p *process, d time.Duration) {
	change := p.changed
	w.enterAs(w.now.Add(d), p.turn, func() {
		if p.changed == change {
			w.end(p, p.fated)
		}
	})
}

// repace makes a run go on as fast as it may now, and so end at another time.
func (w *world) repace(p *process) {
	pace := 1.0
	if th := &p.throttle; th.At > w.now {
		demand := w.s.jobs[p.task.Job-1].Stages[p.task.Stage].Ideal
		for k, most := range th.Bound {
			if most > 0 && demand[k] > most {
				pace = min(pace, float64(most)/float64(demand[k]))
			}
		}
	}
	// else a task demands no more than its grant
	if most := w.s.jobs[p.task.Job-1].Stages[p.task.Stage].Ideal[resource.CPU]; p.cpu < most && len(w.s.resizings) > 0 {
		pace = min(pace, float64(p.cpu)/float64(most))
	}
	if p.told != 0 {
		pace = 0
	}
	if pace == p.pace || w.drives(p) {
		return
	}
	p.left = max(0, p.left-float64(w.now-p.since)*p.pace)
	p.since, p.pace = w.now, pace
	if p.changed++; pace > 0 {
		w.endIn(p, time.Duration(math.Ceil(p.left/pace)))
	}
}

// slow carries out a throttle. The end of the task answers it.
func (w *world) slow(p *process, d cluster.Decision) {
	if p.over {
		return
	}
	p.throttle = d
	w.repace(p)
	if d.At > w.now {
		w.enter(d.At, func() {
			if !p.over {
				w.repace(p)
			}
		})
	}
	w.say(cluster.Event{Kind: cluster.DecisionDone, Decision: d.ID, Task: p.task, Node: p.node, Run: p.run})
}

// resize carries out a change of a grant, or fails. The end of the task answers it.
func (w *world) resize(p *process, d cluster.Decision) {
	if p.over {
		return
	}
	e := cluster.Event{Kind: cluster.DecisionDone, Decision: d.ID, Task: p.task, Node: p.node, Run: p.run}
	if w.s.resizingOf(p.task, w.now).fails {
		e.Kind, e.Detail = cluster.DecisionFailed, "as the scenario says"
	} else {
		more := d.Grant[resource.Memory] - p.has
		if p.cpu, p.has = d.Grant[resource.CPU], p.has+more; p.out > 0 {
			p.out = max(0, p.out+more)
		}
		w.repace(p)
	}
	w.say(e)
}

// halt makes a run stand still until a time.
func (w *world) halt(p *process, until timeline.Time) {
	if p == nil || !p.begun || p.halted {
		return
	}
	w.enter(until, func() {
		p.halted = false
		w.stand(p)
	})
	p.halted = true
	w.stand(p)
}

// hold carries out an order that a run stands still, or goes on. The end of the task answers it.
func (w *world) hold(p *process, d cluster.Decision) {
	if p.over {
		return
	}
	p.held = d.By
	w.turnOut(p, d.PageOut)
	w.say(cluster.Event{Kind: cluster.DecisionDone, Decision: d.ID, Task: p.task, Node: p.node, Run: p.run})
	w.stand(p)
}

// stand makes a run stand still for as long as anybody holds it, and says so.
func (w *world) stand(p *process) {
	now := p.held
	if p.halted || p.returns() {
		now |= cluster.HeldByMemory
	}
	if p.over || now == p.told {
		return
	}
	p.told = now
	w.repace(p)
	e := cluster.Event{Kind: cluster.TaskSuspended, By: now, Task: p.task, Node: p.node, Run: p.run}
	if now == 0 {
		e.Kind = cluster.TaskResumed
	}
	w.say(e)
}

func (w *world) end(p *process, outcome cluster.Outcome) {
	if p.over {
		return
	}
	w.bury(p, outcome)
	w.say(cluster.Event{Kind: cluster.TaskEnded, Task: p.task, Node: p.node, Run: p.run, Outcome: outcome})
}

func (w *world) bury(p *process, outcome cluster.Outcome) {
	if pause := w.s.jobs[p.task.Job-1].Pause(p.run); pause > 0 {
		// The world does not end while only a pause between attempts passes.
		w.enter(w.now.Add(pause+time.Millisecond), func() {})
	}
	p.over, p.outcome, p.at = true, outcome, w.now
	delete(w.runs, p.task)
	if p.begun {
		w.lives = append(w.lives, p.life)
	}
}

func (w *world) leave(n cluster.NodeID) {
	for _, p := range w.runs {
		if p.node == n {
			w.bury(p, cluster.Lost)
		}
	}
	w.say(cluster.Event{Kind: cluster.NodeLeft, Node: n})
}
