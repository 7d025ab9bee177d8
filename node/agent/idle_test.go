package agent

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/usage"
)

// seconds takes samples of a container as if so many seconds had passed, and returns in how many it was idle.
func (b *bench) seconds(id cluster.ContainerID, n int) (idle int) {
	b.t.Helper()
	w := b.monitor.all[id]
	w.mu.Lock()
	defer w.mu.Unlock()
	at := max(monotonic(), w.origin+w.log.Last()) + sampling
	w.sample(at)
	before := w.log.Idle()
	for range n {
		at += sampling
		w.sample(at)
	}
	return int((w.log.Idle() - before).Round(sampling) / sampling)
}

// Programs that wait for a timer, a lock, a pipe or the network are idle. Programs that get next to no CPU are not,
// though they use as little.
func TestIdle(t *testing.T) {
	const many = 20
	b := newBench(t)
	path := func(name string) string { return filepath.Join(b.dir, name) }
	lock, err := os.Create(path("lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	silent, err2 := net.Listen("tcp", "127.0.0.1:0")
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	defer silent.Close()
	if err := unix.Mkfifo(path("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	port := silent.Addr().(*net.TCPAddr).Port
	const busy = "while :; do :; done"
	for _, c := range []struct {
		name, needs, script string
		cores               resource.Amount // millicores
		idle                bool
	}{
		{"timer", "sleep", "exec sleep 1000", 1000, true},
		{"lock", "flock", "exec flock lock true", 1000, true},
		{"pipe", "sh", "read line < pipe", 1000, true},
		{"network", "bash", fmt.Sprintf("read line < /dev/tcp/127.0.0.1/%d", port), 1000, true},
		{"pipeline", "sh", "sleep 1000 | cat", 1000, true},
		{"busy", "sh", busy, 1000, false},
		{"starved", "sh", busy + " & " + busy, 10, false},
		{"starved beside one that waits", "sh", "sleep 1000 & " + busy, 10, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := exec.LookPath(c.needs); err != nil {
				t.Skip(err)
			}
			shell := "sh"
			if c.needs == "bash" {
				shell = "bash"
			}
			o := b.order(shell, "-c", "echo begun; "+c.script)
			o.Grant[resource.CPU] = c.cores
			b.Apply([]cluster.Order{o})
			b.next(cluster.DecisionDone)
			b.awaitOutput(o, "begun\n")
			if c.idle {
				await(t, "an idle second", func() bool { return b.seconds(o.Container, 1) > 0 })
			}
			switch n := b.seconds(o.Container, many); {
			case c.idle && n < many/2:
				t.Errorf("idle in %d of %d seconds", n, many)
			case !c.idle && n > 0:
				t.Errorf("idle in %d of %d seconds, although it never waits", n, many)
			}
		})
	}
	// The time is in the samples, also those of the next daemon.
	o := b.order("sleep", "1000")
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	await(t, "many idle seconds", func() bool { return b.seconds(o.Container, many) == many })
	before, err := b.Usage(o.Container)
	if err != nil || before.Idle() < many*sampling || before.Idle() > before.Length() {
		t.Fatalf("idle for %v of %v (%v)", before.Idle(), before.Length(), err)
	}
	b.reopen()
	await(t, "many idle seconds", func() bool { return b.seconds(o.Container, 1) > 0 })
	if after, err := b.Usage(o.Container); err != nil || after.Idle() <= before.Idle() {
		t.Errorf("under the next daemon it was idle for %v, before for %v (%v)", after.Idle(), before.Idle(), err)
	}
	if n := b.seconds(o.Container, many); n < many/2 {
		t.Errorf("under the next daemon it is idle in %d of %d seconds", n, many)
	}
}

// A container that used more than a twentieth of its CPU, or of whose CPU time nothing is known, was not quiet. After
// that its threads are looked at again, and otherwise every five seconds.
func TestQuiet(t *testing.T) {
	b := newBench(t)
	o := b.order("sleep", "1000")
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	w := b.monitor.all[o.Container]
	await(t, "it sleeps", w.group.Asleep)
	w.mu.Lock()
	defer w.mu.Unlock()
	cpu, now := usage.SetOf(usage.CPU), time.Hour
	for _, c := range []struct {
		used  int64 // milliseconds within a second, of a core
		known usage.Set
		want  bool
	}{{0, cpu, true}, {50, cpu, true}, {51, cpu, false}, {0, 0, false}} {
		s := usage.Sample{Known: c.known}
		s.Value[usage.CPU] = w.idle.cpu + c.used
		if got := w.idle.quiet(&s, time.Second, &w.tolerance); got != c.want || !got && w.idle.looked != 0 {
			t.Errorf("%d ms of CPU, known %b: quiet %v, want %v: %+v", c.used, c.known, got, c.want, w.idle)
		}
	}
	for second, want := range []bool{true, false, false, false, false, true, true} {
		w.idle.asleep = false // if it is looked at, it sleeps
		if second == 6 {
			w.idle.looked = 0 // it was busy
		}
		if got := w.idle.sleeps(now+time.Duration(second)*sampling, w.group); got != want {
			t.Errorf("looked at after %d seconds: %v, want %v", second, got, want)
		}
	}
}
