package ecs

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/leveling"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// mostIntervals is T, how many intervals a problem has: with 12 sets most problems of this size are proved within 50
// ms.
const mostIntervals = 20

// question is the problem of leveling a node: a cluster.Question.
type question struct {
	problem leveling.Problem
	groups  []group // those of the sets
	from    timeline.Time
	every   time.Duration // the length of an interval
	unit    resource.Amount
	eta     float64
	states  int
}

// group is tasks of one stage in one phase of their forecasts, which stop together. They either all run now, or none
// does.
type group struct {
	tasks  []cluster.TaskID
	still  bool
	job    cluster.JobID
	stage  int32
	phase  int32
	rests  []groupRest
	float  time.Duration // by which each of them may end late
	demand resource.Amount
	// waits says that they cannot do what follows their shuffle before the stages have ended that theirs depends on.
	waits   bool
	parents []int
}

// groupRest is the work of a task of a group.
type groupRest struct {
	left   time.Duration
	pieces []piece
	// shuffle is the time that its shuffle lasts, if it is in it.
	shuffle time.Duration
}

func (a *group) compare(b *group) int {
	return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.stage, b.stage), cmp.Compare(a.phase, b.phase),
		cmp.Compare(btoi(a.still), btoi(b.still)))
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// ask asks how to level n if its tasks will demand more than it has, and their demand fluctuates enough (Algorithm 1,
// lines 12 to 16). While a task of n has not been launched, its forecast would move. Without new tasks it asks once
// per interval at most.
func (e *Leveler) ask(now timeline.Time, p *book.Plan, n *book.NodeState) {
	byPhase, fresh := false, n.Asked == nil || n.Asked.Stale || now.Sub(n.Asked.At) >= e.interval
	for _, t := range n.Tasks {
		if !t.Running {
			return
		}
		byPhase = byPhase || t.ByPhase
		fresh = fresh || t.Launched > n.Asked.At
	}
	if !byPhase || !fresh || n.Gone || n.Asking() {
		return
	}
	e.demand.look(now, p.Snapshot, n, nil)
	at, over := e.demand.over(now)
	if !over {
		return
	}
	f, level := e.detector.Fluctuation(&e.demand.spare, resource.CPU, n.Capacity[resource.CPU], now, e.demand.end())
	if !level {
		return
	}
	if q := e.question(now, p.Snapshot, n); len(q.groups) > 0 {
		p.Ask(n, q, cluster.BecauseFluctuates(at, f.Over, f.Idle))
	}
}

// question states the problem of leveling n.
func (e *Leveler) question(now timeline.Time, s *book.Snapshot, n *book.NodeState) *question {
	groups, end, latest := e.groups(now, s, n)
	window := min(latest.Sub(now), 2*end.Sub(now))
	q := &question{from: now, every: max(e.interval, (window+mostIntervals-1)/mostIntervals), eta: e.eta,
		states: e.states, unit: n.Capacity[resource.CPU]}
	intervals := max(1, min(mostIntervals, int((window+q.every-1)/q.every)))
	unit := q.unit
	if e.perCore {
		unit = resource.Core
	}
	q.problem = leveling.Problem{Capacity: n.Capacity[resource.CPU], Fixed: make([]resource.Amount, intervals),
		Suspension: resource.Amount(e.suspension * float64(unit)), Delay: resource.Amount(e.delay * float64(unit))}
	q.groups = slices.DeleteFunc(groups, func(g group) bool { return q.floatOf(&g) < 1 })
	if len(q.groups) > e.sets {
		slices.SortStableFunc(q.groups, func(a, b group) int { return cmp.Compare(b.demand, a.demand) })
		q.groups = q.groups[:e.sets]
		slices.SortStableFunc(q.groups, func(a, b group) int { return a.compare(&b) })
	}
	q.groups = slices.DeleteFunc(slices.Clone(q.groups), func(g group) bool {
		return g.waits && q.lasts(&g)+q.waitsFor(s, &g) > intervals
	})
	for i := range q.groups {
		q.problem.Sets = append(q.problem.Sets, q.set(&q.groups[i]))
	}
	for i := range q.groups {
		q.follow(s, i)
	}
	e.fixed(s, n, q)
	return q
}

// follow makes a set that waits do what follows its shuffle after the sets of the stages that its own depends on have
// ended (equations 11 and 13), and after the tasks of these stages that are in no set.
func (q *question) follow(s *book.Snapshot, i int) {
	g, set := &q.groups[i], &q.problem.Sets[i]
	if !g.waits {
		return
	}
	first := 0 // when what follows may begin at the earliest
	for k := range q.groups[:i] {
		if other := &q.groups[k]; other.job == g.job && slices.Contains(g.parents, int(other.stage)) {
			set.After = append(set.After, k)
			first = max(first, len(q.problem.Sets[k].Demand))
		}
	}
	set.Ready = q.readyBeside(s, g)
	// That it waits is no delay which leveling could avoid.
	wait := max(first, set.Ready) - set.Shuffle
	set.Float = min(max(set.Float, wait), len(q.problem.Fixed)-len(set.Demand))
	set.Ready = min(set.Ready, set.Shuffle+set.Float)
}

// waitsFor returns for how many intervals a group stands still at least after its shuffle.
func (q *question) waitsFor(s *book.Snapshot, g *group) int {
	ready := q.readyBeside(s, g)
	for k := range q.groups {
		if other := &q.groups[k]; other.job == g.job && slices.Contains(g.parents, int(other.stage)) {
			ready = max(ready, q.lasts(other))
		}
	}
	return max(0, ready-q.intervals(g.rests[0].shuffle))
}

// readyBeside returns after how many intervals those tasks should have ended that are in no group, of the stages that
// a group waits for.
func (q *question) readyBeside(s *book.Snapshot, g *group) int {
	j, ok := s.Job(g.job)
	if !ok {
		return 0
	}
	last := q.from
	for _, t := range j.Tasks {
		if !slices.Contains(g.parents, int(t.ID.Stage)) ||
			slices.ContainsFunc(q.groups, func(g group) bool { return slices.Contains(g.tasks, t.ID) }) {
			continue
		}
		if end, known := earliestEnd(q.from, s, t); known {
			last = max(last, end)
		}
	}
	return min(q.intervals(last.Sub(q.from)), len(q.problem.Fixed))
}

// groups returns the groups of the tasks of n that may be moved, when the last task of n ends if none is moved, and
// when the last one must have ended.
func (e *Leveler) groups(now timeline.Time, s *book.Snapshot, n *book.NodeState) (groups []group, end,
	latest timeline.Time) {
	end, latest = now, now
	tasks := slices.Clone(n.Tasks)
	slices.SortFunc(tasks, func(a, b *book.TaskState) int { return a.ID.Compare(b.ID) })
	e.float.job = nil
	known := false
	for _, t := range tasks {
		ends, ok := earliestEnd(now, s, t)
		if !ok {
			continue
		}
		end = max(end, ends)
		if t.Waits {
			if ready := e.demand.ready(now, s, t); ready < timeline.Never {
				end = max(end, ready.Add(t.AfterFirst()))
			}
		}
		if e.float.job != t.Job {
			known = e.float.of(now, s, t.Job)
		}
		if !known {
			continue
		}
		latest = max(latest, e.float.latest(t))
		r, _ := restOf(now, s, t, now)
		if !t.ByPhase || t.Killing || r.from == timeline.Never || ends == now {
			continue
		}
		if _, leveled := t.HeldUntil(); !leveled {
			r.left = ends.Sub(now)
		}
		g := group{job: t.ID.Job, stage: t.ID.Stage, still: t.Suspended, float: e.float.latest(t).Sub(ends)}
		if g.waits = r.after > 0; g.waits {
			g.parents = t.Job.Stages[t.ID.Stage].Parents
		}
		g.phase, _ = t.PhaseAt(now)
		i, found := slices.BinarySearchFunc(groups, g, func(a, b group) int { return a.compare(&b) })
		if !found {
			groups = slices.Insert(groups, i, g)
		}
		e.demand.work(t, r.left)
		groups[i].add(t, r, e.demand.pieces, g.float)
	}
	for i := range groups {
		groups[i].align()
	}
	return groups, end, max(latest, end)
}

func (g *group) add(t *book.TaskState, of rest, pieces []piece, float time.Duration) {
	g.tasks = append(g.tasks, t.ID)
	g.float = min(g.float, float)
	r := groupRest{left: of.left, pieces: slices.Clone(pieces)}
	switch phases := t.Stage().Phases; {
	case of.after > 0:
		r.shuffle = of.left - of.after
	case isShuffle(phases[g.phase].Name):
		r.shuffle = pieces[0].lasts
	}
	g.rests = append(g.rests, r)
	for _, p := range pieces {
		g.demand += resource.Amount(float64(p.cpu) * p.lasts.Seconds())
	}
}

// align makes all tasks of a group that waits do what follows their shuffle at the same time: as soon as the longest
// shuffle has ended.
func (g *group) align() {
	if !g.waits {
		return
	}
	longest := time.Duration(0)
	for i := range g.rests {
		longest = max(longest, g.rests[i].shuffle)
	}
	for i := range g.rests {
		r := &g.rests[i]
		if idle := longest - r.shuffle; idle > 0 {
			at := 0
			if r.shuffle > 0 {
				at = 1
			}
			r.pieces = slices.Insert(r.pieces, at, piece{lasts: idle})
			r.left, r.shuffle = r.left+idle, longest
		}
	}
}

// isShuffle reports whether a phase of this name reads what other tasks send: it does not stop (equation 12).
func isShuffle(name string) bool { return strings.EqualFold(name, "shuffle") }

// floatOf returns TF of a group in intervals: no more than the problem has.
func (q *question) floatOf(g *group) int {
	return min(int(g.float/q.every), len(q.problem.Fixed)-q.lasts(g))
}

// lasts returns D of a group in intervals.
func (q *question) lasts(g *group) (most int) {
	for i := range g.rests {
		most = max(most, q.intervals(g.rests[i].left))
	}
	return most
}

func (q *question) intervals(d time.Duration) int { return int((d + q.every - 1) / q.every) }

// set makes the set of a group.
func (q *question) set(g *group) leveling.Set {
	s := leveling.Set{Demand: make([]resource.Amount, q.lasts(g)), Float: q.floatOf(g), Suspended: g.still}
	for i := range g.rests {
		r := &g.rests[i]
		at := time.Duration(0)
		for _, p := range r.pieces {
			q.spread(s.Demand, at, at+p.lasts, p.cpu)
			at += p.lasts
		}
		if r.shuffle > 0 {
			s.Shuffle = max(s.Shuffle, q.intervals(r.shuffle))
		}
	}
	return s
}

// spread adds to the intervals what of them a demand lasts, which goes from one time after the beginning to another.
func (q *question) spread(to []resource.Amount, from, until time.Duration, cpu resource.Amount) {
	for i := int(from / q.every); i < len(to) && time.Duration(i)*q.every < until; i++ {
		begin := time.Duration(i) * q.every
		lasts := min(until, begin+q.every) - max(from, begin)
		to[i] += resource.Amount(float64(cpu) * (float64(lasts) / float64(q.every)))
	}
}

// fixed adds to the problem what all tasks demand that do not move. A task among them that leveling holds goes on.
func (e *Leveler) fixed(s *book.Snapshot, n *book.NodeState, q *question) {
	for _, t := range n.Tasks {
		if slices.ContainsFunc(q.groups, func(g group) bool { return slices.Contains(g.tasks, t.ID) }) {
			continue
		}
		r, known := restOf(q.from, s, t, q.from)
		switch {
		case !known:
			for i := range q.problem.Fixed {
				q.problem.Fixed[i] += t.Grant[resource.CPU]
			}
		case r.from != timeline.Never:
			e.demand.work(t, r.left)
			at, left := r.from, r.left
			for _, p := range e.demand.pieces {
				if left <= r.after {
					at = max(at, e.demand.ready(q.from, s, t))
				}
				left -= p.lasts
				from := at
				if at = at.Add(p.lasts); at > q.from {
					q.spread(q.problem.Fixed, max(from, q.from).Sub(q.from), at.Sub(q.from), p.cpu)
				}
			}
		}
	}
}

// Solve implements cluster.Question.
func (q *question) Solve(states int) cluster.Answer {
	solution, err := leveling.Solve(&q.problem, min(states, q.states))
	if err != nil {
		return cluster.Answer{Failed: err.Error()}
	}
	cost, err := q.problem.Cost(solution.Runs)
	if err != nil {
		return cluster.Answer{Failed: err.Error()}
	}
	// Of a whole node over an interval. Bound and value differ by as much whatever the weight of idle cores is.
	value := cost.Objective(&q.problem, q.eta) / float64(q.unit)
	a := cluster.Answer{Value: value, Bound: value, Proved: solution.Proved, States: solution.States,
		Shifts: q.shifts(solution.Runs)}
	if !a.Proved {
		a.Bound = value - float64(solution.Value-solution.Bound)/float64(q.unit)
	}
	return a
}

// shifts returns when the tasks of sets stop, by the task and by time. That a set waits for others is no stop.
func (q *question) shifts(runs [][]bool) (shifts []cluster.Shift) {
	ends := make([]int, len(runs)) // how many intervals pass until each set has ended
	for j, run := range runs {
		set := &q.problem.Sets[j]
		ready := set.Ready
		for _, k := range set.After {
			ready = max(ready, ends[k])
		}
		left := len(set.Demand)
		for from := 0; left > 0; {
			to := from
			for !run[to] {
				to++
			}
			if len(set.Demand)-left == set.Shuffle && q.groups[j].waits {
				from = min(to, max(from, ready))
			}
			if to > from {
				for _, t := range q.groups[j].tasks {
					shifts = append(shifts, cluster.Shift{Task: t, From: q.at(from), To: q.at(to)})
				}
			}
			for from = to; from < len(run) && run[from]; from++ {
				left--
			}
			ends[j] = from
		}
	}
	return shifts
}

// at returns when an interval begins.
func (q *question) at(interval int) timeline.Time {
	return q.from.Add(time.Duration(interval) * q.every)
}
