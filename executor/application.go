package executor

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// Application is the client of one application: it submits tasks to a pool, and collects their results. It keeps the
// arguments of a task until it has the result. After a restart of the daemon, or if its lease has ended, it enrols
// again and submits again exactly the tasks that have no result. Its methods may be called from any goroutine.
type Application struct {
	link      link
	enrolment Enrolment
	attach    []byte

	enrolling  turn
	collecting turn

	mu      sync.Mutex
	lease   Lease
	changed chan struct{} // closed when something below changes that others may wait for
	stages  []*stage
	driving *driving // nil unless it starts its own tasks
	closed  bool     // Close was called
	end     error    // why there will be no more results; nil until then
	stop    context.CancelFunc

	// What follows is of the present lease.
	growths int64 // the number of the newest growth that was received
	after   int64 // the number of the newest result
	held    int64 // bytes of the arguments that were submitted and have no result
	tasks   int   // that were submitted and have no result
	room    int64 // how many bytes of arguments and results the daemon holds at most; 0 as long as that is not known
	whole   bool  // the daemon knows that the application does not grow any more
}

// ApplicationConfig says who an application is, and where its pool.
type ApplicationConfig struct {
	// Socket is the path of the daemon's socket, and Pool the name of the pool.
	Socket, Pool string
	// HTTP and Base reach a pool in another way: Base is its URL, such as https://HOST/v1/pools/NAME. Socket and Pool
	// are not used then.
	HTTP *http.Client
	Base string
	// Enrolment describes the application. Without a Key it gets a random one.
	Enrolment Enrolment
	// Attach is what executors are to know that are attached to an application which starts its own tasks
	// (Enrolment.Drives), such as where it listens: at most MostAttach bytes.
	Attach []byte
	// Away is for how long the daemon may be away before a call fails; 0 is DefaultAway.
	Away time.Duration
}

// Stage is a set of tasks that call the same function.
type Stage struct {
	Name     string
	After    []int  // the stages all of whose tasks must have succeeded before. They get no more tasks then
	Function string // as in Work
	Path     string // as in Work
	// Tasks is how many tasks the stage will have of an application that starts its own, as long as it demands nothing;
	// 0 is unknown. It says that executors are to be kept for them, when those of the stages before it have no task.
	Tasks int
}

// stage is a stage with its tasks.
type stage struct {
	Stage
	count   int            // of its tasks
	first   int            // all tasks before it have results
	pending map[int][]byte // the arguments of the tasks that have no result, by their indexes
	parent  bool           // another stage comes after it
	failed  bool           // one of its tasks has
	begun   bool           // the daemon knows the stage
	sent    int            // the daemon has received the tasks before it, or need not
}

// Outcome is the end of a task.
type Outcome struct {
	Result
	Payload []byte // the result
	Printed []byte // the end of what the task printed
}

// CancelledError is the error of an application that was cancelled: by its Cancel, by an operator, or because a task
// failed that another stage needs.
type CancelledError struct{ Why string }

// Error implements error.
func (e *CancelledError) Error() string { return "the application was cancelled: " + e.Why }

// Limits of what an application has in the daemon.
const (
	// MostArguments bounds the arguments of one task, in bytes.
	MostArguments = 32 << 20

	mostGrowth  = 8 << 20 // bytes of the arguments of one message, unless they are of a single task
	firstGrowth = 1 << 20 // as long as the room is not known
	mostTasks   = 1 << 16 // tasks without results
	mostSizes   = 1 << 18 // tasks that one message names
)

// Enrol begins an application. It lasts until its results are collected, it is cancelled, or ctx ends.
func Enrol(ctx context.Context, c ApplicationConfig) (*Application, error) {
	a := &Application{link: linkTo(c.HTTP, c.Base, c.Away), enrolment: c.Enrolment, attach: c.Attach,
		changed: make(chan struct{}), enrolling: make(turn, 1), collecting: make(turn, 1)}
	if c.HTTP == nil {
		a.link = socketLink(c.Socket, c.Pool, c.Away)
	}
	if a.enrolment.Key == "" {
		a.enrolment.Key = rand.Text()
	}
	if a.enrolment.Drives {
		a.driving = &driving{held: map[int64]Attachment{}, changed: map[int]bool{}}
	}
	ctx, a.stop = context.WithCancel(ctx)
	if _, err := a.hold(ctx); err != nil {
		a.stop()
		return nil, err
	}
	go a.submit(ctx)
	return a, nil
}

// turn is what one goroutine at a time does. It has room for one.
type turn chan struct{}

// take waits for the turn. The error is that of ctx.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t turn) end() { <-t }

// hold returns the present lease, after enrolling if there is none.
func (a *Application) hold(ctx context.Context) (Lease, error) {
	if err := a.enrolling.take(ctx); err != nil {
		return Lease{}, err
	}
	defer a.enrolling.end()
	a.mu.Lock()
	lease := a.lease
	a.mu.Unlock()
	if lease.Lease != "" {
		return lease, nil
	}
	_, err := a.link.patiently(ctx, func() ([]byte, error) {
		return a.link.post(ctx, "/applications", a.enrolment, &lease, a.attach)
	})
	if err != nil {
		return lease, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lease, a.growths, a.after, a.held, a.tasks, a.whole = lease, 0, 0, 0, 0, false
	for _, s := range a.stages {
		s.begun, s.sent = false, s.first
	}
	if a.driving != nil {
		a.driving.begin()
	}
	a.change()
	return lease, nil
}

// lost forgets a lease that has ended.
func (a *Application) lost(lease Lease) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lease == lease {
		a.lease = Lease{}
	}
}

// change wakes those that wait for a change. a.mu must be held.
func (a *Application) change() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// fail ends the application, with io.EOF if it has all its results.
func (a *Application) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.end == nil {
		a.end = err
		a.change()
	}
	a.stop()
}

// NewStage adds a stage, and returns its number. An application that starts its own tasks may get that of a stage that
// it has ended with EndStage.
func (a *Application) NewStage(s Stage) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.driving != nil {
		return a.newDriven(s)
	}
	for _, parent := range s.After {
		if parent >= 0 && parent < len(a.stages) {
			a.stages[parent].parent = true
		}
	}
	a.stages = append(a.stages, &stage{Stage: s, pending: map[int][]byte{}})
	return len(a.stages) - 1
}

// Grow adds tasks to a stage, one with each of the arguments, and returns when the daemon has received them. It waits
// while the arguments and results of the application in the daemon need all their room: then another goroutine must
// collect results. If ctx ends before, the tasks are submitted nevertheless. The arguments must not be changed
// afterwards.
func (a *Application) Grow(ctx context.Context, number int, arguments ...[]byte) error {
	for i, x := range arguments {
		if len(x) > MostArguments {
			return fmt.Errorf("arguments %d: %d bytes: at most %d", i, len(x), MostArguments)
		}
	}
	s, upTo, err := a.add(number, arguments)
	if err != nil {
		return err
	}
	return a.await(ctx, func() bool { return s.sent >= upTo })
}

// add adds tasks to a stage, and returns it and how many tasks it then has.
func (a *Application) add(number int, arguments [][]byte) (s *stage, count int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		return nil, 0, errors.New("the application was closed: it gets no more tasks")
	case a.driving != nil:
		return nil, 0, errors.New("the application starts its own tasks: it demands executors for them")
	case number < 0 || number >= len(a.stages):
		return nil, 0, fmt.Errorf("stage %d: the application has %d stages", number, len(a.stages))
	case a.stages[number].parent:
		return nil, 0, fmt.Errorf("stage %d: another stage comes after it, so that it gets no more tasks", number)
	}
	s = a.stages[number]
	for _, x := range arguments {
		s.pending[s.count] = x
		s.count++
	}
	a.change()
	return s, s.count, nil
}

// await waits until a condition holds, which is looked at with a.mu held, or the application has ended.
func (a *Application) await(ctx context.Context, holds func() bool) error {
	for {
		a.mu.Lock()
		changed, end, held := a.changed, a.end, holds()
		a.mu.Unlock()
		switch {
		case held:
			return nil
		case end != nil:
			return end
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close says that the application will not grow any more.
func (a *Application) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	a.change()
}

// submit submits tasks until ctx ends, and keeps the lease.
func (a *Application) submit(ctx context.Context) {
	pause := firstPause
	for {
		lease, err := a.hold(ctx)
		if err = cmp.Or(err, ctx.Err()); err != nil {
			a.fail(err)
			return
		}
		a.mu.Lock()
		g, payload := a.growth()
		changed, freed := a.changed, a.held
		a.mu.Unlock()
		if g.Number == 0 && !a.rest(ctx, changed, lease.Duration()/3) {
			continue
		}
		g.Lease = lease.Lease
		var room Room
		_, err = a.link.patiently(ctx, func() ([]byte, error) {
			return a.link.post(ctx, fmt.Sprintf("/applications/%d/tasks", lease.Application), g, &room, payload...)
		})
		switch {
		case err == nil:
			pause = firstPause
			a.grew(lease, &g, room)
		case isStatus(err, http.StatusGone):
			a.lost(lease)
		case isStatus(err, http.StatusTooManyRequests):
			a.waitForRoom(ctx, freed, pause)
			pause = min(2*pause, longestPause)
		default:
			a.fail(err)
			return
		}
	}
}

// rest waits for a change. It reports whether the lease needs a message because nothing else was said for so long.
func (a *Application) rest(ctx context.Context, changed <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(max(d, 10*time.Millisecond))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-changed:
	case <-ctx.Done():
	}
	return false
}

// waitForRoom waits until tasks have ended, or for a while.
func (a *Application) waitForRoom(ctx context.Context, held int64, pause time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, pause)
	defer cancel()
	_ = a.await(ctx, func() bool { return a.held < held })
}

// growth returns the next message: of the tasks that the daemon does not know, as many as there is room for. Its
// number is 0 if there is nothing to say. a.mu must be held.
func (a *Application) growth() (g Growth, payload [][]byte) {
	if a.driving != nil {
		return a.driving.growth(a), nil
	}
	most := int64(firstGrowth)
	if a.room > 0 {
		most = min(mostGrowth, a.room-a.held)
	}
	size, tasks, sizes := int64(0), a.tasks, 0
	complete := true
	for n, s := range a.stages {
		if s.begun && s.sent == s.count {
			continue
		}
		grown := StageGrowth{Stage: n}
		if !s.begun {
			grown = StageGrowth{Stage: n, Name: s.Name, After: s.After, Function: s.Function, Path: s.Path, First: s.first}
		}
		i := s.sent
		for ; i < s.count && sizes < mostSizes; i++ {
			arguments, waits := s.pending[i]
			if !waits {
				grown.Sizes, sizes = append(grown.Sizes, -1), sizes+1
				continue
			}
			// A task that is larger than the room is submitted alone.
			if tasks >= mostTasks || size+int64(len(arguments)) > most && a.tasks+len(payload) > 0 {
				break
			}
			grown.Sizes, sizes = append(grown.Sizes, len(arguments)), sizes+1
			payload = append(payload, arguments)
			size, tasks = size+int64(len(arguments)), tasks+1
		}
		if !s.begun || i > s.sent {
			g.Stages = append(g.Stages, grown)
		}
		if i < s.count {
			complete = false
			break
		}
	}
	g.Closed = complete && a.closed
	if len(g.Stages) > 0 || g.Closed && !a.whole {
		g.Number = a.growths + 1
	}
	return g, payload
}

// grew records that the daemon has received a message.
func (a *Application) grew(lease Lease, g *Growth, room Room) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lease != lease {
		return
	}
	a.room = room.Most
	if g.Number == 0 {
		return
	}
	a.growths, a.whole = g.Number, g.Closed
	if a.driving != nil {
		a.driving.grew(g)
		a.change()
		return
	}
	for i := range g.Stages {
		grown := &g.Stages[i]
		s := a.stages[grown.Stage]
		if !s.begun {
			s.begun, s.sent = true, grown.First
		}
		for k, size := range grown.Sizes {
			// It may have a result already: that of a run of an earlier lease, or one that was collected before this answer
			// came.
			if _, waits := s.pending[s.sent+k]; waits && size >= 0 {
				a.held, a.tasks = a.held+int64(size), a.tasks+1
			}
		}
		s.sent += len(grown.Sizes)
	}
	a.change()
}

// Collect returns results in the order in which the tasks ended, as soon as there are some, each exactly once. The
// next call confirms them to the daemon. The error is io.EOF after the last result of an application that was closed,
// and a *CancelledError if it was cancelled.
func (a *Application) Collect(ctx context.Context) ([]Outcome, error) {
	if a.driving != nil {
		return nil, errors.New("the application starts its own tasks: Changes has what happens to its executors")
	}
	if err := a.collecting.take(ctx); err != nil {
		return nil, err
	}
	defer a.collecting.end()
	for {
		a.mu.Lock()
		end, finished, why := a.end, a.closed && a.pending() == 0, a.hopeless()
		a.mu.Unlock()
		switch {
		case end != nil:
			return nil, end
		case why != "":
			if err := a.Cancel(ctx, why); err != nil {
				return nil, err
			}
			return nil, &CancelledError{why}
		case finished:
			a.finish(ctx)
			return nil, io.EOF
		}
		lease, out, payload, err := a.hear(ctx)
		if err != nil {
			return nil, err
		}
		outcomes, err := a.take(lease, &out, payload)
		if err != nil || len(outcomes) > 0 {
			return outcomes, err
		}
		if out.Ended {
			a.ended(out.Why)
		}
	}
}

// ended ends an application that has ended in the daemon, unless Collect finds that it has all results.
func (a *Application) ended(why string) {
	a.mu.Lock()
	left := a.pending()
	a.mu.Unlock()
	if why != "" || left > 0 {
		a.fail(&CancelledError{cmp.Or(why, fmt.Sprintf("the daemon knows none of %d tasks without results", left))})
	}
}

// hear asks for results, and enrols again when the lease has ended, until there is an answer or the application has
// ended.
func (a *Application) hear(ctx context.Context) (lease Lease, out Results, payload []byte, err error) {
	for {
		a.mu.Lock()
		err = a.end
		a.mu.Unlock()
		if err == nil {
			lease, err = a.hold(ctx)
		}
		if err != nil {
			return lease, out, nil, err
		}
		if out, payload, err = a.collect(ctx, lease); !isStatus(err, http.StatusGone) {
			return lease, out, payload, err
		}
		a.lost(lease)
	}
}

// collect asks for results once.
func (a *Application) collect(ctx context.Context, lease Lease) (out Results, payload []byte, err error) {
	payload, err = a.link.patiently(ctx, func() ([]byte, error) {
		a.mu.Lock()
		after := a.after
		if a.lease != lease {
			after = 0
		}
		a.mu.Unlock()
		return a.link.post(ctx, fmt.Sprintf("/applications/%d/results", lease.Application),
			Collect{Lease: lease.Lease, After: after}, &out)
	})
	return out, payload, err
}

// pending returns how many tasks have no result. a.mu must be held.
func (a *Application) pending() (n int) {
	for _, s := range a.stages {
		n += len(s.pending)
	}
	return n
}

// hopeless returns why not all tasks can run: a new daemon does not know that a task of an earlier one has failed.
// a.mu must be held.
func (a *Application) hopeless() string {
	for n, s := range a.stages {
		if s.failed && s.parent {
			return fmt.Sprintf("a task of stage %d failed, and another stage needs it", n)
		}
	}
	return ""
}

// take takes the results of tasks that had none.
func (a *Application) take(lease Lease, out *Results, payload []byte) (outcomes []Outcome, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range out.Results {
		if r.Size < 0 || r.Output < 0 || r.Size > len(payload) || r.Output > len(payload)-r.Size {
			return nil, fmt.Errorf("result %d: it should have %d bytes and %d of output, and %d follow", r.Number, r.Size,
				r.Output, len(payload))
		}
		o := Outcome{r, payload[:r.Size:r.Size], payload[r.Size : r.Size+r.Output : r.Size+r.Output]}
		payload = payload[r.Size+r.Output:]
		if a.lease == lease {
			a.after = max(a.after, r.Number)
		}
		if r.Stage < 0 || r.Stage >= len(a.stages) {
			continue
		}
		s := a.stages[r.Stage]
		arguments, waits := s.pending[r.Task]
		if !waits { // It has come before.
			continue
		}
		delete(s.pending, r.Task)
		s.failed = s.failed || r.Failed
		if s.begun && r.Task < s.sent {
			a.held, a.tasks = a.held-int64(len(arguments)), a.tasks-1
		}
		s.advance()
		outcomes = append(outcomes, o)
	}
	a.change()
	return outcomes, nil
}

// advance moves first over the tasks that have results.
func (s *stage) advance() {
	for s.first < s.count {
		if _, waits := s.pending[s.first]; waits {
			return
		}
		s.first++
	}
}

// leaving is how long an application that has all its results tries to say so.
const leaving = 2 * time.Second

// finish confirms the last results. If that fails, the daemon forgets the application when its lease ends.
func (a *Application) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaving)
	defer cancel()
	a.mu.Lock()
	lease := a.lease
	a.mu.Unlock()
	if lease.Lease != "" {
		_, _, _ = a.collect(ctx, lease) // is answered when the daemon knows that the application was closed
	}
	a.fail(io.EOF)
}

// Cancel cancels the application: what runs is ended, and there are no more results.
func (a *Application) Cancel(ctx context.Context, why string) error {
	a.fail(&CancelledError{why})
	a.mu.Lock()
	lease := a.lease
	a.mu.Unlock()
	if lease.Lease == "" {
		return nil // The daemon that knew it has ended, or its lease has.
	}
	_, err := a.link.patiently(ctx, func() ([]byte, error) {
		return a.link.send(ctx, http.MethodDelete, fmt.Sprintf("/applications/%d", lease.Application),
			Cancellation{lease.Lease, why}, &struct{}{})
	})
	if isStatus(err, http.StatusGone) || isStatus(err, http.StatusNotFound) {
		return nil
	}
	return err
}
