package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/node/cgroup"
	"github.com/bellows-rm/bellows/node/keeper"
	"github.com/bellows-rm/bellows/node/netcount"
	"github.com/bellows-rm/bellows/node/swap"
)

// Config is the configuration of an Agent.
type Config struct {
	// Dir is the state directory, an absolute path. The caller keeps it locked: there is one Agent per state directory.
	Dir string
	// Executable is the program that calls Supervise; empty is this program, also if its file was removed or replaced
	// meanwhile.
	Executable string
	// Node is the name of this machine; empty is its host name.
	Node string
	// Capacity is what the containers may use together; see the function Capacity. 0 of disk or network bandwidth is
	// unknown: it was neither measured nor stated.
	Capacity resource.Vector
	// Grace is the time between the request that a container end and its kill; 0 is cluster.DefaultGrace.
	Grace time.Duration
	// OutputLimit is how many bytes of each of the two outputs of a task's run are kept: one half from the beginning,
	// the other from the end. 0 is DefaultOutputLimit. The tasks of a job with more than 8 share what 8 would keep, but
	// get at least 64 KiB each.
	OutputLimit resource.Amount
	// SwapBudget is how many bytes swapping may write to disks in a day; when it is spent, containers do not yield
	// memory any more. 0 is no limit.
	SwapBudget resource.Amount
	// OOMScore is the oom_score_adj of programs, -1000 to 1000; supervisors keep the agent's.
	OOMScore int
	// Memory is how the memory of FLEX containers is managed; the zero value is memory.Default().
	Memory memory.Parameters
	Log    *slog.Logger // nil is slog.Default

	clock func() timeline.Time // the engine's; nil is newClock
}

// NoCgroupError is returned by Open where this process cannot bound the memory of other processes. Its text is one
// sentence that says what is missing and how to get it.
type NoCgroupError struct{ Err error }

func (e *NoCgroupError) Error() string {
	return fmt.Sprintf("containers need a control group with a memory controller: %v", e.Err)
}

// Unwrap returns the error that says what is missing.
func (e *NoCgroupError) Unwrap() error { return e.Err }

// Agent manages the containers of one machine. Several goroutines may call its methods at once.
type Agent struct {
	dir      string // the state directory
	name     string // of the machine
	capacity resource.Vector
	log      *slog.Logger

	groups   *groups
	events   *queue
	closed   context.Context
	work     *goroutines
	starting chan struct{} // bounds the number of containers that are being started at once
	keeper   *keeper.Keeper
	lease    *lease
	monitor  *monitor
	remover  *remover
	pressure *pressure // of the disk; nil if the speed of the disk is unknown, or what it does
	network  *network
	crew     *crew
	terms    *terms
	remains  remains

	containers roll
	troubles   troubles
}

// container is a container that is being started or runs.
type container struct {
	id     cluster.ContainerID
	dir    folder
	spec   *spec
	killed chan struct{} // closed when the container is to end
	once   sync.Once
	// cause says for what it ends, if not for its owner; set before killed is closed.
	cause   *cause
	decided chan struct{} // closed when it is to end, and not for that reason
	decides sync.Once
	// group is nil until it is made. group and spec are written once, by roll.made. Goroutines that read them before the
	// program runs, or that found the container in Agent.containers, do so by a method of roll.
	group *cgroup.Group
	kept  *keeper.Container // what the keeper keeps; nil until the group is made, and written with it
	// of the network, from its begin until the monitor has it; only the goroutine that starts it may use it
	counter *netcount.Counter

	gone chan struct{} // closed when the agent watches it no longer
}

// complete fills in what has a default.
func (c *Config) complete() (err error) {
	if c.Executable == "" {
		c.Executable = self
	}
	if c.Node == "" {
		if c.Node, err = os.Hostname(); err != nil {
			return fmt.Errorf("find the name of this machine: %w", err)
		}
	}
	if c.Grace == 0 {
		c.Grace = cluster.DefaultGrace
	}
	if c.OutputLimit == 0 {
		c.OutputLimit = DefaultOutputLimit
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Memory == (memory.Parameters{}) {
		c.Memory = memory.Default()
	}
	if c.clock == nil {
		c.clock = newClock()
	}
	return nil
}

// Open takes over the containers of this state directory: it finds or makes the control groups, takes inventory of the
// containers, and sends the inventory as events. The error is a NoCgroupError where containers are not possible.
func Open(c Config) (*Agent, error) {
	err := c.complete()
	if err != nil {
		return nil, err
	}
	left := &remover{dir: filepath.Join(c.Dir, "removing"), log: c.Log, more: make(chan struct{}, 1)}
	if err := errors.Join(durable.MakeDir(filepath.Join(c.Dir, "containers")), durable.MakeDir(left.dir)); err != nil {
		return nil, fmt.Errorf("make the folders for containers: %w", err)
	}
	if err := refuseOlder(filepath.Join(c.Dir, "containers")); err != nil {
		return nil, err
	}
	groups, err := openGroups(c.Dir, c.Capacity, c.Log)
	if err != nil {
		return nil, err
	}
	a := &Agent{dir: c.Dir, name: c.Node, capacity: c.Capacity, log: c.Log, groups: groups, remover: left,
		events: newQueue(), work: newGoroutines(), starting: make(chan struct{}, 8), terms: newTerms(&c)}
	a.closed = a.work.closed
	a.crew = &crew{closed: a.closed, program: c.Executable}
	a.network = newNetwork(a)
	a.monitor = newMonitor(a)
	a.pressure = a.newPressure()
	a.lease = &lease{path: a.leasePath(), log: c.Log}
	a.keeper, err = keeper.New(a.closed, owner{a}, keeper.Config{Memory: c.Memory, Capacity: c.Capacity[resource.Memory],
		All: groups.root.Group, Apart: groups.supervisors, SwapBudget: c.SwapBudget, Written: swap.BudgetPath(c.Dir),
		Comebacks: comebacks(filepath.Join(c.Dir, "comebacks.json")), Disk: func() string { return deviceOf(c.Dir) },
		Clock: c.clock, Log: c.Log})
	if err != nil {
		a.Close()
		return nil, err
	}
	a.work.begin(func() { a.remover.run(a.closed) })
	if err = a.takeInventory(); err != nil {
		a.keeper.Begin()
		a.Close()
		return nil, err
	}
	return a, nil
}

// Capabilities implements live.Backend.
func (a *Agent) Capabilities() (c cluster.Capabilities) {
	if os.Geteuid() != 0 {
		c.PrivateTmp, c.NoNetwork = "needs a daemon of root", "needs a daemon of root"
	}
	return c
}

// Events implements live.Backend.
func (a *Agent) Events() <-chan cluster.Event { return a.events.out }

// closeWait is how long Close waits for goroutines that may hang in the kernel.
const closeWait = 30 * time.Second

// Close stops watching and leaves every container as it is. After it returns, no goroutine of the agent works on
// containers, unless it hangs in the kernel.
func (a *Agent) Close() {
	a.work.end()
	defer a.groups.close()
	a.events.close()
	if a.keeper != nil {
		a.keeper.Wait()
		a.lease.close()
	}
	select {
	case <-a.work.done():
	case <-time.After(closeWait):
		a.log.Warn("work on some container hangs in the kernel and is abandoned", "after", closeWait)
	}
}

// Remove closes the agent and removes its control groups, if no container is left.
func (a *Agent) Remove(ctx context.Context) error {
	a.Close()
	if err := a.groups.empty(ctx); err != nil {
		return err
	}
	err := a.groups.remove(ctx)
	a.remover.all(ctx, map[string]bool{})
	return err
}

// Apply implements live.Backend.
func (a *Agent) Apply(orders []cluster.Order) {
	for i := range orders {
		o := orders[i]
		switch o.Kind {
		case cluster.Start:
			c := a.newContainer(o.Container)
			if !a.containers.add(c) {
				a.failed(o.Container, o.ID, errors.New("the container already exists"))
				continue
			}
			a.work.begin(func() { a.start(c, o) })
		case cluster.Kill:
			if c, _ := a.containers.get(o.Container); c != nil {
				var why *cause
				if o.Preempt {
					why = &cause{Preempted: true}
				}
				a.end(c, why)
			}
		default:
			if _, ok := o.Kind.Sets(); ok {
				a.order(o)
			}
		}
	}
}

// order passes an order for a running container on to the keeper. The end of a container answers its orders: an order
// for a container that is gone needs no answer.
func (a *Agent) order(o cluster.Order) {
	c, started := a.containers.get(o.Container)
	switch {
	case c == nil:
	case !started:
		a.failed(c.id, o.ID, errors.New("the container has not started"))
	default:
		a.keeper.Order(c.kept, o)
	}
}

func (a *Agent) newContainer(id cluster.ContainerID) *container {
	return &container{id: id, dir: a.folder(id), killed: make(chan struct{}), decided: make(chan struct{}),
		gone: make(chan struct{})}
}

// end requests the end of a container; why is nil if its owner wants it.
func (a *Agent) end(c *container, why *cause) {
	if why == nil || !why.Preempted {
		c.decides.Do(func() { close(c.decided) })
	}
	c.once.Do(func() {
		c.cause = why
		close(c.killed)
	})
}

func (a *Agent) folder(id cluster.ContainerID) folder {
	return folder(filepath.Join(a.dir, "containers", id.String()))
}

func (a *Agent) leasePath() string { return filepath.Join(a.dir, "lease") }

// Forget implements live.Backend.
func (a *Agent) Forget(id cluster.ContainerID) {
	a.monitor.forget(id)
	if err := a.remover.take(a.folder(id)); err != nil {
		a.log.Warn("cannot remove the record of a container; it will be reported again", "container", id, "error", err)
	}
}

// forgetRunning removes an ended container from the list.
func (a *Agent) forgetRunning(id cluster.ContainerID) {
	a.containers.drop(id)
	a.keeper.Ended(id)
}

// failed answers an order that could not be carried out.
func (a *Agent) failed(id cluster.ContainerID, decision cluster.DecisionID, err error) {
	a.events.put(cluster.Event{Kind: cluster.DecisionFailed, Task: id.Task, Run: id.Run, Decision: decision,
		Detail: err.Error(), Short: isShortage(err)})
}
