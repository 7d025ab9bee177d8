package demo

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/agent"
	"github.com/bellows-rm/bellows/profiler"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/trace"
)

// inputDir is where the inputs lie below the working directory.
const inputDir = "input"

// diskNeeded is room for the inputs and for what two tasks spill at once.
const diskNeeded = 1 * resource.GiB

// makeWork makes the working directory below parent. Unless parent says where, it is where temporary files go, or, if
// those lie in memory, where large ones go: what is spilled into memory would count as the memory of the task.
func makeWork(parent string) (string, error) {
	if parent == "" {
		parent = os.TempDir()
		if inMemory(parent) {
			parent = "/var/tmp"
		}
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(parent, &fs); err != nil {
		return "", fmt.Errorf("directory %s: %w", parent, err)
	}
	if free := resource.Amount(fs.Bavail) * resource.Amount(fs.Bsize); free < diskNeeded {
		return "", fmt.Errorf("directory %s has %s free: must be at least %s; --dir names another", parent, resource.FormatMemory(free), resource.FormatMemory(diskNeeded))
	}
	dir, err := os.MkdirTemp(parent, "bellows-demo-")
	if err != nil {
		return "", fmt.Errorf("make the working directory: %w", err)
	}
	if err := os.Mkdir(filepath.Join(dir, inputDir), 0o700); err != nil {
		return "", fmt.Errorf("make the working directory: %w", err)
	}
	return dir, nil
}

// inMemory reports whether files in dir lie in memory.
func inMemory(dir string) bool {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) != nil {
		return false
	}
	return fs.Type == unix.TMPFS_MAGIC || fs.Type == unix.RAMFS_MAGIC
}

// unsuitable returns in one clause why the mix cannot run for real here; empty if it can.
func unsuitable(ctx context.Context, work string) string {
	if inMemory(work) {
		return fmt.Sprintf("%s lies in memory, where programs cannot spill to", work)
	}
	if _, err := agent.Capacity(node[resource.Memory], node[resource.CPU]); err != nil {
		return err.Error()
	}
	if text, err := exec.CommandContext(ctx, "sort", "--version").Output(); err != nil || !bytes.Contains(text, []byte("GNU coreutils")) {
		return "there is no GNU sort"
	}
	if _, err := exec.LookPath("gzip"); err != nil {
		return "there is no gzip"
	}
	c, err := profiler.NewContainer(trace.Command{Args: []string{"true"}}, environment(), work, resource.Core)
	if err == nil {
		var m profiler.Measurement
		if m, err = c.Run(ctx, 16*resource.MiB); err == nil && m.Failure != "" {
			err = fmt.Errorf("a container does not run: %s", m.Failure)
		}
		if closing := c.Close(); err == nil {
			err = closing
		}
	}
	if err != nil {
		return strings.TrimPrefix(err.Error(), "measuring needs control groups: ")
	}
	return ""
}
