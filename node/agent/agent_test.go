package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/internal/testswap"
	"github.com/bellows-rm/bellows/node/swap"
)

// TestMain lets this test program be the supervisor of the containers that it starts, and programs to run in them.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == SuperviseCommand {
		syscall.Exit(Supervise(os.Args[2:])) // os.Exit would sleep for a second with the race detector.
	}
	if len(os.Args) > 2 && os.Args[1] == "open" {
		_, err := Open(Config{Dir: os.Args[2]})
		if why, ok := err.(*NoCgroupError); ok {
			fmt.Println(why)
		}
		os.Exit(0)
	}
	if len(os.Args) > 2 && os.Args[1] == "allocate" {
		allocate(os.Args[2])
	}
	if len(os.Args) > 2 && os.Args[1] == "daemon" {
		daemon(os.Args[2])
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == "puppet" {
		puppet()
		os.Exit(0)
	}
	if len(os.Args) > 3 && os.Args[1] == "work" {
		work(os.Args[2], os.Args[3])
	}
	if len(os.Args) > 2 && os.Args[1] == "pulse" {
		pulse(os.Args[2])
	}
	if len(os.Args) > 4 && os.Args[1] == "waiter" {
		waiter(os.Args[2:])
	}
	if len(os.Args) > 4 && os.Args[1] == "tight" {
		tight(os.Args[2:])
	}
	if len(os.Args) > 3 && os.Args[1] == "hostile" {
		hostile(os.Args[2:])
	}
	if len(os.Args) > 3 && os.Args[1] == "pattern" {
		pattern(os.Args[2], os.Args[3])
	}
	if len(os.Args) > 5 && os.Args[1] == "transfer" {
		transfer(os.Args[2], os.Args[3], os.Args[4], os.Args[5])
	}
	if len(os.Args) > 1 && os.Args[1] == "sum" {
		sum()
	}
	if len(os.Args) > 4 && os.Args[1] == "dirty" {
		dirty(os.Args[2], os.Args[3], os.Args[4:])
	}
	if len(os.Args) > 3 && os.Args[1] == "pinned" {
		pinned(os.Args[2], os.Args[3:])
	}
	if len(os.Args) > 2 && os.Args[1] == "step" {
		step(os.Args[2])
	}
	if len(os.Args) > 2 && os.Args[1] == "rest" {
		rest(os.Args[2])
	}
	if len(os.Args) > 3 && os.Args[1] == "sized" {
		sized(os.Args[2], os.Args[3])
	}
	if len(os.Args) > 3 && os.Args[1] == "hold" {
		hold(os.Args[2], os.Args[3])
	}
	os.Exit(m.Run())
}

// hold touches the given number of MiB repeatedly for the given number of seconds.
func hold(size, seconds string) {
	var mib int
	var s float64
	fmt.Sscan(size, &mib)
	fmt.Sscan(seconds, &s)
	block := testswap.Memory[byte](mib << 20)
	for end := time.Now().Add(time.Duration(s * 1e9)); time.Now().Before(end); {
		for i := 0; i < len(block); i += 4096 {
			block[i]++
		}
	}
	os.Exit(0)
}

// rest touches the given number of MiB, and then does nothing.
func rest(size string) {
	var mib int
	fmt.Sscan(size, &mib)
	block := testswap.Memory[byte](mib << 20)
	for i := 0; i < len(block); i += 4096 {
		block[i] = 1
	}
	for {
		time.Sleep(time.Hour)
	}
}

// allocate touches as many MiB as text says.
func allocate(text string) {
	var mib int
	fmt.Sscan(text, &mib)
	block := testswap.Memory[byte](mib << 20)
	for i := 0; i < len(block); i += 4096 {
		block[i] = 1
	}
	fmt.Println("allocated", len(block)>>20, "MiB")
	os.Exit(0)
}

// bench is an agent with a state directory of its own.
type bench struct {
	*Agent
	t      *testing.T
	dir    string
	memory resource.Amount      // 0 is 1 GiB
	engine func() timeline.Time // its clock; nil is newClock
	// seen are events that came while another was waited for.
	seen []cluster.Event
}

// container returns a container that is being started or runs; nil if there is none.
func (a *Agent) container(id cluster.ContainerID) *container {
	c, _ := a.containers.get(id)
	return c
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir()}
	b.open()
	t.Cleanup(b.cleanUp)
	return b
}

func (b *bench) open() {
	b.t.Helper()
	b.take()
	if e := b.next(cluster.NodeJoined); e.NewNode.Name != "n1" {
		b.t.Fatalf("the node that joined is %v", e.NewNode)
	}
}

// take is open without the inventory.
func (b *bench) take() {
	b.t.Helper()
	a, err := Open(Config{Dir: b.dir, Node: "n1", Capacity: resource.Of(2000, cmp.Or(b.memory, resource.GiB)),
		Grace: 300 * time.Millisecond, clock: b.engine,
		Log: slog.New(slog.NewTextHandler(b.t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		if _, ok := err.(*NoCgroupError); ok {
			b.t.Skipf("needs a control group with a memory controller: %v", err)
		}
		b.t.Fatal(err)
	}
	b.Agent, b.seen = a, nil
}

func (b *bench) reopen() {
	b.t.Helper()
	b.Close()
	b.open()
}

func (b *bench) cleanUp() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var orders []cluster.Order
	left := map[cluster.ContainerID]bool{}
	for _, c := range b.containers.each() {
		orders = append(orders, cluster.Order{Decision: cluster.Decision{Kind: cluster.Kill}, Container: c.id})
		left[c.id] = true
	}
	b.Apply(orders)
	for len(left) > 0 { // ends that the test has not asked for may come before theirs
		e := b.next(cluster.TaskEnded)
		delete(left, cluster.ContainerID{Task: e.Task, Run: e.Run})
	}
	if err := b.Remove(ctx); err != nil {
		b.t.Errorf("clean up: %v", err)
	}
}

// next returns the next event of a kind, and keeps others for later.
func (b *bench) next(kind cluster.EventKind) cluster.Event {
	b.t.Helper()
	return b.nextWithin(time.Minute, kind)
}

// nextWithin is next for an event that may take longer.
func (b *bench) nextWithin(within time.Duration, kind cluster.EventKind) cluster.Event {
	b.t.Helper()
	for i, e := range b.seen {
		if e.Kind == kind {
			b.seen = append(b.seen[:i], b.seen[i+1:]...)
			return e
		}
	}
	timeout := time.After(within)
	for {
		select {
		case e := <-b.Events():
			if e.Kind == kind {
				return e
			}
			b.seen = append(b.seen, e)
		case <-timeout:
			b.t.Fatalf("no event %s; others: %+v", kind, b.seen)
		}
	}
}

// path is where programs are: a guest has them in its last folder.
const path = "/usr/bin:/bin:/guest"

var job cluster.JobID

// order returns an order to start a program with a grant of 64 MiB.
func (b *bench) order(args ...string) cluster.Order {
	job++
	id := cluster.ContainerID{Task: cluster.TaskID{Job: job}, Run: 1}
	out := filepath.Join(b.dir, "logs", id.String())
	return cluster.Order{
		Decision:  cluster.Decision{ID: 7, Kind: cluster.Start, Task: id.Task, Grant: resource.Of(1000, 64*resource.MiB)},
		Container: id,
		Launch: &cluster.Launch{Args: args, Env: []string{"PATH=" + path, "GREETING=hello"}, Dir: b.dir,
			As: cluster.Credentials{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}, Stdout: out + ".out",
			Stderr: out + ".err"},
	}
}

// Apply is that of the agent, with the envelopes that the engine would have given.
func (b *bench) Apply(orders []cluster.Order) { b.Agent.Apply(enveloped(orders)) }

// enveloped completes the envelopes of orders made by hand: a container starts with its grant, which a REGULAR one
// keeps. Programs in a FLEX one see the memory that it may have.
func enveloped(orders []cluster.Order) []cluster.Order {
	for i := range orders {
		if o := &orders[i]; o.Kind == cluster.Start {
			e := &o.Envelope
			e.Min, e.Rank = o.Grant[resource.Memory], cmp.Or(e.Rank, int(o.Task.Job))
			e.Max = max(e.Max, e.Min)
			if e.Class == cluster.Flex && o.Launch.Most == 0 {
				o.Launch.Most = e.Max
			}
		}
	}
	return orders
}

func kill(id cluster.ContainerID) []cluster.Order {
	return []cluster.Order{{Decision: cluster.Decision{Kind: cluster.Kill, Task: id.Task}, Container: id}}
}

// run starts an order and returns how it ended.
func (b *bench) run(o cluster.Order) cluster.Event {
	b.t.Helper()
	b.Apply([]cluster.Order{o})
	if e := b.next(cluster.DecisionDone); e.Decision != o.ID || e.Task != o.Task || e.Run != o.Container.Run {
		b.t.Fatalf("started %+v", e)
	}
	return b.next(cluster.TaskEnded)
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestProgramRunsAndItsEndIsTold(t *testing.T) {
	b := newBench(t)
	o := b.order("sh", "-c", "echo $GREETING; echo oops >&2; pwd; cat; exit 3")
	e := b.run(o)
	if e.Outcome != cluster.Failed || e.Exit == nil || e.Exit.Code != 3 || e.Detail != "ended with exit code 3" {
		t.Errorf("ended %+v %+v", e, e.Exit)
	}
	if got, want := read(t, o.Launch.Stdout), "hello\n"+b.dir+"\n"; got != want {
		t.Errorf("output %q, want %q", got, want)
	}
	if got := read(t, o.Launch.Stderr); got != "oops\n" {
		t.Errorf("errors %q", got)
	}
	if e.Exit.Peak <= 0 || e.Exit.CPUTime <= 0 || e.Exit.Started <= 0 || e.Exit.Ended < e.Exit.Started {
		t.Errorf("exit %+v", e.Exit)
	}
	b.Forget(o.Container)
	if entries, _ := os.ReadDir(filepath.Join(b.dir, "containers")); len(entries) != 0 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestProgramsThatCannotRun(t *testing.T) {
	b := newBench(t)
	b.seen = nil
	plain := filepath.Join(b.dir, "plain")
	if err := os.WriteFile(plain, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, dir string
		args      []string
		code      int
		detail    string
	}{
		{"no such name", "", []string{"no-such-program"}, 127, `program "no-such-program" was not found along PATH=` + path},
		{"no such path", "", []string{"/no/such/program"}, 127, `program "/no/such/program" was not found`},
		{"directory", "", []string{"/tmp"}, 126, `program "/tmp" is a directory`},
		{"not executable", "", []string{plain}, 126, fmt.Sprintf("program %q may not be executed by this user", plain)},
		{"no such directory", "/no/such/dir", []string{"true"}, 126,
			`working directory "/no/such/dir": no such file or directory`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := b.order(c.args...)
			if c.dir != "" {
				o.Launch.Dir = c.dir
			}
			e := b.run(o)
			if e.Outcome != cluster.Failed || e.Exit == nil || e.Exit.Code != c.code || e.Detail != c.detail {
				t.Errorf("ended %s %+v: %s", e.Outcome, e.Exit, e.Detail)
			}
		})
	}
}

func TestMemoryKillIsTold(t *testing.T) {
	b := newBench(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	e := b.run(b.order(self, "allocate", "200"))
	granted := b.order("true").Grant[resource.Memory]
	if e.Outcome != cluster.OutOfMemory || e.Exit.OOMKills < 1 || e.Exit.Code != 137 || e.Exit.Held < granted ||
		e.Exit.Held > granted+4*resource.MiB || e.Exit.Used != e.Exit.Held || !strings.Contains(e.Detail, "for memory") {
		t.Errorf("ended %s %+v: %s", e.Outcome, e.Exit, e.Detail)
	}
	o := b.order(self, "allocate", "30")
	o.Grant[resource.Memory] = 256 * resource.MiB
	e = b.run(o)
	if e.Outcome != cluster.Succeeded || e.Exit.OOMKills != 0 || e.Exit.Peak < 30*resource.MiB || e.Exit.Held != 0 ||
		e.Exit.Peak > 256*resource.MiB {
		t.Errorf("ended %s %+v: %s", e.Outcome, e.Exit, e.Detail)
	}
	// Each of its allocations is gone before it can be sampled.
	if e.Exit.Used < 30*resource.MiB || e.Exit.Used > 64*resource.MiB {
		t.Errorf("it is said to have held %s", resource.FormatMemory(e.Exit.Used))
	}
	// A shell that outlives the victim passes its exit code on.
	e = b.run(b.order("sh", "-c", self+" allocate 200; exit 9"))
	if e.Outcome != cluster.OutOfMemory || e.Exit.Code != 9 {
		t.Errorf("ended %s %+v: %s", e.Outcome, e.Exit, e.Detail)
	}
}

// The page cache of files that stay, and of those that a program has removed, is not held.
func TestPageCacheIsNotHeld(t *testing.T) {
	b := newBench(t)
	for _, script := range []string{"head -c 50000000 /dev/zero > big", "head -c 50000000 /dev/zero > big; : > big"} {
		o := b.order("sh", "-c", script)
		o.Grant[resource.Memory] = 256 * resource.MiB
		e := b.run(o)
		if e.Outcome != cluster.Succeeded || e.Exit.Peak < 50_000_000 || e.Exit.Used > 16*resource.MiB {
			t.Errorf("%s: ended %s %+v: %s", script, e.Outcome, e.Exit, e.Detail)
		}
	}
}

func TestKillEndsForksToo(t *testing.T) {
	b := newBench(t)
	o := b.order("sh", "-c",
		`trap "" TERM; (trap "" TERM; setsid sleep 1000 & sleep 1000) & echo ready; while :; do sleep 1000; done`)
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	b.awaitOutput(o, "ready\n")
	group := b.container(o.Container).group
	b.Apply(kill(o.Container))
	e := b.next(cluster.TaskEnded)
	if e.Outcome != cluster.Killed || e.Exit == nil || e.Exit.Signal != 9 {
		t.Errorf("ended %s %+v: %s", e.Outcome, e.Exit, e.Detail)
	}
	if pids, err := group.Procs(); err == nil {
		t.Errorf("still there: %v", pids)
	}
	b.Apply(kill(o.Container)) // Once more does nothing.
}

func TestKillIsPoliteFirst(t *testing.T) {
	b := newBench(t)
	o := b.order("sh", "-c", `trap "echo bye; exit 4" TERM; echo ready; while :; do sleep 0.01; done`)
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	b.awaitOutput(o, "ready\n")
	b.Apply(kill(o.Container))
	if e := b.next(cluster.TaskEnded); e.Outcome != cluster.Killed || e.Exit.Code != 4 {
		t.Errorf("ended %s %+v", e.Outcome, e.Exit)
	}
	if got := read(t, o.Launch.Stdout); got != "ready\nbye\n" {
		t.Errorf("output %q", got)
	}
}

// A program that stopped itself hears that it is to end, whoever ends it.
func TestStoppedProgramHearsThatItIsToEnd(t *testing.T) {
	b := newBench(t)
	b.terms.grace = cluster.DefaultGrace // far more than the handler needs
	for name, c := range map[string]struct {
		timeout time.Duration
		end     func(o cluster.Order)
		want    cluster.Outcome
	}{
		"kill": {end: func(o cluster.Order) { b.Apply(kill(o.Container)) }, want: cluster.Killed},
		"preemption": {end: func(o cluster.Order) {
			k := kill(o.Container)
			k[0].Preempt = true
			b.Apply(k)
		}, want: cluster.Preempted},
		"time limit": {timeout: time.Second, end: func(cluster.Order) {}, want: cluster.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			o := b.order("sh", "-c", `trap "echo bye; exit 4" TERM; echo $$; kill -STOP $$; while :; do sleep 0.01; done`)
			o.Launch.Timeout = c.timeout
			b.Apply([]cluster.Order{o})
			b.next(cluster.DecisionDone)
			await(t, "the stopped program", func() bool {
				pid, _, whole := strings.Cut(read(t, o.Launch.Stdout), "\n")
				status, err := os.ReadFile("/proc/" + pid + "/status")
				// an error: its time limit has ended it
				return whole && (err != nil || strings.Contains(string(status), "T (stopped)"))
			})
			c.end(o)
			if e := b.next(cluster.TaskEnded); e.Outcome != c.want || e.Exit == nil || e.Exit.Signal != 0 {
				t.Errorf("ended %s %+v", e.Outcome, e.Exit)
			}
			if got := read(t, o.Launch.Stdout); !strings.HasSuffix(got, "\nbye\n") {
				t.Errorf("output %q", got)
			}
		})
	}
	b.t = t
}

// awaitOutput waits until a program has written text.
func (b *bench) awaitOutput(o cluster.Order, text string) {
	b.t.Helper()
	await(b.t, "output "+text, func() bool {
		got, _ := os.ReadFile(o.Launch.Stdout)
		return string(got) == text
	})
}

func await(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !f(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never came: %s", what)
		}
	}
}

func TestContainerEndsWithItsProgram(t *testing.T) {
	b := newBench(t)
	o := b.order("sh", "-c", `sleep 1000 & echo $!`)
	if e := b.run(o); e.Outcome != cluster.Succeeded {
		t.Errorf("ended %+v", e)
	}
	pid := strings.TrimSpace(read(t, o.Launch.Stdout))
	await(t, "the end of the fork", func() bool {
		text, err := os.ReadFile("/proc/" + pid + "/cmdline")
		return err != nil || !strings.Contains(string(text), "sleep")
	})
}

func TestContainersAreFoundAgain(t *testing.T) {
	b := newBench(t)
	gate := filepath.Join(b.dir, "gate")
	waits := b.order("sh", "-c", "until [ -e "+gate+" ]; do sleep 0.01; done; echo done; exit 5")
	ends := b.order("sh", "-c", "echo early; exit 6")
	b.Apply([]cluster.Order{waits, ends})
	b.next(cluster.DecisionDone)
	b.next(cluster.DecisionDone)
	b.Close()
	await(t, "the record of the end", func() bool { return !held(b.folder(ends.Container)) })
	b.open()
	if e := b.next(cluster.TaskAdopted); e.Task != waits.Task || e.Run != 1 || e.Grant != waits.Grant || e.Launched == 0 {
		t.Errorf("adopted %+v", e)
	}
	if e := b.next(cluster.TaskEnded); e.Task != ends.Task || e.Exit == nil || e.Exit.Code != 6 {
		t.Errorf("ended %+v", e)
	}
	b.next(cluster.Synced)
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := b.next(cluster.TaskEnded); e.Task != waits.Task || e.Exit == nil || e.Exit.Code != 5 {
		t.Errorf("ended %+v %+v", e, e.Exit)
	}
	// A container that was not forgotten is reported again.
	b.Forget(ends.Container)
	b.reopen()
	if e := b.next(cluster.TaskEnded); e.Task != waits.Task || e.Exit.Code != 5 {
		t.Errorf("told again: %+v", e)
	}
	b.Forget(waits.Container)
	if got := read(t, waits.Launch.Stdout); got != "done\n" {
		t.Errorf("output %q", got)
	}
}

// TestFoundBeforeItsEnd opens an agent that takes a second to find running containers, because a supervisor has left no
// pid. A container that was found before that ends meanwhile: its discovery is reported first, then its end.
func TestFoundBeforeItsEnd(t *testing.T) {
	b := newBench(t)
	gate := filepath.Join(b.dir, "gate")
	ends, slow := b.order(), b.order()
	if ends.Container.String() > slow.Container.String() { // They are found by the order of their names.
		ends, slow = slow, ends
	}
	ends.Launch.Args = []string{"sh", "-c", "until [ -e " + gate + " ]; do sleep 0.01; done; sleep 0.4"}
	slow.Launch.Args = []string{"sleep", "1000"}
	b.Apply([]cluster.Order{ends, slow})
	b.next(cluster.DecisionDone)
	b.next(cluster.DecisionDone)
	b.Close()
	for _, path := range []string{b.folder(slow.Container).path("lock"), gate} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.open()
	b.next(cluster.Synced)
	for _, e := range b.seen {
		if e.Kind != cluster.TaskAdopted {
			t.Errorf("while it looked: %+v", e)
		}
	}
	if len(b.seen) != 2 {
		t.Errorf("found %+v", b.seen)
	}
	if e := b.next(cluster.TaskEnded); e.Task != ends.Task {
		t.Errorf("ended %+v", e)
	}
}

func TestFoundAgainContainersCanBeKilled(t *testing.T) {
	b := newBench(t)
	o := b.order("sleep", "1000")
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	b.reopen()
	b.next(cluster.TaskAdopted)
	b.Apply(kill(o.Container))
	if e := b.next(cluster.TaskEnded); e.Outcome != cluster.Killed || e.Exit.Signal != 15 {
		t.Errorf("ended %+v %+v", e, e.Exit)
	}
}

// That a container was to give its room to others is known to the agent that finds it ended, too.
func TestPreemptedIsNotKilled(t *testing.T) {
	b := newBench(t)
	o := b.order("sleep", "1000")
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	k := kill(o.Container)
	k[0].Preempt = true
	b.Apply(k)
	if e := b.next(cluster.TaskEnded); e.Outcome != cluster.Preempted || e.Exit.Signal != 15 {
		t.Errorf("ended %+v %+v", e, e.Exit)
	}
	b.reopen()
	if e := b.next(cluster.TaskEnded); e.Outcome != cluster.Preempted {
		t.Errorf("after a restart it ended %+v", e)
	}
}

func TestDeadSupervisorIsALostTask(t *testing.T) {
	b := newBench(t)
	o := b.order("sleep", "1000")
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	pid, ok := b.folder(o.Container).supervisor()
	if !ok {
		t.Fatal("no pid")
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if e := b.next(cluster.TaskEnded); e.Outcome != cluster.Lost || e.Exit != nil || e.Detail == "" {
		t.Errorf("ended %+v", e)
	}
	if names, err := b.groups.root.List(); err != nil || len(names) != 1 {
		t.Errorf("groups left: %v %v", names, err)
	}
}

func TestReadings(t *testing.T) {
	b := newBench(t)
	o := b.order("sh", "-c", "echo ready; exec sleep 1000")
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	b.awaitOutput(o, "ready\n")
	r, ok := b.Readings()[o.Container]
	if !ok || r.Memory == nil || *r.Memory <= 0 || r.Limit == nil || *r.Limit != int64(64*resource.MiB) ||
		r.Anonymous == nil ||
		r.CPUTime == nil || *r.CPUTime <= 0 || r.Processes == nil || *r.Processes != 1 || r.Peak == nil {
		t.Errorf("reading %+v", r)
	}
}

func TestProgramHasTheRightsOfItsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to run programs as another user")
	}
	b := newBench(t)
	o := b.order("sh", "-c", "id -u; id -g; id -G; echo >>/dev/stdout; grep NoNewPrivs /proc/self/status")
	o.Launch.Dir = "/"
	o.Launch.As = cluster.Credentials{UID: 12345, GID: 23456, Groups: []uint32{23456, 34567}}
	if e := b.run(o); e.Outcome != cluster.Succeeded {
		t.Errorf("ended %s: %s %s", e.Outcome, e.Detail, read(t, o.Launch.Stderr))
	}
	if got := read(t, o.Launch.Stdout); got != "12345\n23456\n23456 34567\n\nNoNewPrivs:\t1\n" {
		t.Errorf("output %q", got)
	}
	o = b.order("true")
	o.Launch.Dir = b.dir
	o.Launch.As = cluster.Credentials{UID: 12345, GID: 23456}
	if err := os.Chmod(b.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if e := b.run(o); e.Exit.Code != 126 || !strings.HasSuffix(e.Detail, "permission denied") {
		t.Errorf("ended %+v %s", e.Exit, e.Detail)
	}
}

func TestStartThatFailsForTheMachine(t *testing.T) {
	b := newBench(t)
	o := b.order("true")
	o.Launch.Stdout = "/proc/no/such/file"
	b.Apply([]cluster.Order{o})
	if e := b.next(cluster.DecisionFailed); e.Decision != o.ID || !strings.Contains(e.Detail, "/proc/no") {
		t.Errorf("failed %+v", e)
	}
	if names, err := b.groups.root.List(); err != nil || len(names) != 1 {
		t.Errorf("groups left: %v %v", names, err)
	}
}

func TestCapacity(t *testing.T) {
	const GiB = resource.GiB
	for _, c := range []struct {
		memory, cpu, total, cores resource.Amount
		want                      resource.Vector
		wrong                     string
	}{
		{0, 0, 24 * GiB, 2000, resource.Of(2000, (24*GiB*9/10)/resource.MiB*resource.MiB), ""},
		{0, 0, 2 * GiB, 1000, resource.Of(1000, 2*GiB-512*resource.MiB), ""},
		{0, 0, GiB / 2, 1000, resource.Of(1000, GiB/4), ""},
		{GiB, 500, 2 * GiB, 1000, resource.Of(500, GiB), ""},
		{3 * GiB, 0, 2 * GiB, 1000, resource.Vector{}, "memory 3GiB: must be at most what this machine has, 2GiB"},
		{0, 3000, 2 * GiB, 1000, resource.Vector{}, "cpus 3: must be at most what this machine has, 1 core"},
	} {
		got, err := (&Usable{Has: resource.Of(c.cores, c.total)}).Capacity(c.memory, c.cpu)
		if got != c.want && err == nil || (err != nil) != (c.wrong != "") || (err != nil && err.Error() != c.wrong) {
			t.Errorf("capacity(%v, %v, %v, %v) = %v, %v", c.memory, c.cpu, c.total, c.cores, got, err)
		}
	}
	if got, err := Capacity(0, 0); err != nil || got[resource.CPU] <= 0 || got[resource.Memory] <= 0 {
		t.Errorf("Capacity: %v, %v", got, err)
	}
}

// TestUsable: of CPU the least of affinity and quotas counts, of memory what is not reserved as huge pages, at most
// the limits of the control groups; and a value above that is refused with the reason.
func TestUsable(t *testing.T) {
	const mounts = "32 31 0:29 / /cpu rw - cgroup cgroup rw,cpu\n35 31 0:32 / /memory rw - cgroup cgroup rw,memory\n"
	for _, c := range []struct {
		name, info, quota, limit string
		cpus                     int
		memory, cpu              string // why a value that is too large is refused
	}{
		{"all of it", "Hugetlb: 0 kB\n", "-1", "9223372036854771712", 2, "what this machine has, 4GiB",
			"what this machine has, 2 cores"},
		{"huge pages", "HugePages_Total: 512\nHugepagesize: 2048 kB\nHugetlb: 1048576 kB\n", "-1", "9223372036854771712", 2,
			"what may be used of this machine, 3GiB: 1GiB of its 4GiB is reserved as huge pages",
			"what this machine has, 2 cores"},
		{"bounds of the group", "Hugetlb: 1048576 kB\n", "50000", "1073741824", 2,
			"what may be used of this machine, 1GiB: the control group /own may use no more",
			"what may be used of this machine, 500m cores: the control group /own may use no more"},
		{"affinity", "", "150000", "9223372036854771712", 1,
			"what this machine has, 4GiB", "what may be used of this machine, 1 core: this process may run on 1 of its 2 CPUs"},
	} {
		root := t.TempDir()
		for name, text := range map[string]string{"proc/self/mountinfo": mounts,
			"proc/self/cgroup": "4:memory:/own\n2:cpu:/own\n", "proc/meminfo": "MemTotal: 4194304 kB\n" + c.info,
			"proc/stat":                "cpu  1 2\ncpu0 1 2\ncpu1 1 2\nintr 5\n",
			"cpu/own/cpu.cfs_quota_us": c.quota, "cpu/own/cpu.cfs_period_us": "100000",
			"memory/own/memory.limit_in_bytes": c.limit} {
			path := filepath.Join(root, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		u, err := usableOf(swap.Machine{Root: root}, c.cpus)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := u.Capacity(5*resource.GiB, 0); err == nil || err.Error() != "memory 5GiB: must be at most "+c.memory {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := u.Capacity(0, 5000); err == nil || err.Error() != "cpus 5: must be at most "+c.cpu {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A program runs inside its container from its first instruction on, so nothing it allocates is charged elsewhere.
func TestProgramIsInsideFromTheStart(t *testing.T) {
	b := newBench(t)
	o := b.order("cat", "/proc/self/cgroup")
	if e := b.run(o); e.Outcome != cluster.Succeeded {
		t.Fatalf("ended %+v", e)
	}
	if got := read(t, o.Launch.Stdout); !strings.Contains(got, "memory:"+b.groups.root.Place()+"/"+o.Container.String()) &&
		!strings.Contains(got, "0::") {
		t.Errorf("inside %s", got)
	}
}

// onSmallDisk returns an agent whose state is on a disk of its own of that size.
func onSmallDisk(t *testing.T, size string) *bench {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("bellows-test", dir, "tmpfs", 0, "size="+size); errors.Is(err, unix.EPERM) {
		t.Skipf("needs to mount a file system: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	b := &bench{t: t, dir: dir}
	b.open()
	t.Cleanup(b.cleanUp)
	return b
}

// fillDisk leaves no room on a small disk, by a file whose path it returns.
func (b *bench) fillDisk() (ballast string) {
	b.t.Helper()
	ballast = filepath.Join(b.dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		b.t.Fatalf("the disk is not full: %v", err)
	}
	return ballast
}

// A disk that is full when a program ends loses neither its exit code nor the fact that it ended: room for the record
// was set aside. One that is full when it is to start fails the start, in one sentence.
func TestFullDisk(t *testing.T) {
	b := onSmallDisk(t, "256k")
	gate := filepath.Join(t.TempDir(), "gate")
	o := b.order("sh", "-c", "echo ready; until [ -e "+gate+" ]; do sleep 0.01; done; echo lost; exit 6")
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	b.awaitOutput(o, "ready\n")
	ballast := b.fillDisk()
	late := b.order("true")
	b.Apply([]cluster.Order{late})
	if e := b.next(cluster.DecisionFailed); !strings.Contains(e.Detail, "no space left on device") || !e.Short {
		t.Errorf("failed with %+v", e)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := b.next(cluster.TaskEnded); e.Outcome != cluster.Failed || e.Exit == nil || e.Exit.Code != 6 {
		t.Errorf("ended %+v %s", e.Exit, e.Detail)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
}

// A user who may not bound memory gets one sentence that says what is missing and how to get it.
func TestNoControlGroups(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to run programs as another user")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// A place that others can get to.
	dir, err := os.MkdirTemp("/tmp", "bellows-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	text, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "program")
	if err := errors.Join(os.WriteFile(program, text, 0o755), os.Chmod(dir, 0o755),
		os.Mkdir(filepath.Join(dir, "state"), 0o700), os.Chown(filepath.Join(dir, "state"), 12345, 12345)); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "open", filepath.Join(dir, "state"))
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}}
	out, err := command.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "containers need a control group with a memory controller: ") ||
		!strings.Contains(string(out), "run it as root") || strings.Count(string(out), "\n") != 1 {
		t.Errorf("it says %q: %v", out, err)
	}
	t.Logf("%s", out)
}
