package executor_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/executor"
)

// squares enrols an application that starts its own tasks.
func (s *served) squares(name, function string) *squares {
	s.t.Helper()
	listen, err := net.Listen("unix", filepath.Join(s.dir, name))
	if err != nil {
		s.t.Fatal(err)
	}
	a, err := executor.Enrol(s.t.Context(), executor.ApplicationConfig{Socket: s.socket, Pool: "p",
		Attach: []byte(listen.Addr().String()), Enrolment: executor.Enrolment{Name: name, Drives: true}})
	if err != nil {
		s.t.Fatal(err)
	}
	return &squares{app: a, function: function, listen: listen}
}

// Two applications that start their own tasks and one that does not share executors, of which one is killed, while
// the pool is restarted: each task has its result, and nothing waits for a lease to end.
func TestApplicationsDrive(t *testing.T) {
	for _, cut := range []bool{false, true} {
		t.Run(fmt.Sprintf("go/lost answers %v", cut), func(t *testing.T) {
			s := serveWith(t, longLease)
			s.cut.Store(cut)
			s.drive(s.executor, "squares", func() int {
				return len(s.results(s.application("upper", []byte("a"), []byte("b"))))
			})
		})
		t.Run(fmt.Sprintf("python/lost answers %v", cut), func(t *testing.T) {
			python := interpreter(t)
			s := serveWith(t, longLease)
			s.cut.Store(cut)
			begin := func(number int) *exec.Cmd { return s.python(python, number) }
			s.drive(begin, "f.functions:squares", func() int { return len(mapping{function: "double"}.run(s, "1", "2")) })
		})
	}
}

// drive runs two applications that start their own tasks, with a function, and one that does not, with two tasks, on
// executors that begin starts.
func (s *served) drive(begin func(number int) *exec.Cmd, function string, ordinary func() int) {
	t := s.t
	killed := begin(0)
	begin(1)
	begin(2)
	ended := make(chan error, 2)
	apps := []*squares{s.squares("a", function), s.squares("b", function)}
	for _, x := range apps {
		go func() { ended <- x.run(t.Context(), 1000) }()
	}
	if n := ordinary(); n != 2 {
		t.Errorf("%d results", n)
	}
	_ = killed.Process.Kill()
	_ = killed.Wait()
	if _, err := s.pool.Left(t.Context(), 0, executor.CauseLost, "it was killed"); err != nil {
		t.Fatal(err)
	}
	s.end()
	s.begin(2)
	for range apps {
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range apps {
		for n := range 1000 {
			if x.got[n] != n*n {
				t.Fatalf("the square of %d is %d", n, x.got[n])
			}
		}
	}
}

// demanding enrols an application that demands one executor, which calls a function with what it is told.
func (s *served) demanding(name, function, told string) *executor.Application {
	s.t.Helper()
	a, err := executor.Enrol(s.t.Context(), executor.ApplicationConfig{Socket: s.socket, Pool: "p", Attach: []byte(told),
		Enrolment: executor.Enrolment{Name: name, Drives: true}})
	if err != nil {
		s.t.Fatal(err)
	}
	a.Demand(a.NewStage(executor.Stage{Function: function}), 1)
	return a
}

// hears waits until an application hears of a change, which it returns.
func hears(t *testing.T, what string, a *executor.Application) executor.Change {
	t.Helper()
	for {
		changes, err := a.Changes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			if c.What == what {
				return c
			}
		}
	}
}

// The function of an attachment that is asked for sees it by its context, and may return by itself. What is kept for
// an application is kept until that ends.
func TestAttachedFunction(t *testing.T) {
	s := serve(t)
	said := make(chan string, 10)
	serve := func(ctx context.Context, where []byte) ([]byte, error) {
		to, _ := executor.AttachedTo(ctx)
		context.AfterFunc(to.Application, func() { said <- "forgets " + to.Name })
		said <- fmt.Sprintf("serves %s at %s", to.Name, where)
		<-ctx.Done()
		said <- "leaves " + to.Name
		return nil, nil
	}
	x := executor.Executor{Socket: s.socket, Pool: "p", Number: 0, Secret: "secret", Language: "fortran",
		Functions: map[string]executor.Function{"serve": serve}}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- x.Run(ctx) }()
	says := func(want string) {
		t.Helper()
		if got := <-said; got != want {
			t.Fatalf("the function %s, want it to: %s", got, want)
		}
	}
	a := s.demanding("a", "serve", "home")
	says("serves a at home")
	if v, err := s.pool.View(t.Context()); err != nil || v.Executors[0].Language != "fortran" {
		t.Errorf("the pool is %+v, %v", v, err)
	}
	hears(t, executor.Assigned, a)
	a.Demand(0, 0)
	says("leaves a") // and the executor reports it
	hears(t, executor.Ended, a)
	if held := a.Held(); len(held) > 0 {
		t.Errorf("it holds %v", held)
	}
	b := s.demanding("b", "serve", "home")
	says("serves b at home")
	hears(t, executor.Assigned, b)
	b.GiveBack(b.Held()[0].Attachment) // It demands it again.
	says("leaves b")
	says("serves b at home")
	a.Close()
	if _, err := a.Changes(t.Context()); err != io.EOF {
		t.Errorf("%v, want the end", err)
	}
	says("forgets a")
	if err := b.Cancel(t.Context(), "it is over"); err != nil {
		t.Fatal(err)
	}
	says("leaves b")
	for range 2 {
		says("forgets b")
	}
	if _, err := b.Changes(t.Context()); err == nil || !strings.Contains(err.Error(), "it is over") {
		t.Error(err)
	}
	stop()
	<-stopped
}

// The error of a function says whether the application is to be blamed for the end of the attachment.
func TestCauseOfErrors(t *testing.T) {
	s := serve(t)
	fails := func(err error) executor.Function {
		return func(context.Context, []byte) ([]byte, error) { return nil, err }
	}
	x := executor.Executor{Socket: s.socket, Pool: "p", Number: 0, Secret: "secret"}
	x.Functions = map[string]executor.Function{
		"unreachable": fails(fmt.Errorf("connect to home: %w", executor.ErrUnreachable)),
		"refused":     fails(fmt.Errorf("it has version 3: %w", executor.ErrRefused)),
		"memory":      fails(fmt.Errorf("a child was killed: %w", executor.ErrMemory)), "failed": fails(io.EOF)}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- x.Run(ctx) }()
	for _, want := range []executor.Cause{executor.CauseUnreachable, executor.CauseRefused, executor.CauseMemory,
		executor.CauseFailed} {
		a := s.demanding(string(want), string(want), "")
		if c := hears(t, executor.Ended, a); c.Cause != want || !c.Failed {
			t.Errorf("%+v, want the cause %s", c, want)
		}
		_ = a.Cancel(t.Context(), "it is over")
	}
	stop()
	<-stopped
}

// A function that serves an application until this has given the executor back goes on when the executor is asked for.
// What it says to keep no more is not kept.
func TestServesUntilGivenBack(t *testing.T) {
	s := serve(t)
	said := make(chan string, 10)
	var x executor.Executor
	serve := func(ctx context.Context, where []byte) ([]byte, error) {
		to, _ := executor.AttachedTo(ctx)
		context.AfterFunc(to.Application, func() { said <- "forgets" })
		said <- "serves"
		<-ctx.Done()
		said <- fmt.Sprint("is asked for, given back: ", to.GivenBack.Err() != nil)
		<-to.GivenBack.Done()
		x.Forget("another")
		x.Forget(to.Key)
		return nil, nil
	}
	x = executor.Executor{Socket: s.socket, Pool: "p", Number: 0, Secret: "secret",
		Functions: map[string]executor.Function{"serve": serve}}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- x.Run(ctx) }()
	a := s.demanding("a", "serve", "home")
	says := func(want string) {
		t.Helper()
		if got := <-said; got != want {
			t.Fatalf("the function %s, want it to: %s", got, want)
		}
	}
	for range 2 {
		hears(t, executor.Assigned, a)
		says("serves") // An executor that has not begun to serve is taken without being asked for.
		a.Demand(0, 0)
		hears(t, executor.AskedFor, a)
		held := a.Held()
		if len(held) != 1 {
			t.Fatalf("it holds %v", held)
		}
		says("is asked for, given back: false")
		a.GiveBack(held[0].Attachment)
		says("forgets")
		a.Demand(0, 1)
	}
	stop()
	<-stopped
}

// A function of Python that serves an application sees that it is asked for by an event and by a descriptor; if it
// does not return after its application has given the executor back, Cancelled is raised in it. What it keeps is
// there until the application ends.
func TestPythonAttached(t *testing.T) {
	s := serve(t)
	cmd := s.pythonCommand(interpreter(t), 0)
	var printed bytes.Buffer
	cmd.Stderr = &printed
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	file := filepath.Join(s.dir, "said")
	demanding := func(name, how string) *executor.Application {
		t.Helper()
		return s.demanding(name, "f.functions:home", fmt.Sprintf(`{"how": %q, "says": %q}`, how, file))
	}
	said := 0
	says := func(want string) {
		t.Helper()
		var got []byte
		until(t, "it "+want, func() bool { got, _ = os.ReadFile(file); return bytes.Count(got[said:], []byte("\n")) > 0 })
		line, _, _ := strings.Cut(string(got[said:]), "\n")
		if said += len(line) + 1; line != want {
			t.Fatalf("the function %s, want it to: %s", line, want)
		}
	}
	for _, how := range []string{"polls", "waits"} {
		a := demanding(how, how)
		for _, before := range []string{"None", how} {
			says(fmt.Sprintf("serves %s, stage 0, executor 0, before: %s", how, before))
			a.Demand(0, 0)
			says("leaves " + how + ", asked True")
			if c := hears(t, executor.Ended, a); c.Failed {
				t.Errorf("%+v", c)
			}
			a.Demand(0, 1)
		}
		says(fmt.Sprintf("serves %s, stage 0, executor 0, before: %s", how, how))
		hears(t, executor.Assigned, a)
		a.GiveBack(a.Held()[0].Attachment) // It demands it again.
		says("leaves " + how + ", asked True")
		says(fmt.Sprintf("serves %s, stage 0, executor 0, before: %s", how, how))
		if err := a.Cancel(t.Context(), "it is over"); err != nil {
			t.Fatal(err)
		}
		says("leaves " + how + ", asked True")
	}
	busy := demanding("busy", "computes")
	says("serves busy, stage 0, executor 0, before: None")
	busy.Demand(0, 0) // The executor cannot even hear that for longer than a lease.
	says("leaves busy, asked True")
	if c := hears(t, executor.Ended, busy); c.Failed || c.Why != "" {
		t.Errorf("%+v", c)
	}
	b := demanding("sleeper", "sleeps")
	says("serves sleeper, stage 0, executor 0, before: None")
	hears(t, executor.Assigned, b)
	b.GiveBack(b.Held()[0].Attachment)
	b.Close()
	if r := (mapping{function: "double"}).result(s, "1"); r != "2" {
		t.Errorf("got %s", r)
	}
	says("leaves sleeper, asked True")
	c := demanding("failing", "fails")
	failed := 0
	var err error
	for err == nil { // for 5 s
		var changes []executor.Change
		changes, err = c.Changes(t.Context())
		for _, x := range changes {
			if x.What != executor.Ended {
				continue
			}
			says("serves failing, stage 0, executor 0, before: " + map[bool]string{true: "None", false: "failing"}[failed == 0])
			says("leaves failing, asked False")
			failed++
		}
	}
	if want := fmt.Sprintf("%d attachments of executors in a row have failed", failed); failed < 4 ||
		!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "RuntimeError: no way home") {
		t.Errorf("%v, want %s", err, want)
	}
	if err := s.pool.Drain(t.Context(), 0, "it is over"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	text := printed.String()
	if strings.Count(text, "printed by polls\n") != 4 || strings.Count(text, "\n") != 4+4+1+1+failed {
		t.Errorf("the executor printed %q", text)
	}
}
