package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
)

// withoutFiles lets this process open no file until the returned function is called, which it is at the latest when the
// test ends.
func withoutFiles(t *testing.T) (restore func()) {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	few := limit
	few.Cur = 3 // less than is open
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	restore = func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(restore)
	return restore
}

// gated starts a program that ends with 0 once the returned function is called, which opens no file.
func (b *bench) gated() (cluster.Order, func()) {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), "gate")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		b.t.Fatal(err)
	}
	gate, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { gate.Close() })
	o := b.order("sh", "-c", "read line <"+path)
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	return o, func() {
		if _, err := gate.WriteString("\n"); err != nil {
			b.t.Error(err)
		}
	}
}

func (b *bench) awaitTrouble(id cluster.ContainerID, says string) {
	b.t.Helper()
	await(b.t, "trouble", func() bool { return strings.Contains(b.Troubles()[id], says) })
}

// TestEndThatCannotBeRead: a program that has succeeded while its agent cannot read that has succeeded.
func TestEndThatCannotBeRead(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct {
		name, says string
		hide       func() (show func())
	}{
		{"no descriptors", "too many open files", func() func() { return withoutFiles(t) }},
		{"the state directory is moved away", "the state directory is not there", func() func() {
			folders := filepath.Join(b.dir, "containers")
			move := func(from, to string) {
				if err := os.Rename(from, to); err != nil {
					t.Fatal(err)
				}
			}
			move(folders, folders+".away")
			return func() { move(folders+".away", folders) }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, end := b.gated()
			show := c.hide()
			end()
			b.awaitTrouble(o.Container, c.says)
			b.Apply([]cluster.Order{{Decision: cluster.Decision{Kind: cluster.Kill, Preempt: true}, Container: o.Container}})
			show()
			if e := b.next(cluster.TaskEnded); e.Outcome != cluster.Succeeded || e.Task != o.Task {
				t.Errorf("ended %+v", e)
			}
			if all := b.Troubles(); len(all) > 0 {
				t.Errorf("troubles are left: %v", all)
			}
		})
	}
}

// TestKillDecides: who ends a container does not wait for a record that cannot be read.
func TestKillDecides(t *testing.T) {
	b := newBench(t)
	o, end := b.gated()
	restore := withoutFiles(t)
	end()
	b.awaitTrouble(o.Container, "too many open files")
	b.Apply(kill(o.Container))
	await(t, "the end of the trouble", func() bool { return len(b.Troubles()) == 0 })
	restore()
	if e := b.next(cluster.TaskEnded); e.Outcome != cluster.Killed ||
		!strings.HasPrefix(e.Detail, "killed, and how its program ended cannot be read: ") {
		t.Errorf("ended %+v", e)
	}
}

// TestLockThatCannotBeOpened: it may be held.
func TestLockThatCannotBeOpened(t *testing.T) {
	b := newBench(t)
	o := b.order("true")
	b.run(o)
	f := b.folder(o.Container)
	await(t, "the end of the supervisor's work", func() bool { return !held(f) })
	restore := withoutFiles(t)
	is := held(f)
	_, err := f.launched()
	restore()
	if !is || !isUnread(err) {
		t.Errorf("held %v, launched: %v", is, err)
	}
}

// unreadable makes a file fail with an input/output error, and returns what makes it as it was.
func unreadable(t *testing.T, path string) (restore func()) {
	t.Helper()
	if err := errors.Join(os.Rename(path, path+".aside"), os.Symlink("/proc/self/mem", path)); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Rename(path+".aside", path); err != nil {
			t.Error(err)
		}
	}
}

// TestInventoryOfWhatCannotBeRead: the next agent judges no container whose record it cannot read. It reports its
// inventory when it can, or when the container is ended.
func TestInventoryOfWhatCannotBeRead(t *testing.T) {
	for _, c := range []struct {
		file       string
		ended, end bool // it ended while there was no agent; it is ended while its record cannot be read
	}{{"spec.json", false, false}, {"spec.json", true, false}, {"exit.json", true, false},
		{"started.json", false, false}, {"spec.json", false, true}, {"exit.json", true, true}} {
		t.Run(fmt.Sprintf("%s, ended %v, killed %v", c.file, c.ended, c.end), func(t *testing.T) {
			b := newBench(t)
			o, end := b.gated()
			f := b.folder(o.Container)
			b.Close()
			if c.ended {
				end()
				await(t, "the record of the end", func() bool { return !held(f) })
			}
			restore := unreadable(t, f.path(c.file))
			b.take()
			b.awaitTrouble(o.Container, "input/output error")
			if c.end {
				b.Apply(kill(o.Container))
			} else {
				restore()
			}
			b.next(cluster.NodeJoined)
			kind, outcome := cluster.TaskAdopted, cluster.Outcome(0)
			switch {
			case c.end:
				kind, outcome = cluster.TaskEnded, cluster.Killed
			case c.ended:
				kind, outcome = cluster.TaskEnded, cluster.Succeeded
			}
			if e := b.next(kind); e.Task != o.Task || e.Outcome != outcome {
				t.Errorf("reported %+v", e)
			}
			b.next(cluster.Synced)
			if kind == cluster.TaskAdopted {
				end()
				if e := b.next(cluster.TaskEnded); e.Outcome != cluster.Succeeded {
					t.Errorf("ended %+v", e)
				}
			}
			if names, err := b.groups.root.List(); err != nil || len(names) != 1 {
				t.Errorf("groups left: %v %v", names, err)
			}
		})
	}
}

// TestAgentClosesWhileItTakesInventory: what cannot be read is left to the next agent.
func TestAgentClosesWhileItTakesInventory(t *testing.T) {
	b := newBench(t)
	o, end := b.gated()
	b.Close()
	restore := unreadable(t, b.folder(o.Container).path("spec.json"))
	b.take()
	b.awaitTrouble(o.Container, "input/output error")
	b.Close()
	restore()
	b.open()
	b.next(cluster.TaskAdopted)
	end()
	if e := b.next(cluster.TaskEnded); e.Outcome != cluster.Succeeded {
		t.Errorf("ended %+v", e)
	}
}

func TestUnread(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&fs.PathError{Op: "open", Path: "x", Err: unix.EMFILE}, true},
		{fmt.Errorf("open group x: %w", &fs.PathError{Op: "stat", Path: "x", Err: unix.EIO}), true},
		{os.NewSyscallError("flock", unix.ENOLCK), true},
		{&fs.PathError{Op: "open", Path: "x", Err: unix.EACCES}, true},
		{fmt.Errorf("read x: %w", errAway), true},
		{&fs.PathError{Op: "open", Path: "x", Err: unix.ENOENT}, false},
		{&fs.PathError{Op: "read", Path: "x", Err: unix.EISDIR}, false},
		{errHeld, false},
		{errors.New("invalid character 'x'"), false},
		{nil, false},
	} {
		if got := isUnread(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}

// TestPausesGrow: a record that cannot be read for an hour is read again about every half a minute, and since when is
// shown.
func TestPausesGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &Agent{log: slog.New(slog.DiscardHandler)}
		a.closed = t.Context()
		c := a.newContainer(cluster.ContainerID{Task: cluster.TaskID{Job: 3}, Run: 1})
		begun, tries := time.Now(), 0
		err := a.again(c, func() error {
			if tries++; time.Since(begun) >= time.Hour {
				return nil
			}
			if tries == 100 {
				want := "a record of container 3-0-0-1 cannot be read since " + begun.Format(time.TimeOnly) +
					", and is read again at "
				if got := a.Troubles()[c.id]; !strings.HasPrefix(got, want) || !strings.HasSuffix(got, ": input/output error") {
					t.Errorf("shown is %q", got)
				}
			}
			return unix.EIO
		})
		if err != nil || tries < 120 || tries > 140 || len(a.Troubles()) > 0 {
			t.Errorf("%d tries, %v", tries, err)
		}
	})
}
