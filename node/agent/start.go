package agent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/netcount"
)

// start carries out a Start and stays with the container until its end.
func (a *Agent) start(c *container, o cluster.Order) {
	defer c.dropCounter()
	began := o.Grant
	if o.Launch != nil {
		limit, err := a.keeper.Admit(memory.Envelope{Container: c.id, Envelope: o.Envelope}, c.killed)
		if a.closed.Err() != nil {
			return
		}
		if err != nil {
			a.discard(c)
			a.failed(c.id, o.ID, err)
			return
		}
		began[resource.Memory] = max(began[resource.Memory], limit)
	}
	s, supervisor, err := a.spawnInTurn(c, o, began)
	if a.closed.Err() != nil {
		return // The next agent will find what exists of it.
	}
	if err != nil {
		a.discard(c)
		a.failed(c.id, o.ID, err)
		return
	}
	if s.Ended {
		// The program could not be executed, or the machine failed. Either way the record says why.
		<-supervisor
		var e ending
		err := a.again(c, func() error { return c.dir.get("exit.json", &e) })
		if a.closed.Err() != nil {
			return
		}
		if err == nil && e.Fault {
			a.discard(c)
			a.failed(c.id, o.ID, e.fault())
			return
		}
	}
	a.keeper.Started(c.kept)
	if !s.Ended {
		a.monitor.begin(c, s.Started)
	}
	c.dropCounter() // The monitor has it, or has no files to spare.
	a.events.put(cluster.Event{Kind: cluster.DecisionDone, Task: c.id.Task, Run: c.id.Run, Decision: o.ID, Node: o.Node,
		Launched: s.Started})
	a.watch(c, supervisor)
}

// takeCounter hands over the counter of the network that began with the container; nil if there is none, or not any
// more.
func (c *container) takeCounter() *netcount.Counter {
	counter := c.counter
	c.counter = nil
	return counter
}

func (c *container) dropCounter() { _ = c.takeCounter().Close() }

// spawnInTurn waits for the container's turn and calls spawn, unless the container is to end before.
func (a *Agent) spawnInTurn(c *container, o cluster.Order, began resource.Vector) (status, <-chan struct{}, error) {
	select {
	case a.starting <- struct{}{}:
	case <-c.killed:
		return status{}, nil, errNotStarted
	case <-a.closed.Done():
		return status{}, nil, a.closed.Err()
	}
	defer func() { <-a.starting }()
	select {
	case <-c.killed:
		return status{}, nil, errNotStarted
	default:
		return a.spawn(c, o, began)
	}
}

var errNotStarted = errors.New("ended before it was started")

// discard removes the group and the folder of a container in which nothing ran.
func (a *Agent) discard(c *container) {
	a.forgetRunning(c.id)
	a.removeGroup(c.id)
	a.Forget(c.id)
}

// spawn makes the control group and the folder and starts the supervisor. It returns when the program runs or the
// supervisor has recorded why it does not, with a channel that is closed when the supervisor is done with the
// container. began is the grant with which the container starts.
func (a *Agent) spawn(c *container, o cluster.Order, began resource.Vector) (status, <-chan struct{}, error) {
	if o.Launch == nil || len(o.Launch.Args) == 0 {
		return status{}, nil, errors.New("the command is empty")
	}
	group, err := a.groups.make(a.closed, c.id.String(), began, o.Envelope, o.Launch.Most)
	if err != nil {
		return status{}, nil, err
	}
	c.counter = a.network.begin(group)
	s := &spec{Container: c.id, Grant: o.Grant, ByPhase: o.ByPhase, Booked: now(), Launch: *o.Launch,
		Envelope: o.Envelope, Identity: group.Identity(), Join: group.JoinFiles(), Lease: a.leasePath(),
		Supervisor: supervisorVersion}
	a.groups.note(s)
	a.terms.note(s)
	a.containers.made(c, s, group)
	if err := c.dir.putSpec(c.spec); err != nil {
		return status{}, nil, fmt.Errorf("write the container's record: %w", err)
	}
	lock, err := c.dir.lock()
	if err != nil {
		return status{}, nil, fmt.Errorf("lock the container's folder: %w", err)
	}
	defer lock.Close()
	log, err := os.OpenFile(c.dir.path("supervisor.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return status{}, nil, fmt.Errorf("open the supervisor's log: %w", err)
	}
	defer log.Close()
	by, said, err := a.supervised(c, lock, log)
	if err != nil {
		return status{}, nil, err
	}
	return said, a.crew.freed(by), nil
}

// supervised has a supervisor take care of a container, and returns its first report.
func (a *Agent) supervised(c *container, lock, log *os.File) (*supervisor, status, error) {
	for {
		s, err := a.crew.employ(c.dir, lock, log)
		if err != nil {
			// The fault is the machine's, even if the kernel's error does not say so.
			return nil, status{}, &shortage{fmt.Sprintf("start the supervisor: %v", err)}
		}
		var said status
		err = s.reports.Decode(&said)
		if err == nil && said.Failed == "" {
			return s, said, nil
		}
		s.dismiss()
		select {
		case <-s.gone:
		case <-a.closed.Done():
			return nil, status{}, a.closed.Err()
		}
		if said.Failed != "" {
			return nil, status{}, fmt.Errorf("start the supervisor: %w", ending{Detail: said.Failed, Short: said.Short}.fault())
		}
		text, _ := os.ReadFile(c.dir.path("supervisor.log"))
		if errors.Is(err, io.EOF) {
			err = errors.New("it ended without a report")
		}
		launched := false
		unread := a.again(c, func() (err error) { launched, err = c.dir.launched(); return err })
		if a.closed.Err() != nil {
			return nil, status{}, a.closed.Err()
		}
		if launched || unread != nil {
			// It is unknown how far it came: the program may have started, and this counts as if it had.
			a.log.Warn("a supervisor died while it started a program", "container", c.id, "error", err, "log",
				strings.TrimSpace(string(text)))
			return s, status{Started: now()}, nil
		}
		if !s.proven { // otherwise it may have died while it waited for a container
			return nil, status{}, fmt.Errorf("start the supervisor: %w: %s", err, strings.TrimSpace(string(text)))
		}
	}
}

// removeGroup kills what is left inside a container's control group and removes the group. If a process hangs in the
// kernel, removeGroup tries again for as long as the agent lives.
func (a *Agent) removeGroup(id cluster.ContainerID) {
	err := a.groups.discard(a.closed, id, 30*time.Second)
	if err == nil || a.closed.Err() != nil {
		return
	}
	a.log.Warn("cannot remove a control group yet", "container", id, "error", err)
	a.work.begin(func() {
		for a.closed.Err() == nil && a.groups.discard(a.closed, id, time.Minute) != nil {
			select {
			case <-time.After(10 * time.Second):
			case <-a.closed.Done():
			}
		}
	})
}
