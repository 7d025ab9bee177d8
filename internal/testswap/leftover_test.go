package testswap

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"
)

// TestKilled kills a test that has swap, and takes the lock after that.
func TestKilled(t *testing.T) {
	if os.Getenv("BELLOWS_TEST_KILLED") != "" {
		Need(t, 16<<20)
		os.Stdout.WriteString("\nswaps\n")
		_, _ = io.ReadAll(os.Stdin)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	// Under the lock, so that no other test removes swap meanwhile; the test that is killed gets a lock of its own.
	Lock(t)
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	before := swaps(t)
	killed := exec.Command(os.Args[0], "-test.run=^TestKilled$", "-test.v")
	killed.Env = append(os.Environ(), "BELLOWS_TEST_KILLED=1")
	in, err := killed.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := killed.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(out)
	for said.Scan() && said.Text() != "swaps" {
		t.Log(said.Text())
	}
	left := swaps(t)
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	if len(left) != len(before)+1 {
		t.Skipf("no swap of its own can be had: %q, then %q", before, left)
	}
	Lock(t)
	if now := swaps(t); !slices.Equal(now, before) {
		t.Errorf("%q are swapped to, want %q", now, before)
	}
}

func TestSince(t *testing.T) {
	t.Setenv("TMPDIR", "/tmp/tests/")
	now := []string{"/dev/vdb", "/dev/zram0", "/dev/zram1", "/tmp/tests/swap", "/tmp/tests/before", "/tmp/testswap",
		"/home/swap"}
	if got, want := since([]string{"/dev/zram0", "/tmp/tests/before"}, now),
		[]string{"/dev/zram1", "/tmp/tests/swap"}; !slices.Equal(got, want) {
		t.Errorf("%q are tests', want %q", got, want)
	}
}

// TestOpenLock finds a link to another user's file in place of the lock.
func TestOpenLock(t *testing.T) {
	dir := t.TempDir()
	theirs := dir + "/theirs"
	if err := os.WriteFile(theirs, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, link := range map[string]func(from, to string) error{"symbolic": os.Symlink, "hard": os.Link} {
		if err := link(theirs, dir+"/"+name); err != nil {
			t.Fatal(err)
		}
		if f, err := openLock(dir + "/" + name); err == nil {
			f.Close()
			t.Errorf("a %s link was opened", name)
		}
	}
	f, err := openLock(dir + "/lock")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}
