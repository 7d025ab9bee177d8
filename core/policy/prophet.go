package policy

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy/contract"
	"github.com/bellows-rm/bellows/core/policy/queue"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// prophet starts the tasks that leave the least of the nodes' future resources idle or over-allocated (Xu et al.,
// "Prophet: Scheduling Executors with Time-varying Resource Demands on Data-Parallel Computation Frameworks", section
// III, Algorithm 1 and equations 1-8). CPU and memory are reserved by ideal need; disk and network are forecast, and
// not reserved. What the paper leaves open is decided in docs/decisions/0032-prophet.md.
//
// Each decision chooses, among the jobs that have waited longest, the job whose tasks score least on the nodes with
// room for them, and repeats until none of these jobs has room. A job past its deadline comes before all other jobs,
// and no other job starts before it does.
type prophet struct {
	foresight
	window   float64 // the share of the waiting jobs that is considered
	deadline float64 // in mean waits; 0 means none
	literal  bool    // tasks of a stage start one by one, on the next node with room, as in the text of Algorithm 1
	strict   bool    // tasks that start together need a node each

	backoff  backoff
	queue    queue.Ranked[*applicant] // jobs with a task to start, the longest wait first
	spare    []*applicant             // of jobs that are no longer in the queue, to be reused
	held     held                     // for the need that was measured last: the needs of many jobs are equal
	nodes    int                      // number of nodes when the queue was measured
	capacity resource.Vector          // of the cluster when the queue was measured
	open     openNodes                // for the jobs in the queue

	// The rest belongs to one decision.
	decision uint64            // counts them
	mean     float64           // wait, in seconds
	contest  []*applicant      // the jobs that are considered, the longest wait first
	first    *book.NodeState   // if literal, the only node on which tasks start one by one; nil is any node
	touched  []*book.NodeState // nodes on which a task was started
	norms    []float64         // of the places of one job
	overdue  *applicant        // the job past its deadline that has no room; nil if there is none
}

func newProphet(s *contract.Settings) Policy {
	f := &prophet{
		foresight: foresight{eta: s.Declare("eta", "0.3",
			"weight of fragmentation in the score, from 0 to 1; over-allocation weighs 1-eta (equation 8)").Share()},
		window: s.Declare("window", "0.5",
			"only this share of the waiting jobs, those that have waited longest, and at least one job, is considered").Share(),
		deadline: s.Declare("deadline", "3",
			"a job without a deadline of its own comes first when it has waited this multiple of the mean wait; 0 is "+
				"never").Number(),
	}
	f.backoff.lasts = s.Declare("backoff", usualBackoff,
		"how long the tasks with the largest demands are throttled on a node that gives much less than it could "+
			"(section III.B); "+
			"0s is never. Simulated nodes report pressure of disk and network; real nodes, of the disk only").OrNever()
	f.backoff.turns = s.Declare("relief", "turns",
		"turns: on a pressed node some tasks go on and the other tasks wait for their turn, because a disk loses time "+
			"when it "+
			"switches between programs; share: the tasks get bounds that add up to what the node has").OneOf("turns",
		"share") == "turns"
	f.literal = s.Declare("score", "sum",
		"sum: a job scores the sum over the nodes of all its tasks; literal: tasks start one by one on the next node, "+
			"as the text of Algorithm 1 says").OneOf("sum", "literal") == "literal"
	f.strict = s.Declare("distinct", "auto",
		"tasks that start together go to different nodes: auto, if there are enough nodes; strict, always").OneOf("auto",
		"strict") == "strict"
	f.kinds = s.Declare("kinds", "disk,network", "the resources that are scored").Kinds()
	f.ahead.kinds = f.kinds
	f.unknown = s.Declare("unknown", "1m", "how long a task without forecast and run time is taken to run").Duration()
	return f
}

func (*prophet) Name() string { return "prophet" }

// Traits sets Quotas because the end of a task lets jobs be considered that had room on other nodes before.
func (f *prophet) Traits() Traits {
	return Traits{Together: true, Deadlines: true, LooksAhead: true, Quotas: true, Admit: f.admit, Why: f.why,
		DropCaches: f.dropCaches}
}

func (f *prophet) dropCaches() {
	f.dropQueue()
	f.foresight.forget()
	f.overdue = nil
}

func (f *prophet) dropQueue() {
	f.queue.Drop()
	f.open.left = true
}

// applicant is a job with a task to start, and what was computed for it. The fields that each decision reads for all
// jobs come first, so that they share lines of the processor's cache.
type applicant struct {
	submitted, since timeline.Time
	deadline         time.Duration // of its own, from its submission; 0 if it has none or has started
	never            bool          // none of its tasks was ever started
	possible         bool          // its tasks have room if nothing runs
	apart            bool          // each task needs a node without a task of the stage
	need             resource.Vector

	job   *book.JobState
	told  *cluster.Job // from which the rest was computed: a job can be revised while it waits
	stage int
	tasks int // that start at once
	each  int // the most of them on one node
	spans []timeline.Span

	// The rest belongs to one decision.
	decision uint64
	touched  int // nodes of prophet.touched that places reflect
	places   []place
	chosen   []place
	fits     bool           // all tasks have room
	norm     float64        // the sum of the scores of chosen, or at most that
	loss     cluster.Reason // if another job was chosen for the room
}

// place is a node with room for a task.
type place struct {
	node  *book.NodeState
	times int  // tasks for which it has room, at most applicant.each
	exact bool // the score is known
	least bool // norm is known to be a lower bound of the score's norm
	score
}

// score is what placing one task on a node costs: less is better. Areas are in bytes.
type score struct{ norm, idle, over float64 }

func (f *prophet) Decide(now timeline.Time, p *book.Plan) {
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
func (f *prophet) follow(p *book.Plan) {
	if f.nodes != len(p.Nodes) || f.capacity != p.Capacity {
		f.nodes, f.capacity = len(p.Nodes), p.Capacity
		f.dropQueue()
	}
	for _, j := range f.queue.Changed(p) {
		f.file(p.Snapshot, j)
	}
}

// file puts j where it belongs, or removes it if it has nothing to start.
func (f *prophet) file(s *book.Snapshot, j *book.JobState) {
	stage, runnable := j.NextStage()
	filed, _ := f.queue.As(j)
	a := filed.With
	if !runnable {
		if _, ok := f.queue.Remove(j); ok {
			f.spare, f.open.left = append(f.spare, a), true
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
	a.submitted, a.since, a.never, a.deadline = j.Submitted, j.Since, j.NeverStarted(), 0
	if a.never {
		a.deadline = j.Deadline
	}
	f.measure(s, a)
	f.open.needs(a.need)
	f.queue.File(queue.EntryOf(j, float64(j.Since), a))
}

// measure computes how many tasks of a start at once, and returns how many of them have room if nothing runs. A stage
// whose tasks start together starts all that are pending. So does a stage with a forecast that has no more tasks than
// nodes could hold them: these are the executors of the paper. The tasks of other stages start one by one.
func (f *prophet) measure(s *book.Snapshot, a *applicant) (room int) {
	stage := &a.job.Stages[a.stage]
	servers := f.held.by(s, a.need)
	executors := stage.ForecastLength() > 0 && stage.Tasks <= servers
	a.apart = executors || stage.Together && (f.strict || stage.Tasks <= servers)
	a.tasks, a.each = 1, 1
	if stage.Together || executors && !f.literal {
		a.tasks = a.job.Startable(a.stage)
	}
	if !a.apart && a.tasks > 1 {
		a.each = (a.tasks + max(1, servers) - 1) / max(1, servers)
	}
	room = servers
	if a.each > 1 {
		room = 0
		for _, n := range s.Nodes {
			room += n.HoldsTimes(a.need, a.each)
		}
	}
	a.possible = room >= a.tasks
	return room
}

// held is how many of the nodes of a cluster hold a need.
type held struct {
	nodes    int
	capacity resource.Vector
	need     resource.Vector
	count    int
}

// by counts the nodes that hold a need.
func (h *held) by(s *book.Snapshot, need resource.Vector) int {
	if h.nodes != len(s.Nodes) || h.capacity != s.Capacity || h.need != need {
		*h = held{len(s.Nodes), s.Capacity, need, 0}
		for _, n := range s.Nodes {
			if n.Holds(need) {
				h.count++
			}
		}
	}
	return h.count
}

// admit rejects jobs whose tasks must start together and do not fit at once, even if nothing runs.
func (f *prophet) admit(s *book.Snapshot, j *cluster.Job) error {
	for i := range j.Stages {
		if !j.Stages[i].Together {
			continue
		}
		state := &book.JobState{Job: j, Progress: make([]book.StageState, len(j.Stages))}
		state.Progress[i].Pending = j.Stages[i].Tasks
		a := applicant{job: state, stage: i, need: j.Stages[i].Ideal}
		if room := f.measure(s, &a); !a.possible {
			return fmt.Errorf("job %q stage %q tasks %d: start together, and must be at most as many as fit at once, %d",
				j.Name, j.StageName(i), j.Stages[i].Tasks, room)
		}
	}
	return nil
}

// startNext starts the tasks of the job that comes next. It returns false if no job that is considered has room.
func (f *prophet) startNext(now timeline.Time, p *book.Plan) bool {
	f.first = nil
	if a, due, ok := f.pastDeadline(now); ok {
		if f.fit(p, a) {
			f.choose(now, p, a, math.Inf(1))
			return f.start(p, a, func(place) cluster.Reason { return cluster.BecausePastDeadline(a.need[resource.Memory], due) })
		}
		if p.Running > 0 {
			f.overdue = a
			p.WaitBehind(a.job)
			return false
		}
	}
	if len(f.queue.Jobs) == 0 || len(f.open.find(f.decision, p, f.queue.Jobs)) == 0 {
		return false
	}
	f.consider(p)
	best, compared := f.best(now, p)
	if best == nil {
		return false
	}
	for _, a := range f.contest {
		if a.fits && !a.explained() {
			a.loss = cluster.BecauseScoresWorse(best.job.ID, a.norm, best.norm)
		}
	}
	return f.start(p, best, func(on place) cluster.Reason {
		if left := on.node.Unknown & resource.KindsOf(f.kinds...); left != 0 {
			return cluster.BecauseBestAheadOfKnown(left, on.idle, on.over)
		}
		return cluster.BecauseBestAhead(compared, on.idle, on.over)
	})
}

// explained reports whether it is recorded that a scores worse than another job: with which score is recorded only
// once.
func (a *applicant) explained() bool { return a.job.Waiting.Code == cluster.ScoresWorse }

// start starts the tasks of a where they were chosen to run.
func (f *prophet) start(p *book.Plan, a *applicant, why func(place) cluster.Reason) bool {
	a.loss = cluster.Reason{}
	for _, on := range a.chosen {
		if p.Start(a.job, a.stage, on.node, a.need[resource.Memory], why(on)) == nil {
			return false
		}
		f.touch(on.node)
	}
	f.file(p.Snapshot, a.job)
	return true
}

// considered returns how many of the jobs in the queue are considered, of how many that could ever start. While nothing
// runs there is nothing to wait for, and all of them are considered.
func (f *prophet) considered(s *book.Snapshot) (limit, of int) {
	for i := range f.queue.Jobs {
		if f.queue.Jobs[i].With.possible {
			of++
		}
	}
	if s.Running == 0 {
		return of, of
	}
	return min(of, considered(1-f.window, of)), of
}

// consider finds the jobs that are considered, and the node on which tasks start one by one.
func (f *prophet) consider(p *book.Plan) {
	f.contest = f.contest[:0]
	limit, _ := f.considered(p.Snapshot)
	for i := 0; i < len(f.queue.Jobs) && len(f.contest) < limit; i++ {
		if a := f.queue.Jobs[i].With; a.possible {
			f.contest = append(f.contest, a)
		}
	}
	if f.literal {
		f.first = f.firstWithRoom(p)
	}
}

// meanWait is the mean wait of the jobs that had to wait before they started, and of those that still do, in seconds.
func (f *prophet) meanWait(now timeline.Time, s *book.Snapshot) float64 {
	waits := s.Waits
	for i := range f.queue.Jobs {
		if a := f.queue.Jobs[i].With; a.never {
			waits = waits.With(a.submitted, now)
		}
	}
	return waits.Mean()
}

// patience is how long a job without a deadline of its own waits before it comes first: several times as long as jobs
// wait on average. known is false if it waits for ever.
func (f *prophet) patience(mean float64) (wait time.Duration, known bool) {
	return seconds(f.deadline * mean), f.deadline > 0 && mean > 0
}

// due returns when a comes first: at its deadline if it has one and has not started, or else when it has lost patience.
func (a *applicant) due(patience time.Duration, known bool) timeline.Time {
	switch {
	case a.deadline > 0:
		return a.submitted.Add(a.deadline)
	case known:
		return a.since.Add(patience)
	}
	return timeline.Never
}

// pastDeadline returns the job that has waited longest of those that are past their deadline.
func (f *prophet) pastDeadline(now timeline.Time) (a *applicant, due timeline.Time, ok bool) {
	patience, known := f.patience(f.mean)
	for i := range f.queue.Jobs {
		a = f.queue.Jobs[i].With
		if due = a.due(patience, known); due <= now && a.possible {
			return a, due, true
		}
	}
	return nil, 0, false
}

// explain records why jobs wait that had room until another job was chosen, and requests a call when deadlines pass.
func (f *prophet) explain(now timeline.Time, p *book.Plan) {
	for i := 0; i < len(f.queue.Jobs) && len(f.touched) > 0; i++ {
		a := f.queue.Jobs[i].With
		if a.decision == f.decision && a.loss.Code != 0 {
			p.Wait(a.job, a.stage, 0, a.loss)
			a.loss = cluster.Reason{}
		}
	}
	wakeForDeadlines(now, p)
}

// wakeForDeadlines requests a call when the deadlines of jobs that have changed pass.
func wakeForDeadlines(now timeline.Time, p *book.Plan) {
	for i, j := range p.Changes.Jobs {
		if at := j.Submitted.Add(j.Deadline); j.Deadline > 0 && j.NeverStarted() && !j.Status.Ended() && at > now &&
			!slices.Contains(p.Changes.Jobs[:i], j) {
			p.Wake(at, cluster.Because(cluster.DeadlineDue))
		}
	}
}

// why says that a job has not waited long enough, or that only some of its tasks have room.
func (f *prophet) why(now timeline.Time, s *book.Snapshot, j *book.JobState, _ int) (cluster.Reason, bool) {
	filed, _ := f.queue.As(j)
	a := filed.With
	if a == nil || f.overdue != nil && f.overdue != a {
		return cluster.Reason{}, false
	}
	due := a.due(f.patience(f.meanWait(now, s)))
	limit, of := f.considered(s)
	before := 0
	for i := 0; i < len(f.queue.Jobs) && f.queue.Jobs[i].With != a; i++ {
		if f.queue.Jobs[i].With.possible {
			before++
		}
	}
	if before >= limit && f.overdue != a && a.possible {
		return cluster.BecauseWaitedTooLittle(limit, of, due), true
	}
	_, some := s.FirstOpen(a.need, 0)
	room := 0
	for n, ok := s.FirstOpen(a.need, 0); ok && room < a.tasks; n, ok = s.FirstOpen(a.need, n.ID+1) {
		room += a.timesOn(n)
	}
	because := cluster.BecauseTooFewPlaces
	if a.apart {
		because = cluster.BecauseTooFewServers
	}
	return because(a.tasks, room, due), some && room < a.tasks
}
