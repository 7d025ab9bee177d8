package policy

import (
	"math"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/policy/contract"
	"github.com/bellows-rm/bellows/core/policy/queue"
	"github.com/bellows-rm/bellows/core/timeline"
)

// srjf is shortest remaining job first: free room goes to the job with the least work left to start, and what that job
// cannot use to the next (YARN-ME section 6.2, where it runs on one node that pools the cluster, the Meganode).
type srjf struct{ queue.FirstFit }

func newSRJF(*contract.Settings) Policy {
	return &srjf{queue.FirstFit{Queue: queue.Fit{Key: remainingWork, Grant: queue.IdealContainer}}}
}

func (*srjf) Name() string     { return "srjf" }
func (s *srjf) Traits() Traits { return Traits{DropCaches: s.Queue.Drop} }

func (s *srjf) Decide(_ timeline.Time, p *book.Plan) { s.Serve(p) }

// remainingWork is the sum of the estimated run times of a job's tasks that have not started, in seconds. It is
// infinite if one of the run times is unknown. Coordinators do not count.
func remainingWork(j *book.JobState) float64 {
	work := 0.0
	for i := range j.Stages {
		stage, pending := &j.Stages[i], j.Progress[i].Pending
		switch {
		case pending == 0 || stage.Coordinator:
		case stage.Duration <= 0:
			return math.Inf(1)
		default:
			work += float64(pending) * stage.Duration.Seconds()
		}
	}
	return work
}
