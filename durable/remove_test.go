package durable

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// withDescriptors lets this process open no more than n further files until the test ends.
func withDescriptors(t *testing.T, n int) {
	t.Helper()
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	free, err := unix.Dup(0) // The limit bounds the number of a descriptor, and the kernel gives the least that is free.
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(free)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(free + n), Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &was) })
}

// nest makes n folders, one in the other, in a folder.
func nest(t *testing.T, dir string, n int) {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	for range n {
		if err == nil {
			err = unix.Mkdirat(fd, "d", 0o700)
		}
		at := fd
		if err == nil {
			fd, err = unix.Openat(at, "d", unix.O_PATH|unix.O_CLOEXEC, 0)
		}
		_ = unix.Close(at)
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(fd)
}

// grow makes a random tree in a folder: files, links to files, and symbolic links to outside of the tree, pipes, and
// folders that are deep, wide, or closed to their owner.
func grow(t *testing.T, r *rand.Rand, dir, outside string, depth int) {
	t.Helper()
	for i := range r.IntN(8) {
		path := filepath.Join(dir, fmt.Sprintf("%c\n\xff%d", 'a'+r.IntN(26), i))
		var err error
		switch kind := r.IntN(8); {
		case kind < 2 && depth > 0:
			if err = os.Mkdir(path, 0o700); err == nil {
				grow(t, r, path, outside, depth-1)
			}
			if kind == 0 && os.Geteuid() == 0 {
				err = errors.Join(err, os.Chmod(path, 0))
			}
		case kind < 4 && depth > 0:
			if err = os.Mkdir(path, 0o700); err == nil {
				nest(t, path, r.IntN(40))
			}
		case kind == 4:
			err = os.Symlink(outside, path)
		case kind == 5:
			err = os.Link(filepath.Join(outside, "file"), path)
		case kind == 6:
			err = unix.Mkfifo(path, 0)
		default:
			err = os.WriteFile(path, nil, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Any tree is removed whole with two descriptors, and nothing beside it is touched.
func TestRemoveAllTakesTwoDescriptors(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(dir, "outside")
	if err := errors.Join(os.Mkdir(outside, 0o700), os.WriteFile(filepath.Join(outside, "file"), []byte("kept"),
		0o600)); err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	tree := filepath.Join(dir, "tree")
	shapes := []func(){
		func() { nest(t, tree, 3000) }, // deeper than a path may be long
		func() {
			for i := range batch + 1 {
				if err := os.MkdirAll(filepath.Join(tree, "d", fmt.Sprint(i), "e"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
		},
	}
	for range 8 {
		shapes = append(shapes, func() { grow(t, r, tree, outside, 3) })
	}
	for i, shape := range shapes {
		if err := os.Mkdir(tree, 0o700); err != nil {
			t.Fatal(err)
		}
		shape()
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			withDescriptors(t, 2)
			if err := RemoveAll(tree); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		})
		left, err := os.ReadDir(dir)
		text, _ := os.ReadFile(filepath.Join(outside, "file"))
		if err != nil || len(left) != 1 || string(text) != "kept" {
			t.Fatalf("seed %d, tree %d: left %v, %v; the file outside says %q", seed, i, left, err, text)
		}
	}
}

// What is no folder is removed, what is missing is no error, and a symbolic link is removed in place of what it names.
func TestRemoveAllOfOthers(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "dir", "file"), filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0),
		os.Symlink(filepath.Dir(file), link)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, filepath.Join(dir, "missing"), filepath.Join(dir, "missing", "too")} {
		if err := RemoveAll(path); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	if err := RemoveAll(file); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left %v, %v", left, err)
	}
}

// What is mounted in a tree is no part of it: it stays, and the error names it. All else is removed.
func TestRemoveAllStaysOnItsMount(t *testing.T) {
	dir := t.TempDir()
	tree, outside := filepath.Join(dir, "tree"), filepath.Join(dir, "outside")
	mount := filepath.Join(tree, "a", "b", "mounted")
	if err := errors.Join(os.MkdirAll(mount, 0o700), os.Mkdir(outside, 0o700),
		os.WriteFile(filepath.Join(outside, "file"), nil, 0o600), os.WriteFile(filepath.Join(tree, "a", "file"), nil,
			0o600)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(outside, mount, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("needs the right to mount: %v", err)
	}
	mounted, err := os.Open(mount)
	if err != nil {
		t.Fatal(err)
	}
	defer mounted.Close()
	// wherever it is now
	unmount := func() error { return unix.Unmount(fmt.Sprintf("/proc/self/fd/%d", mounted.Fd()), unix.MNT_DETACH) }
	defer unmount()
	err = RemoveAll(tree)
	if at := new(fs.PathError); !errors.As(err, &at) || !errors.Is(err, unix.EBUSY) ||
		filepath.Base(at.Path) != "mounted" {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(filepath.Join(outside, "file")); err != nil {
		t.Error(err)
	}
	if err := errors.Join(unmount(), RemoveAll(tree)); err != nil {
		t.Error(err)
	}
}

// A removal that is to stop does so, and a later one goes on.
func TestRemoveStops(t *testing.T) {
	tree := filepath.Join(t.TempDir(), "tree")
	if err := os.Mkdir(tree, 0o700); err != nil {
		t.Fatal(err)
	}
	nest(t, tree, 100)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := Remove(ctx, tree); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if err := Remove(t.Context(), tree); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(tree); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
