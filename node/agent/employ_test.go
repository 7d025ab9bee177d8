package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
)

// parent runs a program that prints its parent, and returns it: the pid of the container's supervisor.
func (b *bench) parent() int {
	b.t.Helper()
	o := b.order("sh", "-c", "echo $PPID")
	if e := b.run(o); e.Outcome != cluster.Succeeded {
		b.t.Fatalf("ended %+v", e)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(read(b.t, o.Launch.Stdout)))
	if err != nil {
		b.t.Fatal(err)
	}
	return pid
}

// TestSupervisorsAreEmployedAgain runs programs one after another, some of which cannot be run: one supervisor takes
// care of all, and keeps nothing of the earlier ones open.
func TestSupervisorsAreEmployedAgain(t *testing.T) {
	b := newBench(t)
	first := b.parent()
	open := func() int {
		files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", first))
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
	before := open()
	for range 3 {
		if e := b.run(b.order("no-such-program")); e.Exit == nil || e.Exit.Code != 127 {
			t.Errorf("ended %+v", e)
		}
		o := b.order("true")
		o.Launch.Stderr = "/proc/no/such/file"
		b.Apply([]cluster.Order{o})
		b.next(cluster.DecisionFailed)
		o = b.order("sleep", "1000")
		o.Launch.Input = true
		b.Apply([]cluster.Order{o})
		b.next(cluster.DecisionDone)
		b.Apply(kill(o.Container))
		if e := b.next(cluster.TaskEnded); e.Outcome != cluster.Killed {
			t.Errorf("ended %+v", e)
		}
		if pid := b.parent(); pid != first {
			t.Fatalf("supervisor %d, want %d again", pid, first)
		}
	}
	if after := open(); after > before {
		t.Errorf("%d files are open, %d before", after, before)
	}
}

// TestIdleSupervisorDies kills supervisors that wait for a container: one that nobody has given any, and one that has
// not begun with it.
func TestIdleSupervisorDies(t *testing.T) {
	b := newBench(t)
	for _, given := range []bool{false, true} {
		pid := b.parent()
		if given {
			if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
				t.Fatal(err)
			}
		} else if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		o := b.order("true")
		b.Apply([]cluster.Order{o})
		if given {
			await(t, "the supervisor's next container", func() bool { return held(b.folder(o.Container)) })
			if err := unix.Kill(pid, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		b.next(cluster.DecisionDone)
		if e := b.next(cluster.TaskEnded); e.Outcome != cluster.Succeeded || e.Task != o.Task {
			t.Errorf("given %v: ended %+v", given, e)
		}
	}
}

// ends waits until a process has ended.
func ends(t *testing.T, pid int) {
	t.Helper()
	await(t, "the end of an idle supervisor", func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(text), ") Z ") // It has ended, and its parent does not know yet.
	})
}

// TestIdleSupervisorEndsWithItsAgent: the next agent, which may be of another release, has supervisors of its own.
func TestIdleSupervisorEndsWithItsAgent(t *testing.T) {
	b := newBench(t)
	pid := b.parent()
	b.reopen()
	b.next(cluster.TaskEnded) // of the program before, whose record the next agent finds
	ends(t, pid)
	if next := b.parent(); next == pid {
		t.Errorf("%d works for the next agent", pid)
	}
}

// TestIdleSupervisorEndsWithAKilledAgent is the same of an agent that cannot say anything.
func TestIdleSupervisorEndsWithAKilledAgent(t *testing.T) {
	b := newBench(t)
	b.Close()
	m := &mortal{t: t, b: b}
	m.start()
	o := b.order("sh", "-c", "echo $PPID")
	if err := m.orders.Encode(o); err != nil {
		t.Fatal(err)
	}
	for e := range m.events {
		if e.Kind == cluster.TaskEnded {
			break
		}
	}
	pid, err := strconv.Atoi(strings.TrimSpace(read(t, o.Launch.Stdout)))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = m.command.Wait()
	ends(t, pid)
	b.open()
}

// TestProgramThatWasReplaced: a daemon goes on as the program that it is, whatever lies at its path.
func TestProgramThatWasReplaced(t *testing.T) {
	b := newBench(t)
	b.Close()
	text, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	m := &mortal{t: t, b: b, program: filepath.Join(t.TempDir(), "daemon")}
	if err := os.WriteFile(m.program, text, 0o700); err != nil {
		t.Fatal(err)
	}
	m.start()
	defer func() {
		if err := m.command.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = m.command.Wait()
		b.open()
	}()
	mark := filepath.Join(t.TempDir(), "mark")
	for _, how := range []string{"removed", "replaced"} {
		if err := os.Remove(m.program); err != nil {
			t.Fatal(err)
		}
		if how == "replaced" {
			if err := os.Rename(script(t, "echo "+how+" >>"+mark), m.program); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // at once, so that a supervisor that waits does not do
			if err := m.orders.Encode(b.order("sleep", "0.1")); err != nil {
				t.Fatal(err)
			}
		}
		for ended := 0; ended < 2; {
			switch e := <-m.events; {
			case e.Kind == cluster.DecisionFailed:
				t.Fatalf("%s: %+v", how, e)
			case e.Kind == cluster.TaskEnded:
				if ended++; e.Outcome != cluster.Succeeded {
					t.Errorf("%s: %+v", how, e)
				}
			}
		}
		if how == "removed" {
			if err := os.WriteFile(m.program, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the file at its path was executed")
	}
}

// TestSupervisorShowsItsContainer: the list of processes names the container that a supervisor has now, however long
// its name is, and none between two.
func TestSupervisorShowsItsContainer(t *testing.T) {
	b := newBench(t)
	folders := filepath.Join(b.dir, "containers")
	shown := func(pid int) string {
		text, name := read(t, fmt.Sprintf("/proc/%d/cmdline", pid)), read(t, fmt.Sprintf("/proc/%d/comm", pid))
		if name != "bellows\n" {
			t.Errorf("it is called %q", name)
		}
		return strings.TrimRight(text, "\x00")
	}
	pid := 0
	for _, task := range []cluster.TaskID{{Job: 1 << 60, Stage: 1 << 30, Index: 1 << 30}, {Job: 4}} {
		o := b.order("sh", "-c", "echo $PPID; exec sleep 1000")
		o.Task, o.Container.Task = task, task
		b.Apply([]cluster.Order{o})
		b.next(cluster.DecisionDone)
		await(t, "the pid", func() bool { return strings.HasSuffix(read(t, o.Launch.Stdout), "\n") })
		n, err := strconv.Atoi(strings.TrimSpace(read(t, o.Launch.Stdout)))
		if err != nil || pid != 0 && n != pid {
			t.Fatalf("supervisor %d after %d, %v", n, pid, err)
		}
		pid = n
		if got := shown(pid); got != "bellows\x00supervise\x00"+string(b.folder(o.Container)) {
			t.Errorf("it shows %q", got)
		}
		b.Apply(kill(o.Container))
		b.next(cluster.TaskEnded)
		if got := shown(pid); got != "bellows\x00supervise\x00"+folders {
			t.Errorf("without a container it shows %q", got)
		}
	}
}

// TestMostIdle: of many supervisors that are free at once few wait, and soon one.
func TestMostIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crew{closed: t.Context()}
		for range mostIdle + 2 {
			ours, theirs, err := connected()
			if err != nil {
				t.Fatal(err)
			}
			theirs.Close()
			c.keepIdle(&supervisor{conn: ours, forget: context.AfterFunc(c.closed, func() { ours.Close() })})
		}
		waiting := func() int {
			c.mu.Lock()
			defer c.mu.Unlock()
			return len(c.idle)
		}
		if n := waiting(); n != mostIdle {
			t.Errorf("%d wait, want %d", n, mostIdle)
		}
		time.Sleep(leisure + time.Second)
		if n := waiting(); n != 1 {
			t.Errorf("after %v %d wait, want one", leisure, n)
		}
	})
}

// TestOpenFilesOfPrograms: a program has the limit of open files that the daemon was started with, not the higher one
// that a Go program gives itself.
func TestOpenFilesOfPrograms(t *testing.T) {
	want, err := exec.Command(shell(), "-c", "ulimit -Sn").Output()
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t)
	for range 2 { // the second has a supervisor that has had another
		o := b.order("sh", "-c", "ulimit -Sn")
		if e := b.run(o); e.Outcome != cluster.Succeeded {
			t.Fatalf("ended %+v", e)
		}
		if got := read(t, o.Launch.Stdout); got != string(want) {
			t.Errorf("%q open files, want %q", got, want)
		}
	}
}

// TestSearch: a program is searched for as a shell does, with the rights of its user, who learns no more than that.
func TestSearch(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to run programs as another user")
	}
	b := newBench(t)
	dir, err := os.MkdirTemp("", "bellows") // Users can enter it, unlike t.TempDir.
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for name, mode := range map[string]os.FileMode{"closed": 0o700, "folder": 0o755, "plain": 0o755, "real": 0o755,
		"broken": 0o755} {
		if err := os.Mkdir(dir+"/"+name, mode); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string, mode os.FileMode) {
		if err := errors.Join(os.WriteFile(dir+"/"+name, []byte(text), 0o600), os.Chmod(dir+"/"+name, mode)); err != nil {
			t.Fatal(err)
		}
	}
	write("closed/prog", "#!"+shell()+"\necho closed\n", 0o755)
	write("plain/prog", "#!"+shell()+"\necho plain\n", 0o644)
	write("real/prog", "#!"+shell()+"\necho real\n", 0o755)
	write("broken/prog", "#!/no/such/interpreter\n", 0o755)
	if err := os.Mkdir(dir+"/folder/prog", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, printed, detail string }{
		{"none:closed:folder:plain:real", "real\n", ""},
		{"none:closed", "", `program "prog": permission denied`},
		{"folder:none", "", `program "prog" is a directory`},
		{"folder:plain", "", `program "prog" may not be executed by this user`},
		{"broken:real", "", fmt.Sprintf("program %q cannot be executed: no such file or directory", dir+"/broken/prog")},
		{"none", "", `program "prog" was not found along PATH=` + dir + "/none"},
	} {
		o := b.order("prog")
		o.Launch.Dir = "/"
		o.Launch.As = cluster.Credentials{UID: 12345, GID: 23456}
		o.Launch.Env = []string{"PATH=" + dir + "/" + strings.ReplaceAll(c.path, ":", ":"+dir+"/")}
		e := b.run(o)
		if e.Detail != c.detail || (e.Outcome == cluster.Succeeded) != (c.detail == "") {
			t.Errorf("%s: ended %s: %s", c.path, e.Outcome, e.Detail)
		}
		if got := read(t, o.Launch.Stdout); got != c.printed {
			t.Errorf("%s: printed %q", c.path, got)
		}
	}
}
