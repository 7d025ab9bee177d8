package agent

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/node/cgroup"
)

func TestShortages(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{fmt.Errorf("start the supervisor: %w", &os.PathError{Op: "fork/exec", Path: "/bin/bellows", Err: unix.EAGAIN}),
			true},
		{errors.Join(fmt.Errorf("limit the container: %w",
			&os.PathError{Op: "write", Path: "memory.max", Err: unix.ENOMEM}), nil), true},
		{os.NewSyscallError("pipe2", unix.EMFILE), true},
		{&exec.Error{Name: "bellows", Err: unix.ENFILE}, true},
		{fmt.Errorf("start the supervisor: %w", ending{Detail: "reserve space: no space left on device",
			Short: true}.fault()), true},
		{faulty("open the output file: %w", &os.PathError{Op: "open", Path: "x", Err: unix.EROFS}).fault(), true},
		{ending{Detail: "run as user 7: only root can"}.fault(), false},
		{&os.PathError{Op: "open", Path: "x", Err: unix.EACCES}, false},
		{errors.New("ended before its memory was available"), false},
		{nil, false},
	} {
		if got := isShortage(c.err); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}

// A machine without room on its disk is said to be short, from wherever in the start it is noticed.
func TestStartOnAFullMachineIsAShortage(t *testing.T) {
	b := newBench(t)
	o := b.order("true")
	o.Launch.Stdout = "/dev/full/out" // no folder
	b.Apply([]cluster.Order{o})
	if e := b.next(cluster.DecisionFailed); e.Short {
		t.Errorf("a folder that cannot be is no shortage: %+v", e)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	few := limit
	few.Cur = 3 // less than is open: nothing more can be
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	restore := func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Error(err)
		}
	}
	defer restore()
	o = b.order("true")
	b.Apply([]cluster.Order{o})
	e := b.next(cluster.DecisionFailed)
	restore()
	if !e.Short || !strings.Contains(e.Detail, "too many open files") {
		t.Errorf("event %+v", e)
	}
	if e := b.run(b.order("true")); e.Outcome != cluster.Succeeded {
		t.Errorf("event %+v", e)
	}
}

// A container that forks without end takes no more than its part of the machine's processes.
func TestThreadsAreBounded(t *testing.T) {
	b := newBench(t)
	if _, ok := b.groups.root.Has(cgroup.PIDs); !ok {
		t.Skip("needs the controller pids")
	}
	o := b.order("sleep", "100")
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	g, err := b.groups.root.Open(o.Container.String())
	if err != nil {
		t.Fatal(err)
	}
	path, _ := g.File(cgroup.PIDs, "pids.max")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err != nil || n != mostThreads() || n < 512 {
		t.Errorf("pids.max %q, want %d: %v", text, mostThreads(), err)
	}
}
