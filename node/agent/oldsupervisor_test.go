package agent

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/cgroup"
	"github.com/bellows-rm/bellows/node/keeper"
)

// recordOfRelease1 is a container as release 1 recorded it; its supervisor is of release 1, too.
const recordOfRelease1 = `{"container":{"task":{"job":3,"stage":0,"index":1},"run":1},"grant":[500,67108864,0,0],"booked_ns":1,"place":"here",` +
	`"launch":{"args":["true"],"class":"regular"}}`

// onPaper is an agent with one container whose control group has no controller: what is wanted of the container can be
// seen, and nothing happens to processes.
func onPaper(t *testing.T, record string) (*Agent, *container) {
	id := cluster.ContainerID{Task: cluster.TaskID{Job: 3, Index: 1}, Run: 1}
	a := &Agent{config: Config{clock: now}, events: newQueue(), log: slog.New(slog.NewTextHandler(t.Output(), nil)), containers: map[cluster.ContainerID]*container{}}
	a.closed, a.close = context.WithCancel(t.Context())
	t.Cleanup(a.events.close)
	c := a.newContainer(id)
	c.dir, c.group, c.spec = folder(t.TempDir()), new(cgroup.Group), new(spec)
	if err := os.WriteFile(c.dir.path("spec.json"), []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.dir.getSpec(id, c.spec); err != nil {
		t.Fatal(err)
	}
	var err error
	a.keeper, err = keeper.New(a.closed, owner{a}, keeper.Config{Memory: memory.Default(), All: c.group, Apart: c.group, Written: filepath.Join(t.TempDir(), "written"),
		Disk: func() string { return "" }, Clock: now, Log: a.log})
	if err != nil {
		t.Fatal(err)
	}
	c.kept = c.keep(c.group, c.spec)
	a.containers[id] = c
	return a, c
}

// answer returns the next event, which must answer a decision.
func answer(t *testing.T, a *Agent, decision cluster.DecisionID) cluster.Event {
	t.Helper()
	var e cluster.Event
	select {
	case e = <-a.events.out:
	case <-time.After(time.Minute):
		t.Fatal("no answer")
	}
	if e.Decision != decision {
		t.Fatalf("%+v does not answer decision %d", e, decision)
	}
	return e
}

// The supervisor of an earlier release lifts a pause and keeps a throttle for ever while there is no agent. What the agent
// could not promise it refuses; the end of a pause or throttle is an order like any other.
func TestSupervisorOfAnEarlierRelease(t *testing.T) {
	a, c := onPaper(t, recordOfRelease1)
	order := func(d cluster.Decision) {
		d.Task = c.id.Task
		a.Apply([]cluster.Order{{Decision: d, Container: c.id}})
	}
	order(cluster.Decision{ID: 1, Kind: cluster.Suspend, By: cluster.HeldByOwner})
	pause := answer(t, a, 1)
	order(cluster.Decision{ID: 2, Kind: cluster.Throttle, Bound: resource.Vector{resource.Disk: resource.MiB}, At: now().Add(time.Hour)})
	throttle := answer(t, a, 2)
	for _, e := range []cluster.Event{pause, throttle} {
		if e.Kind != cluster.DecisionFailed || e.Detail != errOldSupervisor.Error() {
			t.Errorf("%+v", e)
		}
	}
	if c.kept.Stopped() != 0 || c.dir.Has(keeper.HoldRecord) || c.dir.Has(keeper.ThrottleRecord) {
		t.Errorf("the container is stopped by %b", c.kept.Stopped())
	}
	order(cluster.Decision{ID: 3, Kind: cluster.Resume})
	order(cluster.Decision{ID: 4, Kind: cluster.Throttle})
	for range 2 {
		if e := <-a.events.out; e.Kind != cluster.DecisionDone {
			t.Errorf("%+v", e)
		}
	}
}
