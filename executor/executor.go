package executor

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Function is what a task calls. Whatever it returns is the result of the task; an error, or a panic, means that the
// task has failed. ctx ends when the result is not wanted any more.
type Function func(ctx context.Context, arguments []byte) (result []byte, err error)

// Main is the main function of an executor that bellows starts. It runs tasks, each of which names one of the
// functions, until the pool ends the executor, and then exits: with 0, or with 1 if the pool cannot be reached or
// refuses the executor.
func Main(functions map[string]Function) {
	e, err := fromEnvironment(functions)
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		err = e.Run(ctx)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		said := os.Stderr
		if e != nil && e.printed != nil {
			said = e.printed.before
		}
		fmt.Fprintln(said, "executor:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// FromEnvironment returns the executor that this process is, for a program that does more than Main: what its functions
// print is not diverted, and it has no fresh process for an application that wants one.
func FromEnvironment(functions map[string]Function) (*Executor, error) {
	e := &Executor{Socket: os.Getenv(SocketVariable), Pool: os.Getenv(PoolVariable), Functions: functions}
	if e.Socket == "" || e.Pool == "" {
		return nil, fmt.Errorf("%s and %s must be set: a pool of bellows starts this program", SocketVariable, PoolVariable)
	}
	var err error
	if e.Number, err = strconv.Atoi(os.Getenv(ExecutorVariable)); err != nil {
		return nil, fmt.Errorf("%s: %w", ExecutorVariable, err)
	}
	secret, err := os.ReadFile(os.Getenv(SecretVariable))
	if err != nil {
		return nil, fmt.Errorf("read the secret that %s names: %w", SecretVariable, err)
	}
	e.Secret = strings.TrimSpace(string(secret))
	return e, nil
}

// fromEnvironment is FromEnvironment for Main.
func fromEnvironment(functions map[string]Function) (*Executor, error) {
	e, err := FromEnvironment(functions)
	if err != nil {
		return nil, err
	}
	if err := e.inherit(); err != nil {
		return nil, err
	}
	e.anew, e.environment = true, os.Environ()
	if e.printed, err = divertOutput(); err != nil {
		return nil, fmt.Errorf("divert the output of tasks: %w", err)
	}
	return e, nil
}

// Executor runs tasks of the applications of one pool, one at a time. A task that wants a fresh process, in one that
// has run tasks of another application, fails; but the process of Main begins itself anew for it.
type Executor struct {
	Socket    string // path of the daemon's socket
	Pool      string
	Number    int
	Secret    string
	Functions map[string]Function
	// Language is for people: what the functions are written in, go if it is empty.
	Language string
	// Away is for how long the daemon may be away before the executor ends; 0 is DefaultAway.
	Away time.Duration
	// Memory returns the memory that the executor takes, bytes; 0 if that is unknown. If it is nil, the resident memory of
	// this process counts. It is called from two goroutines.
	Memory func() int64

	printed     *output  // nil if output is not diverted
	anew        bool     // the process can begin itself anew
	environment []string // with which it began
	link        link
	mu          sync.Mutex
	lease       Lease
	running     *Held  // what runs, or has run and is not reported
	served      string // the key of the application whose task ran last
	serving     *serving
	kept        keeping
}

// Run runs tasks until the pool ends the executor, which is no error, or ctx ends. It returns an error if the pool
// refuses the executor, or has been away for too long.
func (e *Executor) Run(ctx context.Context) error {
	e.link = socketLink(e.Socket, e.Pool, e.Away)
	defer e.link.close()
	defer e.forgetAll()
	var done *Report
	var result, printed []byte
	for {
		lease, err := e.hold(ctx)
		if err != nil {
			return err
		}
		if r := e.servedToEnd(); r != nil {
			done = r
		}
		var work Work
		asking, stop := e.whileServing(ctx)
		arguments, err := e.link.patiently(asking, func() ([]byte, error) {
			return e.link.post(asking, fmt.Sprintf("/executors/%d/next", e.Number), e.next(lease, done), &work, result, printed)
		})
		stop()
		switch {
		case isStatus(err, http.StatusGone):
			e.lost(lease)
			continue
		case err != nil && ctx.Err() == nil && asking.Err() != nil:
			continue // with the end of the attachment
		case err != nil:
			return err
		}
		done, result, printed = nil, nil, nil
		switch work.Do {
		case DoWait, DoRelease, DoForget:
			e.goOn(&work)
			continue
		}
		left := e.leave()
		e.setRunning(nil)
		switch work.Do {
		case DoEnd:
			return nil
		case DoPark:
			done = left
		case DoAttach:
			if work.Fresh && e.served != "" && e.served != work.Task.Key {
				done = e.refresh(&work)
				continue
			}
			e.setRunning(&work.Task)
			e.serve(ctx, &work, arguments)
		case DoRun:
			if work.Fresh && e.served != "" && e.served != work.Task.Key {
				done = e.refresh(&work)
				continue
			}
			e.setRunning(&work.Task)
			done, result, printed = e.run(ctx, &work, arguments)
		}
	}
}

// hold returns the present lease, after registering if there is none.
func (e *Executor) hold(ctx context.Context) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lease.Lease != "" {
		return e.lease.Lease, nil
	}
	_, err := e.link.patiently(ctx, func() ([]byte, error) {
		r := Registration{Executor: e.Number, Secret: e.Secret, Language: cmp.Or(e.Language, "go"), PID: os.Getpid(),
			Attaches: true, Running: e.running}
		return e.link.post(ctx, "/executors", r, &e.lease)
	})
	return e.lease.Lease, err
}

// lost forgets a lease that has ended.
func (e *Executor) lost(lease string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lease.Lease == lease {
		e.lease = Lease{}
	}
}

func (e *Executor) setRunning(h *Held) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running = h
}

// run runs a task, and keeps the lease meanwhile.
func (e *Executor) run(ctx context.Context, w *Work, arguments []byte) (r *Report, result, printed []byte) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var beats sync.WaitGroup
	defer beats.Wait()
	ended, end := context.WithCancel(ctx)
	defer end()
	beats.Go(func() { e.beat(ended, w.Work, cancel) })
	r = &Report{Work: w.Work}
	began := time.Now()
	e.served = w.Task.Key
	result, err := e.call(ctx, w.Function, arguments)
	if len(result) > MostResult {
		err = fmt.Errorf("the result has %d bytes: at most %d", len(result), MostResult)
	}
	r.Seconds = time.Since(began).Seconds()
	if err != nil {
		r.Failed, r.Error, result = true, err.Error(), nil
	}
	if e.printed != nil {
		printed, r.Truncated = e.printed.take()
	}
	r.Size, r.Output = len(result), len(printed)
	return r, result, printed
}

// refresh begins this process anew, with its lease: the daemon gives it the same task again. If that is not possible,
// the task has failed.
func (e *Executor) refresh(w *Work) *Report {
	err := errors.New("this program cannot begin itself anew")
	if e.anew {
		err = e.again()
	}
	return &Report{Work: w.Work, Failed: true, Cause: CauseRefused,
		Error: fmt.Sprintf("a fresh process is wanted, and this one has run tasks of other applications: %v", err)}
}

// leaseVariable is the environment variable with the number of the file from which a process that has begun itself
// anew reads its lease.
const leaseVariable = "BELLOWS_EXECUTOR_LEASE"

// again replaces the program of this process by itself. It returns only if that fails.
func (e *Executor) again() error {
	e.mu.Lock()
	lease, err := json.Marshal(e.lease)
	e.mu.Unlock()
	if err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	defer w.Close()
	if _, err := w.Write(lease); err != nil { // A pipe has room for it.
		return err
	}
	fd, err := syscall.Dup(int(r.Fd())) // which the new program inherits
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	for out := 1; out <= 2; out++ {
		if err := syscall.Dup3(int(e.printed.before.Fd()), out, 0); err != nil {
			return err
		}
	}
	err = syscall.Exec("/proc/self/exe", os.Args, append(e.environment, fmt.Sprintf("%s=%d", leaseVariable, fd)))
	return errors.Join(err, e.printed.divert())
}

// inherit takes the lease of this process from before it began itself anew, if it did.
func (e *Executor) inherit() error {
	text := os.Getenv(leaseVariable)
	if text == "" {
		return nil
	}
	os.Unsetenv(leaseVariable)
	fd, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("%s: %w", leaseVariable, err)
	}
	lease := make([]byte, 4096)
	n, err := syscall.Read(fd, lease)
	if err = errors.Join(err, syscall.Close(fd)); err != nil {
		return fmt.Errorf("read the lease: %w", err)
	}
	return json.Unmarshal(lease[:n], &e.lease)
}

// call calls a function, and turns a panic into an error.
func (e *Executor) call(ctx context.Context, name string, arguments []byte) (result []byte, err error) {
	f := e.Functions[name]
	if f == nil {
		return nil, fmt.Errorf("function %q: this executor has no such function", name)
	}
	ended := make(chan struct{})
	go func() { // of its own, because a function can end its goroutine
		defer close(ended)
		returned := false
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			} else if !returned {
				err = fmt.Errorf("the function ended its goroutine: runtime.Goexit was called\n%s", debug.Stack())
			}
		}()
		result, err = f(ctx, arguments)
		returned = true
	}()
	<-ended
	return result, err
}

// beat keeps the lease until ctx ends, and cancels the task when it is not wanted any more.
func (e *Executor) beat(ctx context.Context, work int64, cancel func()) {
	for {
		lease, err := e.hold(ctx)
		if err != nil {
			return // Run finds the same.
		}
		e.mu.Lock()
		every := max(e.lease.Duration()/4, 10*time.Millisecond)
		e.mu.Unlock()
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return
		}
		var answer BeatAnswer
		_, err = e.link.post(ctx, fmt.Sprintf("/executors/%d/beat", e.Number),
			Beat{Lease: lease, Work: work, Memory: e.memory()}, &answer)
		switch {
		case answer.Cancel:
			cancel()
		case isStatus(err, http.StatusGone):
			e.lost(lease) // and registers again, with what runs
		}
	}
}

func (e *Executor) memory() int64 {
	if e.Memory != nil {
		return e.Memory()
	}
	return resident()
}

// resident returns the resident memory of this process, 0 if it is unknown.
func resident() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, pages int64
	_, _ = fmt.Sscan(string(text), &size, &pages)
	return pages * int64(os.Getpagesize())
}

// output keeps the end of what this process and its children print.
type output struct {
	before *os.File // where this process printed before
	write  *os.File
	marker []byte // says that everything before it was printed before take was called

	mu        sync.Mutex
	end       []byte
	taken     []byte // what was printed before the marker
	truncated bool
	marked    chan struct{} // closed when the marker has come
}

// divertOutput makes this process, and those that it starts, print to a pipe. What the runtime says of a crash goes
// where the process printed before.
func divertOutput() (*output, error) {
	fd, err := syscall.Dup(2)
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(fd)
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	o := &output{before: os.NewFile(uintptr(fd), "stderr"), write: w, marker: []byte(rand.Text())}
	_ = debug.SetCrashOutput(o.before, debug.CrashOptions{})
	if err := o.divert(); err != nil {
		return nil, err
	}
	go o.read(r)
	return o, nil
}

// divert makes standard output and standard error the pipe.
func (o *output) divert() error {
	for fd := 1; fd <= 2; fd++ {
		if err := syscall.Dup3(int(o.write.Fd()), fd, 0); err != nil {
			return err
		}
	}
	return nil
}

// read keeps the end of what is printed, so that the pipe is never full.
func (o *output) read(r io.Reader) {
	block := make([]byte, MostOutput)
	for {
		n, err := r.Read(block)
		if err != nil {
			return
		}
		o.mu.Lock()
		o.end = append(o.end, block[:n]...)
		if at := bytes.Index(o.end, o.marker); at >= 0 && o.marked != nil {
			o.taken, o.end = o.end[:at:at], slices.Clone(o.end[at+len(o.marker):])
			close(o.marked)
			o.marked = nil
		}
		if over := len(o.end) - MostOutput - len(o.marker); over > 0 {
			o.end, o.truncated = append(o.end[:0], o.end[over:]...), true
		}
		o.mu.Unlock()
	}
}

// take returns the end of what was printed since the last call.
func (o *output) take() (end []byte, truncated bool) {
	marked := make(chan struct{})
	o.mu.Lock()
	o.marked = marked
	o.mu.Unlock()
	if _, err := o.write.Write(o.marker); err != nil {
		return nil, false
	}
	<-marked
	o.mu.Lock()
	defer o.mu.Unlock()
	end, truncated = o.taken, o.truncated
	o.taken, o.truncated = nil, false
	if over := len(end) - MostOutput; over > 0 {
		end, truncated = end[over:], true
	}
	return end, truncated
}
