package executor

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// Attached is what a function knows that serves an application which starts its own tasks. Such a function is called
// with what the application has said to attach with, and serves it until its context ends: then the executor is to be
// given back, and the function returns when the tasks that run there have ended. What it returns is not kept, and an
// error says that the executor could not serve the application: see ErrUnreachable. What it prints is in the log of the
// executor.
type Attached struct {
	Attachment
	Key, Name string // of the application
	// Application ends when the application has. Until then this executor may be attached to it again, after others:
	// what takes long to make, such as a connection, can be kept for that.
	Application context.Context
	// GivenBack ends when the application has given the executor back, or the executor ends: no task of it comes any
	// more. A function that cannot know of tasks that are on their way to it serves the application until then, although
	// its own context has ended before, when the executor was asked for.
	GivenBack context.Context
}

// Errors that the function of an attachment returns, wrapped with one sentence, so that the application hears of the
// cause. Any other error is CauseFailed.
var (
	ErrUnreachable = errors.New("the application cannot be reached")          // CauseUnreachable
	ErrRefused     = errors.New("this executor cannot serve the application") // CauseRefused
	ErrMemory      = errors.New("there was no more memory")                   // CauseMemory, such as of a child process
)

// causeOf returns the cause of an error that the function of an attachment has returned.
func causeOf(err error) Cause {
	switch {
	case errors.Is(err, ErrUnreachable):
		return CauseUnreachable
	case errors.Is(err, ErrRefused):
		return CauseRefused
	case errors.Is(err, ErrMemory):
		return CauseMemory
	}
	return CauseFailed
}

type attachedKey struct{}

// AttachedTo returns what the function of an attachment knows; ok is false if ctx is that of a task.
func AttachedTo(ctx context.Context) (to Attached, ok bool) {
	to, ok = ctx.Value(attachedKey{}).(Attached)
	return to, ok
}

// serving is an attachment that an executor serves.
type serving struct {
	work      int64
	release   context.CancelFunc // ends the context of its function
	givenBack context.CancelFunc
	released  bool
	returned  chan struct{}
	report    *Report // once it has returned
}

// keeping is of which applications something is kept. Functions may change it while the executor runs.
type keeping struct {
	mu    sync.Mutex
	times map[string]*keptFor // by the keys of applications
}

// keptFor is the time in which something may be kept for an application.
type keptFor struct {
	application context.Context
	end         context.CancelFunc
}

// next asks for what is to be done, and says what the executor serves.
func (e *Executor) next(lease string, done *Report) Next {
	n := Next{Lease: lease, Done: done, Memory: e.memory(), Keeps: e.keeps()}
	if s := e.serving; s != nil {
		n.Attached, n.Released = s.work, s.released
	}
	return n
}

// serve begins to serve an application.
func (e *Executor) serve(ctx context.Context, w *Work, arguments []byte) {
	s := &serving{work: w.Work, returned: make(chan struct{})}
	to := Attached{Attachment: Attachment{w.Work, e.Number, w.Task.Stage}, Key: w.Task.Key, Name: w.Name,
		Application: e.keep(ctx, w.Task.Key)}
	to.GivenBack, s.givenBack = context.WithCancel(ctx)
	ctx, s.release = context.WithCancel(context.WithValue(ctx, attachedKey{}, to))
	e.serving, e.served = s, w.Task.Key
	go func() {
		defer close(s.returned)
		began := time.Now()
		_, err := e.call(ctx, w.Function, arguments)
		s.report = &Report{Work: w.Work, Seconds: time.Since(began).Seconds()}
		if err != nil {
			s.report.Failed, s.report.Error, s.report.Cause = true, err.Error(), causeOf(err)
		}
	}()
}

// servedToEnd returns the report of an attachment whose function has returned by itself; nil if there is none.
func (e *Executor) servedToEnd() *Report {
	if e.serving != nil {
		select {
		case <-e.serving.returned:
			return e.leave()
		default:
		}
	}
	return nil
}

// whileServing returns a context that ends with ctx, or when the function of the attachment returns.
func (e *Executor) whileServing(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	if s := e.serving; s != nil {
		go func() {
			select {
			case <-s.returned:
				stop()
			case <-ctx.Done():
			}
		}()
	}
	return ctx, stop
}

// goOn does what changes nothing about what the executor serves, but that it is to end.
func (e *Executor) goOn(w *Work) {
	switch s := e.serving; {
	case w.Do == DoForget:
		e.Forget(w.Task.Key)
	case w.Do == DoRelease && s != nil && s.work == w.Work:
		s.released = true
		s.release()
	}
	if e.serving == nil {
		e.setRunning(nil)
	}
}

// leave ends what the executor serves, and returns the report of it; nil if it serves nothing. A function that does
// not return in time costs the lease of the executor, because nothing is sent meanwhile.
func (e *Executor) leave() *Report {
	s := e.serving
	if s == nil {
		return nil
	}
	s.release()
	s.givenBack()
	<-s.returned
	e.serving = nil
	if e.printed != nil {
		printed, _ := e.printed.take()
		_, _ = e.printed.before.Write(printed)
	}
	return s.report
}

// keep returns the time in which something may be kept of an application; from now on something is.
func (e *Executor) keep(ctx context.Context, key string) context.Context {
	e.kept.mu.Lock()
	defer e.kept.mu.Unlock()
	k := e.kept.times[key]
	if k == nil {
		k = new(keptFor)
		k.application, k.end = context.WithCancel(context.WithoutCancel(ctx))
		if e.kept.times == nil {
			e.kept.times = map[string]*keptFor{}
		}
		e.kept.times[key] = k
	}
	return k.application
}

// keeps returns the keys of the applications of which something is kept, in order.
func (e *Executor) keeps() []string {
	e.kept.mu.Lock()
	defer e.kept.mu.Unlock()
	return slices.Sorted(maps.Keys(e.kept.times))
}

// Forget says that nothing is kept any more of the application with a key, although it may not have ended: for
// functions that keep it elsewhere, such as in a process that has ended. The pool then prefers other executors for the
// application. Attached.Application of that application ends. Any goroutine may call it.
func (e *Executor) Forget(key string) {
	e.kept.mu.Lock()
	defer e.kept.mu.Unlock()
	if k := e.kept.times[key]; k != nil {
		k.end()
		delete(e.kept.times, key)
	}
}

// forgetAll ends everything when the executor ends.
func (e *Executor) forgetAll() {
	if e.serving != nil {
		e.serving.release()
		e.serving.givenBack()
	}
	for _, key := range e.keeps() {
		e.Forget(key)
	}
}
