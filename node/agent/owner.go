package agent

import (
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/node/cgroup"
	"github.com/bellows-rm/bellows/node/keeper"
)

// owner is the agent as the keeper of the memory knows it.
type owner struct{ agent *Agent }

func (o owner) Containers() map[cluster.ContainerID]*keeper.Container {
	o.agent.mu.Lock()
	defer o.agent.mu.Unlock()
	all := make(map[cluster.ContainerID]*keeper.Container, len(o.agent.containers))
	for id, c := range o.agent.containers {
		all[id] = c.kept
	}
	return all
}

func (o owner) Report(e cluster.Event) { o.agent.events.put(e) }

func (o owner) Answer(id cluster.ContainerID, decision cluster.DecisionID, detail string, err error) {
	if err != nil {
		o.agent.failed(id, decision, err)
		return
	}
	done := cluster.Event{Kind: cluster.DecisionDone, Task: id.Task, Run: id.Run, Decision: decision, Detail: detail}
	o.agent.events.put(done)
}

func (o owner) Preempt(id cluster.ContainerID) {
	o.agent.mu.Lock()
	c := o.agent.containers[id]
	o.agent.mu.Unlock()
	if c != nil {
		o.agent.end(c, true)
	}
}

func (o owner) Remaining() resource.Amount { return o.agent.remaining() }

func (o owner) Lives() { o.agent.lease.renew() }

func (o owner) Go(work func()) { o.agent.begin(work) }

// Mended implements live.Audited.
func (a *Agent) Mended() int64 { return a.keeper.Mended() }

// Put implements Records, as do the next three.
func (f folder) Put(r keeper.Record, value any) error { return f.put(fileOf(r), value) }

func (f folder) Get(r keeper.Record, value any) error { return f.get(fileOf(r), value) }

func (f folder) Has(r keeper.Record) bool { return f.exists(fileOf(r)) }

func (f folder) Remove(r keeper.Record) error { return durable.RemoveAll(f.path(fileOf(r))) }

// fileOf is the file of a record.
func fileOf(r keeper.Record) string { return string(r) + ".json" }

// keep returns a container as the keeper knows it.
func (c *container) keep(g *cgroup.Group, s *spec) *keeper.Container {
	return keeper.NewContainer(keeper.Setup{ID: c.id, Group: g, Grant: s.Grant, Envelope: s.Envelope, Records: c.dir,
		Ending: c.killed, Gone: c.gone})
}
