package agent

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/cluster"
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
	o := b.order("sh", "-c", "ls -A /tmp /var/tmp; echo mine > /tmp/file; cat /var/tmp/file; stat -c %a /tmp; mkdir -p /tmp/deep/er; chmod 0 /tmp/deep")
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
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) { // the supervisor removes it after it has recorded the end
		if _, err := os.Stat(path); os.IsNotExist(err) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is still there", path)
		}
	}
}

// A program whose working directory its private temporary folder hides is told so.
func TestHiddenDir(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount")
	}
	b := newBench(t)
	o := b.order("true")
	o.Launch.PrivateTmp, o.Launch.Dir = true, b.dir
	want := fmt.Sprintf("working directory %q: no such file or directory; the job has a private temporary folder, which hides /tmp of the system", b.dir)
	if e := b.run(o); e.Exit.Code != 126 || e.Detail != want {
		t.Errorf("ended %s: %s; want %s", e.Outcome, e.Detail, want)
	}
}

// Whoever forgets a container removes its private temporary folder, if its supervisor could not.
func TestForgottenTmp(t *testing.T) {
	f := folder(t.TempDir())
	if err := f.makeTmp(); err != nil {
		t.Fatal(err)
	}
	var path string
	if err := f.get(tmpRecord, &path); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("others may enter %s: %v, %v", path, info, err)
	}
	for range 2 {
		if err := f.removeTmp(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", path, err)
	}
	if err := folder(t.TempDir()).removeTmp(); err != nil {
		t.Errorf("a container without one: %v", err)
	}
}

// A program without a network reaches itself, and nothing else.
func TestNoNetwork(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make a network")
	}
	b := newBench(t)
	o := b.order("sh", "-c", "grep -c : /proc/net/dev; grep -o lo: /proc/net/dev; grep -q 127.0.0.1 /proc/net/fib_trie && echo up")
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
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(program, text, 0o755), os.Chmod(program, 0o755|os.ModeSetuid)); err != nil {
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
