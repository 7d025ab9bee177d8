package scenarios

import (
	"fmt"
	"slices"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/engine"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// auditReasons returns an error if a job that waits has no reason after a step, or a reason that is not true then.
// Where nodes report by heartbeats, a job may be waiting for nothing but the next heartbeat.
func auditReasons(e *engine.Engine, now timeline.Time) error {
	s := e.Snapshot()
	if !s.Synced {
		return nil
	}
	for _, j := range s.Jobs {
		pending := len(j.Retries())
		for i := range j.Progress {
			pending += j.Progress[i].Pending
		}
		why, ok := e.WhyWaits(now, j)
		switch {
		case j.Status.Ended() || pending == 0:
			if ok {
				return fmt.Errorf("job %s waits for nothing, but %s", j.Name, why.Words(seconds))
			}
		case !ok && s.AtOnce():
			return fmt.Errorf("job %s waits without a reason; recorded was: %s", j.Name, j.Waiting.Words(seconds))
		case ok && !isTrue(s, j, now, why):
			return fmt.Errorf("job %s does not wait because %s; recorded was: %s", j.Name, why.Words(seconds),
				j.Waiting.Words(seconds))
		}
	}
	return nil
}

// isTrue checks a reason in the plainest way.
func isTrue(s *book.Snapshot, j *book.JobState, now timeline.Time, why cluster.Reason) bool {
	stage, runnable := j.NextStage()
	switch why.Code {
	case cluster.DependsOnStage:
		return !runnable && (j.Progress[why.A].Ended < j.Stages[why.A].Tasks || j.Progress[why.A].Failed > 0 ||
			j.Open && j.Stages[why.A].Tasks == 0)
	case cluster.WaitsForCoordinator:
		return !runnable && !j.Steered
	case cluster.PausedByOwner:
		return !runnable && j.PausedWhole()
	case cluster.OthersFirst:
		return !runnable && slices.ContainsFunc(j.Stages, func(s cluster.Stage) bool {
			running := 0
			for _, t := range j.Tasks {
				if t.Stage().Name == s.Name {
					running++
				}
			}
			return s.AtOnce == int(why.A) && running >= s.AtOnce
		})
	case cluster.RetryLater:
		return !runnable && why.B > int64(now) && slices.ContainsFunc(j.Retries(), func(r book.Retry) bool {
			return r.At == timeline.Time(why.B) && r.Attempt == int(why.A) && r.Attempt <= j.MaxAttempts
		})
	}
	if !runnable {
		return false
	}
	some := func(holds func(n *book.NodeState) bool) bool {
		for _, n := range s.Nodes {
			if !n.Gone && holds(n) {
				return true
			}
		}
		return false
	}
	need := j.Stages[stage].Ideal
	switch why.Code {
	case cluster.NoRoom:
		need[resource.Memory] = resource.Amount(why.A)
		return !some(func(n *book.NodeState) bool { return n.ReservedFor == nil && need.FitsIn(n.Free) })
	case cluster.BehindPhase:
		return some(func(n *book.NodeState) bool {
			return resource.Amount(why.A) <= n.Free[resource.Memory] &&
				slices.ContainsFunc(n.Tasks, func(t *book.TaskState) bool { return int64(t.ID.Job) == why.B })
		})
	case cluster.NodeFull:
		return some((*book.NodeState).Full)
	case cluster.NodeReserved:
		return some(func(n *book.NodeState) bool { return n.ReservedFor != nil && int64(n.ReservedFor.ID) == why.A })
	case cluster.BehindJob:
		first, here := s.Job(cluster.JobID(why.A))
		if !here || first == j {
			return false
		}
		_, runnable := first.NextStage()
		return runnable
	case cluster.WouldEndAfterJob:
		return why.C == int64(j.Estimate.End) &&
			some(func(n *book.NodeState) bool { return j.Stages[stage].MinMemory <= n.Free[resource.Memory] })
	case cluster.TooCoarse:
		return some(func(n *book.NodeState) bool { return n.Free[resource.Memory] == resource.Amount(why.C) })
	case cluster.WaitedTooLittle:
		longer, waiting := 0, 0
		for _, other := range s.Jobs {
			if _, runnable := other.NextStage(); runnable {
				waiting++
				if other != j && other.Since <= j.Since {
					longer++
				}
			}
		}
		return longer >= int(why.A) && int(why.B) <= waiting
	case cluster.TooFewServers, cluster.TooFewPlaces:
		return why.B < why.A && some(func(n *book.NodeState) bool { return need.FitsIn(n.Free) })
	// B is less than what is available by the part that no FLEX container may start in, at most half a node here
	case cluster.NotAvailable:
		return !some(func(n *book.NodeState) bool {
			return need.FitsIn(n.Free) && n.Available() > resource.Amount(why.B)+n.Capacity[resource.Memory]/2
		})
	}
	return true
}
