package sim

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/engine"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

// run is a simulation in progress.
type run struct {
	config Config
	policy policy.Policy
	// taught are jobs that have ended and taught something.
	taught []*job
	// returning are the tasks whose memory is to come back and is not free yet, in the order in which they were resumed.
	returning []*task
	traits    policy.Traits // of the policy

	engine *engine.Engine
	agenda agenda
	now    timeline.Time
	submitted
	protocol protocol
	used     usage
	capacity usage // of the nodes present
	ended    int
	inVain   int // kills and preemptions since a task last succeeded
	waiting  int // tasks of the jobs that have arrived, coordinators included, that no decision has started
	result   *Result
	err      error
	events   []cluster.Event // of the step in preparation
	reports  []report        // of tasks, since the last item of the agenda was taken; none unless the policy looks ahead
	tasks    tasks

	// answers are those to open questions about nodes.
	answers map[cluster.NodeID]cluster.Event

	recorder *recorder
	idle     map[cluster.NodeID][]executor // executors that can be taken over

	contention
	managers
}

// submitted are the jobs of the workload.
type submitted struct {
	jobs   []*job
	byID   map[cluster.JobID]*job
	coming []*job         // jobs that wait for no other and are not on the agenda yet, in the order of their arrival
	after  map[int][]*job // jobs that wait for a job, by its index
	parts  map[int]*part  // of a recording
}

// part is the jobs of a part of a recording.
type part struct {
	left int    // jobs that have not ended
	next []*job // jobs that wait for all of them, among others
}

// part returns a part by its number.
func (s *submitted) part(number int) *part {
	p := s.parts[number]
	if p == nil {
		p = &part{}
		s.parts[number] = p
	}
	return p
}

// add adds a job; another must not have its ID.
func (s *submitted) add(j *job) error {
	if _, twice := s.byID[j.ID]; twice {
		return fmt.Errorf("job %q id %d: another job has it", j.Name, j.ID)
	}
	s.jobs, s.byID[j.ID] = append(s.jobs, j), j
	if j.After >= 0 {
		s.after[j.After] = append(s.after[j.After], j)
	}
	if j.Part != 0 {
		s.part(j.Part).left++
	}
	return nil
}

// linkParts has every job wait for the parts that it is behind, once all jobs have been added.
func (s *submitted) linkParts() {
	for _, j := range s.jobs {
		for _, number := range j.Behind {
			if p := s.part(number); p.left > 0 {
				p.next = append(p.next, j)
				j.behind++
			}
		}
		if j.behind == 0 {
			j.Behind = nil
		}
	}
}

// endsPart returns the jobs for which a job is the last that they have waited for.
func (s *submitted) endsPart(j *job) (next []*job) {
	if j.Part == 0 {
		return nil
	}
	p := s.part(j.Part)
	if p.left--; p.left > 0 {
		return nil
	}
	for _, waits := range p.next {
		if waits.behind--; waits.behind == 0 {
			next = append(next, waits)
		}
	}
	return next
}

// contention is the true state of the nodes. It is kept only if the workload is fluid: resources can be contended, or
// tasks have phases.
type contention struct {
	fluid     bool
	nodes     []node
	unsettled []cluster.NodeID // to be settled
	scratch   []claim
	audit     func(*node) // for tests: called when a node has been settled
}

// unsettle has the pace of the tasks on a node computed.
func (c *contention) unsettle(n cluster.NodeID) {
	if here := &c.nodes[n]; !here.unsettled {
		here.unsettled = true
		c.unsettled = append(c.unsettled, n)
	}
}

// managers are the memory managers of the nodes, if the workload has FLEX jobs.
type managers struct {
	keepers    []*keeper // by node; nil without FLEX jobs
	parameters memory.Parameters
	awake      []*keeper // to be stepped
	still      int       // steps of memory managers since a task was last launched, entered a phase or ended
}

// wake steps a manager as soon as the present happening has been handled.
func (m *managers) wake(k *keeper) {
	if !k.awake && !k.gone {
		k.awake = true
		m.awake = append(m.awake, k)
	}
}

// protocol is how the cluster acquires and reports work: by heartbeats or at once.
type protocol interface {
	begin()
	arrive(j *job)                  // the job was submitted
	started(t *task)                // a decision started it
	gaveBack(n cluster.NodeID)      // a hopeless reservation ended
	handle(i item)                  // a happening of the protocol's own
	finished(t *task)               // the process ended
	left(n cluster.NodeID)          // a node left; the engine has been notified
	lost(t *task)                   // the task was on a node that left; the engine has been notified
	joined(n cluster.NodeID)        // a node joined; the engine is yet to be notified
	limitsChanged(n cluster.NodeID) // the limits of the containers of a node have changed
	reported(reports []report)      // the tasks have something to report
	// tasks or jobs ended without success: other tasks may take their room, or the ended tasks may run again, perhaps
	// after a pause that has ended now
	freed()
}

// job is the true state of a job.
type job struct {
	*workload.Job
	index      int32
	turn       uint64 // of its arrival, if it waits for no other job
	behind     int    // parts that it waits for
	arrived    bool
	done       bool   // it succeeded, or failed
	failing    string // why it is to end before it is done; empty if it is not to
	unstarted  int    // tasks that no decision has started yet, coordinator included
	unended    int    // tasks whose process has not ended, without the coordinator
	master     master
	acquiring  acquiring
	behaviours []behaviour // of its stages, if the workload is fluid
	alike      []flow      // of its stages: how each of their tasks begins, as far as that is known
	teaching               // what its runs teach
	latest     [][]int32   // the index of the latest run of each started task, by stage and task, -1 if there is none
	early      *early      // nil unless tasks may start before the stages that theirs depends on have ended
}

// follows reports whether the ends of others submit the job.
func (j *job) follows() bool { return j.After >= 0 || len(j.Behind) > 0 }

// Run simulates the workload under the policy. Jobs that do not end are in the result with the reason; an error means
// an invalid configuration, a workload with a task that fits on no node, or an impossible decision of the policy.
func Run(c Config, w *workload.Workload, p policy.Policy) (*Result, error) {
	r, err := newRun(c, w, p)
	if err != nil {
		return nil, err
	}
	return r.play()
}

// newRun creates the cluster of a simulation, with no job submitted yet.
func newRun(c Config, w *workload.Workload, p policy.Policy) (*run, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	r := &run{config: c, policy: p, engine: engine.New(p, c.describe), traits: p.Traits(),
		submitted: submitted{byID: map[cluster.JobID]*job{}, after: map[int][]*job{}, parts: map[int]*part{}},
		answers:   map[cluster.NodeID]cluster.Event{}, idle: map[cluster.NodeID][]executor{}, result: &Result{},
		recorder: newRecorder(c.Series)}
	if err := r.load(w); err != nil {
		return nil, err
	}
	if err := r.prepare(); err != nil {
		return nil, err
	}
	if c.Heartbeat > 0 {
		r.protocol = newHeartbeats(r)
	} else {
		r.protocol = &direct{r}
	}
	r.boot()
	return r, r.checkFits()
}

// play runs the simulation to its end.
func (r *run) play() (*Result, error) {
	r.expect()
	r.protocol.begin()
	for i := range r.config.Incidents {
		r.agenda.push(timeline.Time(r.config.Incidents[i].At), incident, int32(i))
	}
	for r.ended < len(r.jobs) && r.err == nil && !r.goesRound() && !r.standsStill() {
		i, ok := r.agenda.pop()
		if !ok {
			break
		}
		if r.config.Until > 0 && i.at > r.config.Until {
			break
		}
		if i.at >= lastTime {
			return nil, errors.New("the jobs would take more than 290 years: some task makes hardly any progress")
		}
		r.handle(i)
	}
	if r.err != nil {
		return nil, r.err
	}
	return r.finish(), nil
}

// expect puts the jobs that wait for no other in the order of their arrival. Only the next of them is on the agenda,
// which stays short, but each has the turn that it would have if all were.
func (r *run) expect() {
	for _, j := range r.jobs {
		if !j.follows() && !j.arrived {
			j.turn = r.agenda.turn()
			r.coming = append(r.coming, j)
		}
	}
	slices.SortStableFunc(r.coming, func(a, b *job) int { return cmp.Compare(a.Submitted, b.Submitted) })
	r.expectNext()
}

func (r *run) expectNext() {
	if len(r.coming) > 0 {
		r.agenda.pushAt(r.coming[0].Submitted, r.coming[0].turn, arrival, r.coming[0].index)
		r.coming = r.coming[1:]
	}
}

// goesRound reports whether the policy kills again and again while no task succeeds, so that none ever will: a
// preempted task can be the first to start again in the memory that it freed.
func (r *run) goesRound() bool {
	const usual = 1000
	return r.inVain > usual && r.inVain > usual+100*r.engine.Snapshot().Running
}

// standsStill reports whether memory managers keep stepping while all containers are suspended, which can go on for
// ever where no container may be killed.
func (r *run) standsStill() bool {
	return r.still > 50_000*len(r.keepers) &&
		!slices.ContainsFunc(r.nodes, func(p node) bool { return p.due.at != timeline.Never })
}

// load copies the workload, with coordinators where the cluster has them.
func (r *run) load(w *workload.Workload) error {
	for i := range w.Jobs {
		t := new(workload.Job) // the workload may be in use by other runs
		*t = w.Jobs[i]
		if r.config.CoordinatorHeartbeat > 0 {
			t = withCoordinator(t, r.config.Coordinator)
		}
		j := &job{Job: t, index: int32(i), early: earlyOf(&t.Job)}
		if err := r.add(j); err != nil {
			return err
		}
		for s := range t.Stages {
			j.unstarted += t.Stages[s].Tasks
			if !t.Stages[s].Coordinator {
				j.unended += t.Stages[s].Tasks
			}
		}
		r.result.Jobs = append(r.result.Jobs, JobResult{ID: t.ID, Name: t.Name, Submitted: t.Submitted})
	}
	r.linkParts()
	return nil
}

// prepare finds out whether the workload is fluid: whether demand on a node may exceed its capacity, or tasks have
// phases. Grants alone never exceed capacity, which the engine ensures. While the true demand is within the grants,
// tasks do not influence each other.
func (r *run) prepare() error {
	anyRate := func(v *resource.Vector) bool {
		return slices.ContainsFunc(rates, func(k resource.Kind) bool { return v[k] > 0 })
	}
	limited, flex := false, false
	for i := range r.config.Nodes {
		limited = limited || anyRate(&r.config.Nodes[i].Capacity)
	}
	for i := range r.config.Incidents {
		limited = limited || r.config.Incidents[i].Kind == NodeJoin && anyRate(&r.config.Incidents[i].New.Capacity)
	}
	for _, j := range r.jobs {
		j.behaviours = make([]behaviour, len(j.Stages))
		for s := range j.Stages {
			n, ideal := behaviourOf(j.Job, s), &j.Stages[s].Ideal
			j.behaviours[s] = n
			flex = flex || n&flexible != 0
			r.fluid = r.fluid || n&(phased|outgrow|flexible) != 0 || limited && (n&spills != 0 || anyRate(ideal))
		}
	}
	pauses := slices.ContainsFunc(r.config.Incidents, func(i Incident) bool { return i.Kind == JobPause })
	pauses = pauses || r.config.Begin.stopsTasks()
	// it may throttle or stop tasks; nodes are recorded
	r.fluid = r.fluid || r.traits.LooksAhead || r.traits.Stops || r.config.Series.Nodes || pauses
	if !r.fluid {
		return nil
	}
	for i := range r.config.Nodes {
		r.addNode(&r.config.Nodes[i])
	}
	if flex {
		return r.keep()
	}
	return nil
}

// addNode adds the true state of the next node.
func (r *run) addNode(n *cluster.Node) {
	r.nodes = append(r.nodes, node{capacity: n.Capacity, swap: r.config.Machine.Swap, first: ending{at: timeline.Never},
		due: ending{at: timeline.Never}})
	if r.config.Series.Nodes {
		r.result.Nodes = append(r.result.Nodes, NodeSeries{Name: n.Name})
		r.recordNode(n.ID)
	}
}

// described is a node as it tells the engine of itself.
func (r *run) described(n *cluster.Node) *cluster.Node {
	of := *n
	of.Swap = r.config.Machine.Swap
	return &of
}

// boot adds the nodes.
func (r *run) boot() {
	var events []cluster.Event
	for i := range r.config.Nodes {
		events = append(events, cluster.Event{Kind: cluster.NodeJoined, NewNode: r.described(&r.config.Nodes[i])})
		r.capacity.change(0, r.config.Nodes[i].Capacity[resource.Memory])
	}
	if r.config.Begin != nil {
		r.begin()
	} else {
		if q := r.config.Quotas; !q.None() {
			events = append(events, cluster.Event{Kind: cluster.QuotasSet, Found: &cluster.Condition{Quotas: q}})
		}
		r.step(append(events, cluster.Event{Kind: cluster.Synced}))
	}
	r.recordCapacity()
}

// checkFits rejects a workload with a task that is too large for every node.
func (r *run) checkFits() error {
	for _, j := range r.jobs {
		if err := policy.CheckRuns(r.policy, r.engine.Snapshot(), &j.Job.Job); err != nil && !j.arrived {
			return err
		}
		for s := range j.Stages {
			if !j.Stages[s].Coordinator && trueDuration(j.Job, s, 0, workload.Warm, j.Stages[s].Ideal[resource.Memory]) <= 0 {
				return fmt.Errorf("job %q stage %d duration: the simulator must know how long its tasks run", j.Name, s)
			}
		}
	}
	return r.err
}

func (r *run) handle(i item) {
	r.now = i.at
	r.result.Events++
	switch i.what {
	case arrival:
		j := r.jobs[i.who]
		if !j.follows() {
			r.expectNext()
		}
		if !j.done {
			r.arrive(j)
		}
	case woken, holdEnds:
		r.stepOne(cluster.Event{Kind: cluster.Woken})
	case pauseEnds:
		r.stepOne(cluster.Event{Kind: cluster.Woken})
		r.protocol.freed()
	case ended:
		if t := r.tasks.get(i.who); !t.ended() && t.flow == nil {
			r.end(t, cluster.Succeeded)
		}
	case phaseEnded:
		r.endPhase(cluster.NodeID(i.who), i)
	case dying:
		if t := r.tasks.get(i.who); !t.ended() {
			r.end(t, t.ending)
		}
	case killed:
		if t := r.tasks.get(i.who); !t.ended() {
			r.end(t, t.killing)
		}
	case incident:
		r.happens(&r.config.Incidents[i.who])
	case kept:
		r.tick(cluster.NodeID(i.who), i)
	case moved:
		r.endTransfer(cluster.NodeID(i.who), i)
	case ordered:
		r.carryOn(r.tasks.get(i.who), i)
	case wanted:
		r.setWanted(r.tasks.get(i.who), i)
	case solved:
		r.answer(cluster.NodeID(i.who))
	case paged:
		r.endMove(r.tasks.get(i.who), i)
	default:
		r.protocol.handle(i)
	}
	r.conclude()
}

// conclude does what the present happening entails.
func (r *run) conclude() {
	if len(r.awake) > 0 {
		r.decideAll()
	}
	if len(r.reports) > 0 {
		r.passOn()
	}
	if len(r.taught) > 0 {
		r.revise()
	}
	if len(r.returning) > 0 {
		r.bringBack()
	}
	if len(r.unsettled) > 0 {
		r.settleAll()
		if len(r.reports) > 0 { // of pressure
			r.passOn()
		}
	}
}

func (r *run) arrive(j *job) {
	j.arrived = true
	r.waiting += j.unstarted
	j.Submitted = r.now
	r.result.Jobs[j.index].Submitted = r.now
	r.protocol.arrive(j)
}

func (r *run) stepOne(e cluster.Event) {
	r.events = append(r.events[:0], e)
	r.step(r.events)
}

// stepTask is stepOne for the most frequent events, which are about a task and are made where they are kept.
func (r *run) stepTask(kind cluster.EventKind, t *task) {
	r.events = append(r.events[:0], cluster.Event{})
	e := &r.events[0]
	e.Kind, e.Task, e.Node, e.Outcome = kind, t.id, t.node, t.result.Outcome
	if kind == cluster.DecisionDone {
		e.Decision = t.decision
	}
	r.step(r.events)
}

// step passes events to the engine and carries out its decisions.
func (r *run) step(events []cluster.Event) {
	decisions, err := r.engine.Step(r.now, events...)
	if err != nil {
		r.err = err
		return
	}
	r.config.Observers.step(r.now, events, decisions)
	for i := range decisions {
		switch d := &decisions[i]; d.Kind {
		case cluster.Start:
			r.start(d)
		case cluster.Kill:
			if t := r.latest(d.Task); t != nil && !t.ended() {
				t.killing = cluster.Killed
				if d.Preempt {
					t.killing = cluster.Preempted
				}
				r.agenda.push(r.now.Add(r.config.KillDelay), killed, t.index)
			}
		case cluster.Ask:
			r.solve(d)
		case cluster.Wake:
			what := woken
			switch d.Reason.Code {
			case cluster.LevelingEnds:
				what = holdEnds
			case cluster.RetryDue:
				what = pauseEnds
			}
			r.agenda.push(d.At, what, 0)
		case cluster.Unreserve:
			if d.Reason.Code == cluster.ReservationHopeless {
				r.protocol.gaveBack(d.Node)
			}
		default:
			if f, sets := d.Kind.Sets(); sets {
				r.want(d, f)
			}
		}
	}
}

// jobOf returns a job by its ID. Most workloads number their jobs without gaps.
func (r *run) jobOf(id cluster.JobID) *job {
	if at := id - r.jobs[0].ID; at >= 0 && int(at) < len(r.jobs) && r.jobs[at].ID == id {
		return r.jobs[at]
	}
	return r.byID[id]
}

// start has a task start that the engine has decided to start.
func (r *run) start(d *cluster.Decision) {
	j := r.jobOf(d.Task.Job)
	j.unstarted--
	r.waiting--
	stage, memory := &j.Stages[d.Task.Stage], d.Grant[resource.Memory]
	t := r.tasks.add()
	t.job, t.id, t.decision, t.node, t.grant, t.mostCPU = j, d.Task, d.ID, d.Node, d.Grant, d.Envelope.MostCPU
	res := &t.result
	res.ID, res.Node, res.Memory, res.Decided = d.Task, d.Node, memory, r.now
	res.Coordinator, res.UnderSized = stage.Coordinator, memory < stage.Ideal[resource.Memory] && !d.ByPhase
	if r.keepers != nil {
		t.run, t.envelope = 1, new(d.Envelope)
		if last := r.latest(d.Task); last != nil {
			t.run = last.run + 1
		}
	}
	j.remember(d.Task, t.index)
	r.grant(t.node, resource.Vector{}, r.heldBy(t))
	r.protocol.started(t)
}

// heldBy is the booked resources of a task, from its start decision on. On a node with a memory manager, the task has
// memory only once the manager has admitted it. On others, memory that is paged out does not count.
func (r *run) heldBy(t *task) resource.Vector {
	if r.keepers != nil {
		return t.grant.With(resource.Memory, 0)
	}
	if t.holding != nil {
		return t.grant.With(resource.Memory, t.grant[resource.Memory]-t.holding.out)
	}
	return t.grant
}

// grant records a change of the granted resources of a node from now on.
func (r *run) grant(n cluster.NodeID, from, to resource.Vector) {
	r.used.change(r.now, to[resource.Memory]-from[resource.Memory])
	r.recorder.change(r.now, ofGranted, from, to)
	if r.config.Series.Nodes {
		r.nodes[n].granted = r.nodes[n].granted.Add(to).Sub(from)
		r.recordNode(n)
	}
}

// launch starts a task's process.
func (r *run) launch(t *task) {
	found := t.found != nil
	if t.launched, t.result.Launched = true, r.now; found {
		t.result.Launched = t.found.Launched
	}
	r.still = 0
	if !t.result.Coordinator {
		j := &r.result.Jobs[t.job.index]
		if j.Tasks == 0 {
			j.Started = t.result.Launched
		}
		j.Tasks++
		if t.result.UnderSized {
			j.UnderSized++
		}
		if r.fluid {
			r.occupy(t)
		} else {
			use := r.plainUse(t)
			t.bound = r.caps(t)
			d := trueDuration(t.job.Job, int(t.id.Stage), t.id.Index, t.result.Warmth, t.grant[resource.Memory])
			if found {
				d = r.left(t)
			}
			if pace := allowedPace(&use, &t.bound); pace < 1 {
				d = time.Duration(math.Ceil(float64(d) / pace))
			}
			r.agenda.push(after(r.now, d), ended, t.index)
			if r.recorder != nil {
				r.use(t, r.plainUse(t))
			}
		}
	}
	if found {
		r.asFound(t)
		return
	}
	r.stepTask(cluster.DecisionDone, t)
}

// endJob records the end of a job, with or without success, and submits the jobs that wait for it.
func (r *run) endJob(j *job) {
	if j.done {
		return
	}
	j.done = true
	r.ended++
	if j.arrived && j.failing != "" {
		r.waiting -= j.unstarted
	}
	if r.forgets() {
		j.latest, j.alike = nil, nil
	}
	res := &r.result.Jobs[j.index]
	res.Done, res.Ended = j.failing == "", r.now
	res.Failed, res.Failure = j.failing != "", j.failing
	for _, next := range r.after[int(j.index)] {
		r.agenda.push(r.now, arrival, next.index)
	}
	for _, next := range r.endsPart(j) {
		r.agenda.push(max(r.now, next.Submitted), arrival, next.index)
	}
	r.learn(j)
	r.config.Observers.jobEnded(r.ended, len(r.jobs), r.now)
}
