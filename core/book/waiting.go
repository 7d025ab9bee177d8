package book

import (
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Why a job waits is answered at two times. While a policy decides, Plan.Wait records the reason in a decision, which
// is history from then on. Whoever asks after a step gets the reason as it is then, from Book.WhyWaits: a recorded
// reason may have become false by a decision about another job. Reason.Words puts either into words. The drivers add
// what only they know: live/waiting.go and sim/waiting.go.

// Why is a policy's answer to why the next task of a job, which belongs to the given stage, has not started. It is
// asked after the policy has decided, for a job with a runnable task, and changes nothing. ok is false if the policy
// has no reason of its own: then another job comes first (Plan.WaitBehind), or no node has room (Snapshot.NoRoom).
type Why func(now timeline.Time, s *Snapshot, j *JobState, stage int) (why cluster.Reason, ok bool)

// WhyWaits says why the next task of j has not started, as of the last step; now is the present time. ok is false if
// nothing is in the way of the task: no task of j waits, or the nodes with room have not reported yet.
func (b *Book) WhyWaits(now timeline.Time, j *JobState) (why cluster.Reason, ok bool) {
	stage, runnable := j.NextStage()
	switch {
	case !runnable:
		return j.whyNotRunnable()
	case !b.snapshot.Synced:
		return cluster.Reason{}, false
	}
	if b.why != nil {
		why, ok = b.why(now, b.snapshot, j, stage)
	}
	if !ok {
		why, ok = b.plan.whyPassedOver(j, stage)
	}
	_, why = b.snapshot.orFull(j, stage, 0, why)
	return b.snapshot.complete(why), ok
}

// whyNotRunnable says what the pending tasks of j wait for if none of them can start yet; ok is false if none is
// pending.
func (j *JobState) whyNotRunnable() (why cluster.Reason, ok bool) {
	for i := j.passed; i < len(j.Stages); i++ {
		p := &j.Progress[i]
		if j.Status.Ended() || p.Pending+len(p.held)+len(p.later) == 0 {
			continue
		}
		if j.PausedWhole() || len(p.held) > 0 {
			return cluster.Because(cluster.PausedByOwner), true
		}
		if !j.Steered && !j.Stages[i].Coordinator {
			return cluster.Because(cluster.WaitsForCoordinator), true
		}
		for _, parent := range j.Stages[i].Parents {
			if !j.StageEnded(parent) && !j.opensEarly(i) || j.Progress[parent].Failed > 0 {
				return cluster.BecauseDependsOnStage(parent), true
			}
		}
		if p.Withheld > 0 {
			return j.standing.why(j, i), true
		}
		if len(p.later) > 0 {
			return j.whyRetry(i)
		}
		if most := j.Stages[i].AtOnce; most > 0 && p.Booked+p.Running >= most {
			return cluster.BecauseAtOnce(most), true
		}
	}
	return cluster.Reason{}, false
}

// whyPassedOver is the reason of a job for which the policy has none.
func (p *Plan) whyPassedOver(j *JobState, stage int) (why cluster.Reason, ok bool) {
	if p.ahead != nil && p.ahead != j {
		return cluster.BecauseBehindJob(p.ahead.ID), true
	}
	return p.NoRoom(j.Stages[stage].Ideal)
}

// Wait records why the next task of a stage of j does not start. n is the node that the reason is about, if any. A
// reason whose code is already recorded for the job is not repeated. Which resource is lacking is worked out only for a
// reason that is recorded: a policy may ask for the room of many tasks in a step.
func (p *Plan) Wait(j *JobState, stage int, n cluster.NodeID, why cluster.Reason) {
	n, why = p.orFull(j, stage, n, why)
	switch {
	case j.Waiting.Code != why.Code:
		j.Waiting = p.complete(why)
		p.add(cluster.Wait, cluster.TaskID{Job: j.ID, Stage: int32(stage)}, n, j.Waiting)
	case why.Code != cluster.NoRoom:
		j.Waiting = why
	}
}

// WaitBehind records that no job is served before j: each waiting job without another reason waits behind j.
func (p *Plan) WaitBehind(j *JobState) { p.ahead = j }

// explainRest records a reason for each changed job that could start a task and has none: the policy's own reasons
// first. Where nodes report by heartbeats, a job without one may just be waiting for the next heartbeat, and nothing is
// recorded.
func (p *Plan) explainRest(policy Why) {
	if policy != nil {
		p.explain(func(j *JobState, stage int) (cluster.Reason, bool) { return policy(p.now, p.Snapshot, j, stage) })
	}
	if p.AtOnce() {
		p.explain(p.whyPassedOver)
	}
}

func (p *Plan) explain(why func(j *JobState, stage int) (cluster.Reason, bool)) {
	for _, j := range p.Changes.Jobs {
		stage, runnable := j.NextStage()
		if !runnable || j.Waiting.Code != 0 {
			continue
		}
		if why, ok := why(j, stage); ok {
			p.Wait(j, stage, 0, why)
		}
	}
}

// orFull replaces a reason about room by NodeFull if that is why there is none. n is the node that the reason is about.
func (s *Snapshot) orFull(j *JobState, stage int, n cluster.NodeID, why cluster.Reason) (cluster.NodeID,
	cluster.Reason) {
	if full, ok := s.fullNode(j, stage, why.Code); ok {
		return full.ID, cluster.BecauseNodeFull(len(full.Tasks))
	}
	return n, why
}

// complete adds to NoRoom which resource is lacking.
func (s *Snapshot) complete(why cluster.Reason) cluster.Reason {
	if why.Code == cluster.NoRoom {
		return why.Lacking(!s.rooms.someHas(resource.Memory, resource.Amount(why.A)),
			!s.rooms.someHas(resource.CPU, resource.Amount(why.B)))
	}
	return why
}
