package executor_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/executor"
)

// squares enrols an application that starts its own tasks.
func (s *served) squares(name string) *squares {
	s.t.Helper()
	listen, err := net.Listen("unix", filepath.Join(s.dir, name))
	if err != nil {
		s.t.Fatal(err)
	}
	a, err := executor.Enrol(s.t.Context(), executor.ApplicationConfig{Socket: s.socket, Pool: "p", Attach: []byte(listen.Addr().String()), Enrolment: executor.Enrolment{Name: name, Drives: true}})
	if err != nil {
		s.t.Fatal(err)
	}
	return &squares{app: a, listen: listen}
}

// Two applications that start their own tasks and one that does not share executors, of which one is killed, while the pool is restarted: each
// task has its result, and nothing waits for a lease to end.
func TestApplicationsDrive(t *testing.T) {
	for _, cut := range []bool{false, true} {
		t.Run(fmt.Sprintf("lost answers %v", cut), func(t *testing.T) {
			s := serveWith(t, longLease)
			s.cut.Store(cut)
			killed := s.executor(0)
			s.executor(1)
			s.executor(2)
			ended := make(chan error, 2)
			apps := []*squares{s.squares("a"), s.squares("b")}
			for _, x := range apps {
				go func() { ended <- x.run(t.Context(), 1000) }()
			}
			if all := s.results(s.application("upper", []byte("a"), []byte("b"))); len(all) != 2 {
				t.Errorf("%d results", len(all))
			}
			_ = killed.Process.Kill()
			_ = killed.Wait()
			if _, err := s.pool.Left(t.Context(), 0, "it was killed"); err != nil {
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
		})
	}
}

// The function of an attachment that is asked for sees it by its context, and may return by itself. What is kept for an application is kept until that ends.
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
	x := executor.Executor{Socket: s.socket, Pool: "p", Number: 0, Secret: "secret", Functions: map[string]executor.Function{"serve": serve}}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- x.Run(ctx) }()
	enrol := func(name string, weight float64) *executor.Application {
		a, err := executor.Enrol(t.Context(), executor.ApplicationConfig{Socket: s.socket, Pool: "p", Attach: []byte("home"), Enrolment: executor.Enrolment{Name: name, Weight: weight, Drives: true}})
		if err != nil {
			t.Fatal(err)
		}
		a.Demand(a.NewStage(executor.Stage{Function: "serve"}), 1)
		return a
	}
	hears := func(what string, a *executor.Application) {
		t.Helper()
		for {
			changes, err := a.Changes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range changes {
				if c.What == what {
					return
				}
			}
		}
	}
	says := func(want string) {
		t.Helper()
		if got := <-said; got != want {
			t.Fatalf("the function %s, want it to: %s", got, want)
		}
	}
	a := enrol("a", 1)
	says("serves a at home")
	hears(executor.Assigned, a)
	a.Demand(0, 0)
	says("leaves a") // and the executor reports it
	hears(executor.Ended, a)
	if held := a.Held(); len(held) > 0 {
		t.Errorf("it holds %v", held)
	}
	b := enrol("b", 1)
	says("serves b at home")
	hears(executor.Assigned, b)
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
