package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// writeFile writes content to an existing file in one system call and waits until that returns.
func writeFile(path, content string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		_, err = unix.Write(fd, []byte(content))
		_ = unix.Close(fd)
	}
	return writeFailure(path, content, err)
}

// writeFailure wraps the result of a write. If the directory exists and the file does not, the kernel does not support
// the file.
func writeFailure(path, content string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, unix.ENOENT) {
		if _, statErr := os.Stat(filepath.Dir(path)); statErr == nil {
			err = fmt.Errorf("no such file: %w", ErrUnsupported)
		}
	}
	return &WriteError{Path: path, Content: content, Err: err}
}

// writeSlowly is writeFile for writes that can take seconds, such as a memory limit below usage: it gives up when ctx
// ends. The write runs on a thread of its own; a signal to that thread makes the kernel stop reclaiming. release is
// called when the thread is done, which can be shortly after writeSlowly has returned.
func writeSlowly(ctx context.Context, path, content string, release func()) error {
	if err := ctx.Err(); err != nil {
		release()
		return &WriteError{Path: path, Content: content, Err: err}
	}
	started := make(chan int, 1)
	done := make(chan error, 1)
	go func() {
		defer release()
		// The thread id must stay ours until the write is over, so that the signal hits no other thread.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		started <- unix.Gettid()
		done <- writeUntilSignalled(ctx, path, content)
	}()
	tid := <-started
	select {
	case err := <-done:
		return writeFailure(path, content, err)
	case <-ctx.Done():
	}
	// One signal may arrive just before the system call begins, so it is repeated. The Go runtime uses SIGURG for
	// itself and accepts any number of them.
	for range 20 {
		_ = unix.Tgkill(unix.Getpid(), tid, unix.SIGURG)
		select {
		case err := <-done:
			if err == nil || !errors.Is(err, unix.EINTR) {
				return writeFailure(path, content, err)
			}
			return &WriteError{Path: path, Content: content, Err: fmt.Errorf("given up: %w", ctx.Err())}
		case <-time.After(5 * time.Millisecond):
		}
	}
	return &WriteError{Path: path, Content: content, Err: fmt.Errorf("still under way: %w", ctx.Err())}
}

// writeUntilSignalled repeats an interrupted write until ctx ends: the runtime's own signals can arrive at any time.
func writeUntilSignalled(ctx context.Context, path, content string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for {
		_, err = unix.Write(fd, []byte(content))
		if !errors.Is(err, unix.EINTR) || ctx.Err() != nil {
			return err
		}
	}
}
