package policy

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy/contract"
	"github.com/bellows-rm/bellows/core/policy/queue"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// pufferfish is the cluster scheduler of "Pufferfish: container-driven elastic memory management for data-intensive
// applications" (Chen et al., SoCC 2019), section 4.3.2. Unlike the grants, it accounts for the growth of FLEX
// containers. A FLEX container starts on the node with the most memory available, if its initial memory is available
// there; otherwise it is delayed, "to avoid meaningless memory reclaim". A REGULAR container also goes to that node. If
// only the grants leave room for it, the node's memory manager reclaims the difference from FLEX containers. The memory
// manager also knows how long a suspension is tolerated; a task that it kills is scheduled again here.
//
// Among nodes with equal memory available the policy prefers a node that stores the task's data, then the lowest
// NodeID. Where nodes have heartbeats, a FLEX container waits until the best node reports, unless another node has
// become the best by then; a REGULAR container takes the best of the nodes that report in the same step. Coordinators
// of FLEX jobs are REGULAR, as in the authors' code.
type pufferfish struct {
	flex, regular queue.Fit // a job is in the queue of its next task's class
	room          float64   // the part of a FLEX container's initial memory that must be available
	stop          float64   // the part of a node's memory that is ever available for FLEX containers
	quantile      float64   // see pufferfish.count-quantile; NaN is off
	sites         sites
}

func newPufferfish(s *contract.Settings) Policy {
	f := &pufferfish{quantile: math.NaN()}
	key := queue.FirstSubmitted
	order := s.Declare("order", "ejf",
		"which job is served first: ejf, the job submitted first, or sjf, the job with the shortest expected "+
			"duration (section 4.3.3); a job that cannot start lets other jobs pass")
	if order.OneOf("ejf", "sjf") == "sjf" {
		key = expectedDuration
	}
	room := s.Declare("room", "1",
		"a FLEX container starts where this multiple of its initial memory is available; the authors' code has 2")
	if f.room = room.Number(); f.room < 1 {
		room.Fail("a number of at least 1")
	}
	f.stop = s.Declare("stop", "1",
		"share of a node's memory beyond which no FLEX container starts there; the authors' code has 0.8").Share()
	quantile := s.Declare("count-quantile", "off",
		"prefer nodes whose number of FLEX containers is at most this quantile over all nodes, or off; slower, "+
			"because it looks at every node; the authors' code has 0.1")
	if quantile.Text != "off" {
		f.quantile = quantile.Share()
	}
	f.flex = queue.Fit{Key: key, Grant: f.flexContainer}
	f.regular = queue.Fit{Key: key, Grant: f.regularContainer}
	return f
}

func (*pufferfish) Name() string { return "pufferfish" }

// Traits sets Quotas because a start or growth on the best node makes another node the best, which had room before.
func (f *pufferfish) Traits() Traits {
	return Traits{Quotas: true, Admit: f.admit, Why: f.why, DropCaches: f.dropCaches}
}

func (f *pufferfish) dropCaches() {
	f.flex.Drop()
	f.regular.Drop()
	f.sites = sites{}
}

// admit rejects jobs with FLEX containers that fit on no empty node under the settings.
func (f *pufferfish) admit(s *book.Snapshot, j *cluster.Job) error {
	for i := range j.Stages {
		if !j.Resizable(i) {
			continue
		}
		ideal := j.Stages[i].Ideal
		fits := func(n *book.NodeState) bool {
			return n.Holds(ideal) && f.mustHave(ideal) <= n.Capacity[resource.Memory]-f.beyondStop(n)
		}
		if !slices.ContainsFunc(s.Nodes, fits) {
			return fmt.Errorf("job %q stage %d memory %s: pufferfish.room=%g times that must be at most "+
				"pufferfish.stop=%g of what a node has, %s", j.Name, i, resource.FormatMemory(ideal[resource.Memory]),
				f.room, f.stop, resource.FormatMemory(s.Largest()[resource.Memory]))
		}
	}
	return nil
}

func (f *pufferfish) flexContainer(j *book.JobState, stage int) (resource.Vector, cluster.Reason, bool) {
	ideal := j.Stages[stage].Ideal
	return ideal.With(resource.Memory, f.mustHave(ideal)), cluster.Reason{}, j.Resizable(stage)
}

func (f *pufferfish) regularContainer(j *book.JobState, stage int) (resource.Vector, cluster.Reason, bool) {
	return j.Stages[stage].Ideal, cluster.Reason{}, !j.Resizable(stage)
}

// mustHave is the memory that must be available for a FLEX container to start, in bytes.
func (f *pufferfish) mustHave(ideal resource.Vector) resource.Amount {
	return resource.Amount(min(math.Ceil(float64(ideal[resource.Memory])*f.room), 1<<62)) // more than any node has
}

// beyondStop is the memory of a node, in bytes, that is never available for FLEX containers.
func (f *pufferfish) beyondStop(n *book.NodeState) resource.Amount {
	return resource.Amount(math.Ceil(float64(n.Capacity[resource.Memory]) * (1 - f.stop)))
}

// available is the memory on n that FLEX containers may start in, in bytes; it can be negative.
func (f *pufferfish) available(n *book.NodeState) resource.Amount {
	return n.Available() - f.beyondStop(n)
}

// After each decision no queued task has a node. Only a node with more room or a job with different tasks changes that.
// The order of jobs never changes.
func (f *pufferfish) Decide(_ timeline.Time, p *book.Plan) {
	f.flex.Follow(p)
	f.regular.Follow(p)
	f.open(p)
	f.look(p)
	var fresh []queue.FitEntry // jobs that may start tasks on nodes that did not change
	if p.Changes.Demand {
		fresh = queue.ChangedIn(p, &f.flex, &f.regular)
	}
	for e, ok := f.next(queue.FitEntry{}, &fresh); ok; e, ok = f.next(e, &fresh) {
		started := false
		for f.startNext(p, e.Job) {
			started = true
		}
		if started {
			f.look(p)
		}
	}
	f.explain(p)
}

// sites are the nodes that may now have room for tasks that had none.
type sites struct {
	nodes []*book.NodeState
	// free and available are the component-wise maxima over these nodes, for REGULAR and for FLEX containers: a task
	// that does not fit in them fits on no node.
	free, available resource.Vector
}

func (f *pufferfish) open(p *book.Plan) {
	f.sites.nodes = f.sites.nodes[:0]
	for n := range p.Offered() {
		f.sites.nodes = append(f.sites.nodes, n)
	}
}

// look computes the maxima over the sites.
func (f *pufferfish) look(p *book.Plan) {
	s := &f.sites
	s.free = resource.NoRoom()
	s.available = s.free
	for _, n := range s.nodes {
		if p.Takes(n) {
			s.free = s.free.Max(n.Free)
			s.available = s.available.Max(n.Free.With(resource.Memory, f.available(n)))
		}
	}
}

// next returns the first job behind last that may start something.
func (f *pufferfish) next(last queue.FitEntry, fresh *[]queue.FitEntry) (first queue.FitEntry, ok bool) {
	consider := func(e queue.FitEntry, found bool) {
		if found && (!ok || e.Compare(first) < 0) {
			first, ok = e, true
		}
	}
	consider(f.flex.FitAfter(last, f.sites.available))
	consider(f.regular.FitAfter(last, f.sites.free))
	for len(*fresh) > 0 && last.Job != nil && (*fresh)[0].Compare(last) <= 0 {
		*fresh = (*fresh)[1:]
	}
	if len(*fresh) > 0 {
		consider((*fresh)[0], true)
	}
	return first, ok
}

// startNext starts the next task of j if there is a node for it.
func (f *pufferfish) startNext(p *book.Plan, j *book.JobState) bool {
	stage, ok := j.NextStage()
	if !ok {
		return false
	}
	n, most := f.choose(p, j, stage)
	if n == nil {
		return false
	}
	memory, left := j.Stages[stage].Ideal[resource.Memory], n.Available()
	why := cluster.BecauseFitsMostAvailable
	switch {
	case left < memory:
		why = cluster.BecauseFitsReclaimed
	case !most || !math.IsNaN(f.quantile):
		why = cluster.BecauseFitsAvailable
	case slices.Contains(j.Stages[stage].DataOn, n.Name):
		why = cluster.BecauseFitsNearData
	}
	p.Start(j, stage, n, memory, why(memory, left))
	f.flex.Update(j)
	f.regular.Update(j)
	return true
}

// choose returns the node for the next task of a stage, nil if it waits, and whether the node is as good as any: the
// best node, if it takes work now. Otherwise a FLEX container waits for that node, unless a node that takes work now
// is equally good; a REGULAR container takes the best of the nodes that take work now.
func (f *pufferfish) choose(p *book.Plan, j *book.JobState, stage int) (n *book.NodeState, most bool) {
	need, flex := j.Stages[stage].Ideal, j.Resizable(stage)
	fits := func(n *book.NodeState) bool {
		return !n.Gone && need.FitsIn(n.Free) && (!flex || f.available(n) >= f.mustHave(need))
	}
	w := wish{few: math.MaxInt, data: j.Stages[stage].DataOn}
	if flex && !math.IsNaN(f.quantile) {
		w.few = f.usualCount(p)
	}
	var best *book.NodeState
	if w.few == math.MaxInt && f.stop == 1 {
		if n, ok := p.MostAvailable(need); ok && fits(n) {
			best = w.nearData(p, n, fits)
		}
	} else {
		best = w.bestOf(p.Nodes, fits)
	}
	if best == nil || p.Takes(best) {
		return best, true
	}
	n = w.bestOf(f.sites.nodes, func(n *book.NodeState) bool { return p.Takes(n) && fits(n) })
	if n == nil || !w.better(best, n) {
		return n, true
	}
	if flex {
		return nil, false
	}
	return n, false
}

// wish ranks the nodes with room for one task.
type wish struct {
	few  int      // nodes with at most this many FLEX containers come first; MaxInt: no preference
	data []string // names of the nodes that store its data
}

// bestOf returns the best of the nodes that fit, the one with the lowest NodeID among equals; nil if none does.
func (w *wish) bestOf(nodes []*book.NodeState, fits func(*book.NodeState) bool) (best *book.NodeState) {
	for _, n := range nodes {
		if fits(n) && (best == nil || w.better(n, best) || !w.better(best, n) && n.ID < best.ID) {
			best = n
		}
	}
	return best
}

// nearData returns n, or a node with the task's data that is as good as n.
func (w *wish) nearData(p *book.Plan, n *book.NodeState, fits func(*book.NodeState) bool) *book.NodeState {
	equals := []*book.NodeState{n}
	for _, name := range w.data {
		if holder, ok := p.NodeNamed(name); ok {
			equals = append(equals, holder)
		}
	}
	return w.bestOf(equals, fits)
}

// better reports whether n is better than m.
func (w *wish) better(n, m *book.NodeState) bool {
	if w.few < math.MaxInt {
		if a, b := flexCount(n) <= w.few, flexCount(m) <= w.few; a != b {
			return a
		}
	}
	if a, b := n.Available(), m.Available(); a != b {
		return a > b
	}
	return slices.Contains(w.data, n.Name) && !slices.Contains(w.data, m.Name)
}

func flexCount(n *book.NodeState) int {
	count := 0
	for _, t := range n.Tasks {
		if t.Job.Resizable(int(t.ID.Stage)) {
			count++
		}
	}
	return count
}

// usualCount is the quantile of the numbers of FLEX containers on the nodes.
func (f *pufferfish) usualCount(p *book.Plan) int {
	var counts []int
	for _, n := range p.Nodes {
		if !n.Gone {
			counts = append(counts, flexCount(n))
		}
	}
	slices.Sort(counts)
	return counts[int(f.quantile*float64(len(counts)-1))]
}

// explain gives each job that changed, and the first FLEX job, the reason why it waits. Where nodes have heartbeats, a
// job may be waiting only for a heartbeat.
func (f *pufferfish) explain(p *book.Plan) {
	for _, j := range p.Changes.Jobs {
		f.explainJob(p, j)
	}
	if len(f.flex.Jobs) > 0 {
		f.explainJob(p, f.flex.Jobs[0].Job)
	}
}

func (f *pufferfish) explainJob(p *book.Plan, j *book.JobState) {
	if stage, ok := j.NextStage(); ok {
		if n, why, ok := f.notOn(p.Snapshot, j, stage); ok {
			p.Wait(j, stage, n, why)
		}
	}
}

func (f *pufferfish) why(_ timeline.Time, s *book.Snapshot, j *book.JobState, stage int) (cluster.Reason, bool) {
	_, why, ok := f.notOn(s, j, stage)
	return why, ok
}

// notOn says why the next task of j starts on no node; n is the node with most available, if some node has room.
func (f *pufferfish) notOn(s *book.Snapshot, j *book.JobState, stage int) (n cluster.NodeID, why cluster.Reason,
	ok bool) {
	need := j.Stages[stage].Ideal
	best, room := s.MostAvailable(need)
	if !room {
		why, ok = s.NoRoom(need)
		return 0, why, ok
	}
	must := f.mustHave(need)
	if !j.Resizable(stage) || f.available(best) >= must {
		return 0, cluster.Reason{}, false
	}
	grown := best.Free[resource.Memory] - best.Available()
	return best.ID, cluster.BecauseNotAvailable(must, max(0, f.available(best)), grown), true
}

// expectedDuration is the time from a job's first start to its last end if no task waits, in seconds: the longest chain
// of stages. It is infinite if one of the run times is unknown. Coordinators do not count.
func expectedDuration(j *book.JobState) float64 {
	return cluster.LongestPath(j.Job, func(i int) float64 {
		if j.Stages[i].Coordinator {
			return 0
		}
		return cmp.Or(j.Stages[i].Duration.Seconds(), math.Inf(1))
	})
}
