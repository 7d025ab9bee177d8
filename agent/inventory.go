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
)

// takeInventory finds every container that an earlier agent left behind, tells of it, and watches those that run.
func (a *Agent) takeInventory() error {
	entries, err := os.ReadDir(filepath.Join(a.config.Dir, "containers"))
	if err != nil {
		return fmt.Errorf("take inventory: %w", err)
	}
	node := cluster.Node{ID: 0, Name: a.config.Node, Capacity: a.config.Capacity}
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

// watchFound stays with the containers that were found running. Nobody does before all of them are told: the end of one would be
// told before that it was found.
func (a *Agent) watchFound() {
	a.mu.Lock()
	running := slices.Collect(maps.Values(a.containers))
	a.mu.Unlock()
	for _, c := range running {
		ended := a.follow(c.dir)
		a.begin(func() { a.watch(c, ended) })
	}
}

// recover finds out what became of one container. The event has no kind if nothing of it ever was. Whatever is wrong with
// its record is the end of this container alone.
func (a *Agent) recover(id cluster.ContainerID) cluster.Event {
	c := &container{id: id, dir: a.folder(id), killed: make(chan struct{}), spec: new(spec)}
	if err := c.dir.getSpec(id, c.spec); err != nil {
		// The record is written before anything else happens, whole or not at all.
		if errors.Is(err, os.ErrNotExist) && !c.dir.exists("lock") && !c.dir.exists("exit.json") {
			a.removeGroup(id)
			a.Forget(id)
			return cluster.Event{}
		}
		return a.lost(c, err)
	}
	if g, err := openGroup(c.spec); err == nil {
		c.group = g
	}
	if c.group == nil {
		// Then nothing can run. If the lock is held even so, it is by a process that the last agent was just starting for
		// another container: it lets go in moments.
		a.await(func() bool { return !held(c.dir) })
	}
	lock, err := c.dir.lock()
	if err == nil {
		lock.Close()
		if err := c.dir.get("exit.json", new(ending)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return a.lost(c, err)
		}
		begun := c.dir.launched() || c.dir.exists("exit.json") || c.spec.Identity.Boot != a.supervisors.Identity().Boot // A loss of power may have taken the note.
		a.removeGroup(id)
		if !begun {
			return cluster.Event{Kind: cluster.DecisionFailed, Task: id.Task, Run: id.Run, Detail: "bellows ended before it was started"}
		}
		return endEvent(id, c.dir)
	}
	if !errors.Is(err, errHeld) {
		return a.lost(c, err)
	}
	if c.group == nil {
		return a.lost(c, errors.New("it has a supervisor, but its control group is gone"))
	}
	// A supervisor that was started just before the last agent ended leaves its pid at once. Without it the end of the
	// container is seen a little later, no more.
	a.await(func() bool {
		_, ok := c.dir.supervisor()
		return ok || !held(c.dir)
	})
	a.containers[id] = c
	a.keeper.found = append(a.keeper.found, news{started: found(a.closed, c), of: c})
	at := c.spec.Booked
	var s started
	if c.dir.get("started.json", &s) == nil {
		at = s.At
	}
	return cluster.Event{Kind: cluster.TaskAdopted, Task: id.Task, Run: id.Run, Node: 0, Grant: c.spec.Grant, Launched: at}
}

// lost is the end of a container whose record cannot be used. Nobody could manage it, so that it is ended if it runs; its
// folder is kept aside for people. If it had ended before, and how can be read, that is told: it shall not run again.
func (a *Agent) lost(c *container, why error) cluster.Event {
	e := endEvent(c.id, c.dir)
	if e.Exit == nil {
		e.Outcome, e.Detail = cluster.Lost, fmt.Sprintf("its record cannot be used: %v", why)
	}
	a.removeGroup(c.id)
	a.await(func() bool { return !held(c.dir) }) // the supervisor, which has nothing to wait for any more
	kept, err := a.keepAside(string(c.dir))
	if err != nil {
		a.log.Warn("cannot keep the record of a lost container aside", "container", c.id, "error", err)
	}
	a.log.Error("the record of a container cannot be used, so that it is ended", "container", c.id, "error", why, "kept", kept)
	return e
}

// keepAside moves what cannot be used to where it hinders nobody, and returns its place there.
func (a *Agent) keepAside(path string) (string, error) {
	dir := filepath.Join(a.config.Dir, "damaged")
	if err := durable.MakeDir(dir); err != nil {
		return "", err
	}
	to := filepath.Join(dir, fmt.Sprintf("%s-%d", filepath.Base(path), time.Now().UnixNano()))
	return to, durable.Rename(path, to)
}

// found describes a container that was found running, as the kernel shows it. A throttled one goes on; a frozen one waits
// for the memory manager's word.
func found(ctx context.Context, c *container) *memory.Started {
	s := &memory.Started{Envelope: c.spec.envelope()}
	if s.Class == cluster.Flex {
		_ = unthrottle(ctx, c.group, c.spec.Grant) // If that fails now, it is tried again with its next resumption.
	}
	s.Limit = min(s.Max, limitOf(c.group))
	s.Suspended = c.group.ToldToFreeze() // and may stand still only after this
	return s
}

// await waits for something that takes moments, but not for ever.
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
