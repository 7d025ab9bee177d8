package agent

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/usage"
)

// link makes a network namespace, in which programs run under "nsenter -t PID -n", and in which 192.0.2.2 is at the
// other end of a link. l listens there. Both ends are gone with the test.
func link(t *testing.T) (pid int, l net.Listener) {
	t.Helper()
	holder := exec.Command("sleep", "1000")
	holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: unix.SIGKILL}
	if err := holder.Start(); err != nil {
		t.Skipf("needs network namespaces: %v", err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		close(done)
		_ = holder.Process.Kill()
		_ = holder.Wait()
	})
	type far struct {
		tid int
		l   net.Listener
		err error
	}
	ready := make(chan far)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with the goroutine
		f := far{tid: unix.Gettid(), err: unix.Unshare(unix.CLONE_NEWNET)}
		if f.err == nil {
			f.l, f.err = net.Listen("tcp4", ":9000")
		}
		ready <- f
		<-done
	}()
	f := <-ready
	if f.err != nil {
		t.Skipf("needs network namespaces: %v", f.err)
	}
	t.Cleanup(func() { f.l.Close() })
	for _, c := range []struct {
		in   int
		args string
	}{
		{holder.Process.Pid, fmt.Sprintf("link add near type veth peer name far netns %d", f.tid)},
		{holder.Process.Pid, "addr add 192.0.2.1/24 dev near"}, {f.tid, "addr add 192.0.2.2/24 dev far"},
		{holder.Process.Pid, "link set near up"}, {f.tid, "link set far up"},
	} {
		args := append([]string{"-t", fmt.Sprint(c.in), "-n", "ip"}, strings.Fields(c.args)...)
		if out, err := exec.Command("nsenter", args...).CombinedOutput(); err != nil {
			t.Skipf("nsenter %v: %v: %s", args, err, out)
		}
	}
	return holder.Process.Pid, f.l
}

// What a container transfers over a link is counted, also while no agent runs.
func TestNetworkIsCounted(t *testing.T) {
	b := newBench(t)
	if why := b.Unmeasured(resource.Network); why != "" {
		t.Skip(why)
	}
	pid, l := link(t)
	gate := filepath.Join(t.TempDir(), "gate")
	if err := unix.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	const part = 1_000_000
	o := b.order("nsenter", "-t", fmt.Sprint(pid), "-n", "bash", "-c",
		fmt.Sprintf("exec 3<>/dev/tcp/192.0.2.2/9000; head -c %[1]d /dev/zero >&3; read <%[2]s; head -c %[1]d "+
			"/dev/zero >&3; head -c %[1]d <&3 >/dev/null", part, gate))
	b.Apply([]cluster.Order{o})
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	take := func() {
		t.Helper()
		if _, err := io.CopyN(io.Discard, c, part); err != nil {
			t.Fatal(err)
		}
	}
	take()
	b.next(cluster.DecisionDone)
	b.Close()
	opened := exec.Command("sh", "-c", "echo >"+gate)
	if err := opened.Run(); err != nil {
		t.Fatal(err)
	}
	take() // while no agent runs
	b.open()
	if _, err := c.Write(make([]byte, part)); err != nil {
		t.Fatal(err)
	}
	if e := b.next(cluster.TaskEnded); e.Outcome != cluster.Succeeded {
		t.Fatalf("ended %+v: %s", e, e.Detail)
	}
	u := b.usageOf(o.Container)
	for k, want := range map[usage.Kind]int64{usage.Sent: 2 * part, usage.Received: part} {
		if n, ok := u.Total(k); !ok || n < want-1024 || n > want*11/10 {
			t.Errorf("kind %d: %d bytes (known: %v), want %d and headers", k, n, ok, want)
		} else {
			t.Logf("kind %d: %d bytes, of which data are %d", k, n, want)
		}
	}
}

// What was transferred before anybody counted stays unknown; what follows is known.
func TestNetworkIsCountedLate(t *testing.T) {
	b := newBench(t)
	if why := b.Unmeasured(resource.Network); why != "" {
		t.Skip(why)
	}
	b.Agent.network.why = "nothing counts"
	gate := filepath.Join(t.TempDir(), "gate")
	o := b.order("sh", "-c", "until [ -e "+gate+" ]; do sleep 0.1; done")
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	time.Sleep(600 * time.Millisecond)
	b.reopen()
	b.next(cluster.TaskAdopted)
	time.Sleep(2500 * time.Millisecond)
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.next(cluster.TaskEnded)
	u := b.usageOf(o.Container)
	if len(u.Spans) == 0 || u.Spans[0].Known.Has(usage.Sent) || !u.Spans[len(u.Spans)-1].Known.Has(usage.Sent) {
		t.Errorf("what was sent is known where it should not be: %+v", u.Spans)
	}
}
