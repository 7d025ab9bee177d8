package policy

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"pgregory.net/rapid"
)

// slowProphet is the twin of prophet: it computes everything anew for each start, from the definitions.
type slowProphet struct {
	eta, window, deadline float64
	kinds                 []resource.Kind
	unknown               time.Duration
	literal, strict       bool
	backoff               slowBackoff
	now                   timeline.Time
	mean                  float64
}

// slowApplicant is a job with what it would start.
type slowApplicant struct {
	job    *book.JobState
	stage  int
	tasks  int // that start at once
	each   int // the most on one node
	apart  bool
	chosen []*book.NodeState
	score  float64
}

func (s *slowProphet) decide(p *book.Plan) {
	waits := p.Waits
	for _, j := range runnable(p, func(*book.JobState) float64 { return 0 }) {
		if j.NeverStarted() && s.now > j.Submitted {
			waits.Jobs, waits.Seconds = waits.Jobs+1, waits.Seconds+s.now.Sub(j.Submitted).Seconds()
		}
	}
	s.mean = 0
	if waits.Jobs > 0 {
		s.mean = waits.Seconds / float64(waits.Jobs)
	}
	s.backoff.relieve(s.now, p)
	for s.startOne(p) {
	}
}

func (s *slowProphet) startOne(p *book.Plan) bool {
	var queue []*slowApplicant
	for _, j := range runnable(p, func(j *book.JobState) float64 { return float64(j.Since) }) {
		if a := s.applicant(p, j); s.room(p.Nodes, a, true) >= a.tasks {
			queue = append(queue, a)
		}
	}
	for _, a := range queue {
		due := timeline.Never
		switch {
		case a.job.Deadline > 0 && a.job.NeverStarted():
			due = a.job.Submitted.Add(a.job.Deadline)
		case s.mean > 0 && s.deadline > 0:
			due = a.job.Since.Add(time.Duration(s.deadline * s.mean * 1e9))
		}
		if due > s.now {
			continue
		}
		if s.choose(p, a, p.Nodes) {
			return s.start(p, a)
		}
		if p.Running > 0 {
			return false
		}
		break
	}
	if p.Running > 0 {
		queue = queue[:min(len(queue), max(1, int(math.Ceil(s.window*float64(len(queue))-1e-9))))]
	}
	var best *slowApplicant
	for _, a := range queue {
		nodes := p.Nodes
		if s.literal && a.tasks == 1 {
			nodes = s.next(p, queue)
		}
		if s.choose(p, a, nodes) && (best == nil || a.score < best.score) {
			best = a
		}
	}
	return best != nil && s.start(p, best)
}

// next is the first node with room for a job of which one task starts at a time.
func (s *slowProphet) next(p *book.Plan, queue []*slowApplicant) []*book.NodeState {
	for i, n := range p.Nodes {
		for _, a := range queue {
			if a.tasks == 1 && s.times(a, n, false) > 0 {
				return p.Nodes[i : i+1]
			}
		}
	}
	return nil
}

func (s *slowProphet) start(p *book.Plan, a *slowApplicant) bool {
	for _, n := range a.chosen {
		p.Start(a.job, a.stage, n, a.job.Stages[a.stage].Ideal[resource.Memory], cluster.BecauseFits(0))
	}
	return true
}

func (s *slowProphet) applicant(p *book.Plan, j *book.JobState) *slowApplicant {
	stage, _ := j.NextStage()
	a := &slowApplicant{job: j, stage: stage, tasks: 1, each: 1}
	of, servers, length := &j.Stages[stage], 0, time.Duration(0)
	for _, n := range p.Nodes {
		if !n.Gone && of.Ideal.FitsIn(n.Room()) {
			servers++
		}
	}
	for _, phase := range of.Phases {
		length += phase.Duration
	}
	executors := length > 0 && of.Tasks <= servers
	a.apart = executors || of.Together && (s.strict || of.Tasks <= servers)
	if of.Together || executors && !s.literal {
		a.tasks = j.Progress[stage].Pending
	}
	if !a.apart && servers > 0 {
		a.each = int(math.Ceil(float64(a.tasks) / float64(servers)))
	}
	return a
}

// times is how many tasks of a may start on n.
func (s *slowProphet) times(a *slowApplicant, n *book.NodeState, empty bool) (times int) {
	free := n.Free
	if empty {
		free = n.Room()
	}
	for _, t := range a.job.Tasks {
		if a.apart && !empty && t.Node == n && int(t.ID.Stage) == a.stage {
			return 0
		}
	}
	for need := a.job.Stages[a.stage].Ideal; !n.Gone && times < a.each && need.FitsIn(free); times++ {
		free = free.Sub(need)
	}
	return times
}

func (s *slowProphet) room(on []*book.NodeState, a *slowApplicant, empty bool) (tasks int) {
	for _, n := range on {
		tasks += s.times(a, n, empty)
	}
	return tasks
}

func (s *slowProphet) choose(p *book.Plan, a *slowApplicant, on []*book.NodeState) bool {
	a.chosen, a.score = nil, 0
	if s.room(on, a, false) < a.tasks {
		return false
	}
	for taken := 0; len(a.chosen) < a.tasks; taken++ {
		var nodes []*book.NodeState
		for _, n := range on {
			if s.times(a, n, false) > taken {
				nodes = append(nodes, n)
			}
		}
		norm := func(n *book.NodeState) float64 { return s.norm(p, a, n, taken) }
		slices.SortStableFunc(nodes, func(n, m *book.NodeState) int { return cmp.Compare(norm(n), norm(m)) })
		for _, n := range nodes[:min(len(nodes), a.tasks-len(a.chosen))] {
			a.chosen, a.score = append(a.chosen, n), a.score+norm(n)
		}
	}
	return true
}

// demanded is a demand from one time to another, and its weight.
type demanded struct {
	from, until timeline.Time
	demand      resource.Vector
	weight      int
}

// norm is the score of a place: the Euclidean norm of the areas of all resources.
func (s *slowProphet) norm(p *book.Plan, a *slowApplicant, n *book.NodeState, taken int) float64 {
	own := ownDemand(s.now, &a.job.Stages[a.stage], s.unknown)
	squares := 0.0
	for _, k := range s.kinds {
		if n.Unknown.Has(k) {
			continue
		}
		idle, over := slowGaps(s.now, p, n, own, k, taken)
		stages := float64(len(own))
		score := (1-s.eta)*(over.UnitSeconds()/stages) + s.eta*(idle.UnitSeconds()/stages)
		squares += score * score
	}
	return math.Sqrt(squares)
}

// ownDemand is what a task of a stage demands if it starts now.
func ownDemand(now timeline.Time, of *cluster.Stage, unknown time.Duration) (own []demanded) {
	at := now
	for _, phase := range of.Phases {
		if phase.Duration > 0 {
			own = append(own, demanded{from: at, until: at.Add(phase.Duration), demand: phase.Demand})
			at = at.Add(phase.Duration)
		}
	}
	if len(own) == 0 {
		demand := of.Ideal
		if len(of.Phases) > 0 {
			demand = of.Peak()
		}
		own = []demanded{{from: at, until: at.Add(cmp.Or(of.Duration, unknown)), demand: demand}}
	}
	for i := range own {
		own[i].weight = len(own) - i
	}
	return own
}

// slowGaps adds up the areas between what a task demands of a resource and what n has, if taken others like it start
// there, over all times at which either changes.
func slowGaps(now timeline.Time, p *book.Plan, n *book.NodeState, own []demanded, k resource.Kind, taken int) (
	idle, over timeline.Area) {
	var others []demanded
	for _, t := range n.Tasks {
		end, known := p.EstimatedEnd(t, timeline.Earliest)
		if t.Suspended {
			end, known = p.EstimatedEnd(t, now)
		}
		others = append(others, foreseen(t, end, known)...)
	}
	var times []timeline.Time
	for _, d := range slices.Concat(own, others) {
		times = append(times, d.from, d.until)
	}
	slices.Sort(times)
	for i := range times[1:] {
		from, until := times[i], times[i+1]
		has := n.Capacity[k]
		for _, d := range others {
			if d.from <= from && from < d.until {
				has -= d.demand[k]
			}
		}
		for _, d := range own {
			if d.from <= from && from < d.until && from < until {
				spare := max(0, has-d.demand[k]*resource.Amount(taken)) - d.demand[k]
				for range d.weight {
					if spare >= 0 {
						idle = idle.Add(timeline.AreaOf(spare, until)).Sub(timeline.AreaOf(spare, from))
					} else {
						over = over.Sub(timeline.AreaOf(spare, until)).Add(timeline.AreaOf(spare, from))
					}
				}
			}
		}
	}
	return idle, over
}

// foreseen is what a running task demands when. Its phases end with the task, stretched as it is.
func foreseen(t *book.TaskState, end timeline.Time, known bool) (d []demanded) {
	if !known {
		return []demanded{{from: timeline.Earliest, until: timeline.Never, demand: t.Grant}}
	}
	var total time.Duration
	for _, phase := range t.Stage().Phases {
		total += phase.Duration
	}
	from := end.Add(-t.Duration)
	if total == 0 {
		return []demanded{{from: from, until: end, demand: t.Grant}}
	}
	for _, phase := range t.Stage().Phases {
		until := from.Add(time.Duration(float64(phase.Duration) * (float64(t.Duration) / float64(total))))
		d = append(d, demanded{from: from, until: until, demand: phase.Demand})
		from = until
	}
	d[len(d)-1].until = end
	return d
}

// foretell gives the stages of a job forecasts of a few nanoseconds, lets tasks start together, and sets a deadline.
func foretell(t *rapid.T, j *cluster.Job) {
	number := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(t, what) }
	j.Deadline = time.Duration(number("deadline", 0, 2) * 9)
	for i := range j.Stages {
		s := &j.Stages[i]
		s.Together = number("together", 0, 4) == 0
		s.Duration = time.Duration(number("run", 0, 9))
		for range number("phases", 0, 3) {
			s.Phases = append(s.Phases, cluster.Phase{Duration: time.Duration(number("phase", 0, 9)),
				Demand: resource.Vector{}.With(resource.Disk, resource.Amount(number("disk", 0, 3))*40*resource.MB).
					With(resource.Network, resource.Amount(number("network", 0, 3))*40*resource.MB)})
		}
	}
}

// progress is an event about how a running task comes along.
func progress(t *rapid.T, s *book.Snapshot) (e cluster.Event, ok bool) {
	for _, n := range s.Nodes {
		for _, task := range n.Tasks {
			if !task.Running || rapid.IntRange(0, 4).Draw(t, "this task") > 0 {
				continue
			}
			phase := rapid.IntRange(0, 3).Draw(t, "phase")
			switch {
			case task.Suspended:
				return cluster.Event{Kind: cluster.TaskResumed, Task: task.ID}, true
			case phase < len(task.Stage().Phases) && int(task.Phase) != phase:
				return cluster.Event{Kind: cluster.TaskPhase, Task: task.ID, Phase: int32(phase)}, true
			}
			return cluster.Event{Kind: cluster.TaskSuspended, Task: task.ID, By: cluster.HeldByMemory}, true
		}
	}
	return e, false
}

// A job whose tasks start together is refused if they could not, even if nothing else ran.
func TestProphetRefusesGangsThatNeverFit(t *testing.T) {
	b := book.NewBook(nil)
	for i := range 2 {
		n := &cluster.Node{ID: cluster.NodeID(i), Name: string(rune('a' + i)),
			Capacity: resource.Of(4*resource.Core, 10*resource.GB)}
		if err := b.Enter(0, &cluster.Event{Kind: cluster.NodeJoined, NewNode: n}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		tasks    int
		memory   resource.Amount
		distinct string
		want     string
	}{
		{2, 6 * resource.GB, "auto", ""},
		{3, 6 * resource.GB, "auto",
			`job "J" stage "0" tasks 3: start together, and must be at most as many as fit at once, 2`},
		{4, 5 * resource.GB, "auto", ""},
		{4, 5 * resource.GB, "strict",
			`job "J" stage "0" tasks 4: start together, and must be at most as many as fit at once, 2`},
	} {
		p, err := New("prophet", map[string]string{"prophet.distinct": c.distinct})
		if err != nil {
			t.Fatal(err)
		}
		j := &cluster.Job{Name: "J",
			Stages: []cluster.Stage{{Tasks: c.tasks, Together: true, Ideal: resource.Of(resource.Core, c.memory)}}}
		got := ""
		if err := CheckRuns(p, b.Snapshot(), j); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
