package fleet_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/live/api"
)

// driverVariable names the application that this test program is, which starts its own tasks, tasksVariable how many,
// and functionVariable what executors call that are attached.
const (
	driverVariable   = "BELLOWS_TEST_DRIVER"
	tasksVariable    = "BELLOWS_TEST_TASKS"
	functionVariable = "BELLOWS_TEST_FUNCTION"
)

// serveSquares is what executors call that are attached: they square the numbers that the application sends.
func serveSquares(ctx context.Context, where []byte) ([]byte, error) {
	to, _ := executor.AttachedTo(ctx)
	c, err := net.Dial("unix", string(where))
	if err != nil {
		return nil, nil // The application was killed, and its lease has not ended.
	}
	defer c.Close()
	fmt.Fprintln(c, to.Attachment.Attachment)
	for lines := bufio.NewScanner(c); lines.Scan(); {
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			return nil, err
		}
		time.Sleep(time.Duration(n%20) * time.Millisecond)
		fmt.Fprintln(c, n*n)
	}
	return nil, nil
}

// squarer is an application that starts its own tasks. It writes results to a file, from which it goes on after it
// was killed.
type squarer struct {
	app     *executor.Application
	stage   int
	journal *os.File

	mu    sync.Mutex
	left  []int
	runs  int
	asked map[int64]bool
	conns map[int64]net.Conn // nil from the end of an attachment on
}

// beDriver is such an application, until all its tasks have results.
func beDriver(dir string) error {
	name := os.Getenv(driverVariable)
	n, err := strconv.Atoi(os.Getenv(tasksVariable))
	if err != nil {
		return err
	}
	s := &squarer{asked: map[int64]bool{}, conns: map[int64]net.Conn{}}
	done, err := os.ReadFile(journalOf(dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for i := range n {
		if !bytes.Contains(append([]byte("\n"), done...), fmt.Appendf(nil, "\n%d ", i)) {
			s.left = append(s.left, i)
		}
	}
	if s.journal, err = os.OpenFile(journalOf(dir, name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644); err != nil {
		return err
	}
	where := filepath.Join(dir, name)
	_ = os.Remove(where)
	listen, err := net.Listen("unix", where)
	if err == nil {
		err = os.Chmod(where, 0o666)
	}
	if err != nil {
		return err
	}
	ctx := context.Background()
	s.app, err = executor.Enrol(ctx, executor.ApplicationConfig{Socket: socketIn(dir), Pool: "a", Attach: []byte(where),
		Enrolment: executor.Enrolment{Key: "the key of the driver " + name, Name: name, Drives: true, Attempts: 1000}})
	if err != nil {
		return err
	}
	s.stage = s.app.NewStage(executor.Stage{Function: os.Getenv(functionVariable), Path: dir})
	s.demand()
	go func() {
		for {
			c, err := listen.Accept()
			if err != nil {
				return
			}
			go s.use(c)
		}
	}()
	for {
		changes, err := s.app.Changes(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		s.mu.Lock()
		for _, c := range changes {
			switch number := c.Attachment.Attachment; c.What {
			case executor.AskedFor:
				s.asked[number] = true
			case executor.Ended:
				if conn := s.conns[number]; conn != nil {
					_ = conn.Close()
				}
				s.conns[number], s.asked[number] = nil, true
			}
		}
		s.mu.Unlock()
	}
}

func journalOf(dir, name string) string { return filepath.Join(dir, name+".done") }

// demand says how many tasks have no result. s.mu must be held once executors are attached.
func (s *squarer) demand() {
	s.app.Demand(s.stage, len(s.left)+s.runs)
	if len(s.left)+s.runs == 0 {
		s.app.Close()
	}
}

// use sends tasks to an executor until it is asked for, or there are no more.
func (s *squarer) use(c net.Conn) {
	defer c.Close()
	lines := bufio.NewScanner(c)
	lines.Scan()
	number, err := strconv.ParseInt(lines.Text(), 10, 64)
	if err != nil {
		return
	}
	defer s.app.GiveBack(number)
	s.mu.Lock()
	s.conns[number] = c
	s.mu.Unlock()
	for {
		s.mu.Lock()
		if s.asked[number] || len(s.left) == 0 {
			s.mu.Unlock()
			return
		}
		n := s.left[0]
		s.left, s.runs = s.left[1:], s.runs+1
		s.mu.Unlock()
		fmt.Fprintln(c, n)
		said := lines.Scan()
		s.mu.Lock()
		s.runs--
		if said && s.conns[number] != nil {
			fmt.Fprintln(s.journal, n, lines.Text())
		} else {
			s.left = append(s.left, n)
		}
		s.demand()
		s.mu.Unlock()
		if !said {
			return
		}
	}
}

// driver begins an application that starts its own tasks, in a process of its own.
func (r *rig) driver(name, function string, tasks int) *exec.Cmd {
	r.t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), stateVariable+"="+r.dir, driverVariable+"="+name, functionVariable+"="+function,
		fmt.Sprintf("%s=%d", tasksVariable, tasks))
	cmd.Stderr = r.t.Output()
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	return cmd
}

// Two applications that start their own tasks and one that does not share a pool, while the daemon, executors and
// these applications are killed at random moments. Each task has one result, and it is right.
func TestDriversDie(t *testing.T) {
	rounds := (*deaths + 1) / 2
	if testing.Short() {
		rounds = 1
	}
	t.Run("go", func(t *testing.T) {
		r := newRig(t)
		r.put("a", api.PoolGo, filepath.Join(r.dir, "worker"), 1, 3)
		r.driversDie("serve", "square", rounds)
	})
	t.Run("python", func(t *testing.T) {
		r := newRig(t)
		if _, err := os.Stat(r.python); err != nil {
			t.Skipf("needs Python: %v", err)
		}
		r.put("a", api.PoolPython, r.python, 1, 3)
		r.driversDie("squares:serve", "squares:square", rounds)
	})
}

// driversDie does so in the pool a, whose executors call serve for the applications that start their own tasks, and
// square for the other one.
func (r *rig) driversDie(serve, square string, rounds int) {
	t := r.t
	r.until("a", "warm", func(d *api.PoolDetail) bool { return d.Idle == 1 })
	tasks := 150 * rounds
	names := []string{"x", "y"}
	drivers := map[string]*exec.Cmd{}
	for _, name := range names {
		drivers[name] = r.driver(name, serve, tasks)
	}
	ordinary := make(chan error, 1)
	go func() { ordinary <- r.squares(t.Context(), "a", square, tasks) }()
	r.until("a", "shared by three applications", func(d *api.PoolDetail) bool {
		held := 0
		for _, a := range d.Enrolled {
			if a.Executors == 1 && (!a.Drives || a.Running == 1) {
				held++
			}
		}
		return held == 3
	})
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 3 * rounds {
		time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
		switch i % 3 {
		case 0:
			name := names[random.IntN(2)]
			_ = drivers[name].Process.Kill()
			_ = drivers[name].Wait()
			drivers[name] = r.driver(name, serve, tasks)
		case 2:
			r.kill()
		case 1:
			r.until("a", "with an executor", func(d *api.PoolDetail) bool {
				for _, e := range d.Members {
					if e.PID > 0 && e.State != api.ExecutorLost && e.State != api.ExecutorExpired {
						return syscall.Kill(e.PID, syscall.SIGKILL) == nil
					}
				}
				return false
			})
		}
	}
	if err := <-ordinary; err != nil {
		t.Error(err)
	}
	for _, name := range names {
		if err := drivers[name].Wait(); err != nil {
			t.Errorf("driver %s: %v", name, err)
		}
		text, err := os.ReadFile(journalOf(r.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for line := range strings.Lines(string(text)) {
			if got[line] {
				t.Errorf("driver %s has two results: %s", name, line)
			}
			got[line] = true
		}
		for n := range tasks {
			if !got[fmt.Sprintf("%d %d\n", n, n*n)] || len(got) != tasks {
				t.Fatalf("driver %s has %d results, and of task %d: %v", name, len(got), n, got[fmt.Sprintf("%d %d\n", n, n*n)])
			}
		}
	}
	var d api.PoolDetail
	if r.call(http.MethodGet, "a", nil, &d); d.Broken != "" {
		t.Error(d.Broken)
	}
}
