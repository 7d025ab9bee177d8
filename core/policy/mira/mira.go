// Package mira has the policy of the Mira paper, which shares warm executors among jobs.
package mira

import (
	"math"
	"slices"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy/contract"
	"github.com/bellows-rm/bellows/core/policy/queue"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/share"
	"github.com/bellows-rm/bellows/core/timeline"
)

// mira is Mira's resource manager (section III.C) with an application scheduler for each job (section III.D). Each
// node is an executor, which runs one task at a time: a cluster of executors is a pool. An executor is assigned to a
// job, and to one of its stages, by a reservation. It is given back as soon as its job has no task for it, or holds
// more than it is entitled to.
//
// Executors are alike: what a task needs must only fit. No task is ended to give an executor back. A coordinator,
// which steers its job as Mira's driver does, needs no executor: it runs beside other tasks on a node that no job
// holds.
type mira struct {
	paper  bool // the rule of the paper
	keeps  keeper
	path   share.Path
	fair   share.Fair
	stages share.Stages
	tree   queue.Tree[miraQueue, struct{}]
	backs  offenders
	levels []*queue.Queue[miraQueue] // the queues: the root, its children, their children, and so on

	// All fields below, but for divisions, are computed from the snapshot.
	apps      []miraApp        // by the slots of their jobs
	known     bool             // apps has all jobs
	limits    bool             // some job never holds more than it is entitled to
	stale     bool             // what jobs hold has changed, which can change the division
	executors int              // among which the apps were entitled
	divisions int64            // so far
	unsteered []*book.JobState // their coordinators wait
	affinity  affinity

	nodes   []share.Node // buffers
	claims  []share.Claim
	granted []int
	dag     []share.Stage
	targets []int
	kept    []*book.TaskState
	have    []int
}

// miraApp is what is kept with a job.
type miraApp struct {
	job              *book.JobState
	leaf             *queue.Queue[miraQueue] // nil if there is no such queue
	demand, entitled int                     // executors
	held             int                     // executors, after the last decision
	// it may not hold more than it is entitled to, even if other jobs cannot use executors
	limited bool
	listed  bool  // in keeper.jobs
	asked   asked // when executors were asked back last
	wants   want  // for each executor that keeps something of it: see affinity
}

// New returns the policy "mira".
func New(s *contract.Settings) contract.Policy {
	m := &mira{}
	m.paper = s.Declare("rule", "max-min",
		"how executors are divided among jobs: max-min, by weighted max-min fairness; or paper, by the equation and "+
			"Algorithm 1 as written, which "+
			"needs several rounds to be fair").OneOf("max-min", "paper") == "paper"
	m.declareQueues(s)
	m.keeps.declare(s)
	m.path = share.SumOfPaths
	if s.Declare("path", "sum",
		"the weight of a stage among the stages of its job: sum, the tasks on all paths from it to the end, as the "+
			"authors' code; or longest, the "+
			"tasks on the path with most tasks").OneOf("sum", "longest") == "longest" {
		m.path = share.LongestPath
	}
	m.backs.lasts = s.Declare("backoff", usualOffence,
		"for how long a job, whose tasks run on a node that gives much less of its disk or network than it could, may "+
			"have half of the executors "+
			"(Prophet, section III.B), and half of that when the node reports it again; 0s is never").OrNever()
	return m
}

func (*mira) Name() string { return "mira" }

func (m *mira) Traits() contract.Traits {
	return contract.Traits{Quotas: true, Drives: true, Admit: func(_ *book.Snapshot, j *cluster.Job) error {
		return m.tree.Check(j)
	}, DropCaches: func() { m.known = false }, Why: m.why, Divisions: func() int64 { return m.divisions }}
}

// why says that all executors work, or that all to which j is entitled do. If an executor is free, the task does not
// fit there.
func (m *mira) why(_ timeline.Time, s *book.Snapshot, j *book.JobState, stage int) (cluster.Reason, bool) {
	a := m.app(j)
	switch {
	case m.tree.Home(j.Job) == nil:
		return cluster.Because(cluster.NoSuchQueue), true
	case a == nil || j.Stages[stage].Coordinator:
		return cluster.Reason{}, false
	}
	if why, backs := whyBackoff(j); backs {
		return why, true
	}
	n, free := s.FirstOpen(resource.Vector{}, 0)
	for free && occupied(n) {
		n, free = s.FirstOpen(resource.Vector{}, n.ID+1)
	}
	_, tooSmall := s.NoRoom(j.Stages[stage].Ideal)
	return cluster.BecauseAllAtWork(j.Reservations, a.entitled, s.Present), j.Reservations >= a.entitled || !free ||
		!tooSmall
}

func (m *mira) Decide(now timeline.Time, p *book.Plan) {
	// 1. Executors are divided anew if something has changed that can change the division. The rule of the paper, and
	// the share of a queue, depend on what each job holds at present.
	jobs := p.Changes.Jobs
	m.affinity.known = false
	if !m.known {
		jobs = p.Jobs
		clear(m.apps)
		m.unsteered, m.keeps.jobs, m.keeps.nodes = m.unsteered[:0], m.keeps.jobs[:0], append(m.keeps.nodes[:0], p.Nodes...)
	}
	m.expire(now, p)
	backed := m.backs.follow(now, p)
	matters := m.follow(p, jobs)
	matters = m.known && m.follow(p, backed) || matters
	matters = m.known && m.follow(p, m.keeping()) || matters
	if matters || m.stale || m.paper || !m.tree.Root.Leaf() {
		m.divideAll(p)
	}
	for _, j := range jobs {
		m.retain(p, m.app(j))
	}
	// 2. An executor whose task has ended takes the next one of its job, or is given back.
	switch {
	case !m.known:
		m.keeps.nodes = m.keeps.nodes[:0]
		for _, n := range p.Nodes {
			m.employ(now, p, n)
		}
	case m.keeps.any:
		for _, n := range m.keeps.withOffered(p) {
			m.employ(now, p, n)
		}
	default:
		for n := range p.Offered() {
			m.employ(now, p, n)
		}
	}
	if m.stale && m.limits && m.keeps.any {
		// What a job demands depends on what it keeps, and some have given executors back. Limited jobs get none of these
		// beyond their shares.
		m.follow(p, m.keeps.jobs)
		m.divideAll(p)
	}
	m.known = p.Synced // until then, running tasks are found
	// 3. Coordinators start wherever they fit.
	m.unsteered = slices.DeleteFunc(m.unsteered, func(j *book.JobState) bool { return !m.steer(p, j) })
	// 4. Executors that no job holds go, one by one and in turn, to jobs that are entitled to more.
	m.count(p)
	m.assignInTurn(p, func(a *miraApp) int { return a.entitled })
	// 5. Jobs that start their own tasks are asked at once for the executors that they are not entitled to.
	m.findLacking(p)
	for _, j := range p.Jobs {
		if j.Drives {
			m.askBack(now, p, m.app(j))
		}
	}
	// 6. If tasks of jobs that are entitled to more do not fit on the executors that are left, these go to any that do.
	m.assignInTurn(p, func(a *miraApp) int { return a.most() + askedBack(a.job) })
}

// divideAll divides the executors among all jobs anew.
func (m *mira) divideAll(p *book.Plan) {
	m.entitle(p)
	m.divisions++
	m.stale = false
}

// most is how many executors a may hold if other jobs cannot use them.
func (a *miraApp) most() int {
	if a.limited {
		return a.entitled
	}
	return a.demand
}

// assignInTurn assigns executors that no job holds to jobs that hold less than most says.
func (m *mira) assignInTurn(p *book.Plan, most func(*miraApp) int) {
	for more := anyFree(p); more; {
		more = false
		for _, j := range p.Jobs {
			if a := m.app(j); a != nil && j.Reservations < most(a) && !full(a.leaf) && m.assign(p, a) {
				hold(a.leaf, 1)
				if more = anyFree(p); !more {
					return
				}
			}
		}
	}
}

// anyFree reports whether there is an executor that no job holds.
func anyFree(p *book.Plan) bool {
	_, free := p.FirstFit(resource.Vector{})
	return free
}

// app returns what is kept with j, nil if nothing is.
func (m *mira) app(j *book.JobState) *miraApp {
	if j.Slot < len(m.apps) && m.apps[j.Slot].job == j {
		return &m.apps[j.Slot]
	}
	return nil
}

// follow brings the demands of jobs up to date. It reports whether the division of executors can change: the filters
// of section III.C.
func (m *mira) follow(p *book.Plan, jobs []*book.JobState) (matters bool) {
	for _, j := range jobs {
		a := m.app(j)
		if a == nil {
			for len(m.apps) <= j.Slot {
				m.apps = append(m.apps, miraApp{})
			}
			a = &m.apps[j.Slot]
			*a = miraApp{job: j, leaf: m.tree.Home(j.Job)}
		}
		if _, waits := coordinatorWaits(j); waits && !slices.Contains(m.unsteered, j) {
			m.unsteered = append(m.unsteered, j)
		}
		before := a.demand
		if a.demand = 0; a.leaf != nil {
			a.demand = m.demand(j)
		}
		matters = matters || share.Matters(a.entitled, before, a.demand) || a.held != j.Reservations
		a.held = j.Reservations
	}
	return matters || !m.known || m.executors != p.Present
}

// demand is how many executors j demands.
func (m *mira) demand(j *book.JobState) int {
	n := executorsFor(j)
	if m.keeps.any && j.Reservations > n {
		n = min(j.Reservations, n+coming(j))
	}
	return min(n, mostExecutors(j))
}

// executorsFor is how many executors j could use now: one for each unfinished task that may run.
func executorsFor(j *book.JobState) (n int) {
	for i := j.FirstLeft(); i < len(j.Stages); i++ {
		n += unfinished(j, i)
	}
	return n
}

// unfinished is how many tasks of a stage run, or may start.
func unfinished(j *book.JobState, stage int) int {
	if j.Stages[stage].Coordinator {
		return 0
	}
	n := working(j, stage)
	if j.Drives { // Executors may work for it that it does not demand any more.
		n = min(n, j.Stages[stage].Tasks-j.Coming(stage))
	}
	return n + j.MayStart(stage)
}

// working is how many executors work for a stage.
func working(j *book.JobState, stage int) int {
	return j.Progress[stage].Running + j.Progress[stage].Booked
}

// shareWeight is the weight of a job in thousandths.
func shareWeight(j *book.JobState) int64 {
	return int64(math.Round(max(1, min(share.MaxWeight, queue.WeightOf(j)*1000))))
}

// retain assigns to j the executors that its tasks occupy without being assigned: of tasks that were found after a
// restart, or of a job that was paused, which ended its reservations.
func (m *mira) retain(p *book.Plan, a *miraApp) {
	j := a.job
	if !p.Synced || j.Status.Ended() || j.PausedWhole() || j.Reservations >= workingInAll(j) {
		return
	}
	for _, t := range j.Tasks {
		if t.Node.ReservedFor == nil && !t.Steers {
			m.take(p, t.Node, a, int(t.ID.Stage), cluster.BecauseAssigned(j.Reservations+1, a.entitled, p.Present))
		}
	}
}

// workingInAll is how many executors work for j.
func workingInAll(j *book.JobState) (n int) {
	for i := j.FirstLeft(); i < len(j.Stages); i++ {
		if !j.Stages[i].Coordinator {
			n += working(j, i)
		}
	}
	return n
}

// take assigns n to a stage of a.
func (m *mira) take(p *book.Plan, n *book.NodeState, a *miraApp, stage int, why cluster.Reason) {
	p.Reserve(n, a.job, stage, why)
	m.holds(a)
}

// release ends the assignment of n to a.
func (m *mira) release(p *book.Plan, n *book.NodeState, a *miraApp, why cluster.Reason) {
	p.Unreserve(n, why)
	m.holds(a)
}

// holds notes that a holds more or fewer executors: how shares are rounded depends on it, and what a may keep. a is
// nil before its job is known.
func (m *mira) holds(a *miraApp) {
	if a == nil {
		return
	}
	a.held, m.stale = a.job.Reservations, true
	m.keeps.list(a)
}

// employ starts the next task of the job that holds n there, or gives n back, if nothing runs on it and it accepts
// work.
func (m *mira) employ(now timeline.Time, p *book.Plan, n *book.NodeState) {
	j := n.ReservedFor
	if j == nil || occupied(n) {
		switch {
		case j == nil || !j.Drives: // else askBack does it
			p.KeepUntil(n, 0)
		case n.KeptUntil != 0:
			m.keeps.look(n, m.app(j))
		}
		return
	}
	a := m.app(j)
	if n.Paused || !p.Takes(n) {
		m.keeps.look(n, a)
		return
	}
	if j.Reservations > a.entitled {
		m.release(p, n, a, cluster.BecauseOverEntitled(j.Reservations, a.entitled, p.Present))
		return
	}
	stage, ok := m.nextStage(j, j.Reservations, n.ReservedStage, func(need resource.Vector) bool {
		return need.FitsIn(n.Free)
	})
	if !ok {
		m.keep(now, p, n, a)
		return
	}
	if j.FailsOn(n.ID) {
		if other, free := m.freeExecutor(p, j, j.Stages[stage].Ideal); free && !j.FailsOn(other.ID) {
			m.release(p, n, a, cluster.Because(cluster.FailsThere))
			return
		}
	}
	m.move(p, n, a, stage, cluster.BecauseStageMoves(n.ReservedStage, stage))
	p.KeepUntil(n, 0)
	startIdeal(p, j, stage, n)
}

// move assigns n, which a holds, to another stage of a.
func (m *mira) move(p *book.Plan, n *book.NodeState, a *miraApp, stage int, why cluster.Reason) {
	if n.ReservedStage != stage {
		stale := m.stale
		m.release(p, n, a, why)
		m.take(p, n, a, stage, why)
		m.stale = stale
	}
}

// assign assigns one more executor to a, and starts a task there. ok is false if no executor is free that fits.
func (m *mira) assign(p *book.Plan, a *miraApp) (ok bool) {
	j := a.job
	var n *book.NodeState
	executors := j.Reservations + 1
	if j.Drives { // It would be asked at once for what a stage has above this.
		executors = min(executors, a.entitled)
	}
	stage, ok := m.nextStage(j, executors, -1, func(need resource.Vector) bool {
		var free bool
		n, free = m.freeExecutor(p, j, need)
		return free
	})
	if !ok {
		return false
	}
	m.take(p, n, a, stage, cluster.BecauseAssigned(j.Reservations+1, a.entitled, p.Present))
	startIdeal(p, j, stage, n)
	return true
}

// startIdeal starts the next task of a stage on n, where its ideal need fits.
func startIdeal(p *book.Plan, j *book.JobState, stage int, n *book.NodeState) {
	memory := j.Stages[stage].Ideal[resource.Memory]
	p.Start(j, stage, n, memory, cluster.BecauseFits(memory))
}

// occupied reports whether a task other than a coordinator is booked or runs on n.
func occupied(n *book.NodeState) bool {
	return slices.ContainsFunc(n.Tasks, func(t *book.TaskState) bool { return !t.Steers })
}

// coordinatorWaits reports whether the next task of j is its coordinator.
func coordinatorWaits(j *book.JobState) (stage int, waits bool) {
	stage, ok := j.NextStage()
	return stage, ok && j.Stages[stage].Coordinator
}

// steer starts the coordinator of j, and reports whether it still waits.
func (m *mira) steer(p *book.Plan, j *book.JobState) (waits bool) {
	stage, waits := coordinatorWaits(j)
	if !waits {
		return false
	}
	n, ok := p.FirstFit(j.Stages[stage].Ideal)
	if ok {
		startIdeal(p, j, stage, n)
	}
	return !ok
}

// nextStage returns the stage for which one more of the executors of j is to work: a stage that may start a task and
// works with fewer executors than it should. An executor that worked for stage last stays with it if that is such a
// stage, for its tasks run the same code on related data (section III.D). If what such stages need does not fit, any
// stage will do whose need fits; a job that drives gets none only because no stage should have more: it would be asked
// for that in the next step.
func (m *mira) nextStage(j *book.JobState, executors, last int, fits func(need resource.Vector) bool) (stage int,
	ok bool) {
	if j.Status.Ended() {
		return 0, false
	}
	m.divideStages(j, executors)
	first := j.FirstLeft()
	short := func(stage int) bool { return m.targets[stage-first] > working(j, stage) }
	may := func(stage int) bool { return j.Ready(stage) && fits(j.Stages[stage].Ideal) }
	if last >= first && short(last) && may(last) {
		return last, true
	}
	tooSmall := false // an executor, for a stage that should have one more
	for _, wanted := range []bool{true, false} {
		for i := first; i < len(j.Stages) && (wanted || tooSmall || !j.Drives); i++ {
			if short(i) == wanted && may(i) {
				return i, true
			}
			tooSmall = tooSmall || wanted && short(i) && j.Ready(i)
		}
	}
	return 0, false
}

// divideStages computes targets: how many of the executors of j work for each stage, from the first that has not ended.
func (m *mira) divideStages(j *book.JobState, executors int) {
	first := j.FirstLeft()
	left := len(j.Stages) - first
	for len(m.targets) < left {
		m.targets, m.dag = append(m.targets, 0), append(m.dag, share.Stage{})
	}
	for i := range left { // before edges are added: a stage may stand before its parent
		m.dag[i] = share.Stage{Left: j.Stages[first+i].Tasks - j.Progress[first+i].Ended, Next: m.dag[i].Next[:0]}
		if n := unfinished(j, first+i); n > 0 {
			m.dag[i].Ready, m.dag[i].Left, m.dag[i].Held = true, n, working(j, first+i)
		}
	}
	for i := range left {
		for _, parent := range j.Stages[first+i].Parents {
			if parent >= first {
				m.dag[parent-first].Next = append(m.dag[parent-first].Next, i)
			}
		}
	}
	m.stages.Divide(executors, m.dag[:left], m.path, m.targets[:left])
}
