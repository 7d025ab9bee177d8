package policy

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy/ecs"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"pgregory.net/rapid"
)

// slowBellows is the twin of bellows: the same stages without caches, indexes and queues kept in order. Everything is
// computed anew for each start. Ends of jobs and the leveling of CPU are those of sum and ecs.Leveler, which have tests
// of their own; they forget what they know before each decision.
type slowBellows struct {
	fifo, any, ideal bool
	longest          bool
	patience         time.Duration
	weights          map[string]float64 // of queues, by name; nil if there are none
	window           int
	foresees         bool
	levels           bool
	backoff          slowBackoff
	// everywhere: not only what changed is looked at. Nothing is ever found there, unless time alone lets it start.
	everywhere bool

	now   timeline.Time
	level *ecs.Leveler
}

func (s *slowBellows) decide(p *book.Plan) {
	s.level = ecs.NewLeveler(map[string]string{"ecs.cpu": "weight", "ecs.short": "false", "ecs.states": "40000"})
	if !s.levels {
		s.level = ecs.NewLeveler(map[string]string{"ecs.overcommit": "false", "ecs.leveling": "false"})
	}
	line := s.line(p)
	if p.Changes.Arrived || len(line) > 0 && p.EstimatesStale(time.Second) {
		(&sum{}).Estimate(s.now, p)
		p.Estimated()
	}
	s.backoff.relieve(s.now, p)
	s.level.Begin(s.now, p)
	if p.Running == 0 && len(line) > 0 {
		for _, n := range p.Nodes {
			if n.ReservedFor != nil && !n.Gone && !n.ReservedFor.Stages[n.ReservedStage].Ideal.FitsIn(n.Free) {
				p.Unreserve(n, cluster.Because(cluster.ReservationHopeless))
			}
		}
	}
	s.offers(p)
	everywhere := s.everywhere && !slices.ContainsFunc(line, s.late) // for which nodes are kept
	if p.AtOnce() && (p.Changes.Demand || everywhere) {
		least := s.leastChanged(p)
		for _, kept := range []bool{false, true} {
			for _, n := range p.Nodes {
				if !n.Gone && (n.ReservedFor != nil) == kept && (everywhere && !kept || least.FitsIn(n.Free)) {
					s.fill(p, n)
				}
			}
		}
		s.offers(p)
	}
	s.level.End(s.now, p)
}

func (s *slowBellows) offers(p *book.Plan) {
	for n := range p.Offers() {
		s.fill(p, n)
	}
}

// leastChanged is what the tasks of the jobs that changed need at least, per resource.
func (s *slowBellows) leastChanged(p *book.Plan) resource.Vector {
	least := resource.TooMuch()
	for _, j := range p.Changes.Jobs {
		for _, stage := range readyStages(j) {
			least = least.Min(s.least(j, stage))
		}
	}
	return least
}

func readyStages(j *book.JobState) (ready []int) {
	for i := range j.Stages {
		if !j.Status.Ended() && j.Ready(i) {
			ready = append(ready, i)
		}
	}
	return ready
}

// line is the jobs that wait for a start, the first first.
func (s *slowBellows) line(p *book.Plan) (line []*book.JobState) {
	var all, late []*book.JobState
	for _, j := range p.Jobs {
		if len(readyStages(j)) > 0 && (s.weights == nil || s.leaf(s.queue(j))) {
			if all = append(all, j); s.late(j) {
				late = append(late, j)
			}
		}
	}
	slices.SortFunc(late, func(a, b *book.JobState) int {
		return cmp.Or(cmp.Compare(a.Submitted.Add(a.Deadline), b.Submitted.Add(b.Deadline)), cmp.Compare(a.ID, b.ID))
	})
	if j := s.impatient(all); j != nil && !s.late(j) {
		late = append(late, j)
	}
	line = late
	for _, j := range s.fair(p, "", all) {
		if !slices.Contains(late, j) {
			line = append(line, j)
		}
	}
	return line
}

func (s *slowBellows) late(j *book.JobState) bool {
	return j.Deadline > 0 && j.NeverStarted() && j.Submitted.Add(j.Deadline) <= s.now
}

// impatient is the job that has waited longest, if it has waited for the patience, and for three times the mean of the
// others.
func (s *slowBellows) impatient(all []*book.JobState) *book.JobState {
	if len(all) == 0 || s.patience == 0 {
		return nil
	}
	longest := slices.MinFunc(all, func(a, b *book.JobState) int {
		return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.Submitted, b.Submitted), cmp.Compare(a.ID, b.ID))
	})
	others := time.Duration(0)
	for _, j := range all {
		if j != longest {
			others += s.now.Sub(j.Since)
		}
	}
	wait := s.now.Sub(longest.Since)
	if wait < s.patience || wait*time.Duration(len(all)-1) < 3*others {
		return nil
	}
	return longest
}

// queue is the name of the queue of a job, and leaf reports whether a queue of a name has jobs.
func (s *slowBellows) queue(j *book.JobState) string { return cmp.Or(j.Queue, "default") }

func (s *slowBellows) leaf(name string) bool {
	return s.weights[name] > 0 && len(s.children(name)) == 0
}

func (s *slowBellows) children(of string) (names []string) {
	for _, name := range []string{"a", "b", "b.x", "b.y", "default"} { // as in the settings
		if at := strings.LastIndexByte(name, '.'); s.weights[name] > 0 && name[:max(0, at)] == of {
			names = append(names, name)
		}
	}
	return names
}

// fair sorts the jobs of a queue and those below.
func (s *slowBellows) fair(p *book.Plan, name string, all []*book.JobState) (line []*book.JobState) {
	children := s.children(name)
	if len(children) == 0 {
		for _, j := range all {
			if s.weights == nil || s.queue(j) == name {
				line = append(line, j)
			}
		}
		slices.SortFunc(line, func(a, b *book.JobState) int {
			share := 0
			if !s.fifo {
				share = cmp.Compare(slowShare(p, a), slowShare(p, b))
			}
			return cmp.Or(share, cmp.Compare(a.Submitted, b.Submitted), cmp.Compare(a.ID, b.ID))
		})
		return line
	}
	share := func(name string) (most float64) {
		var used resource.Vector
		for _, j := range p.Jobs {
			if in := s.queue(j); in == name || strings.HasPrefix(in, name+".") && s.leaf(in) {
				used = used.Add(j.Used)
			}
		}
		for k := range used {
			if p.Capacity[k] > 0 {
				most = max(most, float64(used[k])/float64(p.Capacity[k]))
			}
		}
		return most / s.weights[name]
	}
	slices.SortStableFunc(children, func(a, b string) int { return cmp.Compare(share(a), share(b)) })
	for _, child := range children {
		line = append(line, s.fair(p, child, all)...)
	}
	return line
}

// fill starts on n, or on nodes that suit a task better, until nothing starts.
func (s *slowBellows) fill(p *book.Plan, n *book.NodeState) {
	for s.offer(p, n) {
	}
}

func (s *slowBellows) offer(p *book.Plan, n *book.NodeState) bool {
	line, until := s.line(p), timeline.Never
	switch {
	case !p.Takes(n):
		return false
	case n.ReservedFor != nil:
		holder, stage := n.ReservedFor, n.ReservedStage
		if next := readyStages(holder); len(next) == 0 || next[0] != stage {
			p.Unreserve(n, cluster.Because(cluster.ReservationNotNeeded))
			break
		}
		if g, ok := s.size(p, n, holder, stage); ok {
			s.start(p, n, option{holder, stage, g})
			return true
		}
		var known bool
		if until, known = s.room(p, n, holder, stage); holder.Estimate.AllStartedKnown &&
			holder.Estimate.AllStarted < until {
			until, known = holder.Estimate.AllStarted, true
		}
		if !known {
			return false
		}
	case p.Running > 0 && len(line) > 0:
		for _, j := range line {
			if (s.late(j) || j == s.impatient(line)) && s.lacks(p, n, j) {
				s.keep(p, n, j)
				return true
			}
		}
	}
	o, ok := s.choose(p, n, until)
	if !ok {
		return false
	}
	if n.ReservedFor == nil {
		if n, o = s.where(p, n, o); s.yields(p, n, o.job) {
			return true
		}
	}
	s.start(p, n, o)
	return true
}

// room is when a task fits on n, if that is after the end of some task, and known.
func (s *slowBellows) room(p *book.Plan, n *book.NodeState, j *book.JobState, stage int) (at timeline.Time,
	known bool) {
	var ends []timeline.Time
	for _, t := range n.Tasks {
		if end, ok := p.EstimatedEnd(t, s.now); ok {
			ends = append(ends, end)
		}
	}
	slices.Sort(ends)
	for _, at := range ends {
		then := *n
		then.Free = n.Spare()
		for _, t := range n.Tasks {
			if end, ok := p.EstimatedEnd(t, s.now); ok && end <= at {
				then.Free = then.Free.Add(n.Unknown.In(t.Holds(), 0))
			}
		}
		if _, ok := s.size(p, &then, j, stage); ok {
			return at, true
		}
	}
	return timeline.Never, false
}

func (s *slowBellows) lacks(p *book.Plan, n *book.NodeState, j *book.JobState) bool {
	stage := readyStages(j)[0]
	for _, m := range p.Nodes {
		if m.ReservedFor == j {
			return false
		}
	}
	_, fits := s.suits(p, n, j, timeline.Never)
	return !fits && s.holds(p, n, &j.Stages[stage])
}

func (s *slowBellows) keep(p *book.Plan, n *book.NodeState, j *book.JobState) {
	p.Reserve(n, j, readyStages(j)[0], cluster.BecauseReserved(resource.Vector{}, resource.Vector{}))
}

func (s *slowBellows) yields(p *book.Plan, n *book.NodeState, j *book.JobState) bool {
	line := s.line(p)
	if s.any || j.Used.IsZero() || p.Running == 0 || s.late(j) || j == s.impatient(line) {
		return false
	}
	for _, first := range line[:min(16, slices.Index(line, j))] {
		work, less := packedWork(j, p.Capacity), packedWork(first, p.Capacity)
		if work < less || !s.lacks(p, n, first) {
			continue
		}
		if _, known := s.room(p, n, first, readyStages(first)[0]); known {
			s.keep(p, n, first)
			return true
		}
	}
	return false
}

// least is the least that a task may be granted, and size is what it is granted on n.
func (s *slowBellows) least(j *book.JobState, stage int) resource.Vector {
	need, _ := s.level.Grant(j, stage)
	if of := &j.Stages[stage]; !s.ideal && of.Elastic() && of.Duration > 0 {
		need = need.Min(of.Ideal.With(resource.Memory, of.MinMemory))
	}
	return need
}

func (s *slowBellows) size(p *book.Plan, n *book.NodeState, j *book.JobState, stage int) (g granted, ok bool) {
	g.grant, g.why = s.level.Grant(j, stage)
	g.byPhase = g.why.Code == cluster.FitsFirstPhase
	of := &j.Stages[stage]
	if ok = g.grant.FitsIn(n.Free); !ok && !s.ideal && of.Elastic() && of.Duration > 0 {
		least := of.Ideal.With(resource.Memory, of.MinMemory)
		memory, d, some := s.sized(p, of, n.Free[resource.Memory])
		disk := n.Capacity[resource.Disk]
		ok = some && least.FitsIn(n.Free) && (disk == 0 || of.Elasticity.DiskRate <= disk-n.UnderSizedDisk) &&
			(!j.Estimate.EndKnown || s.now.Add(d) <= j.Estimate.End)
		g = granted{of.Ideal.With(resource.Memory, memory), false, cluster.BecauseFits(memory)}
	}
	flex := j.Class == cluster.Flex && !of.Coordinator
	memory := g.grant[resource.Memory]
	return g, ok && (!flex || n.Available() >= memory || n.Shares(j.Owner, memory))
}

// sized is the least memory with the least run time, of multiples of 100 MB below the need and up to what is free.
func (s *slowBellows) sized(p *book.Plan, of *cluster.Stage, free resource.Amount) (best resource.Amount,
	d time.Duration, ok bool) {
	for m := resource.Amount(0); m <= free && m < of.Ideal[resource.Memory]; m += 100 * resource.MB {
		runs := of.Elasticity.Duration(of.Duration, of.Ideal[resource.Memory], m)
		if m >= of.MinMemory && m > 0 && m <= p.Largest()[resource.Memory] && (!ok || runs < d) {
			best, d, ok = m, runs, true
		}
	}
	return best, d, ok
}

func (s *slowBellows) holds(p *book.Plan, n *book.NodeState, of *cluster.Stage) bool {
	if n.Gone || of.Ideal.FitsIn(n.Room()) {
		return !n.Gone
	}
	least := of.Ideal.With(resource.Memory, of.MinMemory)
	if s.ideal || !of.Elastic() || of.Duration == 0 || !least.FitsIn(n.Room()) {
		return false
	}
	_, _, ok := s.sized(p, of, n.Capacity[resource.Memory])
	disk := n.Capacity[resource.Disk]
	return ok && (disk == 0 || of.Elasticity.DiskRate <= disk)
}

// suits is the task of a job that competes for a place on n and ends by a time.
func (s *slowBellows) suits(p *book.Plan, n *book.NodeState, j *book.JobState, until timeline.Time) (option, bool) {
	var fit []option
	for _, stage := range readyStages(j) {
		g, ok := s.size(p, n, j, stage)
		of := &j.Stages[stage]
		if until < timeline.Never {
			d := cmp.Or(of.Duration, of.ForecastLength())
			ends := s.now.Add(of.Elasticity.Duration(d, of.Ideal[resource.Memory], g.grant[resource.Memory]))
			ok = ok && !of.Coordinator && d > 0 && ends.Add(p.Heartbeats.Every) <= until &&
				!(j == n.ReservedFor && stage == n.ReservedStage)
		}
		if ok {
			fit = append(fit, option{j, stage, g})
		}
	}
	if s.window > 0 {
		if slices.ContainsFunc(fit, s.almostDone) {
			fit = slices.DeleteFunc(fit, func(o option) bool { return !s.almostDone(o) })
		}
		slices.SortStableFunc(fit, func(a, b option) int {
			return cmp.Compare(s.align(b.grant, n.Free, n), s.align(a.grant, n.Free, n))
		})
	}
	if len(fit) == 0 {
		return option{}, false
	}
	return fit[0], true
}

func (s *slowBellows) almostDone(o option) bool {
	of := &o.job.Stages[o.stage]
	return of.Coordinator || float64(o.job.Progress[o.stage].Ended) >= 0.9*float64(of.Tasks)
}

func (s *slowBellows) align(grant, free resource.Vector, n *book.NodeState) (sum float64) {
	for k := range grant {
		if n.Capacity[k] > 0 {
			sum += float64(grant[k]) / float64(n.Capacity[k]) * (float64(free[k]) / float64(n.Capacity[k]))
		}
	}
	return sum
}

// choose is the best of the tasks that compete for a place on n.
func (s *slowBellows) choose(p *book.Plan, n *book.NodeState, until timeline.Time) (best option, ok bool) {
	line := s.line(p)
	var fit []option
	for _, j := range line {
		if o, ok := s.suits(p, n, j, until); ok && len(fit) < max(1, s.window) {
			fit = append(fit, o)
		}
	}
	for len(fit) > 0 {
		best := 0
		if first := fit[0].job; !s.late(first) && first != s.impatient(line) {
			if best = s.lastToEnd(p, n, fit); best < 0 {
				best = s.best(p, n, fit)
			}
		}
		if !s.waits(p, n, fit[best]) {
			return fit[best], true
		}
		if first := fit[0].job; s.late(first) || first == s.impatient(line) {
			return option{}, false // nobody else competed
		}
		fit = slices.Delete(fit, best, best+1)
	}
	return option{}, false
}

// lastToEnd is the index of the option whose job ends last if it starts now, and later than all jobs are estimated to
// end; -1 if there is none.
func (s *slowBellows) lastToEnd(p *book.Plan, n *book.NodeState, fit []option) int {
	last, end := -1, p.Estimates.Latest
	if n.Grown(s.now) > 0 || len(fit) == 1 {
		return last
	}
	arrived, first := timeline.Time(math.MinInt64), s.now
	for _, j := range p.Jobs {
		arrived = max(arrived, j.Submitted)
	}
	for _, o := range fit {
		first = min(first, o.job.Submitted)
	}
	if others := time.Duration(len(fit) - 1); s.now.Sub(arrived)*others < 3*arrived.Sub(first) {
		return last // more jobs are to be expected
	}
	for i, o := range fit {
		if ends, known := s.endOf(p, o.job); known && s.longest && (ends > end || ends == end && last < 0) {
			last, end = i, ends
		}
	}
	return last
}

// endOf is when a job ends if its tasks start as soon as they are ready.
func (s *slowBellows) endOf(p *book.Plan, j *book.JobState) (timeline.Time, bool) {
	known, any := true, false
	var after func(stage int) time.Duration
	after = func(stage int) (d time.Duration) {
		for _, before := range j.Stages[stage].Parents {
			d = max(d, after(before))
		}
		if of := &j.Stages[stage]; !of.Coordinator && j.Progress[stage].Pending > 0 {
			known, any = known && of.RunTime() > 0, true
			d += of.RunTime()
		}
		return d
	}
	longest := time.Duration(0)
	for stage := range j.Stages {
		longest = max(longest, after(stage))
	}
	return p.LaunchTime(j.Submitted, s.now).Add(longest), known && any && p.Estimates.Latest < timeline.Never
}

// best is the index of the best option: of the last tasks of a stage if there are some, that with the most of score
// less remaining work, both over their means.
func (s *slowBellows) best(p *book.Plan, n *book.NodeState, fit []option) (best int) {
	scores, works, most, known := 0.0, 0.0, 0.0, 0.0
	for _, o := range fit {
		scores += s.score(p, n, o)
		if w := packedWork(o.job, p.Capacity); !math.IsNaN(w) {
			works, most, known = works+w, max(most, w), known+1
		}
	}
	epsilon, last, greatest := 0.0, slices.ContainsFunc(fit, s.almostDone), math.Inf(-1)
	if works > 0 {
		epsilon = scores / float64(len(fit)) / (works / known)
	}
	for i, o := range fit {
		w := packedWork(o.job, p.Capacity)
		if math.IsNaN(w) {
			w = most
		}
		if v := s.score(p, n, o) - epsilon*w; s.almostDone(o) == last && v > greatest {
			best, greatest = i, v
		}
	}
	return best
}

// waits reports whether a task waits for another node, on which more memory is available when it reports.
func (s *slowBellows) waits(p *book.Plan, n *book.NodeState, o option) bool {
	flex := o.job.Class == cluster.Flex && !o.job.Stages[o.stage].Coordinator
	if !flex && n.Available() >= o.grant[resource.Memory] {
		return false
	}
	var most *book.NodeState
	for _, m := range p.Nodes {
		if m.ReservedFor == nil && !m.Gone && o.grant.FitsIn(m.Free) && (most == nil || m.Available() > most.Available()) {
			most = m
		}
	}
	return most != nil && most != n && !p.Takes(most) && most.Available() > n.Available()
}

// where is the node that suits a task best.
func (s *slowBellows) where(p *book.Plan, n *book.NodeState, o option) (*book.NodeState, option) {
	if s.window == 0 {
		return n, o
	}
	need, _ := s.level.Grant(o.job, o.stage)
	best, found, most := n, o, math.Inf(-1)
	if need.FitsIn(n.Free) {
		most = s.score(p, n, o)
	}
	var others, available []*book.NodeState
	for _, m := range p.Nodes {
		if m.ReservedFor == nil && !m.Gone && need.FitsIn(m.Free) {
			available = append(available, m)
			if p.AtOnce() {
				others = append(others, m)
			}
		}
	}
	slices.SortStableFunc(available, func(a, b *book.NodeState) int { return cmp.Compare(b.Available(), a.Available()) })
	if len(available) > 0 && p.Takes(available[0]) {
		others = append(others, available[0])
	}
	for _, m := range others {
		if g, ok := s.size(p, m, o.job, o.stage); ok && m != n {
			at := option{o.job, o.stage, g}
			if v := s.score(p, m, at); v > most {
				best, found, most = m, at, v
			}
		}
	}
	return best, found
}

// score is alignment and, of the disk and network that n has, the part that the forecasts leave neither idle nor
// over-allocated.
func (s *slowBellows) score(p *book.Plan, n *book.NodeState, o option) float64 {
	free := n.Free
	free[resource.Memory] = max(0, min(free[resource.Memory], n.Available()))
	score := max(0, s.align(o.grant, free, n))
	kinds := slices.DeleteFunc(slices.Clone(rates), func(k resource.Kind) bool {
		return n.Unknown.Has(k) || n.Capacity[k] == 0
	})
	of := &o.job.Stages[o.stage]
	whole, share, eta, own := 0.0, 0.0, 0.3, ownDemand(s.now, of, time.Minute)
	for _, d := range own {
		whole += d.until.Sub(d.from).Seconds() * float64(d.weight)
	}
	if !s.foresees || whole == 0 {
		return score
	}
	for _, k := range kinds {
		idle, over := slowGaps(s.now, p, n, own, k, 0)
		lost := (1-eta)*over.UnitSeconds() + eta*idle.UnitSeconds()
		share += max(0, 1-lost/(whole*float64(n.Capacity[k]))) / float64(len(kinds))
	}
	return score + share
}

func (s *slowBellows) start(p *book.Plan, n *book.NodeState, o option) {
	s.level.Start(p, o.job, o.stage, n, o.grant, o.byPhase, cluster.BecauseFits(0))
	for _, m := range p.Nodes {
		if m.ReservedFor == o.job && m.ReservedStage == o.stage {
			p.Unreserve(m, cluster.Because(cluster.ReservationUsed))
		}
	}
}

// mixed gives a job what the stages of bellows look at: memory that may be less, phases of CPU, and a queue.
func mixed(t *rapid.T, j *cluster.Job, now timeline.Time) {
	number := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(t, what) }
	j.Queue = rapid.SampledFrom([]string{"", "a", "b.x", "b.y"}).Draw(t, "queue")
	j.Submitted, j.Deadline = now, j.Deadline*time.Duration(time.Second)
	for i := range j.Stages {
		s := &j.Stages[i]
		s.Together, s.Duration = false, s.Duration*time.Duration(time.Second)
		for k := range s.Phases {
			s.Phases[k].Duration *= time.Duration(time.Second)
			s.Phases[k].Demand[resource.CPU] = resource.Amount(number("phase cpu", 0, 3)) * resource.Core
		}
		if number("elastic", 0, 2) == 0 && s.Ideal[resource.Memory] > resource.GB {
			s.MinMemory = resource.Amount(number("least", 1, 9)) * 100 * resource.MB
			s.Elasticity = cluster.Elasticity{Kind: cluster.Step, Factor: 1 + float64(number("factor", 0, 4))/2,
				DiskRate: resource.Amount(number("disk rate", 0, 2)) * 40 * resource.MB}
		}
	}
}
