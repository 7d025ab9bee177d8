package main

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/internal/testterminal"
	"github.com/bellows-rm/bellows/live/store"
)

// watchedDaemon is a daemon that a test starts, ends and watches.
type watchedDaemon struct {
	t     *testing.T
	state string
	env   []string
}

func newWatchedDaemon(t *testing.T) *watchedDaemon {
	t.Helper()
	needControlGroups(t)
	// A folder of its own, since the name of a socket must be short.
	state, err := os.MkdirTemp("", "bellows")
	if err != nil {
		t.Fatal(err)
	}
	d := &watchedDaemon{t, state, append(os.Environ(), "BELLOWS_STATE="+state, "TERM=xterm-256color", "NO_COLOR=")}
	d.up()
	t.Cleanup(func() {
		_ = d.command("down", "--force").Run()
		_ = errors.Join(os.RemoveAll(state), os.RemoveAll(state+store.Mark))
	})
	return d
}

func (d *watchedDaemon) command(args ...string) *exec.Cmd {
	cmd := exec.Command("bellows", args...)
	cmd.Env = d.env
	return cmd
}

func (d *watchedDaemon) bellows(args ...string) string {
	d.t.Helper()
	out, err := d.command(args...).CombinedOutput()
	if err != nil {
		d.t.Fatalf("bellows %v: %v: %s", args, err, out)
	}
	return string(out)
}

func (d *watchedDaemon) up() {
	d.t.Helper()
	d.bellows("up", "--memory", "512MiB", "--cpus", "2", "--memory-default", "stated", "--detach")
}

// die kills the daemon in a way that it cannot notice.
func (d *watchedDaemon) die() {
	d.t.Helper()
	text, err := os.ReadFile(filepath.Join(d.state, "lock"))
	if err != nil {
		d.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		d.t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		d.t.Fatal(err)
	}
}

// TestTop watches a machine on a terminal, and orders what the terminal's keys say. It sees the daemon go and come
// back, and leaves the terminal as it was, also after a signal.
func TestTop(t *testing.T) {
	d := newWatchedDaemon(t)
	d.bellows("run", "-d", "--name", "first", "--memory", "64MiB", "--", "sleep", "1000")
	x := testterminal.Open(t, 100, 24)
	before := x.Settings()
	top := d.command("top")
	x.Start(top)
	x.Await(`bellows +healthy +policy .*memory .*of 512M .* 1 +\S+ +first +running +64M`)
	d.bellows("run", "-d", "--name", "second", "--memory", "64MiB", "--", "sh", "-c", "while :; do :; done")
	x.Await(`second +running`)
	x.Await(`second +running +64M +64M +\S+ +\S+ +\S+ +1 +(0\.\d*[1-9]|1(\.\d\d?)?) `) // what it uses of a core
	x.Type("p")
	x.Await(`first +paused.*job 1: paused`)
	x.Type("r")
	x.Await(`first +running.*job 1: resumed`)
	x.Type("e")
	x.Await(`explanation of job 1.*job 1 \(first\): running`)
	x.Type("\x1b[B") // down
	x.Await(`explanation of job 2.*job 2 \(second\): running`)
	x.Type("eK")
	x.Await(`kill job 2 \(second\) of \S+\? y kills it`)
	x.Type("y")
	x.Until("has no second job any more", func(screen string) bool {
		return !strings.Contains(screen, "second") && strings.Contains(screen, "first")
	})
	x.Resize(60, 12)
	x.Until("has 12 lines", func(string) bool {
		_, at := x.Line("h help")
		return at == 11
	})

	d.die()
	x.Await(`no daemon for \S+; connecting again`)
	d.up()
	x.Await(`first +running.*connected again after \S+, to a new daemon`)
	if x.Untouched() || x.Settings() == before {
		t.Error("the terminal is not the program's own")
	}
	x.Type("q")
	if err := top.Wait(); err != nil {
		t.Errorf("after q: %v", err)
	}
	x.Until("is as before", func(string) bool { return x.Untouched() })
	if x.Settings() != before {
		t.Errorf("the settings are %+v, and were %+v", x.Settings(), before)
	}

	// Under nohup, what the test starts would ignore SIGHUP, as it should there.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	t.Cleanup(func() { signal.Reset(syscall.SIGHUP) })
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		top := d.command("top", "--tasks")
		x.Start(top)
		x.Await(`TASK.*1\.0\.0 `)
		if err := top.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		var exit *exec.ExitError
		if err := top.Wait(); !errors.As(err, &exit) || exit.ExitCode() != command.Interrupted {
			t.Errorf("after signal %v: %v", signal, err)
		}
		x.Until("is as before", func(string) bool { return x.Untouched() })
		if x.Settings() != before {
			t.Errorf("after signal %v, the settings are %+v, and were %+v", signal, x.Settings(), before)
		}
	}
}

// At Ctrl-Z the shell has the terminal, until it lets top go on.
func TestTopIsSuspended(t *testing.T) {
	d := newWatchedDaemon(t)
	x := testterminal.Open(t, 80, 24)
	shell := exec.Command("sh", "-c", "set -m; bellows top; echo stopped; read line; fg > /dev/null; echo ended $?")
	shell.Env = d.env
	x.Start(shell)
	x.Await("healthy")
	x.Type("\x1a")
	x.Await("stopped")
	if !x.Untouched() {
		t.Error("the shell has not got its screen")
	}
	x.Type("\r")
	x.Await("healthy")
	x.Type("q")
	x.Await("ended 0")
	if err := shell.Wait(); err != nil {
		t.Error(err)
	}
}

// A terminal that shows nothing any more keeps the daemon from nothing.
func TestTopOnASlowTerminal(t *testing.T) {
	d := newWatchedDaemon(t)
	x := testterminal.Open(t, 100, 24)
	top := d.command("top")
	x.Start(top)
	x.Await("healthy")
	goOn := x.Stop()
	for range 5 {
		d.bellows("run", "--memory", "16MiB", "--", "true")
	}
	if text := d.bellows("top", "--once"); !strings.Contains(text, "healthy") {
		t.Errorf("printed %s", text)
	}
	if err := top.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	goOn()
	_ = top.Wait()
	x.Until("is as before", func(string) bool { return x.Untouched() })
}

// TestPoolTop watches a pool on a terminal, and orders what the keys say. It sees the daemon go and come back.
func TestPoolTop(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("needs python3")
	}
	d := newWatchedDaemon(t)
	d.bellows("pool", "create", "sums", "--memory", "64MiB", "--cpus", "0.1", "--min", "2", "--max", "2")
	x := testterminal.Open(t, 80, 24)
	before := x.Settings()
	top := d.command("pool", "top", "sums")
	x.Start(top)
	x.Await(`pool sums of \S+ +2 executors .* 1 registered .* 2 registered .*h help`)
	x.Type("e")
	x.Await(`explanation.*pool sums of \S+ has 2 executors`)
	x.Type("eG")
	x.Await(`executor 2 is registered.*2 of 2 executors`)
	x.Type("K")
	x.Await(`kill job 2, executor 2 of this pool\? y kills it`)
	x.Type("y")
	x.Await(`3 registered`)
	d.die()
	x.Await(`pool sums of \S+ +no daemon for \S+; connecting again`)
	d.up()
	x.Await(`connected again after`)
	x.Await(`3 registered`)
	d.bellows("pool", "rm", "sums")
	if err := top.Wait(); err == nil {
		t.Error("it does not fail when the pool is gone")
	}
	x.Until("is as before", func(string) bool { return x.Untouched() })
	if x.Settings() != before {
		t.Errorf("the settings are %+v, and were %+v", x.Settings(), before)
	}
}
