package executor

import (
	"context"
	"maps"
	"slices"
	"time"
)

// Attached is what a function knows that serves an application which starts its own tasks. Such a function is called
// with what the application has said to attach with, and serves it until its context ends: then the executor is to be
// given back, and the function returns when the tasks that run there have ended. What it returns is not kept, and an
// error says that the executor could not serve the application. What it prints is in the log of the executor.
type Attached struct {
	Attachment
	Key, Name string // of the application
	// Application ends when the application has. Until then this executor may be attached to it again, after others:
	// what takes long to make, such as a connection, can be kept for that.
	Application context.Context
}

type attachedKey struct{}

// AttachedTo returns what the function of an attachment knows; ok is false if ctx is that of a task.
func AttachedTo(ctx context.Context) (to Attached, ok bool) {
	to, ok = ctx.Value(attachedKey{}).(Attached)
	return to, ok
}

// serving is an attachment that an executor serves.
type serving struct {
	work     int64
	release  context.CancelFunc // ends the context of its function
	released bool
	returned chan struct{}
	report   *Report // once it has returned
}

// keptFor is the time in which something may be kept for an application.
type keptFor struct {
	application context.Context
	end         context.CancelFunc
}

// next asks for what is to be done, and says what the executor serves.
func (e *Executor) next(lease string, done *Report) Next {
	n := Next{Lease: lease, Done: done, Memory: resident(), Keeps: slices.Sorted(maps.Keys(e.kept))}
	if s := e.serving; s != nil {
		n.Attached, n.Released = s.work, s.released
	}
	return n
}

// serve begins to serve an application.
func (e *Executor) serve(ctx context.Context, w *Work, arguments []byte) {
	kept := e.kept[w.Task.Key]
	if kept == nil {
		kept = new(keptFor)
		kept.application, kept.end = context.WithCancel(context.WithoutCancel(ctx))
		if e.kept == nil {
			e.kept = map[string]*keptFor{}
		}
		e.kept[w.Task.Key] = kept
	}
	to := Attached{Attachment{w.Work, e.Number, w.Task.Stage}, w.Task.Key, w.Name, kept.application}
	s := &serving{work: w.Work, returned: make(chan struct{})}
	ctx, s.release = context.WithCancel(context.WithValue(ctx, attachedKey{}, to))
	e.serving, e.served = s, w.Task.Key
	go func() {
		defer close(s.returned)
		began := time.Now()
		_, err := e.call(ctx, w.Function, arguments)
		s.report = &Report{Work: w.Work, Seconds: time.Since(began).Seconds()}
		if err != nil {
			s.report.Failed, s.report.Error = true, err.Error()
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
		e.forget(w.Task.Key)
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
	<-s.returned
	e.serving = nil
	if e.printed != nil {
		printed, _ := e.printed.take()
		_, _ = e.printed.before.Write(printed)
	}
	return s.report
}

func (e *Executor) forget(key string) {
	if k := e.kept[key]; k != nil {
		k.end()
		delete(e.kept, key)
	}
}

// forgetAll ends everything when the executor ends.
func (e *Executor) forgetAll() {
	if e.serving != nil {
		e.serving.release()
	}
	for key := range e.kept {
		e.forget(key)
	}
}
