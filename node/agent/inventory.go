package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/node/keeper"
)

// takeInventory finds every container that an earlier agent left behind, reports it, and watches the running ones.
func (a *Agent) takeInventory() error {
	entries, err := os.ReadDir(filepath.Join(a.dir, "containers"))
	if err != nil {
		return fmt.Errorf("take inventory: %w", err)
	}
	var found []*container
	for _, entry := range entries {
		id, err := cluster.ParseContainerID(entry.Name())
		if err != nil {
			continue // Not ours.
		}
		found = append(found, a.newContainer(id))
	}
	became := make([]cluster.Event, len(found))
	var unread []int
	for i, c := range found {
		if became[i], err = a.recover(c); err != nil {
			unread = append(unread, i)
			a.containers.add(c) // so that it can be ended
		}
	}
	if len(unread) == 0 {
		a.takeOver(became)
		return nil
	}
	a.work.begin(func() {
		var one sync.Mutex
		var all sync.WaitGroup
		for _, i := range unread {
			all.Go(func() {
				err := a.again(found[i], func() (err error) {
					one.Lock()
					defer one.Unlock()
					became[i], err = a.recover(found[i])
					return err
				})
				if err != nil && a.closed.Err() == nil {
					became[i] = a.drop(found[i], &end{killed: true, why: unreadEnd(err)}, err)
				}
			})
		}
		all.Wait()
		a.takeOver(became)
	})
	return nil
}

// takeOver reports the inventory and begins to manage what runs. The whole inventory is reported at once: after a part
// of it there would seem to be room. If the agent was closed before, nothing is reported.
func (a *Agent) takeOver(became []cluster.Event) {
	if a.closed.Err() == nil {
		node := a.node()
		events := []cluster.Event{{Kind: cluster.NodeJoined, Node: node.ID, NewNode: &node}}
		for i := range became {
			if became[i].Kind != 0 {
				events = append(events, became[i])
			}
		}
		a.sweepGroups()
		a.events.put(events...)
		a.takeRemains()
		a.events.put(cluster.Event{Kind: cluster.Synced})
		a.watchFound()
	}
	a.keeper.Begin()
	a.work.begin(a.monitor.run)
}

// node describes this machine.
func (a *Agent) node() cluster.Node {
	n := cluster.Node{ID: 0, Name: a.name, Capacity: a.capacity, Swap: a.keeper.SwapFree()}
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
	for _, c := range a.containers.each() {
		ended := a.follow(c.dir)
		a.work.begin(func() { a.watch(c, ended) })
		a.keeper.Watch(c.kept)
	}
}

// recover finds out what became of one container. The event has no kind if the container never existed. A broken record
// ends only its own container. The error is one of isUnread, and says that it cannot be found out now; nothing has
// changed.
func (a *Agent) recover(c *container) (cluster.Event, error) {
	id, record := c.id, new(spec)
	if err := c.dir.getSpec(id, record); isUnread(err) {
		return cluster.Event{}, err
	} else if err != nil {
		// The record is written before anything else happens, completely or not at all.
		if errors.Is(err, os.ErrNotExist) && !c.dir.exists("lock") && !c.dir.exists("exit.json") {
			a.removeGroup(id)
			a.Forget(id)
			return cluster.Event{}, nil
		}
		return a.lost(c, err)
	}
	if err := c.dir.readable(); err != nil {
		return cluster.Event{}, err
	}
	was, err := keeper.RecordOf(c.dir)
	if err != nil {
		a.log.Warn("cannot read what is recorded of a container, resuming it", "container", id, "error", err)
		was.Out = true // It may be: then it can run only once it has its memory.
	}
	record = record.sized(&was)
	g, err := openGroup(record)
	if isUnread(err) {
		return cluster.Event{}, err
	}
	a.containers.made(c, record, g)
	if c.group == nil {
		// Then nothing can run. If the lock is still taken, it is by a process that the last agent was starting for
		// another container; it releases the lock in moments.
		a.await(func() bool { return !held(c.dir) })
	}
	lock, err := c.dir.lock()
	if err == nil {
		lock.Close()
		var how end
		if err := how.read(c.dir); err != nil {
			return cluster.Event{}, err
		}
		launched, err := c.dir.launched()
		if isUnread(err) {
			return cluster.Event{}, err
		}
		if how.why != nil {
			return a.lost(c, how.why)
		}
		e := a.endOf(c, &how)
		a.removeGroup(id)
		a.containers.drop(c.id)
		// A power failure may have removed the note that the program was launched.
		rebooted := a.groups.rebooted(c.spec)
		if !launched && how.record == nil && !rebooted {
			return cluster.Event{Kind: cluster.DecisionFailed, Task: id.Task, Run: id.Run,
				Detail: "bellows ended before it was started"}, nil
		}
		return e, nil
	}
	if isUnread(err) {
		return cluster.Event{}, err
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
	a.containers.add(c)
	is := a.keeper.Adopt(c.kept, was)
	at := c.spec.Booked
	var s started
	if c.dir.get("started.json", &s) == nil {
		at = s.At
	}
	a.monitor.found(c, at)
	e := cluster.Event{Kind: cluster.TaskAdopted, Task: id.Task, Run: id.Run, Node: 0, Grant: c.spec.Grant, Launched: at,
		Detail: is.Detail, By: is.By}
	e.SetCondition(cluster.Condition{ByPhase: c.spec.ByPhase, MostCPU: c.spec.Envelope.MostCPU, Was: was.Was,
		Why: was.Size.Why, Resized: was.Resized, Bound: is.Bound.Most, Until: is.Bound.Until, HeldBy: is.Hold.By,
		HeldUntil: is.Hold.Until, HeldFor: is.Hold.For, PageOut: is.Out, Out: is.Left})
	return e, nil
}

// lost ends a container whose record cannot be used. It could not be managed, so it is killed if it runs; its folder is
// kept aside for people. If it had ended before, and the record of that is readable, the end is reported, so that its
// task does not run again.
func (a *Agent) lost(c *container, why error) (cluster.Event, error) {
	var how end
	if err := how.read(c.dir); err != nil {
		return cluster.Event{}, err
	}
	if how.record == nil {
		how = end{why: fmt.Errorf("its record cannot be used: %w", why)}
	}
	return a.drop(c, &how, why), nil
}

// drop ends a container that cannot be managed, and reports that it ended in a given way.
func (a *Agent) drop(c *container, how *end, why error) cluster.Event {
	a.containers.drop(c.id)
	e := how.event(c.id)
	c.noteHeld(&e)
	a.removeGroup(c.id)
	a.await(func() bool { return !held(c.dir) }) // the supervisor, which has nothing left to wait for
	if err := a.remover.takeTmp(c.dir); err != nil {
		a.log.Warn("cannot remove the private temporary folder of a lost container", "container", c.id, "error", err)
	}
	kept, err := keepAside(a.dir, string(c.dir))
	if err != nil {
		a.log.Warn("cannot move the record of a lost container to the folder of damaged records", "container", c.id,
			"error", err)
	}
	a.log.Error("killing a container whose record cannot be used", "container", c.id, "error", why, "kept", kept)
	return e
}

// keepAside moves an unusable folder of a state directory out of the way, and returns its new place.
func keepAside(stateDir, path string) (string, error) {
	dir := filepath.Join(stateDir, "damaged")
	if err := durable.MakeDir(dir); err != nil {
		return "", err
	}
	to := filepath.Join(dir, fmt.Sprintf("%s-%d", filepath.Base(path), time.Now().UnixNano()))
	return to, durable.Rename(path, to)
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
	names, err := a.groups.root.List()
	if err != nil {
		a.log.Warn("cannot list control groups", "error", err)
		return
	}
	for _, name := range names {
		id, err := cluster.ParseContainerID(name)
		if err != nil {
			continue
		}
		if is, err := a.folder(id).has("spec.json"); is || isUnread(err) {
			continue
		}
		a.removeGroup(id)
	}
}
