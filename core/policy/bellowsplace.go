package policy

import (
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// granted is what a task is granted, and why.
type granted struct {
	grant   resource.Vector
	byPhase bool
	why     cluster.Reason
}

// option is a task that may start.
type option struct {
	job   *book.JobState
	stage int
	granted
}

// least is the least with which the next task of a stage may start.
func (b *bellows) least(j *book.JobState, stage int) resource.Vector {
	need, _ := b.level.Grant(j, stage)
	if s := &j.Stages[stage]; b.elastic && underSizes(s) {
		need = need.Min(s.LeastNeed())
	}
	if soon, ok := b.level.Soon(j, stage); ok {
		need[resource.Memory] = min(need[resource.Memory], soon)
	}
	return b.partOf(need, &j.Stages[stage])
}

// partOf returns need with the least CPU with which a task of a stage starts: less than it needs, if nothing is known
// of its use of CPU, so that it needs as much as a usual program.
func (b *bellows) partOf(need resource.Vector, s *cluster.Stage) resource.Vector {
	if !s.CPUUnknown() {
		return need
	}
	cpu := need[resource.CPU]
	return need.With(resource.CPU, min(cpu, max(cluster.LeastRunCPU, resource.Amount(math.Ceil(b.part*float64(cpu))))))
}

// leastOf is, per resource, the least with which a task of a job may start: of any of its stages that are ready.
func (b *bellows) leastOf(j *book.JobState) resource.Vector {
	least := resource.TooMuch()
	for stage := range j.ReadyStages() {
		least = least.Min(b.least(j, stage))
	}
	return least
}

// size returns what the next task of a stage is granted on n; ok is false if it does not start there, and then why
// says why not.
func (b *bellows) size(now timeline.Time, s *book.Snapshot, n *book.NodeState, j *book.JobState,
	stage int) (g granted, why cluster.Reason, ok bool) {
	g.grant, g.why = b.level.Grant(j, stage)
	g.byPhase = g.why.Code == cluster.FitsFirstPhase
	most, left, late := g.grant[resource.Memory], resource.Amount(0), false
	if n.Swap > 0 {
		left, late = n.LeftLate()
		if soon, ok := b.level.Soon(j, stage); ok && g.byPhase && most <= left {
			g.why, late = cluster.BecauseFitsSoon(soon, most), false
			g.grant[resource.Memory] = soon
		}
	}
	if cpu, free := g.grant[resource.CPU], n.Free[resource.CPU]; free < cpu &&
		free >= b.partOf(g.grant, &j.Stages[stage])[resource.CPU] {
		g.grant[resource.CPU], g.why = free, cluster.BecausePartOfCPU(free, cpu)
	}
	if why, ok = n.Fits(g.grant); !ok && b.elastic && underSizes(&j.Stages[stage]) {
		var memory resource.Amount
		if memory, why, ok = b.less(now, s, n, j, stage, why); ok {
			g = granted{j.Stages[stage].Ideal.With(resource.Memory, memory), false, why}
		}
	}
	memory := g.grant[resource.Memory]
	if ok && j.Resizable(stage) && n.Available() < memory && !n.Shares(j.Owner, memory) {
		grown := n.Free[resource.Memory] - n.Available()
		return g, cluster.BecauseNotAvailable(memory, max(0, n.Available()), grown), false
	}
	if ok && late && most > left {
		return g, cluster.BecauseNotAvailable(most, max(0, left), 0), false
	}
	return g, why, ok
}

// holds reports whether n could hold a task of a stage if nothing ran there.
func (b *bellows) holds(s *book.Snapshot, n *book.NodeState, stage *cluster.Stage) bool {
	if !b.elastic {
		return n.Holds(stage.Ideal)
	}
	return b.underSizing.holds(s, n, stage)
}

// barrier is the share of a stage's tasks after whose end its last tasks come first.
const barrier = 0.9

// suits returns the task of a job that suits n best, of those that may start there and end by a time: of the stages
// that are ready, one that is almost done, or else the best aligned. Only this one competes with other jobs, so that
// the cost of a decision hardly grows with the stages. ok is false if there is none, and then why may say why the job's
// next task does not start on n.
func (b *bellows) suits(now timeline.Time, p *book.Plan, n *book.NodeState, j *book.JobState, until timeline.Time) (
	best option, why cluster.Reason, ok bool) {
	most, last := 0.0, false
	for stage := range j.ReadyStages() {
		g, lacks, fits := b.size(now, p.Snapshot, n, j, stage)
		if !fits {
			if why.Code == 0 {
				why = lacks
			}
			continue
		}
		if until < timeline.Never && !b.endsInGap(now, p, n, j, stage, &g, until) {
			continue
		}
		aligned, left := align(g.grant, n.Free, n.Capacity), almostDone(j, stage, barrier)
		if !ok || left && !last || left == last && aligned > most {
			best, most, last, ok = option{j, stage, g}, aligned, left, true
		}
		if b.window == 0 {
			break
		}
	}
	return best, why, ok
}

// endsInGap reports whether a task with its grant ends before the job for which n is kept can use n.
func (b *bellows) endsInGap(now timeline.Time, p *book.Plan, n *book.NodeState, j *book.JobState, stage int, g *granted,
	until timeline.Time) bool {
	if j.Stages[stage].Coordinator || j == n.ReservedFor && stage == n.ReservedStage {
		return false
	}
	memory := g.grant[resource.Memory]
	end, early := endsBy(now, p, &j.Stages[stage], memory, until)
	if early && g.why.Code == cluster.Fits {
		g.why = cluster.BecauseFitsInGap(memory, end, until)
	}
	return early
}

// reclaims reports whether a task waits for another node that reports soon: there its memory is available, or more of
// it if it is a FLEX container that may grow, and here its start would take memory from containers that have grown.
func (b *bellows) reclaims(p *book.Plan, n *book.NodeState, o *option) bool {
	if !o.job.Resizable(o.stage) && n.Available() >= o.grant[resource.Memory] {
		return false
	}
	best, ok := p.MostAvailable(o.grant)
	return ok && best != n && !p.Takes(best) && best.Available() > n.Available()
}

// choose returns the index of the option that suits n best, by alignment, forecast and remaining work. The last tasks
// of a stage come first.
func (b *bellows) choose(now timeline.Time, p *book.Plan, n *book.NodeState) int {
	if o := &b.options[0]; b.order.urgent(o.job) || len(b.options) == 1 {
		if b.order.isLate(o.job) && o.why.Code == cluster.Fits {
			o.why = cluster.BecausePastDeadline(o.grant[resource.Memory], dueAt(o.job))
		}
		return 0
	}
	if last, takes := b.endsLast(now, p, n); takes > 0 {
		o := &b.options[last]
		if o.why.Code == cluster.Fits {
			o.why = cluster.BecauseEndsLast(o.grant[resource.Memory], takes)
		}
		return last
	}
	b.ranks = b.ranks[:0]
	for i := range b.options {
		o := &b.options[i]
		b.ranks = append(b.ranks, rank{b.score(now, p.Snapshot, n, o), packedWork(o.job, p.Capacity),
			almostDone(o.job, o.stage, barrier)})
	}
	best := choose(b.ranks, 1)
	o, r := &b.options[best], &b.ranks[best]
	if s := &o.job.Stages[o.stage]; o.why.Code == cluster.Fits && !s.Coordinator {
		o.why = cluster.BecauseBestAligned(o.grant[resource.Memory], int64(math.Round(1000*r.score)), len(b.options))
		if r.preferred {
			o.why = cluster.BecauseAlmostDone(o.grant[resource.Memory], o.job.Progress[o.stage].Ended, s.Tasks)
		}
	}
	return best
}

// endsLast returns the index of the option whose job has the longest rest, and that rest, if that job ends last even
// if it starts now: whatever starts before it adds to the time until all jobs have ended. The rest is 0 if there is
// none, if further jobs are to be expected, or if containers on n have grown: then more memory is needed than the
// estimates know.
func (b *bellows) endsLast(now timeline.Time, p *book.Plan, n *book.NodeState) (at int, takes time.Duration) {
	latest := p.Estimates.Latest
	if !b.longest || latest == timeline.Never || n.Grown(now) > 0 || b.moreArrive(now, p) {
		return 0, 0
	}
	for i := range b.options {
		j := b.options[i].job
		if r := rest(j); r > 0 {
			if end := p.LaunchTime(j.Submitted, now).Add(r); end > latest || end == latest && takes == 0 {
				at, latest, takes = i, end, r
			}
		}
	}
	return at, takes
}

// usualGaps is after how many times the mean time between the jobs that compete no further job is expected.
const usualGaps = 3

// moreArrive reports whether further jobs are to be expected, for which an early end of the present ones gains nothing.
func (b *bellows) moreArrive(now timeline.Time, p *book.Plan) bool {
	first, last := now, p.Jobs[len(p.Jobs)-1].Submitted
	for i := range b.options {
		first = min(first, b.options[i].job.Submitted)
	}
	return now.Sub(last)*time.Duration(len(b.options)-1) < usualGaps*last.Sub(first)
}

// rest is how long a job still takes if each of its tasks that have not started starts as soon as it is ready; 0 if
// that is unknown. Coordinators do not count.
func rest(j *book.JobState) time.Duration {
	if len(j.Stages) == 1 && !j.Stages[0].Coordinator { // as below, at once
		return min(1, time.Duration(j.Progress[0].Pending)) * j.Stages[0].RunTime()
	}
	known := true
	d := cluster.LongestPath(j.Job, func(i int) time.Duration {
		s := &j.Stages[i]
		if j.Progress[i].Pending == 0 || s.Coordinator {
			return 0
		}
		known = known && s.RunTime() > 0
		return s.RunTime()
	})
	if !known {
		return 0
	}
	return d
}

// mostPlaces is how many nodes with room are looked at for a task.
const mostPlaces = 32

// where returns the node that suits a task best: n, or one of the first nodes with room for what it needs.
func (b *bellows) where(now timeline.Time, p *book.Plan, n *book.NodeState, o option) (*book.NodeState, option) {
	if b.window == 0 {
		return n, o
	}
	need, _ := b.level.Grant(o.job, o.stage)
	most, best, found := math.Inf(-1), n, o
	consider := func(m *book.NodeState) {
		if g, _, fits := b.size(now, p.Snapshot, m, o.job, o.stage); m != n && fits {
			at := option{o.job, o.stage, g}
			if s := b.score(now, p.Snapshot, m, &at); s > most {
				if most, best, found = s, m, at; o.grant == g.grant {
					found.why = o.why
				}
			}
		}
	}
	if need.FitsIn(n.Free) {
		most = b.score(now, p.Snapshot, n, &o)
	}
	m, ok := p.NextRoom(need, 0)
	for looked := 0; ok && looked < mostPlaces; looked++ {
		consider(m)
		m, ok = p.NextRoom(need, m.ID+1)
	}
	if m, ok := p.MostAvailable(need); ok && p.Takes(m) {
		consider(m)
	}
	return best, found
}

// score is how well an option suits n, at least 0: by alignment and, if n has numbers of its disk or network, by what
// share of these its forecast leaves neither idle nor over-allocated.
func (b *bellows) score(now timeline.Time, s *book.Snapshot, n *book.NodeState, o *option) float64 {
	free := n.Free
	free[resource.Memory] = max(0, min(free[resource.Memory], n.Available()))
	score := max(0, align(o.grant, free, n.Capacity))
	if b.foresees {
		b.spans = forecast(&o.job.Stages[o.stage], b.unknown, b.spans)
		score += b.foresight.share(now, s, n, o.job.Submitted, b.spans)
	}
	return score
}

// share returns which share of what n has of the scored resources a task neither leaves idle nor over-allocates while
// it runs, weighed as in the score; 0 if n has none of them, or none that is known.
func (f *foresight) share(now timeline.Time, s *book.Snapshot, n *book.NodeState, submitted timeline.Time,
	spans []timeline.Span) (share float64) {
	var space [resource.NumKinds]resource.Kind
	var gaps [resource.NumKinds]timeline.Gap
	kinds := slices.DeleteFunc(f.known(n, space[:0]), func(k resource.Kind) bool { return n.Capacity[k] == 0 })
	whole := 0.0
	for i := range spans {
		whole += spans[i].Length.Seconds() * float64(spans[i].Weight)
	}
	if len(kinds) == 0 || whole == 0 {
		return 0
	}
	f.ahead.of(now, s, n).Overlap(s.LaunchTime(submitted, now), spans, 0, kinds, gaps[:])
	for i, k := range kinds {
		lost := float64((1-f.eta)*gaps[i].Over.UnitSeconds()) + float64(f.eta*gaps[i].Idle.UnitSeconds())
		share += max(0, 1-lost/(whole*float64(n.Capacity[k]))) / float64(len(kinds))
	}
	return share
}
