package policy

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// prophet places what leaves the least of the nodes' future resources idle or over-allocated (Xu et al., "Prophet:
// Scheduling Executors with Time-varying Resource Demands on Data-Parallel Computation Frameworks", section III,
// Algorithm 1 and equations 1-8). CPU and memory are reserved by ideal need; disk and network are forecast, and not
// reserved. What the paper leaves open is decided in docs/decisions/0032-prophet.md.
//
// Each decision takes, of the jobs that have waited longest, the one whose tasks score least on the nodes with room for
// them, and repeats until no such job has room. A job past its deadline comes before all others, and no other job
// starts before it does.
type prophet struct {
	eta      float64 // weight of fragmentation; that of over-allocation is 1-eta
	window   float64 // the share of the waiting jobs that is considered
	deadline float64 // in mean waits; 0 is none
	literal  bool    // tasks of a stage start one by one, on the next node with room, as in the text of Algorithm 1
	strict   bool    // tasks that start together need a node each
	kinds    []resource.Kind
	unknown  time.Duration // how long a task without forecast and run time is taken to run

	backoff  backoff
	ahead    ahead
	queue    ranked[*applicant] // jobs with a task to start, the longest wait first
	spare    []*applicant       // of jobs that are no longer in the queue, to be reused
	held     held               // of the need that was measured last: the needs of many jobs are equal
	nodes    int                // as many nodes as the queue was measured for
	capacity resource.Vector    // of the cluster for which the queue was measured

	// The rest belongs to one decision.
	decision uint64               // counts them
	mean     float64              // wait, in seconds
	touched  []*cluster.NodeState // nodes on which a task was started
	open     []*cluster.NodeState // nodes with room for least when they were searched
	least    resource.Vector
	opened   uint64     // the decision of open and least
	overdue  *applicant // comes first and has no room; nil if there is none
}

func newProphet(s *settings) Policy {
	f := &prophet{
		eta: s.declare("eta", "0.3",
			"weight of fragmentation in the score, from 0 to 1; over-allocation weighs 1-eta (equation 8)").share(),
		window: s.declare("window", "0.5",
			"only this share of the waiting jobs, those that have waited longest, and at least one job, is considered").share(),
		deadline: s.declare("deadline", "3",
			"a job without a deadline of its own comes first when it has waited this multiple of the mean wait; 0 is never").number(),
	}
	f.backoff.lasts = s.declare("backoff", "5s",
		"how long the tasks with the largest demands are throttled on a node that gives much less than it could (section III.B); "+
			"0s is never. Simulated nodes report that of disk and network, real ones of the disk").orNever()
	f.backoff.turns = s.declare("relief", "turns",
		"turns: on a pressed node some tasks go on and the others wait for their turn, since disks lose time when they change "+
			"between programs; share: bounds that add up to what the node has").oneOf("turns", "share") == "turns"
	f.literal = s.declare("score", "sum",
		"sum: a job scores the sum over the nodes of all its tasks; literal: tasks start one by one on the next node, "+
			"as the text of Algorithm 1 says").oneOf("sum", "literal") == "literal"
	f.strict = s.declare("distinct", "auto",
		"tasks that start together go to different nodes: auto, as far as there are as many nodes; strict, always").oneOf("auto", "strict") == "strict"
	f.kinds = s.declare("kinds", "disk,network", "the resources that are scored").kinds()
	f.unknown = s.declare("unknown", "1m", "how long a task without forecast and run time is taken to run").duration()
	return f
}

func (*prophet) Name() string { return "prophet" }

// Traits sets Quotas because the end of a task lets jobs be considered that had room on other nodes before.
func (f *prophet) Traits() Traits {
	return Traits{Together: true, LooksAhead: true, Quotas: true, Admit: f.admit, Why: f.why, DropCaches: f.dropCaches}
}

func (f *prophet) dropCaches() {
	f.queue.drop()
	f.ahead = ahead{}
	f.overdue = nil
}

// applicant is a job with a task to start, and what was computed for it.
type applicant struct {
	job   *cluster.JobState
	told  *cluster.Job // what the rest was computed from: a job can be revised while it waits
	stage int
	need  resource.Vector
	tasks int  // that start at once
	each  int  // the most of them on one node
	apart bool // each needs a node without a task of the stage
	spans []timeline.Span

	empty emptyCluster

	// The rest belongs to one decision.
	decision uint64
	touched  int // nodes of prophet.touched that places reflect
	places   []place
	chosen   []place
	fits     bool           // all tasks have room, in chosen
	norm     float64        // the sum of the scores of chosen
	loss     cluster.Reason // if another job was chosen for the room
}

// emptyCluster says what would have room if nothing ran.
type emptyCluster struct {
	servers int // nodes that hold a task of the stage
	tasks   int // that fit at once, up to applicant.tasks
}

// place is a node with room for a task.
type place struct {
	node  *cluster.NodeState
	times int  // tasks for which it has room, at most applicant.each
	exact bool // the score is not only a bound
	score
}

// score is what placing one task on a node costs: less is better. Areas are in bytes.
type score struct{ norm, idle, over float64 }

func (f *prophet) Decide(now timeline.Time, p *cluster.Plan) {
	f.follow(p)
	f.decision++
	f.touched, f.overdue = f.touched[:0], nil
	f.mean = f.meanWait(now, p.Snapshot)
	f.backoff.relieve(now, p, &f.ahead)
	for f.startNext(now, p) {
	}
	f.explain(now, p)
}

// follow updates the queue from the changes of the snapshot.
func (f *prophet) follow(p *cluster.Plan) {
	if f.nodes != len(p.Nodes) || f.capacity != p.Capacity {
		f.nodes, f.capacity = len(p.Nodes), p.Capacity
		f.queue.drop()
	}
	for _, j := range f.queue.changed(p) {
		f.file(p.Snapshot, j)
	}
}

// file puts j where it belongs, or removes it if it has nothing to start.
func (f *prophet) file(s *cluster.Snapshot, j *cluster.JobState) {
	stage, runnable := j.NextStage()
	a := f.queue.filed[j].with
	if !runnable {
		if _, ok := f.queue.remove(j); ok {
			f.spare = append(f.spare, a)
		}
		return
	}
	switch last := len(f.spare) - 1; {
	case a != nil:
	case last >= 0:
		a, f.spare = f.spare[last], f.spare[:last]
	default:
		a = new(applicant)
	}
	if a.job != j || a.stage != stage || a.told != j.Job {
		*a = applicant{job: j, told: j.Job, stage: stage, need: j.Stages[stage].Ideal,
			spans: forecast(&j.Stages[stage], f.unknown, a.spans), places: a.places[:0], chosen: a.chosen[:0]}
	}
	a.decision = 0
	f.measure(s, a)
	f.queue.file(filing[*applicant]{j, float64(j.Since), a})
}

// measure computes how many tasks of a start at once. A stage whose tasks start together starts all that are pending. So
// does a stage with a forecast that has no more tasks than nodes could hold them: these are the executors of the paper.
// The tasks of other stages start one by one.
func (f *prophet) measure(s *cluster.Snapshot, a *applicant) {
	stage := &a.job.Stages[a.stage]
	a.empty.servers = f.holders(s, a.need)
	executors := lengthOf(stage.Phases) > 0 && stage.Tasks <= a.empty.servers
	a.apart = executors || stage.Together && (f.strict || stage.Tasks <= a.empty.servers)
	a.tasks, a.each = 1, 1
	if stage.Together || executors && !f.literal {
		a.tasks = a.job.Progress[a.stage].Pending
	}
	if !a.apart && a.tasks > 1 {
		a.each = (a.tasks + max(1, a.empty.servers) - 1) / max(1, a.empty.servers)
	}
	a.empty.tasks = a.empty.servers
	if a.each > 1 {
		a.empty.tasks = 0
		for _, n := range s.Nodes {
			a.empty.tasks += n.HoldsTimes(a.need, a.each)
		}
	}
}

// holders counts the nodes that hold a need.
func (f *prophet) holders(s *cluster.Snapshot, need resource.Vector) int {
	if f.held.nodes != len(s.Nodes) || f.held.capacity != s.Capacity || f.held.need != need {
		f.held = held{len(s.Nodes), s.Capacity, need, 0}
		for _, n := range s.Nodes {
			if n.Holds(need) {
				f.held.count++
			}
		}
	}
	return f.held.count
}

// held is how many of the nodes of a cluster hold a need.
type held struct {
	nodes    int
	capacity resource.Vector
	need     resource.Vector
	count    int
}

// possible reports whether the tasks of a have room if nothing runs.
func (a *applicant) possible() bool { return a.empty.tasks >= a.tasks }

// admit rejects jobs whose tasks must start together and do not fit at once, even if nothing runs.
func (f *prophet) admit(s *cluster.Snapshot, j *cluster.Job) error {
	for i := range j.Stages {
		if !j.Stages[i].Together {
			continue
		}
		state := &cluster.JobState{Job: j, Progress: make([]cluster.StageState, len(j.Stages))}
		state.Progress[i].Pending = j.Stages[i].Tasks
		a := applicant{job: state, stage: i, need: j.Stages[i].Ideal}
		f.measure(s, &a)
		if !a.possible() {
			return fmt.Errorf("job %q stage %q tasks %d: start together, and must be at most as many as fit at once, %d",
				j.Name, j.StageName(i), j.Stages[i].Tasks, a.empty.tasks)
		}
	}
	return nil
}

// startNext starts the tasks of the job that comes next. It returns false if no job that is considered has room.
func (f *prophet) startNext(now timeline.Time, p *cluster.Plan) bool {
	if a, due, ok := f.pastDeadline(now); ok {
		if _, room := f.choose(now, p, a, math.Inf(1)); room {
			return f.start(p, a, func(place) cluster.Reason { return cluster.BecausePastDeadline(a.need[resource.Memory], due) })
		}
		if p.Running > 0 {
			f.overdue = a
			p.WaitBehind(a.job)
			return false
		}
	}
	if len(f.queue.jobs) == 0 || p.AtOnce() && len(f.openFor(p, f.queue.jobs[0].with.need)) == 0 {
		return false
	}
	best, least, compared := (*applicant)(nil), math.Inf(1), 0
	var first *cluster.NodeState
	if f.literal {
		first = f.firstWithRoom(p)
	}
	f.consider(p.Snapshot, func(a *applicant) {
		if first != nil && a.tasks == 1 {
			a.norm, a.fits = f.chooseOn(now, p, a, first)
		} else {
			a.norm, a.fits = f.choose(now, p, a, f.limit(a, least))
		}
		if !a.fits {
			return
		}
		if compared++; a.norm < least {
			best, least = a, a.norm
		}
	})
	if best == nil {
		return false
	}
	f.consider(p.Snapshot, func(a *applicant) {
		if a.fits {
			a.loss = cluster.BecauseScoresWorse(best.job.ID, a.norm, least)
		}
	})
	return f.start(p, best, func(on place) cluster.Reason {
		if left := on.node.Unknown & resource.KindsOf(f.kinds...); left != 0 {
			return cluster.BecauseBestAheadOfKnown(left, on.idle, on.over)
		}
		return cluster.BecauseBestAhead(compared, on.idle, on.over)
	})
}

// limit is the score from which on it does not matter how much worse a is than the best: a reason with its score is
// recorded only once.
func (f *prophet) limit(a *applicant, least float64) float64 {
	if a.job.Waiting.Code == cluster.ScoresWorse {
		return least
	}
	return math.Inf(1)
}

// start starts the tasks of a where they were chosen to run.
func (f *prophet) start(p *cluster.Plan, a *applicant, why func(place) cluster.Reason) bool {
	a.loss = cluster.Reason{}
	for _, on := range a.chosen {
		if p.Start(a.job, a.stage, on.node, a.need[resource.Memory], why(on)) == nil {
			return false
		}
		f.touched = append(f.touched, on.node)
	}
	f.file(p.Snapshot, a.job)
	return true
}

// considered returns how many of the jobs in the queue are considered, of how many that could ever start. While nothing
// runs there is nothing to wait for, and all of them are considered.
func (f *prophet) considered(s *cluster.Snapshot) (limit, of int) {
	for i := range f.queue.jobs {
		if f.queue.jobs[i].with.possible() {
			of++
		}
	}
	if s.Running == 0 {
		return of, of
	}
	return min(of, considered(1-f.window, of)), of
}

// consider passes the considered jobs to do, the longest wait first.
func (f *prophet) consider(s *cluster.Snapshot, do func(*applicant)) {
	limit, _ := f.considered(s)
	for i := 0; i < len(f.queue.jobs) && limit > 0; i++ {
		if a := f.queue.jobs[i].with; a.possible() {
			do(a)
			limit--
		}
	}
}

// meanWait is the mean wait of the jobs that had to wait before they started, and of those that still do, in seconds.
func (f *prophet) meanWait(now timeline.Time, s *cluster.Snapshot) float64 {
	waits := s.Waits
	for i := range f.queue.jobs {
		if j := f.queue.jobs[i].job; j.NeverStarted() {
			waits = waits.With(j.Submitted, now)
		}
	}
	return waits.Mean()
}

// due returns when a job comes first: at its deadline if it has one and has not started, or else when it has waited
// several times as long as jobs wait on average.
func (f *prophet) due(j *cluster.JobState, mean float64) timeline.Time {
	switch {
	case j.Deadline > 0 && j.NeverStarted():
		return j.Submitted.Add(j.Deadline)
	case f.deadline == 0 || mean == 0:
		return timeline.Never
	}
	return j.Since.Add(seconds(f.deadline * mean))
}

// pastDeadline returns the job that has waited longest of those that are past their deadline.
func (f *prophet) pastDeadline(now timeline.Time) (a *applicant, due timeline.Time, ok bool) {
	for i := range f.queue.jobs {
		a = f.queue.jobs[i].with
		if due = f.due(a.job, f.mean); due <= now && a.possible() {
			return a, due, true
		}
	}
	return nil, 0, false
}

// explain records why jobs wait that had room until another job was chosen, and requests a call when deadlines pass.
func (f *prophet) explain(now timeline.Time, p *cluster.Plan) {
	for i := range f.queue.jobs {
		a := f.queue.jobs[i].with
		if a.decision == f.decision && a.loss.Code != 0 && a.job.Waiting.Code != a.loss.Code {
			p.Wait(a.job, a.stage, 0, a.loss)
		}
		a.loss = cluster.Reason{}
	}
	for i, j := range p.Changes.Jobs {
		if at := j.Submitted.Add(j.Deadline); j.Deadline > 0 && j.NeverStarted() && !j.Status.Ended() && at > now && !slices.Contains(p.Changes.Jobs[:i], j) {
			p.Wake(at, cluster.Because(cluster.DeadlineDue))
		}
	}
}

// why says that a job has not waited long enough, or that only some of its tasks have room.
func (f *prophet) why(now timeline.Time, s *cluster.Snapshot, j *cluster.JobState, _ int) (cluster.Reason, bool) {
	a := f.queue.filed[j].with
	if a == nil || f.overdue != nil && f.overdue != a {
		return cluster.Reason{}, false
	}
	due := f.due(j, f.meanWait(now, s))
	limit, of := f.considered(s)
	before := 0
	for i := 0; i < len(f.queue.jobs) && f.queue.jobs[i].with != a; i++ {
		if f.queue.jobs[i].with.possible() {
			before++
		}
	}
	if before >= limit && f.overdue != a && a.possible() {
		return cluster.BecauseWaitedTooLittle(limit, of, due), true
	}
	_, some := s.FirstOpen(a.need, 0)
	room := 0
	for n, ok := s.FirstOpen(a.need, 0); ok && room < a.tasks; n, ok = s.FirstOpen(a.need, n.ID+1) {
		room += a.timesOn(n)
	}
	return cluster.BecauseTooFewServers(a.tasks, room, due), some && room < a.tasks
}
