package demo

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/agent"
	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/profiler"
	"github.com/bellows-rm/bellows/resource"
)

// inputDir is where the inputs lie below the working directory.
const inputDir = "input"

// diskNeeded is room for the inputs of the elastic part, and for what two tasks spill at once.
const diskNeeded = 1 * resource.GiB

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
	return containersImpossible(ctx, work)
}

// containersImpossible returns in one clause why there can be no containers here; empty if there can.
func containersImpossible(ctx context.Context, work string) string {
	c, err := profiler.NewContainer(cluster.Command{Args: []string{"true"}}, environment(), work, resource.Core)
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
