package server

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/bellows-rm/bellows/live/api"
)

// A socket has the mode and group that its administrator wants, and lies in a folder through which its users can pass.
func TestDoor(t *testing.T) {
	own := &api.Group{Name: "own", GID: uint32(os.Getegid())}
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	for mode, door := range map[os.FileMode]Door{0o600: {}, 0o660: {Mode: 0o660, Group: own}, 0o666: {Mode: 0o666}} {
		folder := filepath.Join(t.TempDir(), "door")
		l, err := Listen(filepath.Join(folder, "s"), door)
		if err != nil {
			t.Errorf("mode %#o: %v", mode, err)
			continue
		}
		defer l.Close()
		for path, want := range map[string]os.FileMode{"s": mode, "": 0o755} {
			info, err := os.Stat(filepath.Join(folder, path))
			if err != nil || info.Mode().Perm() != want || info.Sys().(*syscall.Stat_t).Gid != own.GID {
				t.Errorf("mode %#o: %q has %v, %v", mode, path, info, err)
			}
		}
	}
}

// A socket that nobody could reach although it is open is refused.
func TestDoorInAClosedFolder(t *testing.T) {
	folder := t.TempDir()
	if err := os.Chmod(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "s")
	const want = ": other users cannot reach it, because its folder has mode 0700: name a socket elsewhere with --socket"
	if _, err := Listen(path, Door{Mode: 0o660}); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	l, err := Listen(path, Door{})
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

func TestCheckSocket(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "s"):           "",
		filepath.Join(dir, "a", "b", "s"): "",
		file:                              "the path exists and is no socket",
		filepath.Join(file, "s"):          "this user cannot make it in " + file,
	} {
		err := CheckSocket(path)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", path, err, want)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the check has made something: %v (%v)", entries, err)
	}
}
