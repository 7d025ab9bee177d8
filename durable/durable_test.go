package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// watch collects what is done until the test ends.
func watch(t *testing.T) *[]string {
	t.Helper()
	var seen []string
	Watch = func(op Op, path string) { seen = append(seen, fmt.Sprintf("%s %s", op, filepath.Base(path))) }
	t.Cleanup(func() { Watch = nil })
	return &seen
}

// Content that must survive is on the disk before it has its name, and the name is on the disk before the write is
// reported.
func TestOrderOfChanges(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	for _, c := range []struct {
		name string
		do   func() error
		want string
	}{
		{"make a folder", func() error { return MakeDir(dir) }, "make d"},
		{"one that is there", func() error { return MakeDir(dir) }, ""},
		{"write", func() error {
			return Write(filepath.Join(dir, "f"), []byte("x"))
		}, "make f.tmp, write f.tmp, sync f.tmp, rename f, sync d"},
		{"replace", func() error { return Replace(filepath.Join(dir, "f"), []byte("y")) },
			"make f.tmp, write f.tmp, rename f"},
		{"replace by nothing", func() error { return Replace(filepath.Join(dir, "f"), nil) }, "make f.tmp, rename f"},
		{"rename", func() error { return Rename(filepath.Join(dir, "f"), filepath.Join(dir, "g")) }, "rename g, sync d"},
		{"remove", func() error { return RemoveAll(filepath.Join(dir, "g")) }, "remove g"},
		{"in place", func() error {
			f, err := Open(filepath.Join(dir, "log"))
			if err != nil {
				return err
			}
			_, err = f.WriteAt([]byte("line"), 0)
			return errors.Join(err, f.Truncate(2), f.Sync(), f.Close())
		}, "write log, truncate log, sync log"},
	} {
		seen := watch(t)
		if err := c.do(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := strings.Join(*seen, ", "); got != c.want {
			t.Errorf("%s: did %q, want %q", c.name, got, c.want)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "log" {
		t.Errorf("left: %v %v", entries, err)
	}
}

// died is what a process that dies is for a test: a panic before the change.
type died struct{}

// A process that dies before any of the changes leaves the old text or the new one.
func TestWriteIsWholeOrNotAtAll(t *testing.T) {
	for _, write := range []func(string, []byte) error{Write, Replace} {
		path := filepath.Join(t.TempDir(), "f")
		var seen []string
		for n := 0; ; n++ {
			if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			done := func() (done bool) {
				step := 0
				Watch = func(op Op, path string) {
					if step++; step > n {
						panic(died{})
					}
				}
				defer func() {
					Watch = nil
					if p := recover(); p != nil && p != (died{}) {
						panic(p)
					}
				}()
				if err := write(path, []byte("new")); err != nil {
					t.Error(err)
				}
				return true
			}()
			text, err := os.ReadFile(path)
			if err != nil || string(text) != "old" && string(text) != "new" {
				t.Fatalf("dead before change %d: %q, %v", n+1, text, err)
			}
			seen = append(seen, string(text))
			if done {
				break
			}
		}
		if !slices.IsSortedFunc(seen, func(a, b string) int { return -strings.Compare(a, b) }) || seen[0] != "old" ||
			seen[len(seen)-1] != "new" {
			t.Errorf("texts after deaths, in order: %v", seen)
		}
	}
}

// A failure leaves nothing behind, and a symbolic link is not followed.
func TestFailures(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "f"), 0o700), os.WriteFile(target, []byte("kept"), 0o600),
		os.Symlink(target, filepath.Join(dir, "g.tmp"))); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Join(dir, "f"), []byte("x")); err == nil {
		t.Error("a folder was replaced by a file")
	}
	if _, err := os.Lstat(filepath.Join(dir, "f.tmp")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a temporary file is left: %v", err)
	}
	if err := Write(filepath.Join(dir, "g"), []byte("x")); err == nil {
		t.Error("a symbolic link was followed")
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != "kept" {
		t.Errorf("behind the link: %q, %v", text, err)
	}
}
