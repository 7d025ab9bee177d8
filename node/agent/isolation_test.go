package agent

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/durable"
)

// printsAsUser runs a program in / as an ordinary user, which must succeed, and returns what it prints.
func (b *bench) printsAsUser(o cluster.Order) string {
	b.t.Helper()
	o.Launch.Dir, o.Launch.As = "/", cluster.Credentials{UID: 12345, GID: 23456}
	if e := b.run(o); e.Outcome != cluster.Succeeded {
		b.t.Fatalf("ended %s: %s %s", e.Outcome, e.Detail, read(b.t, o.Launch.Stderr))
	}
	return read(b.t, o.Launch.Stdout)
}

// A program with private temporary folders sees nothing in them but its own files, which are gone after its end.
func TestPrivateTmp(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount")
	}
	b := newBench(t)
	o := b.order("sh", "-c",
		"ls -A /tmp /var/tmp; echo mine > /tmp/file; cat /var/tmp/file; stat -c %a /tmp; mkdir -p /tmp/deep/er; chmod "+
			"0 /tmp/deep")
	o.Launch.PrivateTmp = true
	if got := b.printsAsUser(o); got != "/tmp:\n\n/var/tmp:\nmine\n1777\n" {
		t.Errorf("output %q", got)
	}
	if _, err := os.Stat("/tmp/file"); err == nil {
		t.Error("the file is in the temporary folder of the system")
	}
	var path string
	if err := b.folder(o.Container).get(tmpRecord, &path); err != nil || !strings.HasPrefix(path, "/tmp/bellows-") {
		t.Fatalf("its folder is %q, %v", path, err)
	}
	b.Forget(o.Container)
	b.awaitRemoval(path)
}

// A program whose working directory its private temporary folder hides is told so.
func TestHiddenDir(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount")
	}
	b := newBench(t)
	o := b.order("true")
	o.Launch.PrivateTmp, o.Launch.Dir = true, b.dir
	want := fmt.Sprintf(
		"working directory %q: no such file or directory; the job has a private temporary folder, which hides /tmp of "+
			"the system", b.dir)
	if e := b.run(o); e.Exit.Code != 126 || e.Detail != want {
		t.Errorf("ended %s: %s; want %s", e.Outcome, e.Detail, want)
	}
	b.Forget(o.Container)
}

// No loop waits for the removal of what a program left, and the container is forgotten before it begins.
func TestForgetWaitsForNoRemoval(t *testing.T) {
	goOn, arrived := make(chan struct{}), make(chan string)
	var once sync.Once
	durable.Watch = func(op durable.Op, path string) {
		if op == durable.OpRemove && strings.HasPrefix(path, "/tmp/bellows-") {
			once.Do(func() { arrived <- path; <-goOn })
		}
	}
	t.Cleanup(func() { durable.Watch = nil })
	b := newBench(t)
	id := b.order("true").Container
	path := b.leave(id)
	b.Forget(id)
	if got := <-arrived; got != path {
		t.Errorf("%s is removed, want %s", got, path)
	}
	if left, err := os.ReadDir(filepath.Join(b.dir, "containers")); err != nil || len(left) != 0 {
		t.Errorf("not forgotten: %v, %v", left, err)
	}
	b.Forget(id) // It has nothing left.
	close(goOn)
	b.awaitRemoval(path)
}

// leave makes the folder of a container that has ended with a private temporary folder, and returns the latter.
func (b *bench) leave(id cluster.ContainerID) (path string) {
	b.t.Helper()
	f := b.folder(id)
	if err := errors.Join(os.Mkdir(string(f), 0o700), f.makeTmp(), f.get(tmpRecord, &path)); err != nil {
		b.t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o700 {
		b.t.Errorf("others may enter %s: %v, %v", path, info, err)
	}
	if err := os.MkdirAll(filepath.Join(tmpIn(path), "some", "more"), 0o700); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// awaitRemoval waits until a private temporary folder is gone, and then all that is to be removed.
func (b *bench) awaitRemoval(path string) {
	b.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		_, err := os.Lstat(path)
		left, _ := os.ReadDir(b.remover.dir)
		if os.IsNotExist(err) && len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("%s is still there: %v, or %v", path, err, left)
		}
	}
}

// What cannot be removed is kept where the next start tries again. The container is forgotten.
func TestRemovalIsTriedAgain(t *testing.T) {
	b := newBench(t)
	id := b.order("true").Container
	path := b.leave(id)
	mount := filepath.Join(tmpIn(path), "some", "more")
	if err := unix.Mount(b.dir, mount, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("needs the right to mount: %v", err)
	}
	mounted, err := os.Open(mount)
	if err != nil {
		t.Fatal(err)
	}
	defer mounted.Close()
	unmount := func() error { return unix.Unmount(fmt.Sprintf("/proc/self/fd/%d", mounted.Fd()), unix.MNT_DETACH) }
	defer unmount()
	b.Forget(id)
	second := b.order("true").Container
	b.Forget(second)
	after := b.leave(second)
	b.Forget(second)
	// The one is removed although the other is not.
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		left, err := os.ReadDir(b.remover.dir)
		if _, gone := os.Lstat(after); os.IsNotExist(gone) && err == nil && len(left) == 1 &&
			strings.HasPrefix(left[0].Name(), id.String()+"-") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("kept %v, %v", left, err)
		}
	}
	b.Close()
	if err := unmount(); err != nil {
		t.Fatal(err)
	}
	b.open()
	b.awaitRemoval(path)
	for _, e := range b.seen {
		t.Errorf("reported: %+v", e)
	}
}

// A container whose record is damaged is kept for people, but not what its program left.
func TestDamagedContainerKeepsNoTmp(t *testing.T) {
	b := newBench(t)
	b.Close()
	id := b.order("true").Container
	path := b.leave(id)
	if err := os.WriteFile(b.folder(id).path("spec.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.open()
	if e := b.next(cluster.TaskEnded); e.Outcome != cluster.Lost {
		t.Errorf("ended %+v", e)
	}
	b.awaitRemoval(path)
	if kept, err := filepath.Glob(filepath.Join(b.dir, "damaged", id.String()+"-*", "spec.json")); err != nil ||
		len(kept) != 1 {
		t.Errorf("kept %v, %v", kept, err)
	}
}

// A program without a network reaches itself, and nothing else.
func TestNoNetwork(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make a network")
	}
	b := newBench(t)
	o := b.order("sh", "-c",
		"grep -c : /proc/net/dev; grep -o lo: /proc/net/dev; grep -q 127.0.0.1 /proc/net/fib_trie && echo up")
	o.Launch.NoNetwork = true
	if got := b.printsAsUser(o); got != "1\nlo:\nup\n" {
		t.Errorf("output %q", got)
	}
}

// A program that is executed with the rights of its owner elsewhere has none in a container of another user.
func TestNoNewRights(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to run programs as another user")
	}
	id, err := exec.LookPath("id")
	if err != nil {
		t.Skip(err)
	}
	text, err := os.ReadFile(id)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "id")
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(program, text, 0o755),
		os.Chmod(program, 0o755|os.ModeSetuid)); err != nil {
		t.Fatal(err)
	}
	elsewhere := exec.Command(program, "-u")
	elsewhere.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 23456}}
	if out, err := elsewhere.CombinedOutput(); err != nil || string(out) != "0\n" {
		t.Skipf("needs a temporary folder in which the setuid bit counts: %s %v", out, err)
	}
	b := newBench(t)
	o := b.order(program, "-u")
	o.Launch.Dir = "/"
	if got := b.printsAsUser(o); got != "12345\n" {
		t.Errorf("it runs as user %s", got)
	}
}

// An agent can do everything on its machine, but only root isolates programs.
func TestCapabilities(t *testing.T) {
	a := &Agent{}
	var want cluster.Capabilities
	if os.Geteuid() != 0 {
		want.PrivateTmp, want.NoNetwork = "needs a daemon of root", "needs a daemon of root"
	}
	if got := a.Capabilities(); got != want {
		t.Errorf("it lacks %+v, want %+v", got, want)
	}
}
