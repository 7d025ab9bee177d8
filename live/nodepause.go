package live

import (
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// A machine that lacks descriptors, processes or disk space can start no program, and no job caused that. Its node is
// paused for this time and then tried again; each further failure doubles the time. These failures do not count as
// attempts: jobs wait until the machine has recovered.
const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// pause is the state of a node that cannot start containers.
type pause struct {
	why   string
	since timeline.Time // of the first failure
	wait  time.Duration // length of the last pause; 0 if a container has started meanwhile
	until timeline.Time // 0 while the node is tried again
}

// pause pauses the node on which a start failed. Several may have failed at once.
func (d *Driver) pause(e *cluster.Event) {
	if nodes := d.engine.Snapshot().Nodes; d.health.broken != nil || int(e.Node) >= len(nodes) || nodes[e.Node].Gone {
		return
	}
	p := d.pauses[e.Node]
	if p == nil {
		p = &pause{since: d.now()}
		d.pauses[e.Node] = p
	}
	p.why = e.Detail
	if p.until != 0 {
		return
	}
	p.wait = min(max(2*p.wait, firstPause), longestPause)
	p.until = d.now().Add(p.wait)
	d.log.Warn("node paused: it can start nothing", "node", d.nodeName(e.Node), "for", p.wait, "reason", p.why)
	d.step(cluster.Event{Kind: cluster.NodePaused, Node: e.Node, Detail: p.why})
	d.agenda.Hold(p.until, cluster.Event{Kind: cluster.NodeResumed, Node: e.Node})
}

// resumes records that a paused node is about to be tried again.
func (d *Driver) resumes(e *cluster.Event) {
	if p := d.pauses[e.Node]; p != nil {
		p.until = 0
		if p.wait == 0 {
			delete(d.pauses, e.Node)
		}
	}
}

// starts records that a container has started on a node.
func (d *Driver) starts(id cluster.NodeID) {
	p := d.pauses[id]
	switch {
	case p == nil:
	case p.until == 0:
		delete(d.pauses, id)
		d.log.Info("node resumed: it starts programs again", "node", d.nodeName(id))
	default:
		p.wait = 0
	}
}

// pausedWords says why a node starts no containers.
func (d *Driver) pausedWords(id cluster.NodeID) string {
	p := d.pauses[id]
	when := "it is being tried again"
	if p.until != 0 {
		when = "it is tried again at " + clock(p.until)
	}
	return fmt.Sprintf("node %s can start nothing since %s, and %s: %s", d.nodeName(id), clock(p.since), when, p.why)
}
