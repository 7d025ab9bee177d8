package book

import (
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Backoff is set on a job that a policy lets have fewer nodes for a while, because it hinders other jobs. Like Mark
// and NodeState.KeptUntil it is part of the snapshot because it outlives a step.
type Backoff struct {
	Until timeline.Time
	Since timeline.Time    // of the newest report by a node
	Most  int              // nodes that the job may have
	Nodes []cluster.NodeID // that have reported
	Why   cluster.Reason
}

// BackOff records that j backs off. The policy ends that, or replaces it.
func (p *Plan) BackOff(j *JobState, b Backoff) { j.Backoff = &b }

// EndBackoff records that j does not back off any more.
func (p *Plan) EndBackoff(j *JobState) { j.Backoff = nil }

// KeepUntil records until when n stays reserved though nothing runs there; 0 is that it does not. The end of the
// reservation ends that, too.
func (p *Plan) KeepUntil(n *NodeState, until timeline.Time) { n.KeptUntil = until }
