package spark

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/bellows-rm/bellows/executor"
)

// Function is what stages of an application of Spark name as their function.
const Function = "spark"

// Language is what executors of Spark say that they run.
const Language = "spark"

// runner is a JVM that runs. None of its methods waits.
type runner interface {
	send(line []byte)
	dump()
	kill()
	yield(is bool)
	own(label string)
}

// launcher tells a machine what happens, in one goroutine, and carries out what it decides.
type launcher struct {
	machine *machine
	// begin starts a JVM, and from then on calls hear for each of its reports, and exited once, when it has ended and no
	// report comes any more; never before it has returned.
	begin  func(number int, hear func(report), exited func(how string)) (runner, error)
	room   func() bool      // for another JVM
	unused func() int64     // memory of the container, bytes
	kills  func() int64     // processes of the container that the kernel has killed for memory
	forget func(key string) // the executor keeps nothing of an application any more
	log    io.Writer

	events chan func(now time.Time)
	ready  chan struct{} // closed when the executor can be registered
	ended  chan struct{} // closed when all JVMs have ended
	failed error         // why the launcher has ended by itself; once ended is closed

	killed int64 // kills, when an attachment last ended

	runs  map[int]runner             // JVMs that have not ended, by number
	waits map[int64]chan<- error     // for the ends of attachments
	apps  map[string]context.Context // that end with the applications that are kept
}

func newLauncher() *launcher {
	l := &launcher{events: make(chan func(time.Time)), ready: make(chan struct{}), ended: make(chan struct{}),
		runs: map[int]runner{}, waits: map[int64]chan<- error{}, apps: map[string]context.Context{},
		unused: func() int64 { return 0 }, kills: func() int64 { return 0 }}
	l.machine = newMachine(l)
	return l
}

// beat is how often the launcher looks at the time while it waits for a JVM.
const beat = time.Second

// run keeps JVMs until ctx ends, or the machine fails.
func (l *launcher) run(ctx context.Context) {
	defer close(l.ended)
	l.machine.begin(time.Now())
	for stop := ctx.Done(); !l.machine.stopped(); {
		var due <-chan time.Time
		if at := l.machine.next(); !at.IsZero() {
			due = time.After(min(time.Until(at), beat))
		}
		slept := time.Now()
		select {
		case happened := <-l.events:
			l.machine.woke(slept, time.Now())
			happened(time.Now())
		case <-due:
			l.machine.woke(slept, time.Now())
			l.machine.tick(time.Now())
		case <-stop:
			stop = nil
			l.machine.stop(time.Now())
		}
		if l.machine.wantsSpare() {
			l.machine.room(time.Now(), l.room())
		}
		if l.failed != nil && stop != nil {
			stop = nil
			l.machine.stop(time.Now())
		}
	}
}

// post tells the loop what has happened, unless it has ended.
func (l *launcher) post(happened func(now time.Time)) {
	select {
	case l.events <- happened:
	case <-l.ended:
	}
}

// serve serves an attachment until it has been given back, or has failed.
func (l *launcher) serve(to executor.Attached, payload []byte) error {
	number, done := to.Attachment.Attachment, make(chan error, 1)
	l.post(func(now time.Time) {
		l.waits[number] = done
		l.follow(to)
		l.machine.attach(now, attachment{number: number, key: to.Key, name: to.Name, payload: payload})
	})
	select {
	case err := <-done:
		return err
	case <-l.ended:
		return fmt.Errorf("the executor has ended")
	case <-to.GivenBack.Done():
	}
	l.post(func(now time.Time) { l.machine.giveBack(now, number) })
	select {
	case err := <-done:
		return err
	case <-l.ended:
		return nil
	}
}

// follow tells the machine of the end of an application, unless the JVM keeps nothing of it any more by then.
func (l *launcher) follow(to executor.Attached) {
	if l.apps[to.Key] == to.Application {
		return
	}
	l.apps[to.Key] = to.Application
	context.AfterFunc(to.Application, func() {
		l.post(func(time.Time) {
			if l.apps[to.Key] == to.Application {
				delete(l.apps, to.Key)
				l.machine.forget(to.Key)
			}
		})
	})
}

// The rest are the hands of the machine.

func (l *launcher) start(number int) {
	hear := func(r report) { l.post(func(now time.Time) { l.machine.hear(now, number, r) }) }
	exited := func(how string) {
		l.post(func(now time.Time) {
			delete(l.runs, number)
			l.machine.exited(now, number, how)
		})
	}
	r, err := l.begin(number, hear, exited)
	if err != nil {
		go exited(fmt.Sprintf("it cannot be started: %v", err))
		return
	}
	l.runs[number] = r
}

func (l *launcher) send(number int, c command) {
	if r := l.runs[number]; r != nil {
		r.send(encode(c))
	}
}

func (l *launcher) dump(number int) {
	if r := l.runs[number]; r != nil {
		r.dump()
	}
}

func (l *launcher) kill(number int) {
	if r := l.runs[number]; r != nil {
		r.kill()
	}
}

func (l *launcher) yields(number int, is bool) {
	if r := l.runs[number]; r != nil {
		r.yield(is)
	}
}

func (l *launcher) owns(number int, label string) {
	if r := l.runs[number]; r != nil {
		r.own(label)
	}
}

func (l *launcher) registers() { close(l.ready) }

func (l *launcher) left() int64 { return l.unused() }

func (l *launcher) drop(key string) {
	delete(l.apps, key)
	l.forget(key)
}

func (l *launcher) finish(attachment int64, err error) {
	if n := l.kills(); n > l.killed {
		l.note("the kernel has killed %d of the processes, because the memory of the container was full, while attachment "+
			"%d was served", n-l.killed, attachment)
		l.killed = n
	}
	l.waits[attachment] <- err // which has room for it
	delete(l.waits, attachment)
}

func (l *launcher) fail(err error) { l.failed = err }

func (l *launcher) note(format string, values ...any) {
	fmt.Fprintf(l.log, "bellows: "+format+"\n", values...)
}
