package statedir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// stranger is a user who is neither root nor the user that runs the tests.
const stranger = 12345

// layout makes a tree below a folder: each line is a path with its mode, and what else it is: "-> TARGET" a symbolic
// link, "file", "fifo", "of stranger".
func layout(t *testing.T, base, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		path := filepath.Join(base, words[0])
		var err error
		switch rest := strings.Join(words[1:], " "); {
		case strings.HasPrefix(rest, "-> "):
			err = os.Symlink(strings.ReplaceAll(words[2], "BASE", base), path)
		case strings.HasPrefix(rest, "file"):
			err = os.WriteFile(path, nil, 0o600)
		case strings.HasPrefix(rest, "fifo"):
			err = unix.Mkfifo(path, 0o600)
		default:
			var mode uint32
			for _, digit := range words[1] {
				mode = mode*8 + uint32(digit-'0')
			}
			err = errors.Join(os.Mkdir(path, 0o700), unix.Chmod(path, mode))
		}
		if strings.HasSuffix(line, "of stranger\n") || strings.HasSuffix(line, "of stranger") {
			if os.Geteuid() != 0 {
				t.Skip("needs root, to make what belongs to somebody else")
			}
			err = errors.Join(err, os.Lchown(path, stranger, stranger))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestMake(t *testing.T) {
	for _, c := range []struct {
		name, layout, dir string
		want              string // the error behind "state directory DIR: BASE/"; "" for none
	}{
		{"missing", "", "state", ""},
		{"missing with those above", "", "a/b/state", ""},
		{"for me alone", "state 0700", "state", ""},
		{"readable by all", "state 0755", "state", ""},
		{"dots in the path", "state 0700", "a/../state", ""},
		{"writable by the group", "state 0775", "state", "state is writable by its group (mode 0775): chmod g-w BASE/state"},
		{"writable by all", "state 0777", "state", "state is writable by everybody (mode 0777): chmod go-w BASE/state"},
		{"writable by all but the group", "state 0757", "state",
			"state is writable by everybody (mode 0757): chmod o-w BASE/state"},
		{"sticky itself", "state 1777", "state", "state is writable by everybody (mode 1777): chmod go-w BASE/state"},
		{"of somebody else", "state 0755 of stranger", "state",
			"state belongs to user 12345, who could change the state: choose another directory with --state"},
		{"a link", "real 0700\nstate -> real", "state", "state is a symbolic link: name the directory itself with --state"},
		{"a link to nothing", "state -> nothing", "state",
			"state is a symbolic link: name the directory itself with --state"},
		{"a file", "state file", "state", "state is not a directory: choose another one with --state"},
		{"a pipe", "state fifo", "state", "state is not a directory: choose another one with --state"},
		{"below a file", "a file", "a/state", "a is not a directory: choose another one with --state"},
		{"above writable by all", "a 0777\na/state 0700", "a/state",
			"a is writable by everybody (mode 0777): chmod go-w BASE/a"},
		{"above writable by the group", "a 0770", "a/state", "a is writable by its group (mode 0770): chmod g-w BASE/a"},
		{"far above writable by all", "a 0777\na/b 0700", "a/b/state",
			"a is writable by everybody (mode 0777): chmod go-w BASE/a"},
		{"above sticky", "a 1777", "a/state", ""},
		{"above sticky of somebody else", "a 1777 of stranger", "a/state",
			"a belongs to user 12345, who could replace what is in it: choose another directory with --state"},
		{"above of somebody else", "a 0755 of stranger", "a/state",
			"a belongs to user 12345, who could replace what is in it: choose another directory with --state"},
		{"in a sticky one, of somebody else", "a 1777\na/state 0700 of stranger", "a/state",
			"a/state belongs to user 12345, who could change the state: choose another directory with --state"},
		{"a link of mine above", "real 0700\na -> real", "a/state", ""},
		{"a full link of mine above", "real 0700\nreal/b 0700\na -> BASE/real/../real/b", "a/state", ""},
		{"a link to what all can write", "real 0777\na -> real", "a/state",
			"real is writable by everybody (mode 0777): chmod go-w BASE/real"},
		{"a link of somebody else above", "real 0700\na 1777\na/b -> ../real of stranger", "a/b/state",
			"a/b is a symbolic link of user 12345, who could point it elsewhere: choose another directory with --state"},
		{"what is mine inside", "state 0700\nstate/lock file\nstate/logs -> /elsewhere", "state", ""},
		{"what others put inside", "state 0700\nstate/containers 0700 of stranger", "state",
			"state/containers belongs to user 12345: remove it, or chown -h 0 BASE/state/containers"},
		{"a link that others put inside", "state 0700\nstate/lock -> /etc/passwd of stranger", "state",
			"state/lock belongs to user 12345: remove it, or chown -h 0 BASE/state/lock"},
	} {
		t.Run(c.name, func(t *testing.T) {
			base := t.TempDir()
			layout(t, base, c.layout)
			dir := base + "/" + c.dir
			_, missing := os.Lstat(filepath.Clean(dir))
			exists, checked := Check(dir)
			if _, after := os.Lstat(filepath.Clean(dir)); (after == nil) != (missing == nil) {
				t.Error("Check has made the directory")
			}
			err := Make(dir)
			if fmt.Sprint(checked) != fmt.Sprint(err) {
				t.Errorf("Check returned the error\n%v, Make\n%v", checked, err)
			}
			if err == nil && exists != (missing == nil) {
				t.Errorf("Check returned that the directory exists: %t", exists)
			}
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if info, err := os.Lstat(filepath.Clean(dir)); err != nil || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
					t.Errorf("made %v, %v", info, err)
				}
				if err := Make(dir); err != nil {
					t.Errorf("once more: %v", err)
				}
				return
			}
			if _, ok := errors.AsType[*UnsafeError](err); !ok {
				t.Fatalf("error %v, want that it is unsafe", err)
			}
			if want := "state directory " + dir + ": " + base + "/" + strings.ReplaceAll(c.want, "BASE",
				base); err.Error() != want {
				t.Errorf("error\n%v, want\n%s", err, want)
			}
		})
	}
}

// Links that lead to each other are an error, not an endless walk.
func TestLinksInACircle(t *testing.T) {
	base := t.TempDir()
	layout(t, base, "a -> b\nb -> a")
	if err := Make(filepath.Join(base, "a", "state")); !errors.Is(err, unix.ELOOP) {
		t.Errorf("error %v", err)
	}
}

func TestOpen(t *testing.T) {
	for _, c := range []struct {
		name, layout, want string // as for TestMake
	}{
		{"missing", "", ""},
		{"a file", "lock file", ""},
		{"a link", "victim file\nlock -> victim", "is a symbolic link: rm -r BASE/lock"},
		{"a link to nothing", "lock -> nothing", "is a symbolic link: rm -r BASE/lock"},
		{"a directory", "lock 0700", "is not a file: rm -r BASE/lock"},
		{"a pipe", "lock fifo", "is not a file: rm -r BASE/lock"},
		{"a file of somebody else", "lock file of stranger", "belongs to user 12345: rm -r BASE/lock"},
	} {
		t.Run(c.name, func(t *testing.T) {
			base := t.TempDir()
			layout(t, base, c.layout)
			check(t, base, c.want)
		})
	}
	t.Run("a second name", func(t *testing.T) {
		base := t.TempDir()
		layout(t, base, "victim file")
		if err := os.Link(filepath.Join(base, "victim"), filepath.Join(base, "lock")); err != nil {
			t.Fatal(err)
		}
		check(t, base, "has another name elsewhere: rm -r BASE/lock")
	})
}

// check opens the lock in a folder.
func check(t *testing.T, base, want string) {
	t.Helper()
	f, err := Open(filepath.Join(base, "lock"), 0)
	if err == nil {
		f.Close()
	}
	if want == "" {
		if err != nil {
			t.Error(err)
		}
		return
	}
	want = "state directory " + base + ": " + filepath.Join(base, "lock") + " " + strings.ReplaceAll(want, "BASE", base)
	if err == nil || err.Error() != want {
		t.Errorf("error\n%v, want\n%s", err, want)
	}
}
