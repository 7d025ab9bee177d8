package policy

import (
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy/contract"
	"github.com/bellows-rm/bellows/core/policy/resimulate"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// yarnME is the scheduler of "Don't cry over spilled records" (Iorgulescu et al., USENIX ATC 2017), Algorithm 1: fair
// sharing in which a task that does not fit with its ideal memory starts with the smallest memory that gives the least
// run time, if it still ends no later than its job is estimated to end.
type yarnME struct {
	fair
	underSizing
	timeline timelineGenerator
}

// underSizing chooses the memory of tasks that start with less than their ideal memory.
type underSizing struct {
	granularity resource.Amount // step of the memory of under-sized tasks
	diskShare   float64         // of a node's disk bandwidth, for under-sized tasks
	interval    time.Duration   // between estimates of the jobs' ends, where nodes have no heartbeat
	best        map[*cluster.Stage]*bestSizes
	most        resource.Amount // memory of the largest node, for which best is computed
}

// timelineGenerator estimates when jobs end (YARN-ME section 3.2). It calls p.EstimateEnd for every job of p.
type timelineGenerator interface {
	Estimate(now timeline.Time, p *book.Plan)
	DropCaches()
}

func newYarnME(s *contract.Settings) Policy {
	y := &yarnME{fair: makeFair(s, "auto"), timeline: &sum{}}
	y.fair.size, y.fair.holds = y.underSizing.size, y.underSizing.holds
	generator := s.Declare("timeline", "sum",
		"how ends of jobs are estimated: sum, which adds up estimates (section 3.2), or resimulate, which "+
			"simulates the cluster from now on without elasticity, as the authors' simulator does")
	if generator.OneOf("sum", "resimulate") == "resimulate" {
		y.timeline = resimulate.New(y.reservations)
	}
	y.underSizing.declare(s)
	return y
}

func (y *underSizing) declare(s *contract.Settings) {
	y.granularity = s.Declare("granularity", "100MB",
		"the memory of an under-sized task is a multiple of this (section 6.1)").Memory()
	y.diskShare = s.Declare("disk-share", "1",
		"share of a node's disk bandwidth that under-sized tasks may request together (section 3.3); nodes of "+
			"unknown bandwidth have no limit").Share()
	y.interval = s.Declare("interval", "1s",
		"time between two estimates of the ends of jobs, where nodes have no heartbeat").Duration()
}

func (y *yarnME) Traits() Traits {
	return Traits{UnderSizes: true, Why: y.why, DropCaches: y.dropCaches}
}

func (y *yarnME) dropCaches() {
	y.queue.Drop()
	y.best = nil
	y.timeline.DropCaches()
}

func (y *yarnME) Decide(now timeline.Time, p *book.Plan) {
	y.queue.follow(p)
	y.renew(now, p, y.timeline, len(y.queue.Jobs) > 0)
	y.offerAll(now, p)
}

// renew estimates the ends of jobs anew if they may have changed. waits says that a job has a task to start.
//
// "The generator runs periodically, every heartbeat interval […]. It also runs when a new job arrives or an existing
// one is prematurely canceled" (section 3.2). It may skip an interval without events, which would change nothing.
func (y *underSizing) renew(now timeline.Time, p *book.Plan, ends timelineGenerator, waits bool) {
	if p.Changes.Arrived || waits && p.EstimatesStale(y.interval) {
		ends.Estimate(now, p)
		p.Estimated()
	}
}

// size implements lines 5 to 10 of Algorithm 1 for one task and one node.
func (y *underSizing) size(
	now timeline.Time, s *book.Snapshot, n *book.NodeState, j *book.JobState, i int,
) (resource.Amount, cluster.Reason, bool) {
	memory, why, ok := idealSize(now, s, n, j, i)
	if ok || !underSizes(&j.Stages[i]) {
		return memory, why, ok
	}
	return y.less(now, s, n, j, i, why)
}

// less is size for a task that does not fit with its ideal memory, for a reason.
func (y *underSizing) less(
	now timeline.Time, s *book.Snapshot, n *book.NodeState, j *book.JobState, i int, why cluster.Reason,
) (resource.Amount, cluster.Reason, bool) {
	stage := &j.Stages[i]
	if !stage.LeastNeed().FitsIn(n.Free) {
		return 0, why, false
	}
	memory, d, ok := y.bestFor(stage, s.Largest()[resource.Memory]).within(n.Free[resource.Memory])
	if !ok {
		steps := wholeSteps(stage.MinMemory, y.granularity)
		return 0, cluster.BecauseTooCoarse(stage.MinMemory, steps, n.Free[resource.Memory]), false
	}
	if left, limited := y.diskLeft(n, n.UnderSizedDisk); limited && stage.Elasticity.DiskRate > left {
		return 0, cluster.BecauseDiskBudget(stage.Elasticity.DiskRate, left), false
	}
	end := now.Add(d)
	switch {
	case !j.Estimate.EndKnown:
		return memory, cluster.BecauseFitsUnderSizedNoLimit(memory, end), true
	case end <= j.Estimate.End:
		return memory, cluster.BecauseFitsUnderSized(memory, end, j.Estimate.End), true
	}
	return 0, cluster.BecauseWouldEndAfterJob(memory, end, j.Estimate.End), false
}

// underSizes reports whether tasks of a stage may start with less than their ideal memory.
func underSizes(stage *cluster.Stage) bool { return stage.Elastic() && stage.Duration > 0 }

// holds reports whether a task of a stage could start on n if nothing ran there: with its ideal memory, or under-sized.
func (y *underSizing) holds(s *book.Snapshot, n *book.NodeState, stage *cluster.Stage) bool {
	if n.Holds(stage.Ideal) {
		return true
	}
	if !underSizes(stage) || !n.Holds(stage.LeastNeed()) {
		return false
	}
	_, _, ok := y.bestFor(stage, s.Largest()[resource.Memory]).within(n.Capacity[resource.Memory])
	left, limited := y.diskLeft(n, 0)
	return ok && (!limited || stage.Elasticity.DiskRate <= left)
}

// why says why a task does not start under-sized on the first node with room for its minimum memory.
func (y *yarnME) why(now timeline.Time, s *book.Snapshot, j *book.JobState, i int) (cluster.Reason, bool) {
	stage := &j.Stages[i]
	if !underSizes(stage) {
		return cluster.Reason{}, false
	}
	n, ok := s.FirstOpen(stage.Ideal.With(resource.Memory, stage.MinMemory), 0)
	if !ok {
		return cluster.Reason{}, false
	}
	_, why, ok := y.underSizing.size(now, s, n, j, i)
	return why, !ok
}
