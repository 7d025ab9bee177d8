package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// watch stays with a running container until ended is closed, kills the container on request, and reports how it ended.
func (a *Agent) watch(c *container, ended <-chan struct{}) {
	defer close(c.gone)
	var how end
	select {
	case <-ended:
	case <-a.closed.Done():
		return
	case <-c.killed:
		if !a.kill(c, ended) {
			return
		}
		if how.killed = true; c.cause != nil {
			how.cause = *c.cause // also if that could not be noted
		}
	}
	err := a.again(c, func() error { return how.read(c.dir) })
	if a.closed.Err() != nil {
		return // The next agent will find it.
	}
	if err != nil { // Who had it ended did not wait for the record.
		how = end{killed: true, why: unreadEnd(err)}
	}
	e := a.endOf(c, &how)
	outlived := ""
	if e.Exit != nil { // Otherwise programs may still run.
		outlived = c.outlived()
	}
	a.removeGroup(c.id)
	if a.closed.Err() != nil {
		return
	}
	if outlived != "" {
		e.Detail = join(e.Detail, outlived)
		a.log.Info("memory outlives a container", "job", c.id.Task.Job, "container", c.id, "detail", outlived)
		a.takeRemains() // before anything can start in its place
	}
	if e.Outcome == cluster.OutOfMemory && c.spec.Envelope.Class == cluster.Flex {
		a.noteWant(&e, c.id, how.Starved)
	}
	a.forgetRunning(c.id)
	a.events.put(e)
}

// noteWant notes why a FLEX container could have no more memory that ended for want of memory: the kernel killed it,
// or, if it was starved, the memory manager.
func (a *Agent) noteWant(e *cluster.Event, id cluster.ContainerID, starved bool) {
	switch quota := a.keeper.AtQuota(id); {
	case quota > 0 && e.Exit != nil:
		e.Exit.Quota = quota
		e.Detail = join(e.Detail, fmt.Sprintf("the memory quota of its user, %s, was used up",
			resource.FormatMemory(quota)))
	case !starved:
		e.Detail = join(e.Detail, a.keeper.WhyKilled(id))
	}
}

// endOf takes the last sample of a container and reports how it ended.
func (a *Agent) endOf(c *container, how *end) cluster.Event {
	a.monitor.end(c, how.record)
	e := how.event(c.id)
	c.noteHeld(&e)
	return e
}

// noteHeld notes what a container held at the end that has ended for want of memory, its own or that of others: the
// most of its samples, or what its supervisor has found. In swap, too: with all the memory that it wants it would be in
// memory.
func (c *container) noteHeld(e *cluster.Event) {
	if e.Exit == nil {
		return
	}
	preempted := e.Outcome == cluster.Preempted && c.spec != nil && c.spec.Envelope.Class == cluster.Flex
	if e.Outcome != cluster.OutOfMemory && !preempted {
		e.Exit.Held = 0
		return
	}
	e.Exit.Held = max(e.Exit.Held, e.Exit.Used) // the monitor has read the samples
}

// kill requests every process of the container to end, and when its grace is over kills all of them, forks included. It
// returns true when the container has ended, and false if the agent was closed before.
func (a *Agent) kill(c *container, ended <-chan struct{}) bool {
	if c.cause != nil {
		if err := c.dir.noteCause(c.cause); err != nil {
			a.log.Warn("cannot note why a container is killed: after a restart it may count as killed by its user",
				"container", c.id, "why", c.cause.Why, "error", err)
		}
	}
	if err := c.dir.mark("killed"); err != nil {
		a.log.Warn("cannot note that a container was killed", "container", c.id, "error", err)
	}
	a.keeper.Wake(c.kept)
	c.group.Terminate()
	grace := time.NewTimer(c.spec.Grace)
	defer grace.Stop()
	select {
	case <-ended:
		return true
	case <-a.closed.Done():
		return false
	case <-grace.C:
	}
	for {
		ctx, cancel := context.WithTimeout(a.closed, 10*time.Second)
		err := c.group.Kill(ctx)
		cancel()
		if err != nil {
			a.log.Warn("cannot kill a container yet", "container", c.id, "error", err)
		} else if c.gaveUp() {
			return true
		}
		select {
		case <-ended:
			return true
		case <-a.closed.Done():
			return false
		case <-time.After(time.Second):
			// A process may have been forked, or hang in the kernel.
		}
	}
}

// gaveUp reports whether a container of which nothing runs is to end, though it cannot be seen whether its supervisor
// has.
func (c *container) gaveUp() bool {
	select {
	case <-c.decided:
		_, err := c.dir.launched()
		return isUnread(err)
	default:
		return false
	}
}

// end is how a container ended whose supervisor is gone, or why nothing ran in it.
type end struct {
	record *ending // nil if there is none
	why    error   // why there is none, unless it is not there
	killed bool
	cause
}

// cause is for what a container ends, if not for its owner.
type cause struct {
	// Preempted says that it frees its resources for others, and that its task runs again; Starved that no memory can be
	// had for it or another, and that its run counts as an attempt.
	Preempted, Starved bool
	Why                string // for people
}

// noteCause notes a cause: in a file of its own that it is preempted, as earlier agents did.
func (f folder) noteCause(c *cause) error {
	err := f.put("cause.json", c)
	if c.Preempted {
		err = errors.Join(err, f.mark("preempted"))
	}
	return err
}

// unreadEnd says why a container is killed of which nothing can be read.
func unreadEnd(err error) error {
	return fmt.Errorf("killed, and how its program ended cannot be read: %w", err)
}

// read adds what the records say. The error is one of isUnread: then nothing is known of the end.
func (e *end) read(f folder) error {
	var noted cause
	if err := f.get("cause.json", &noted); err == nil {
		e.cause = noted
	} else if isUnread(err) {
		return err
	}
	for name, is := range map[string]*bool{"killed": &e.killed, "preempted": &e.Preempted} {
		noted, err := f.has(name)
		if isUnread(err) {
			return err
		}
		*is = *is || noted
	}
	var record ending
	switch err := f.get("exit.json", &record); {
	case isUnread(err):
		return err
	case err == nil:
		e.record = &record
	case !errors.Is(err, os.ErrNotExist):
		e.why = err
	}
	return nil
}

// event reports the end.
func (e *end) event(id cluster.ContainerID) cluster.Event {
	out := cluster.Event{Kind: cluster.TaskEnded, Task: id.Task, Run: id.Run}
	switch {
	case e.record == nil:
		out.Outcome, out.Detail = cluster.Lost, "its supervisor ended without a record of how the program ended"
		if e.why != nil {
			out.Detail = e.why.Error()
		}
		if e.killed {
			out.Outcome = cluster.Killed
		}
	case e.record.Fault:
		out.Kind, out.Detail, out.Short = cluster.DecisionFailed, e.record.Detail, e.record.Short
	default:
		out.Exit = &e.record.Exit
		out.Outcome, out.Detail = judge(e.record, e.killed)
		if left := e.record.Left; left > 0 && !e.killed {
			out.Detail = join(out.Detail, fmt.Sprintf("left %s running, killed with its container", processes(left)))
		}
	}
	if out.Outcome == cluster.Killed && (e.Preempted || e.Starved) {
		if out.Outcome = cluster.Preempted; e.Starved {
			out.Outcome = cluster.OutOfMemory
		}
		if e.Why != "" {
			out.Detail = e.Why
		}
	}
	return out
}

// judge interprets the end of a program.
func judge(end *ending, killed bool) (cluster.Outcome, string) {
	memory := ""
	if end.OOMKills > 0 {
		memory = fmt.Sprintf("the kernel killed %s of it for memory", processes(end.OOMKills))
	}
	refused := ""
	if end.Refused > 0 {
		refused = fmt.Sprintf("reached the limit of %d processes and threads of a container", mostThreads())
	}
	outcome, how := ended(end, killed, memory)
	return outcome, join(how, refused)
}

// ended is judge without the limit of processes; memory is what the kernel killed for memory, in words.
func ended(end *ending, killed bool, memory string) (cluster.Outcome, string) {
	switch {
	case killed:
		return cluster.Killed, join("killed", memory)
	case end.TimeLimit > 0:
		return cluster.Failed, join(fmt.Sprintf("reached its time limit of %v", end.TimeLimit), memory)
	case end.Code == 0:
		return cluster.Succeeded, memory
	case end.OOMKills > 0:
		return cluster.OutOfMemory, memory
	case end.Detail != "":
		return cluster.Failed, end.Detail
	case end.Signal != 0:
		return cluster.Failed, fmt.Sprintf("ended by signal %d (%s)", end.Signal, unix.SignalName(unix.Signal(end.Signal)))
	}
	return cluster.Failed, fmt.Sprintf("ended with exit code %d", end.Code)
}

func processes(n int64) string {
	if n == 1 {
		return "a process"
	}
	return fmt.Sprintf("%d processes", n)
}

func join(clauses ...string) string {
	var out []string
	for _, c := range clauses {
		if c != "" {
			out = append(out, c)
		}
	}
	return strings.Join(out, "; ")
}

// follow returns a channel that is closed when the supervisor of a container is gone (not when the agent is closed).
// The kernel reports the end of the process; the lock, checked once a second, is the safety net.
func (a *Agent) follow(dir folder) <-chan struct{} {
	gone := make(chan struct{})
	hint := make(chan struct{}, 1)
	a.work.begin(func() { a.hintEnd(dir, hint) })
	a.work.begin(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			if !held(dir) {
				close(gone)
				return
			}
			select {
			case <-hint:
				hint = nil
				// The process has ended; the lock follows within moments, unless it cannot be opened.
				for pause := time.Millisecond; held(dir) && a.closed.Err() == nil; pause = min(2*pause, time.Second) {
					time.Sleep(pause)
				}
			case <-tick.C:
			case <-a.closed.Done():
				return
			}
		}
	})
	return gone
}

// hintEnd sends when the supervisor's process has ended, if the kernel supports waiting for it.
func (a *Agent) hintEnd(dir folder, hint chan<- struct{}) {
	pid, ok := dir.supervisor()
	if !ok {
		return
	}
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return
	}
	file := os.NewFile(uintptr(fd), "supervisor")
	defer file.Close()
	stop := context.AfterFunc(a.closed, func() { _ = file.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	raw, err := file.SyscallConn()
	if err != nil {
		return
	}
	// The pid may belong to another process by now, which does no harm: the lock decides.
	err = raw.Read(func(fd uintptr) bool {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, 0)
		return n > 0 || (err != nil && !errors.Is(err, unix.EINTR))
	})
	if err == nil {
		hint <- struct{}{}
	}
}

// held reports whether some process is responsible for the container, or may be: its lock cannot be opened now.
func held(dir folder) bool {
	lock, err := dir.lock()
	if err == nil {
		lock.Close()
	}
	return errors.Is(err, errHeld) || isUnread(err)
}
