package agent

import (
	"bytes"
	"encoding/json"
	"os"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/node/cgroup"
	"github.com/bellows-rm/bellows/node/keeper"
)

// owner is the agent as the keeper of the memory knows it.
type owner struct{ agent *Agent }

func (o owner) Containers() map[cluster.ContainerID]*keeper.Container {
	return o.agent.containers.kept()
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

func (o owner) Preempt(id cluster.ContainerID, why string) {
	o.end(id, &cause{Preempted: true, Why: why})
}

func (o owner) Starve(id cluster.ContainerID, why string) { o.end(id, &cause{Starved: true, Why: why}) }

func (o owner) end(id cluster.ContainerID, why *cause) {
	if c, _ := o.agent.containers.get(id); c != nil {
		o.agent.end(c, why)
	}
}

func (o owner) Remaining() resource.Amount { return o.agent.remaining() }

func (o owner) Lives() { o.agent.lease.renew() }

func (o owner) Go(work func()) { o.agent.work.begin(work) }

// FetchBack reads memory of a container that begins to work back from swap. It does not wait.
func (a *Agent) FetchBack(id cluster.ContainerID) {
	if c, started := a.containers.get(id); started {
		a.keeper.FetchBack(c.kept)
	}
}

// Mended implements live.Audited.
func (a *Agent) Mended() int64 { return a.keeper.Mended() }

// wantFile is the record of what is wanted of a container.
const wantFile = "want.json"

// Put implements keeper.Records, as do the next two. Where a full disk has no room for a new file, the old one is
// overwritten in place, and padded: whoever reads it meanwhile reads either.
func (f folder) Put(r *keeper.Record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err = durable.Replace(f.path(wantFile), append(text, '\n')); err == nil {
		return nil
	}
	file, failed := os.OpenFile(f.path(wantFile), os.O_WRONLY, 0)
	if failed != nil {
		return err
	}
	defer file.Close()
	info, failed := file.Stat()
	if failed == nil {
		text = append(text, bytes.Repeat([]byte(" "), max(0, int(info.Size())-len(text)))...)
		failed = overwrite(file, text)
	}
	if failed != nil {
		return err
	}
	return nil
}

func (f folder) Get(r *keeper.Record) error { return f.get(wantFile, r) }

func (f folder) Remove() error { return durable.RemoveAll(f.path(wantFile)) }

// keep returns a container as the keeper knows it.
func (c *container) keep(g *cgroup.Group, s *spec) *keeper.Container {
	return keeper.NewContainer(keeper.Setup{ID: c.id, Group: g, Grant: s.Grant, Envelope: s.Envelope, Records: c.dir,
		Ending: c.killed, Gone: c.gone})
}
