package agent

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/internal/testgroups"
	"github.com/bellows-rm/bellows/internal/testswap"
	"github.com/bellows-rm/bellows/node/cgroup"
	"github.com/bellows-rm/bellows/node/keeper"
)

var (
	deaths = flag.Int("deaths", 12, "how often TestDaemonDies kills the daemon; a quarter of that in guests")
	seed   = flag.Uint64("seed", 0, "what the random moments of TestDaemonDies come from; 0 is the time")
)

const crashCapacity = 256 * resource.MiB

// daemon is an agent in a process of its own: orders come in as lines of JSON, events go out.
func daemon(dir string) {
	a, err := Open(Config{Dir: dir, Node: "n1", Capacity: resource.Of(2000, crashCapacity), Grace: 300 * time.Millisecond,
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go func() {
		in := json.NewDecoder(os.Stdin)
		for {
			var o cluster.Order
			if in.Decode(&o) != nil {
				os.Exit(0)
			}
			a.Apply(enveloped([]cluster.Order{o}))
		}
	}()
	out := json.NewEncoder(os.Stdout)
	for e := range a.Events() {
		if out.Encode(e) != nil {
			os.Exit(0)
		}
	}
}

// pattern fills the given number of MiB with numbers of its own, alternates between using all of them and a quarter,
// and checks the numbers at each use, until the gate opens. It reports when they are full. Its exit code is 0 only if
// no number was ever lost.
func pattern(size, gate string) {
	var mib int
	fmt.Sscan(size, &mib)
	block := testswap.Memory[uint64](mib << 20)
	debug.SetGCPercent(5) // a test counts on what the program holds: garbage must not add to it
	const page = 512
	for i := 0; i < len(block); i += page {
		block[i] = uint64(i) * 2654435761
	}
	fmt.Println("full")
	for round := 0; ; round++ {
		part := block
		if round/20%2 == 1 {
			part = block[:len(block)/4]
		}
		for i := 0; i < len(part); i += page {
			if part[i] != uint64(i)*2654435761 {
				fmt.Println("lost", i)
				os.Exit(9)
			}
		}
		time.Sleep(time.Millisecond)
		if _, err := os.Stat(gate); err == nil && len(part) == len(block) {
			os.Exit(0)
		}
	}
}

// mortal is a daemon that is killed and started again.
type mortal struct {
	t       *testing.T
	b       *bench // for its orders; it has no agent
	program string // empty is this one
	gate    string
	command *exec.Cmd
	orders  *json.Encoder
	events  chan cluster.Event
	actions chan string   // of the memory manager, as they begin
	silent  chan struct{} // closed when the daemon logs no more
	running map[cluster.ContainerID]bool
	pending map[cluster.ContainerID]bool
	ended   map[cluster.ContainerID]cluster.Event
}

func (m *mortal) start() {
	m.t.Helper()
	m.command = exec.Command(cmp.Or(m.program, os.Args[0]), "daemon", m.b.dir)
	log, err := m.command.StderrPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	in, err := m.command.StdinPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	out, err := m.command.StdoutPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := m.command.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.orders = json.NewEncoder(in)
	m.events, m.actions = make(chan cluster.Event, 1000), make(chan string, 1000)
	m.silent = make(chan struct{})
	go m.listen(log, m.actions, m.silent)
	go func(events chan<- cluster.Event, out io.Reader) {
		defer close(events)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var e cluster.Event
			if json.Unmarshal(lines.Bytes(), &e) == nil {
				events <- e
			}
		}
	}(m.events, out)
}

// listen reads the daemon's log: the actions that its memory manager begins, and warnings and errors for people.
func (m *mortal) listen(log io.Reader, actions chan<- string, silent chan<- struct{}) {
	defer close(silent)
	for lines := bufio.NewScanner(log); lines.Scan(); {
		line := lines.Text()
		if _, action, ok := strings.Cut(line, " msg=memory container="); ok && strings.Contains(line, "level=DEBUG") {
			_, action, _ = strings.Cut(action, "action=")
			select {
			case actions <- strings.Fields(action)[0]:
			default: // no goroutine waits
			}
		} else if !strings.Contains(line, "level=DEBUG") {
			fmt.Fprintln(m.t.Output(), line)
		}
	}
}

// within is how soon after an action begins the daemon may be killed to be killed in it: the kernel takes that long.
var within = map[string]time.Duration{"grow": 3 * time.Millisecond, "shrink": 60 * time.Millisecond,
	"suspend": 3 * time.Millisecond, "resume": 3 * time.Millisecond}

func (m *mortal) forgetActions() {
	for len(m.actions) > 0 {
		<-m.actions
	}
}

// await waits until the memory manager begins an action, and then for a moment in which the kernel is at it; not for
// ever, since there may be no need for it. It returns whether it began.
func (m *mortal) await(action string, r *rand.Rand) bool {
	for timeout := time.After(2 * time.Second); ; {
		select {
		case a := <-m.actions:
			if a == action {
				time.Sleep(time.Duration(r.Int64N(int64(within[action]))))
				return true
			}
		case <-timeout:
			return false
		}
	}
}

// sync waits until the daemon has reported the containers that it found, which must be all.
func (m *mortal) sync() {
	m.t.Helper()
	found := map[cluster.ContainerID]bool{}
	for {
		e := m.next(10 * time.Second)
		id := cluster.ContainerID{Task: e.Task, Run: e.Run}
		switch e.Kind {
		case cluster.TaskAdopted:
			found[id] = true
		case cluster.Synced:
			for id := range m.running {
				if _, over := m.ended[id]; !found[id] && !over {
					m.t.Fatalf("container %v is lost", id)
				}
			}
			m.running, m.pending = found, map[cluster.ContainerID]bool{}
			return
		}
	}
}

func (m *mortal) next(within time.Duration) cluster.Event {
	m.t.Helper()
	select {
	case e, ok := <-m.events:
		if !ok {
			m.t.Fatal("the daemon ended by itself")
		}
		m.note(e)
		return e
	case <-time.After(within):
		m.t.Fatalf("nothing heard for %v; running %v, waiting %v", within, m.running, m.pending)
	}
	return cluster.Event{}
}

func (m *mortal) note(e cluster.Event) {
	id := cluster.ContainerID{Task: e.Task, Run: e.Run}
	switch e.Kind {
	case cluster.DecisionDone:
		delete(m.pending, id)
		m.running[id] = true
	case cluster.DecisionFailed:
		delete(m.pending, id)
	case cluster.TaskEnded:
		delete(m.running, id)
		m.ended[id] = e
	}
}

// die kills the daemon at any moment, and checks what it leaves behind.
func (m *mortal) die() {
	m.t.Helper()
	if err := m.command.Process.Kill(); err != nil {
		m.t.Fatal(err)
	}
	for e := range m.events {
		m.note(e)
	}
	m.reap()
	m.checkLimits()
}

// reap waits for the end of a daemon that was killed.
func (m *mortal) reap() {
	<-m.silent
	_ = m.command.Wait()
}

// limits is the sum of the limits in force.
func (m *mortal) limits() (sum int64) {
	m.t.Helper()
	for _, g := range testgroups.Busy(m.t, m.b.dir, false) {
		sum += g.MemoryLimit().Or(0)
	}
	return sum
}

// checkLimits holds the sum of the limits in force against the capacity.
func (m *mortal) checkLimits() {
	m.t.Helper()
	if sum := m.limits(); sum > int64(crashCapacity) {
		m.t.Fatalf("limits add up to %d MiB of %d", sum>>20, int64(crashCapacity)>>20)
	}
}

// abandon kills the daemon and lets its lease run out: supervisors take every container out of its suspension. It
// returns how many were suspended.
func (m *mortal) abandon() (suspended int) {
	m.t.Helper()
	m.die()
	for _, g := range testgroups.Busy(m.t, m.b.dir, false) {
		if stopped(g) {
			suspended++
		}
	}
	// Supervisors that look now and then are to see that it was renewed, and then that it was not.
	agedLease(m.t, filepath.Join(m.b.dir, "lease"), leaseTerm-2*leaseRenewal)
	await(m.t, "the end of every suspension", func() bool {
		return !slices.ContainsFunc(testgroups.Busy(m.t, m.b.dir, false), stopped)
	})
	return suspended
}

// stopped reports whether a group is frozen or has next to no CPU time.
func stopped(g *cgroup.Group) bool {
	quota, period := 1, 1
	read := func(name string, into ...any) {
		path, _ := g.File(cgroup.CPU, name)
		text, _ := os.ReadFile(path)
		_, _ = fmt.Sscan(string(text), into...)
	}
	if v, ok := g.Has(cgroup.CPU); ok && v == cgroup.V1 {
		read("cpu.cfs_quota_us", &quota)
		read("cpu.cfs_period_us", &period)
	} else if ok {
		read("cpu.max", &quota, &period)
	}
	_, frozen := g.Frozen()
	return frozen || quota > 0 && 1000*quota/period <= keeper.SuspendedMillicores
}

func (m *mortal) order(o cluster.Order) cluster.ContainerID {
	m.t.Helper()
	if err := m.orders.Encode(o); err != nil {
		m.t.Fatal(err)
	}
	m.pending[o.Container] = true
	return o.Container
}

// flex orders a FLEX container that checks what it holds.
func (m *mortal) flex(mib int) cluster.ContainerID {
	o := m.b.order(os.Args[0], "pattern", fmt.Sprint(mib), m.gate)
	o.Grant[resource.Memory] = 32 * resource.MiB
	o.Envelope = cluster.Envelope{Class: cluster.Flex, Max: crashCapacity}
	if mib == 120 {
		o.Launch.Most = notShown
	}
	if mib%2 == 1 {
		o.Envelope.HeartbeatTimeout = 2 * time.Second // throttled instead of frozen
	}
	return m.order(o)
}

// TestDaemonDies kills the daemon (SIGKILL) at random moments while containers puff, are reclaimed from and
// suspended: no container is lost, none keeps standing still, limits never exceed the machine, no program loses a
// byte.
func TestDaemonDies(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	testswap.Need(t, 768<<20)
	from := *seed
	if from == 0 {
		from = uint64(time.Now().UnixNano())
	}
	t.Logf("again: go test ./agent -run TestDaemonDies -seed %d -deaths %d", from, *deaths)
	r := rand.New(rand.NewPCG(from, 0))
	newBench(t) // skips where there can be no containers
	m := &mortal{t: t, b: &bench{t: t, dir: t.TempDir()}, gate: filepath.Join(t.TempDir(), "gate"),
		running: map[cluster.ContainerID]bool{}, pending: map[cluster.ContainerID]bool{},
		ended: map[cluster.ContainerID]cluster.Event{}}
	m.start()
	t.Cleanup(m.cleanUp)
	m.sync()
	flexes := []cluster.ContainerID{m.flex(100), m.flex(101), m.flex(120)}
	for len(m.running) < 3 && len(m.pending) > 0 {
		m.next(20 * time.Second)
	}
	started := slices.DeleteFunc(flexes, func(id cluster.ContainerID) bool { return !m.running[id] })
	if len(started) == 0 {
		t.Fatal("no container could be started")
	}
	times := *deaths
	if slow() {
		times /= 4
	}
	during, abandoned := map[string]int{}, 0
	for i := range times {
		action := []string{"", "grow", "shrink", "suspend", "resume"}[r.IntN(5)]
		m.forgetActions()
		if action == "shrink" || r.IntN(2) == 0 { // what reclaims
			o := m.b.order("sleep", fmt.Sprint(r.Float64()*0.5))
			o.Grant[resource.Memory] = resource.Amount(16+r.IntN(64)) * resource.MiB
			m.order(o)
		}
		if action == "" || !m.await(action, r) {
			time.Sleep(time.Duration(r.Int64N(int64(600 * time.Millisecond))))
			action = "any"
		}
		during[action]++
		alone := i%25 == 24 || i == times-1
		if alone {
			abandoned += m.abandon()
		} else {
			m.die()
		}
		m.start()
		m.sync()
		if alone { // what was resumed had its least again, which others may have
			await(t, "limits within the machine's memory", func() bool { return m.limits() <= int64(crashCapacity) })
		}
	}
	t.Logf("deaths right after an action began: %v; suspended containers left alone: %d", during, abandoned)
	for action := range within {
		if times >= 100 && during[action] == 0 {
			t.Errorf("no death during %s", action)
		}
	}
	if err := os.WriteFile(m.gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, id := range started {
		for m.ended[id].Kind == 0 {
			m.next(60 * time.Second)
		}
		if e := m.ended[id]; e.Outcome != cluster.Succeeded {
			t.Errorf("container %v ended as %s: %s", id, e.Outcome, e.Detail)
		}
	}
	t.Logf("%d deaths, %d containers ended", times, len(m.ended))
}

// cleanUp ends what is left, with an agent in this process.
func (m *mortal) cleanUp() {
	_ = m.command.Process.Kill()
	m.reap()
	a, err := Open(Config{Dir: m.b.dir, Node: "n1", Capacity: resource.Of(2000, crashCapacity),
		Grace: 300 * time.Millisecond})
	if err != nil {
		m.t.Error(err)
		return
	}
	var orders []cluster.Order
	for _, c := range a.containers.each() {
		orders = append(orders, kill(c.id)...)
	}
	a.Apply(enveloped(orders))
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if len(a.containers.each()) == 0 {
			break
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := a.Remove(ctx); err != nil {
		m.t.Errorf("clean up: %v", err)
	}
}
