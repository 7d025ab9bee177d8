package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/memory"
	"github.com/bellows-rm/bellows/resource"
)

// takeInventory finds every container that an earlier agent left behind, reports it, and watches the running ones.
func (a *Agent) takeInventory() error {
	entries, err := os.ReadDir(filepath.Join(a.config.Dir, "containers"))
	if err != nil {
		return fmt.Errorf("take inventory: %w", err)
	}
	node := a.node()
	events := []cluster.Event{{Kind: cluster.NodeJoined, Node: node.ID, NewNode: &node}}
	for _, entry := range entries {
		id, err := cluster.ParseContainerID(entry.Name())
		if err != nil {
			continue // Not ours.
		}
		if e := a.recover(id); e.Kind != 0 {
			events = append(events, e)
		}
	}
	a.sweepGroups()
	a.events.put(append(events, cluster.Event{Kind: cluster.Synced})...)
	a.watchFound()
	return nil
}

// node describes this machine.
func (a *Agent) node() cluster.Node {
	n := cluster.Node{ID: 0, Name: a.config.Node, Capacity: a.config.Capacity}
	for k := range resource.NumKinds {
		if !k.Stated() && n.Capacity[k] == 0 {
			n.Unknown |= resource.KindsOf(k)
		}
	}
	return n
}

// watchFound stays with the containers that were found running. It starts only after all of them are reported;
// otherwise the end of a container could be reported before the container.
func (a *Agent) watchFound() {
	a.mu.Lock()
	running := slices.Collect(maps.Values(a.containers))
	a.mu.Unlock()
	for _, c := range running {
		ended := a.follow(c.dir)
		a.begin(func() { a.watch(c, ended) })
		if c.outing.moving {
			a.begin(func() { a.moveMemory(c) })
		}
		if c.throttle.Bound != (resource.Vector{}) {
			a.begin(func() { a.keepThrottled(c, c.throttle) })
		}
		if h := c.heldForEngine(); h.levels() {
			a.expectEnd(c, h.Until)
		}
	}
}

// recover finds out what became of one container. The event has no kind if the container never existed. A broken record
// ends only its own container.
func (a *Agent) recover(id cluster.ContainerID) cluster.Event {
	c := a.newContainer(id)
	c.spec = new(spec)
	if err := c.dir.getSpec(id, c.spec); err != nil {
		// The record is written before anything else happens, completely or not at all.
		if errors.Is(err, os.ErrNotExist) && !c.dir.exists("lock") && !c.dir.exists("exit.json") {
			a.removeGroup(id)
			a.Forget(id)
			return cluster.Event{}
		}
		return a.lost(c, err)
	}
	of, resized := c.dir.size()
	c.spec = c.dir.sized(c.spec)
	if g, err := openGroup(c.spec); err == nil {
		c.group, c.stance = g, c.spec.granted()
	}
	if c.group == nil {
		// Then nothing can run. If the lock is still taken, it is by a process that the last agent was starting for
		// another container; it releases the lock in moments.
		a.await(func() bool { return !held(c.dir) })
	}
	lock, err := c.dir.lock()
	if err == nil {
		lock.Close()
		if err := c.dir.get("exit.json", new(ending)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return a.lost(c, err)
		}
		begun := c.dir.launched() || c.dir.exists("exit.json") || c.spec.Identity.Boot != a.supervisors.Identity().Boot // A power failure may have removed the note.
		e := endEvent(id, c.dir)
		a.monitor.end(c, endOf(&e))
		a.removeGroup(id)
		if !begun {
			return cluster.Event{Kind: cluster.DecisionFailed, Task: id.Task, Run: id.Run, Detail: "bellows ended before it was started"}
		}
		return e
	}
	if !errors.Is(err, errHeld) {
		return a.lost(c, err)
	}
	if c.group == nil {
		return a.lost(c, errors.New("it has a supervisor, but its control group is gone"))
	}
	// A supervisor that was started just before the last agent ended writes its pid at once. Without the pid, the end
	// of the container is only noticed a little later.
	a.await(func() bool {
		_, ok := c.dir.supervisor()
		return ok || !held(c.dir)
	})
	a.containers[id] = c
	c.stillness.quiet = true
	if resized {
		a.adoptSize(c)
	}
	a.adoptHold(c)
	a.adoptOut(c)
	a.keeper.found = append(a.keeper.found, news{started: found(a.closed, c), of: c})
	var how string
	c.throttle, how = a.adoptThrottle(c)
	c.throttled = c.throttle.Bound != resource.Vector{}
	at := c.spec.Booked
	var s started
	if c.dir.get("started.json", &s) == nil {
		at = s.At
	}
	a.monitor.found(c, at)
	e := cluster.Event{Kind: cluster.TaskAdopted, Task: id.Task, Run: id.Run, Node: 0, Grant: c.spec.Grant, Launched: at, Detail: how}
	e.SetCondition(cluster.Condition{ByPhase: c.spec.ByPhase, MostCPU: c.spec.Envelope.MostCPU, Was: of.Was, Why: of.Why, Resized: of.At, Bound: c.throttle.Bound, Until: c.throttle.Until,
		HeldBy: c.stance.engine.By, HeldUntil: c.stance.engine.Until, HeldFor: c.stance.engine.For, PageOut: c.outing.wanted, Out: c.outNow()})
	a.heldByMemoryNow(c, c.stance.still&byMemory != 0)
	e.By, c.stillness.quiet = c.stillness.told, false
	return e
}

// lost ends a container whose record cannot be used. It could not be managed, so it is killed if it runs; its folder is
// kept aside for people. If it had ended before, and the record of that is readable, the end is reported, so that its
// task does not run again.
func (a *Agent) lost(c *container, why error) cluster.Event {
	e := endEvent(c.id, c.dir)
	if e.Exit == nil {
		e.Outcome, e.Detail = cluster.Lost, fmt.Sprintf("its record cannot be used: %v", why)
	}
	a.removeGroup(c.id)
	a.await(func() bool { return !held(c.dir) }) // the supervisor, which has nothing left to wait for
	if err := a.remover.takeTmp(c.dir); err != nil {
		a.log.Warn("cannot remove the private temporary folder of a lost container", "container", c.id, "error", err)
	}
	kept, err := a.keepAside(string(c.dir))
	if err != nil {
		a.log.Warn("cannot move the record of a lost container to the folder of damaged records", "container", c.id, "error", err)
	}
	a.log.Error("killing a container whose record cannot be used", "container", c.id, "error", why, "kept", kept)
	return e
}

// keepAside moves an unusable folder out of the way, and returns its new place.
func (a *Agent) keepAside(path string) (string, error) {
	dir := filepath.Join(a.config.Dir, "damaged")
	if err := durable.MakeDir(dir); err != nil {
		return "", err
	}
	to := filepath.Join(dir, fmt.Sprintf("%s-%d", filepath.Base(path), time.Now().UnixNano()))
	return to, durable.Rename(path, to)
}

// found describes a container that was found running, as the kernel shows it. A frozen FLEX container that is not paused
// waits for the memory manager. Every other container that is not paused runs at full speed: a REGULAR container that the last
// agent left frozen would otherwise stay frozen.
func found(ctx context.Context, c *container) *memory.Started {
	s := &memory.Started{Envelope: c.spec.envelope(), Out: c.isOut()}
	frozen, _ := c.group.Frozen()
	if s.Suspended = frozen && s.Class == cluster.Flex && c.heldForEngine().By == 0 && !s.Out; s.Suspended {
		c.stance.still |= byMemory
		c.stood.note(&c.stance, c.group)
	} else {
		_ = c.change(ctx, func(*stance) {}) // If that fails, the audit finds it.
	}
	s.Limit = min(s.Max, limitOf(c.group))
	return s
}

// await waits for a condition that takes moments, but not for ever.
func (a *Agent) await(f func() bool) {
	ctx, cancel := context.WithTimeout(a.closed, time.Second)
	defer cancel()
	for ctx.Err() == nil && !f() {
		time.Sleep(time.Millisecond)
	}
}

// sweepGroups removes control groups without a container: their folder was never written, or is gone.
func (a *Agent) sweepGroups() {
	names, err := a.root.List()
	if err != nil {
		a.log.Warn("cannot list control groups", "error", err)
		return
	}
	for _, name := range names {
		id, err := cluster.ParseContainerID(name)
		if err != nil || a.folder(id).exists("spec.json") {
			continue
		}
		a.removeGroup(id)
	}
}
