package live_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/internal/testgroups"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/node/cgroup"
)

var (
	shifts    = flag.Int("shifts", 10, "how many shifts begin until TestDaemonDiesInShifts ends; 2 with -short")
	shiftSeed = flag.Uint64("shift-seed", 0, "what the random moments of TestDaemonDiesInShifts come from; 0 is the time")
)

// brisk are settings of ecs by which tasks of less than a second are leveled.
var brisk = map[string]string{"ecs.interval": "50ms", "ecs.threshold": "0.01", "ecs.short": "false"}

// shifting is a run of TestDaemonDiesInShifts.
type shifting struct {
	t          *testing.T
	random     *rand.Rand
	policy     string
	state, ran string
	p          *process
	told       []cluster.JobID
	begun      int // shifts
	during     int // deaths while a task was held by leveling
}

func newShifting(t *testing.T, policy string, seed uint64) *shifting {
	s := &shifting{t: t, random: rand.New(rand.NewPCG(seed, 0)), policy: policy,
		state: filepath.Join(t.TempDir(), "state"), ran: t.TempDir()}
	s.p = startDaemon(t, s.state, policy)
	return s
}

// shiftStage is a stage of one task, which demands an amount of CPU for the time began, and then another one.
func shiftStage(name, script string, first, later resource.Amount, began, long time.Duration) cluster.Stage {
	demand := func(cpu resource.Amount) resource.Vector { return resource.Of(cpu, 16*resource.MiB) }
	return cluster.Stage{Name: name, Tasks: 1, Ideal: demand(max(first, later)),
		Command: cluster.Command{Args: []string{"sh", "-c", `mkdir "$RAN/$BELLOWS_JOB-` + name + `" || exit 99; ` +
			script}}, Phases: []cluster.Phase{{Duration: began, Demand: demand(first)}, {Duration: long, Demand: demand(later)}}}
}

// submit submits two jobs. After a moment sort and join demand more than the four cores; sort has time until fetch
// ends. It returns the job of sort.
func (s *shifting) submit(script string) (id cluster.JobID) {
	for _, stages := range [][]cluster.Stage{
		{shiftStage("join", script, 500, 3000, 60*time.Millisecond, 600*time.Millisecond)},
		{shiftStage("sort", script, 500, 3000, 60*time.Millisecond, 600*time.Millisecond),
			shiftStage("fetch", script, 100, 100, time.Second, 2*time.Second)},
	} {
		job := cluster.Job{Name: stages[0].Name, Stages: stages}
		id = s.p.mustAsk(ask{Submit: &live.Submission{Job: job, Env: []string{"PATH=/usr/bin:/bin", "RAN=" + s.ran},
			Dir: "/"}}).ID
		s.told = append(s.told, id)
	}
	return id
}

// shifted reports whether leveling has stopped a task of a job.
func shifted(j *api.Job) bool {
	return slices.ContainsFunc(j.Tasks, func(t api.Task) bool {
		return t.Suspended != nil && t.Suspended.By&cluster.HeldByLeveling != 0
	})
}

// awaitShift waits until leveling has stopped a task of a job, and reports whether it has; it has not if the job has
// ended.
func (s *shifting) awaitShift(id cluster.JobID) bool {
	return shifted(&s.p.mustAsk(ask{Shift: id}).Jobs[0])
}

// round submits jobs, and kills the daemon at a random moment soon afterwards, or soon after a shift began.
func (s *shifting) round() {
	id := s.submit("sleep 0.4")
	begun := s.random.IntN(4) > 0 && s.awaitShift(id)
	time.Sleep(time.Duration(s.random.IntN(400)) * time.Millisecond)
	s.p.kill()
	held := s.held(id)
	if held {
		s.during++
	}
	if begun || held {
		s.begun++
	}
	s.p = startDaemon(s.t, s.state, s.policy)
}

// held reports whether a record in the state directory says that leveling holds a task of a job.
func (s *shifting) held(id cluster.JobID) bool {
	return slices.ContainsFunc(s.wanted(fmt.Sprintf("%d-*", id)), func(w want) bool { return w.Hold.Until != 0 })
}

// want is what is recorded of what is wanted of a container.
type want struct {
	Hold  cluster.Hold
	Bound cluster.Bound
}

// wanted returns what is recorded of the containers whose names match a pattern.
func (s *shifting) wanted(pattern string) (all []want) {
	s.t.Helper()
	records, err := filepath.Glob(filepath.Join(s.state, "containers", pattern, "want.json"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, path := range records {
		var w want
		text, err := os.ReadFile(path)
		if err != nil {
			continue // It has just been removed.
		}
		if err := json.Unmarshal(text, &w); err != nil {
			s.t.Errorf("%s: %v", path, err)
		}
		all = append(all, w)
	}
	return all
}

// signal sends a signal to the daemon, all supervisors and all programs of containers.
func (s *shifting) signal(sig syscall.Signal) {
	s.t.Helper()
	pids := []int{s.p.command.Process.Pid}
	for _, g := range slices.Concat(testgroups.Busy(s.t, s.state, true), testgroups.Busy(s.t, s.state, false)) {
		of, err := g.Procs()
		if err != nil {
			s.t.Fatal(err)
		}
		pids = append(pids, of...)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			s.t.Fatal(err)
		}
	}
}

// wrong returns the first container that is frozen, or whose limits are not those of a grant; nothing if there is none.
func (s *shifting) wrong() string {
	s.t.Helper()
	for _, g := range testgroups.Busy(s.t, s.state, false) {
		if requested, done := g.Frozen(); requested || done {
			return fmt.Sprintf("%s is frozen", g.Name())
		}
		if why := s.limited(g); why != "" {
			return why
		}
	}
	return ""
}

// limited says which limit of a container is not that of a grant; nothing if all are.
func (s *shifting) limited(g *cgroup.Group) string {
	s.t.Helper()
	if limit := g.MemoryLimit(); limit.Or(0) != int64(16*resource.MiB) {
		return fmt.Sprintf("%s has the memory limit %v", g.Name(), limit)
	}
	if cpu, ok := bound(s.t, g); ok && cpu != 100 && cpu != 500 && cpu != 3000 {
		return fmt.Sprintf("%s may use %d millicores", g.Name(), cpu)
	}
	return ""
}

// bound returns how much CPU time a container may use, in millicores; ok is false if the kernel has control groups of
// version 1.
func bound(t *testing.T, g *cgroup.Group) (millicores int, ok bool) {
	if v, here := g.Has(cgroup.CPU); !here || v == cgroup.V1 {
		return 0, false
	}
	path, _ := g.File(cgroup.CPU, "cpu.max")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	quota, period := 0, 1
	fmt.Sscan(string(text), &quota, &period)
	return 1000 * quota / period, true
}

// check does something once more in a shift, of tasks that run for longer than expected. After their shifts they must
// run as granted, and every job must succeed.
func (s *shifting) check(does func()) {
	s.t.Helper()
	id := s.submit(`until [ -e "$RAN/gate" ]; do sleep 0.02; done`)
	s.awaitShift(id)
	does()
	s.p.mustAsk(askJobs())
	for end := time.Now().Add(30 * time.Second); s.wrong() != ""; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Error(s.wrong())
			break
		}
	}
	if n := len(testgroups.Busy(s.t, s.state, false)); n < 3 {
		s.t.Errorf("%d containers run, want 3", n)
	}
	s.finish()
}

// finish lets all programs end. Every job must succeed, and the event logs must give the same decisions again.
func (s *shifting) finish() {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.ran, "gate"), nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
	for _, id := range s.told {
		j := s.p.mustAsk(askWait(id)).Jobs[0]
		if j.Status != cluster.StatusSucceeded {
			s.t.Errorf("job %d is %s: %s", id, j.Status, j.Detail)
		}
	}
	if s.t.Failed() {
		s.t.Log(s.p.errors)
	}
	replayAll(s.t, s.state)
	s.p.mustAsk(ask{Tidy: true})
	if err := s.p.command.Wait(); err != nil {
		s.t.Error(err)
	}
}

// A daemon that is killed (SIGKILL) at random moments of shifts loses no job, and leaves no task frozen, throttled or
// beyond its limits.
func TestDaemonDiesInShifts(t *testing.T) {
	needCgroups(t)
	want, from := *shifts, *shiftSeed
	if testing.Short() {
		want = min(want, 2)
	}
	if from == 0 {
		from = uint64(time.Now().UnixNano())
	}
	t.Logf("again: go test ./live -run TestDaemonDiesInShifts -shifts %d -shift-seed %d", *shifts, from)
	s := newShifting(t, "ecs", from)
	rounds := 0
	for ; s.begun < want && rounds < 3*want+10 && !t.Failed(); rounds++ {
		s.round()
	}
	t.Logf("%d deaths, %d shifts begun, %d deaths while leveling held a task", rounds, s.begun, s.during)
	if s.begun < want {
		t.Errorf("%d shifts began, want %d", s.begun, want)
	}
	s.check(func() {
		s.p.kill()
		s.p = startDaemon(t, s.state, s.policy)
	})
}

// A machine that is stopped as a whole, as a virtual machine may be, and goes on after the end of a shift, and after
// the end of the daemon's lease: the shift ends, and all goes on as after a death of the daemon, which has not died.
func TestStoppedMachineEndsShifts(t *testing.T) {
	needCgroups(t)
	stopped := 12 * time.Second
	if testing.Short() {
		stopped = time.Second
	}
	s := newShifting(t, "ecs", 1)
	s.check(func() {
		s.signal(syscall.SIGSTOP)
		time.Sleep(stopped)
		s.signal(syscall.SIGCONT)
	})
}
