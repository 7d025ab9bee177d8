package cluster

import "github.com/bellows-rm/bellows/resource"

// Wait records why the next task of a stage of j does not start; n is the node that the reason is about, if it is about one. A
// reason with the code that is already known for the job is not repeated. A job for which a policy gives no reason gets one
// when the plan is closed: see explainRest.
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

// WaitBehind records that nobody is served before j: who waits and is given no other reason waits behind it.
func (p *Plan) WaitBehind(j *JobState) { p.ahead = j }

// explainRest gives a reason to every job that changed, could start a task and was given no reason by the policy. Where nodes
// report by heartbeats, such a job may just wait for the next one: nothing is recorded, and NoRoom tells who asks.
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

// NoRoom says why need fits on no node that is not reserved; ok is false if it fits on one.
func (s *Snapshot) NoRoom(need resource.Vector) (why Reason, ok bool) {
	if _, room := s.FirstOpen(need, 0); room {
		return Reason{}, false
	}
	if n, room := s.FirstReserved(need, 0); room {
		return BecauseNodeReserved(n.ReservedFor.ID), true
	}
	if n, room := s.FirstOpen(resource.Of(need[resource.CPU], need[resource.Memory]), 0); room {
		for _, k := range []resource.Kind{resource.Disk, resource.Network} {
			if need[k] > n.Free[k] {
				return BecauseNoBandwidth(k, need[k]), true
			}
		}
	}
	return BecauseNoRoom(need), true
}

// lacking tells what of need no node has free, each resource taken by itself.
func (p *Plan) lacking(need resource.Vector) (lacks lacking) {
	most := p.mostFree()
	if need[resource.Memory] > most[resource.Memory] {
		lacks |= lacksMemory
	}
	if need[resource.CPU] > most[resource.CPU] {
		lacks |= lacksCPU
	}
	return lacks
}

// fullNode returns a node on which a task finds no room only because there are as many as there may be.
func (p *Plan) fullNode(j *JobState, stage int, code ReasonCode) (*NodeState, bool) {
	if p.ContainersPerCore == 0 || code != NoRoom && code != NotAvailable {
		return nil, false
	}
	for _, n := range p.Nodes {
		if n.Full() && !n.Gone && j.Stages[stage].Ideal.FitsIn(n.Unused()) {
			return n, true
		}
	}
	return nil, false
}
