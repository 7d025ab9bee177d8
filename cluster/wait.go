package cluster

import (
	"github.com/bellows-rm/bellows/resource"
)

// Wait records why the next task of a stage of j does not start. n is the node that the reason is about, if any. A
// reason whose code is already recorded for the job is not repeated. When the plan is closed, explainRest gives a
// reason to each job for which the policy gave none.
func (p *Plan) Wait(j *JobState, stage int, n NodeID, why Reason) {
	if full, ok := p.fullNode(j, stage, why.Code); ok {
		n, why = full.ID, BecauseNodeFull(len(full.Tasks))
	}
	if why.Code == NoRoom {
		why.C = int64(p.lacking(resource.Of(resource.Amount(why.B), resource.Amount(why.A))))
	}
	if j.Waiting.Code == why.Code {
		j.Waiting = why
		return
	}
	j.Waiting = why
	p.add(Decision{Kind: Wait, Task: TaskID{j.ID, int32(stage), 0}, Node: n, Reason: why})
}

// WaitBehind records that no job is served before j: each waiting job without another reason waits behind j.
func (p *Plan) WaitBehind(j *JobState) { p.ahead = j }

// explainRest gives a reason to each changed job that could start a task and has no reason from the policy. Where nodes
// report by heartbeats, such a job may just be waiting for the next one: nothing is recorded, and NoRoom answers on
// request.
func (p *Plan) explainRest() {
	if !p.AtOnce() {
		return
	}
	for _, j := range p.Changes.Jobs {
		stage, ok := j.NextStage()
		if !ok || j.Waiting.Code != 0 {
			continue
		}
		if p.ahead != nil && p.ahead != j {
			p.Wait(j, stage, 0, BecauseBehindJob(p.ahead.ID))
		} else if why, ok := p.NoRoom(j.Stages[stage].Ideal); ok {
			p.Wait(j, stage, 0, why)
		}
	}
}
