package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/internal/testgroups"
	"github.com/bellows-rm/bellows/internal/testswap"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
)

var (
	soakJobs = flag.Int("soak", 60, "how many jobs TestSoak runs")
	soakSeed = flag.Uint64("soak-seed", 0, "what the order of TestSoak's jobs comes from; 0 is the time")
)

// TestSoak runs jobs of every kind through one daemon, many at once. Afterwards the node must have as much free as
// before, and the daemon must use as little as before: a leak in one job of a thousand stops a daemon within a month.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	needControlGroups(t)
	testswap.Need(t, 1<<30)
	from := *soakSeed
	if from == 0 {
		from = uint64(time.Now().UnixNano())
	}
	t.Logf("again: go test ./cmd/bellows -run TestSoak -soak %d -soak-seed %d", *soakJobs, from)
	s := startSoak(t)
	plan := soakPlan(*soakJobs, rand.New(rand.NewPCG(from, 0)))

	const holder = 16 * resource.MiB // keeps the node from being empty, so that a job as large as the node waits
	held, err := s.clients[0].Submit(t.Context(), soakJob(holder, "sleep", "100000"))
	if err != nil {
		t.Fatal(err)
	}
	before := s.settled(5 * time.Minute)
	t.Logf("before: %v", before)

	began := time.Now()
	var third, last footprint
	for tenth := range 10 {
		s.runAll(plan[len(plan)*tenth/10 : len(plan)*(tenth+1)/10])
		last = s.footprint()
		if tenth == 2 {
			third = last
		}
		t.Logf("%d jobs after %v: the daemon has %v", len(plan)*(tenth+1)/10, time.Since(began).Round(time.Second), last)
	}
	took := time.Since(began)
	t.Logf("%d jobs in %v, %.1f in a second: %v", len(plan), took.Round(time.Second), float64(len(plan))/took.Seconds(),
		s.done)
	// What has a bound, such as the store's pages and the runtime's free spans, has reached it after 6,000 of 20,000
	// jobs. No job here is asked for again after its end, so that none is kept for readers. 100 bytes that each job
	// leaves on the heap are found.
	if len(plan) >= 10_000 && (float64(last.resident) > 1.1*float64(third.resident) ||
		float64(last.heap) > 1.1*float64(third.heap)) {
		t.Errorf("the daemon has %v after the last tenth, more than 1.1 times what it had after the third, %v", last, third)
	}
	want := map[soakKind]int{}
	for _, kind := range plan {
		want[kind]++
	}
	for kind, n := range want {
		if s.done[kind] != n {
			t.Errorf("%d jobs of kind %s ended as they should, want %d", s.done[kind], kind, n)
		}
	}
	after := before
	for end := time.Now().Add(5 * time.Minute); ; {
		if after = s.small(); after == before || time.Now().After(end) {
			break
		}
	}
	t.Logf("after: %v", after)
	if after != before {
		goroutines, _ := s.look()
		t.Errorf("the daemon holds %v, and before the jobs it held %v; its goroutines:\n%s", after, before, goroutines)
	}
	if err := s.clients[0].Kill(t.Context(), held); err != nil {
		t.Error(err)
	}
}

// soakKind is the behaviour of a job and its expected end.
type soakKind string

const (
	succeeds     soakKind = "succeeds"
	fails        soakKind = "fails"
	prints       soakKind = "prints"
	grows        soakKind = "grows"
	killQueued   soakKind = "killed while queued"
	killStarting soakKind = "killed while starting"
	killRunning  soakKind = "killed while running"
	oversized    soakKind = "oversized"
)

// soakPlan is n jobs in random order. Of 20,000 jobs 15,200 do next to nothing, 600 grow, and 240 are of each other
// kind that does not simply end; a small plan has at least one job of each kind.
func soakPlan(n int, r *rand.Rand) []soakKind {
	perThousand := []struct {
		kind soakKind
		n    int
	}{{succeeds, 380}, {fails, 380}, {grows, 30}, {killQueued, 12}, {killStarting, 12}, {killRunning, 12},
		{oversized, 12}, {prints, 162}}
	var plan []soakKind
	for _, p := range perThousand {
		plan = append(plan, slices.Repeat([]soakKind{p.kind}, max(1, n*p.n/1000))...)
	}
	for len(plan) < n {
		plan = append(plan, succeeds)
	}
	r.Shuffle(len(plan), func(i, j int) { plan[i], plan[j] = plan[j], plan[i] })
	return plan
}

const (
	soakMemory  = 768 * resource.MiB // memory of the node
	soakClients = 8
	growTo      = 24 * resource.MiB

	storeConnections = 8 // more than the store has at once; each connection opens the file, its log and the log's index
)

func soakJob(memory resource.Amount, args ...string) api.Submission {
	return api.Submission{Dir: "/", Env: os.Environ(), Class: new(cluster.Regular),
		Stages: []api.StageSpec{{Stage: cluster.Stage{Tasks: 1, Command: cluster.Command{Args: args}}, CPU: 100,
			Memory: memory}}}
}

// soak is a daemon in a process of its own, and clients of it.
type soak struct {
	t        *testing.T
	dir      string // its state directory
	pid      int
	profile  string // where it writes its goroutines on SIGUSR1
	told     int
	clients  []*client.Client
	gateDir  string
	mu       sync.Mutex
	gates    int
	done     map[soakKind]int // number of jobs that ended as expected
	problems int
}

func startSoak(t *testing.T) *soak {
	dir, err := os.MkdirTemp("", "bellows") // not t.TempDir, since the name of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(os.RemoveAll(dir), os.RemoveAll(dir+store.Mark)) })
	s := &soak{t: t, dir: dir, profile: filepath.Join(t.TempDir(), "goroutines"), gateDir: t.TempDir(),
		done: map[soakKind]int{}}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	up := exec.Command("bellows", "up", "--state", dir, "--memory", resource.FormatMemoryExact(soakMemory))
	up.Env, up.Stderr = append(os.Environ(), "BELLOWS_TEST_GOROUTINES="+s.profile), log
	out, err := up.StdoutPipe()
	if err == nil {
		err = up.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := client.New(filepath.Join(dir, "bellows.sock")).Shutdown(ctx, true); err != nil {
			t.Errorf("end the daemon: %v", err)
			_ = up.Process.Kill()
		}
		_ = up.Wait()
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("the end of the daemon's log:\n%s", text[max(0, len(text)-4000):])
		}
		log.Close()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the daemon did not start: %q %v", line, err)
	}
	s.pid = up.Process.Pid
	for range soakClients {
		s.clients = append(s.clients, client.New(filepath.Join(dir, "bellows.sock")))
	}
	return s
}

// runAll runs jobs, each client one after the other, and waits until all have ended.
func (s *soak) runAll(kinds []soakKind) {
	next := make(chan soakKind, len(kinds))
	for _, kind := range kinds {
		next <- kind
	}
	close(next)
	var clients sync.WaitGroup
	for _, c := range s.clients {
		clients.Go(func() {
			for kind := range next {
				err := s.run(c, kind)
				s.mu.Lock()
				if err == nil {
					s.done[kind]++
				} else if s.problems++; s.problems <= 10 {
					s.t.Errorf("a job that is to be %s: %v", kind, err)
				}
				s.mu.Unlock()
			}
		})
	}
	clients.Wait()
	if s.problems > 10 {
		s.t.Fatalf("%d jobs did not end as they should", s.problems)
	}
}

// run runs one job and returns an error if it did not end as expected.
func (s *soak) run(c *client.Client, kind soakKind) error {
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Minute)
	defer cancel()
	switch kind {
	case succeeds:
		return s.ends(ctx, c, soakJob(8*resource.MiB, "true"), cluster.StatusSucceeded)
	case fails:
		return s.ends(ctx, c, soakJob(8*resource.MiB, "sh", "-c", "exit 1"), cluster.StatusFailed)
	case prints:
		return s.ends(ctx, c, soakJob(8*resource.MiB, "sh", "-c", "seq 1000; seq 1000 >&2"), cluster.StatusSucceeded)
	case grows:
		return s.grows(ctx, c)
	case killQueued:
		return s.killed(ctx, c, soakMemory, "")
	case killStarting:
		return s.killed(ctx, c, 8*resource.MiB, "starting")
	case killRunning:
		return s.killed(ctx, c, 8*resource.MiB, "running")
	default: // oversized
		return s.refused(ctx, c)
	}
}

func (s *soak) ends(ctx context.Context, c *client.Client, job api.Submission, want cluster.JobStatus) error {
	id, err := c.Submit(ctx, job)
	if err != nil {
		return err
	}
	_, err = s.endsAs(ctx, c, id, want)
	return err
}

// endsAs waits for the end of a job and returns the job.
func (s *soak) endsAs(ctx context.Context, c *client.Client, id cluster.JobID, want cluster.JobStatus) (api.Job,
	error) {
	j, err := c.Wait(ctx, id)
	if err != nil {
		return j, fmt.Errorf("wait for job %d: %w", id, err)
	}
	if j.Status != want {
		return j, fmt.Errorf("job %d ended as %s, want %s: %s", id, j.Status, want, j.Detail)
	}
	return j, nil
}

// grows runs a FLEX container whose program runs until the limit of the container has been seen above its first value.
func (s *soak) grows(ctx context.Context, c *client.Client) error {
	s.mu.Lock()
	s.gates++
	gate := filepath.Join(s.gateDir, strconv.Itoa(s.gates))
	s.mu.Unlock()
	job := soakJob(8*resource.MiB, "bellows-grows", strconv.FormatInt(int64(growTo), 10), gate)
	job.Class, job.Stages[0].MaxMemory = new(cluster.Flex), 64*resource.MiB
	id, err := c.Submit(ctx, job)
	if err != nil {
		return err
	}
	err = s.until(ctx, c, id, func(j api.Job) bool {
		u := j.Tasks[0].Usage
		return u != nil && u.Limit != nil && *u.Limit > int64(12*resource.MiB)
	})
	if err != nil {
		return fmt.Errorf("growth of job %d: %w", id, err)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		return err
	}
	_, err = s.endsAs(ctx, c, id, cluster.StatusSucceeded)
	return err
}

// until queries a job until its first task is in the expected state.
func (s *soak) until(ctx context.Context, c *client.Client, id cluster.JobID, is func(api.Job) bool) error {
	for {
		j, err := c.Job(ctx, id, true)
		switch {
		case err != nil:
			return err
		case len(j.Tasks) > 0 && is(j):
			return nil
		case j.Ended:
			return fmt.Errorf("it ended as %s before: %s", j.Status, j.Detail)
		}
	}
}

// killed kills a job whose task is in the given state; "" is a job that is queued and has no task yet. If the task was
// seen in another state, killed tries again with a new job.
func (s *soak) killed(ctx context.Context, c *client.Client, memory resource.Amount, state string) error {
	for {
		id, err := c.Submit(ctx, soakJob(memory, "sleep", "1000"))
		if err != nil {
			return err
		}
		seen := ""
		if state != "" {
			err = s.until(ctx, c, id, func(j api.Job) bool {
				seen = j.Tasks[0].State.String()
				return seen == state || seen == "running"
			})
			if err != nil {
				return err
			}
		}
		if err := c.Kill(ctx, id); err != nil {
			return err
		}
		j, err := s.endsAs(ctx, c, id, cluster.StatusCancelled)
		if err != nil {
			return err
		}
		if state == "" && len(j.Tasks) > 0 {
			return fmt.Errorf("job %d, larger than what is free, was started", id)
		}
		if seen == state {
			return nil
		}
	}
}

// refused submits a job that fits on no node.
func (s *soak) refused(ctx context.Context, c *client.Client) error {
	id, err := c.Submit(ctx, soakJob(2*soakMemory, "true"))
	if api.KindOf(err) == api.Invalid {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = s.endsAs(ctx, c, id, cluster.StatusFailed)
	return err
}

// holdings are the resources that a daemon uses while one job runs.
type holdings struct {
	free                                    int64 // bytes of memory that are not granted
	goroutines, descriptors, cgroups, files int
}

func (h holdings) String() string {
	return fmt.Sprintf("%d MiB free, %d goroutines, %d descriptors, %d control groups, %d files", h.free>>20,
		h.goroutines, h.descriptors, h.cgroups, h.files)
}

// settled returns the daemon's holdings as soon as forty more jobs do not change them.
func (s *soak) settled(patience time.Duration) holdings {
	last := s.small()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		now := s.small()
		if now == last {
			return now
		}
		last = now
	}
	s.t.Fatalf("what the daemon holds keeps changing: %v", last)
	return last
}

// small runs forty jobs, removes all ended jobs, and returns the daemon's holdings.
func (s *soak) small() holdings {
	s.t.Helper()
	done := s.done[succeeds]
	s.runAll(slices.Repeat([]soakKind{succeeds}, 40))
	s.done[succeeds] = done
	end := time.Now().Add(2 * time.Minute)
	for ; ; time.Sleep(time.Second) { // a job that has just ended stays for some seconds
		if _, err := s.clients[0].Prune(s.t.Context(), 0, 0, false); err != nil {
			s.t.Fatal(err)
		}
		jobs := 0
		for page, err := range s.clients[0].JobPages(s.t.Context(), true, api.JobFilter{}) {
			if err != nil {
				s.t.Fatal(err)
			}
			jobs += len(page)
		}
		if jobs == 1 {
			break
		}
		if time.Now().After(end) {
			s.t.Fatalf("%d jobs are left", jobs)
		}
	}
	h := s.holds()
	for same := 0; same < 5; same++ { // Supervisors that have no work end some seconds after the last job.
		time.Sleep(time.Second)
		if now := s.holds(); now != h {
			h, same = now, 0
		}
		if time.Now().After(end) {
			s.t.Fatalf("what the daemon holds keeps changing: %v", h)
		}
	}
	return h
}

// holds returns the daemon's holdings.
func (s *soak) holds() (h holdings) {
	s.t.Helper()
	for _, c := range s.clients { // so that each has a connection, even after a long idle time
		status, err := c.Status(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		h.free = status.Nodes[0].FreeMemory
	}
	goroutines, _ := s.look()
	if _, err := fmt.Sscanf(goroutines, "goroutine profile: total %d", &h.goroutines); err != nil {
		s.t.Fatalf("%v: %q", err, goroutines)
	}
	h.descriptors, h.cgroups = s.descriptors(), testgroups.Count(s.t, s.dir)
	err := filepath.WalkDir(s.dir, func(string, fs.DirEntry, error) error { h.files++; return nil })
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

// footprint is the memory of a daemon that has returned what it does not use, bytes.
type footprint struct {
	resident int64 // of the process, with its program
	heap     int64 // what its Go objects take
}

func (f footprint) String() string {
	return fmt.Sprintf("%d KiB in memory, %d KiB of it in objects", f.resident>>10, f.heap>>10)
}

// footprint returns the least of several looks: the daemon also works between two jobs.
func (s *soak) footprint() footprint {
	s.t.Helper()
	_, least := s.look()
	for range 4 {
		time.Sleep(200 * time.Millisecond)
		_, now := s.look()
		least = footprint{min(least.resident, now.resident), min(least.heap, now.heap)}
	}
	return least
}

// look makes the daemon return its unused memory to the system, and returns its goroutines and its memory afterwards.
func (s *soak) look() (goroutines string, has footprint) {
	s.t.Helper()
	s.told++
	if err := syscall.Kill(s.pid, syscall.SIGUSR1); err != nil {
		s.t.Fatal(err)
	}
	path := fmt.Sprint(s.profile, s.told)
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		text, err := os.ReadFile(path)
		if err == nil {
			var heap string
			heap, goroutines, _ = strings.Cut(string(text), "\n")
			if has.heap, err = strconv.ParseInt(heap, 10, 64); err != nil {
				s.t.Fatal(err)
			}
			break
		}
		if time.Now().After(end) {
			s.t.Fatalf("the daemon does not say what it holds: %v", err)
		}
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.pid))
	if err != nil {
		s.t.Fatal(err)
	}
	var pages int64
	if _, err := fmt.Sscan(strings.Fields(string(text))[1], &pages); err != nil {
		s.t.Fatal(err)
	}
	has.resident = pages * int64(os.Getpagesize())
	return goroutines, has
}

// descriptors counts the open files of the daemon. The store's file counts once: SQLite keeps the descriptor of a
// closed connection as long as another connection has a lock, so the number of its descriptors is the largest number of
// connections that were ever open at once.
func (s *soak) descriptors() (n int) {
	s.t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", s.pid)
	open, err := os.ReadDir(dir)
	if err != nil {
		s.t.Fatal(err)
	}
	files := 0
	for _, fd := range open {
		target, err := os.Readlink(filepath.Join(dir, fd.Name()))
		switch {
		case err != nil: // closed meanwhile
		case strings.HasPrefix(target, filepath.Join(s.dir, store.File)):
			files++
		default:
			n++
		}
	}
	if files > 3*storeConnections {
		s.t.Fatalf("the store's file is open %d times", files)
	}
	return n + 1
}

// tellGoroutines makes this process write the bytes of its objects and its goroutines to a new file at each SIGUSR1,
// after it has returned its unused memory to the system.
func tellGoroutines(path string) {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGUSR1)
	go func() {
		for n := 1; ; n++ {
			<-told
			runtime.GC() // A sync.Pool keeps what it has until the second collection.
			debug.FreeOSMemory()
			var text strings.Builder
			var has runtime.MemStats
			runtime.ReadMemStats(&has)
			fmt.Fprintln(&text, has.HeapAlloc)
			_ = pprof.Lookup("goroutine").WriteTo(&text, 1)
			_ = os.WriteFile(path+".new", []byte(text.String()), 0o600)
			_ = os.Rename(path+".new", fmt.Sprint(path, n))
		}
	}()
}

// soakGrows is a program that allocates the given amount of memory and uses all of it until a file exists.
func soakGrows() {
	size, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	block := testswap.Memory[byte](size)
	for n := byte(1); ; n++ {
		for i := 0; i < len(block); i += os.Getpagesize() {
			block[i] = n
		}
		if _, err := os.Stat(os.Args[2]); !errors.Is(err, fs.ErrNotExist) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
