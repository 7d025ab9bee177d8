package agent

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

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
	config Config
	log    *slog.Logger
	root   *cgroup.Root
	// supervisors is the control group of all supervisors. They are not in the groups of their containers, where they
	// would be killed for what the program does, nor in the group of the agent, with which a service manager would end
	// them.
	supervisors *cgroup.Group
	events      *queue
	// claim is a socket that no process connects to. Its abstract name is the name of the control groups. While it is
	// open, no other agent treats the groups as left behind, even if the state directory was removed and made again.
	claim    net.Listener
	size     net.Listener // publishes how much is managed here; nil if that is not possible
	closed   context.Context
	close    context.CancelFunc
	starting chan struct{} // bounds the number of containers that are being started at once
	keeper   *keeper.Keeper
	lease    lease
	monitor  *monitor
	remover  *remover
	pressure *pressure // of the disk; nil if the speed of the disk is unknown, or what it does
	network  *network
	// counted is the disk whose transfers version 1 of the kernel counts for each container, major:minor; empty if there
	// is none.
	counted string
	// diskUnknown says why what containers transfer to and from disks is not counted; empty if it is.
	diskUnknown string
	remains     remains
	unenclosed  sync.Once // its message is logged once: the reason is the same for all containers

	mu         sync.Mutex
	containers map[cluster.ContainerID]*container // being started or running
	troubles   troubles
	idle       []*supervisor // those that wait for a container; the last one for the shortest time
	// work counts the goroutines that stay with containers. None is added after the agent is closed, which mu guards.
	work sync.WaitGroup
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
	// group is nil until it is made. group and spec are written once, with Agent.mu locked. Goroutines that read them
	// before the program runs, or that found the container in Agent.containers, lock Agent.mu.
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
	a := &Agent{config: c, log: c.Log, remover: left, events: newQueue(), starting: make(chan struct{}, 8),
		containers: map[cluster.ContainerID]*container{}}
	a.closed, a.close = context.WithCancel(context.Background())
	if a.claim, err = takeClaim(groupName(c.Dir)); err != nil {
		a.events.close()
		return nil, fmt.Errorf(
			"another bellows has the control groups of state directory %s, and its programs run there: end it with "+
				"`bellows down`, or by signal: %w", c.Dir, err)
	}
	if err := a.openGroups(); err != nil {
		a.claim.Close()
		a.events.close()
		return nil, &NoCgroupError{err}
	}
	a.size = tellSize(groupName(c.Dir), c.Capacity[resource.Memory])
	a.network = newNetwork(a)
	a.accountIO()
	a.monitor = newMonitor(a)
	a.pressure = a.newPressure()
	a.lease = lease{path: a.leasePath(), log: c.Log}
	a.keeper, err = keeper.New(a.closed, owner{a}, keeper.Config{Memory: c.Memory, Capacity: c.Capacity[resource.Memory],
		All: a.root.Group, Apart: a.supervisors, SwapBudget: c.SwapBudget, Written: swap.BudgetPath(c.Dir),
		Comebacks: comebacks(filepath.Join(c.Dir, "comebacks.json")), Disk: a.device,
		Clock: c.clock, Log: c.Log})
	if err != nil {
		a.Close()
		return nil, err
	}
	a.begin(func() { a.remover.run(a.closed) })
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

// LimitOutput changes Config.OutputLimit for the runs that start from now on.
func (a *Agent) LimitOutput(limit resource.Amount) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.config.OutputLimit = limit
}

// takeClaim makes the socket that keeps groups of that name for one agent. A process that the last agent was starting
// when it was killed keeps the socket open for moments, so takeClaim tries for a second.
func takeClaim(name string) (net.Listener, error) {
	for end := time.Now().Add(time.Second); ; time.Sleep(5 * time.Millisecond) {
		l, err := net.Listen("unix", "@bellows-groups-"+name)
		if !errors.Is(err, unix.EADDRINUSE) || time.Now().After(end) {
			return l, err
		}
	}
}

// groupName returns the name of the control groups of a state directory.
func groupName(dir string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(dir)))[:8] }

// groupNote is the file in a state directory with the place of its control groups.
func groupNote(dir string) string { return filepath.Join(dir, "cgroup") }

// openGroups finds the control groups of an earlier agent, wherever in the tree this process is now, or makes them.
func (a *Agent) openGroups() error {
	host, err := cgroup.Discover("")
	if err != nil {
		return err
	}
	note := groupNote(a.config.Dir)
	text, err := os.ReadFile(note)
	if err == nil {
		a.root, err = host.OpenRoot(strings.TrimSpace(string(text)), cgroup.Memory)
	}
	if err != nil && !errors.Is(err, cgroup.ErrGone) && !errors.Is(err, fs.ErrNotExist) {
		a.log.Warn("cannot use the stored place of the control groups", "note", note, "error", err)
	}
	if a.root != nil {
		if err := a.root.Join(); err != nil {
			a.log.Warn("the daemon is not in the control group of its containers, which may vanish with the last one",
				"error", err)
		}
	} else {
		// Two state directories have two agents, whose groups must differ.
		if a.root, err = host.Root(groupName(a.config.Dir), cgroup.Memory); err != nil {
			return err
		}
	}
	if err := a.noteRoot(note, string(text)); err != nil {
		return err
	}
	if err := a.weigh(); err != nil {
		return err
	}
	a.supervisors, err = a.root.Create("supervisors")
	if errors.Is(err, fs.ErrExist) {
		a.supervisors, err = a.root.Open("supervisors")
	}
	return err
}

// noteRoot writes the place of the control groups into the note, unless the note contains it.
func (a *Agent) noteRoot(path, says string) error {
	line := a.root.Place() + "\n"
	if says == line {
		return nil
	}
	// A folder in place of the note cannot be replaced, so it is moved aside.
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		if _, err := a.keepAside(path); err != nil {
			return fmt.Errorf("note the place of the control group: %w", err)
		}
	}
	if err := durable.Write(path, []byte(line)); err != nil {
		return fmt.Errorf("note the place of the control group: %w", err)
	}
	return nil
}

// weigh gives all containers together the weight of as many processes as there are cores to grant. By default they
// would together have the weight of one process, in competition with every process that is in no group of its own.
func (a *Agent) weigh() error {
	if _, ok := a.root.Has(cgroup.CPU); !ok {
		return nil
	}
	cores := (a.config.Capacity[resource.CPU] + resource.Core - 1) / resource.Core * resource.Core
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := a.root.Apply(ctx, cgroup.Limits{CPUWeight: cgroup.WeightOf(int64(max(resource.Core, cores)))}); err != nil {
		return fmt.Errorf("give the containers their weight: %w", err)
	}
	return nil
}

// Events implements live.Backend.
func (a *Agent) Events() <-chan cluster.Event { return a.events.out }

// closeWait is how long Close waits for goroutines that may hang in the kernel.
const closeWait = 30 * time.Second

// Close stops watching and leaves every container as it is. After it returns, no goroutine of the agent works on
// containers, unless it hangs in the kernel.
func (a *Agent) Close() {
	a.mu.Lock()
	a.close()
	a.mu.Unlock()
	defer a.claim.Close()
	if a.size != nil {
		defer a.size.Close()
	}
	a.events.close()
	if a.keeper != nil {
		a.keeper.Wait()
		a.lease.close()
	}
	rest := make(chan struct{})
	go func() {
		defer close(rest)
		a.work.Wait()
	}()
	select {
	case <-rest:
	case <-time.After(closeWait):
		a.log.Warn("work on some container hangs in the kernel and is abandoned", "after", closeWait)
	}
}

// begin starts a goroutine that stays with a container and ends soon after the agent is closed; Close waits for it. If
// the agent is closed, begin does nothing.
func (a *Agent) begin(work func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed.Err() == nil {
		a.work.Go(work)
	}
}

// Remove closes the agent and removes its control groups, if no container is left.
func (a *Agent) Remove(ctx context.Context) error {
	a.Close()
	names, err := a.root.List()
	if err != nil {
		return err
	}
	for _, name := range names {
		if name != a.supervisors.Name() {
			return fmt.Errorf("remove control group %s: container %s is still there", a.root.Place(), name)
		}
	}
	// The last supervisors may not have exited yet.
	for {
		pids, err := a.supervisors.Procs()
		if err != nil || len(pids) == 0 {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("remove control group %s: %d supervisors are still there: %w", a.root.Place(), len(pids),
				ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
	if err := a.supervisors.Remove(ctx); err != nil {
		return err
	}
	err = a.root.Remove(ctx)
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
			a.mu.Lock()
			_, twice := a.containers[o.Container]
			if !twice {
				a.containers[o.Container] = c
			}
			a.mu.Unlock()
			if twice {
				a.failed(o.Container, o.ID, errors.New("the container already exists"))
				continue
			}
			a.begin(func() { a.start(c, o) })
		case cluster.Kill:
			a.mu.Lock()
			c := a.containers[o.Container]
			a.mu.Unlock()
			if c != nil {
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
	a.mu.Lock()
	c := a.containers[o.Container]
	started := c != nil && c.group != nil
	a.mu.Unlock()
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
	return folder(filepath.Join(a.config.Dir, "containers", id.String()))
}

func (a *Agent) leasePath() string { return filepath.Join(a.config.Dir, "lease") }

// Forget implements live.Backend.
func (a *Agent) Forget(id cluster.ContainerID) {
	a.monitor.forget(id)
	if err := a.remover.take(a.folder(id)); err != nil {
		a.log.Warn("cannot remove the record of a container; it will be reported again", "container", id, "error", err)
	}
}

// forgetRunning removes an ended container from the list.
func (a *Agent) forgetRunning(id cluster.ContainerID) {
	a.mu.Lock()
	delete(a.containers, id)
	a.mu.Unlock()
	a.keeper.Ended(id)
}

// failed answers an order that could not be carried out.
func (a *Agent) failed(id cluster.ContainerID, decision cluster.DecisionID, err error) {
	a.events.put(cluster.Event{Kind: cluster.DecisionFailed, Task: id.Task, Run: id.Run, Decision: decision,
		Detail: err.Error(), Short: isShortage(err)})
}
