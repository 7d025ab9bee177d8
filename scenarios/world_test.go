package scenarios

import (
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// world is what really happens in a scenario without heartbeats: jobs arrive, started tasks run and end, failures
// occur. It notifies an engine and carries out the engine's decisions. Times are since the origin.
type world struct {
	s *scenario
	// tell passes an event to the engine and returns its decisions.
	tell   func(now timeline.Time, e cluster.Event) []cluster.Decision
	now    timeline.Time
	agenda []happening // by time; ties in the order of entry
	runs   map[cluster.TaskID]*process
	count  map[cluster.TaskID]int // runs so far
	lives  []life
}

type happening struct {
	at timeline.Time
	do func()
}

// process is one run of a task.
type process struct {
	life
	run      int
	decision cluster.DecisionID
	begun    bool
	over     bool

	fated    cluster.Outcome // unless it is killed
	left     float64         // ns at its full pace, at the time since
	since    timeline.Time
	pace     float64
	changed  int // counts changes of its pace
	still    bool
	phase    int32            // that was reported last
	throttle cluster.Decision // that was carried out last
}

func newWorld(s *scenario) *world {
	w := &world{s: s, runs: map[cluster.TaskID]*process{}, count: map[cluster.TaskID]int{}}
	for i := range s.jobs {
		job := &s.jobs[i].Job
		w.enter(job.Submitted, func() { w.say(cluster.Event{Kind: cluster.JobSubmitted, Job: job.ID, NewJob: job}) })
	}
	for _, c := range s.cancellations {
		w.enter(c.at, func() { w.say(cluster.Event{Kind: cluster.JobCancelled, Job: s.jobs[c.job].ID}) })
	}
	for _, r := range s.revisions {
		w.enter(r.at, func() {
			if job := r.revised(s); !w.started(job.ID) { // whoever revises it then learned too late
				w.say(cluster.Event{Kind: cluster.JobRevised, Job: job.ID, NewJob: job})
			}
		})
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
			if p := w.runs[e.task]; p != nil && p.begun && !p.still && p.phase != e.phase {
				p.phase = e.phase
				w.say(cluster.Event{Kind: cluster.TaskPhase, Task: e.task, Node: p.node, Run: p.run, Phase: e.phase})
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
	i := len(w.agenda)
	for i > 0 && w.agenda[i-1].at > at {
		i--
	}
	w.agenda = slices.Insert(w.agenda, i, happening{at, do})
}

// pass runs the world to the end. Before each change of time it calls until, which may return early with decisions that
// were taken before that time without an event in the world.
func (w *world) pass(until func(timeline.Time) (timeline.Time, []cluster.Decision)) {
	for len(w.agenda) > 0 {
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
	}
	slices.SortStableFunc(w.lives, func(a, b life) int { return lifeOrder(&a, &b) })
}

func lifeOrder(a, b *life) int {
	for _, d := range []int64{int64(a.launched - b.launched), int64(a.task.Job - b.task.Job), int64(a.task.Stage - b.task.Stage), int64(a.task.Index - b.task.Index)} {
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
			p := &process{life: life{task: d.Task, node: d.Node, memory: d.Grant[resource.Memory]}, run: w.count[d.Task], decision: d.ID}
			w.runs[d.Task] = p
			w.enter(w.now, func() { w.launch(p) })
		case cluster.Kill:
			p := w.runs[d.Task]
			w.enter(w.now, func() { w.end(p, cluster.Killed) })
		case cluster.Throttle:
			p := w.runs[d.Task]
			w.enter(w.now, func() { w.slow(p, d) })
		case cluster.Wake:
			w.enter(d.At, func() { w.say(cluster.Event{Kind: cluster.Woken}) })
		}
	}
}

func (w *world) launch(p *process) {
	if p.over {
		return
	}
	p.begun, p.launched = true, w.now
	d, outcome := w.fate(p)
	p.fated, p.left, p.since, p.pace = outcome, float64(d), w.now, 1
	w.endIn(p, d)
	w.say(cluster.Event{Kind: cluster.DecisionDone, Decision: p.decision, Task: p.task, Node: p.node, Run: p.run, Launched: w.now})
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

// endIn enters the end of a run that goes on as it does now.
func (w *world) endIn(p *process, d time.Duration) {
	change := p.changed
	w.enter(w.now.Add(d), func() {
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
	if p.still {
		pace = 0
	}
	if pace == p.pace {
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

// halt makes a run stand still until a time.
func (w *world) halt(p *process, until timeline.Time) {
	if p == nil || !p.begun || p.still {
		return
	}
	stand := func(still bool, e cluster.Event) {
		if p.over {
			return
		}
		p.still = still
		w.repace(p)
		e.Task, e.Node, e.Run = p.task, p.node, p.run
		w.say(e)
	}
	w.enter(until, func() { stand(false, cluster.Event{Kind: cluster.TaskGoesOn}) })
	stand(true, cluster.Event{Kind: cluster.TaskStill, By: cluster.HeldByMemory})
}

func (w *world) end(p *process, outcome cluster.Outcome) {
	if p.over {
		return
	}
	w.bury(p, outcome)
	w.say(cluster.Event{Kind: cluster.TaskEnded, Task: p.task, Node: p.node, Run: p.run, Outcome: outcome})
}

func (w *world) bury(p *process, outcome cluster.Outcome) {
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
