package demo

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/sandbox"
	"github.com/bellows-rm/bellows/node/agent"
)

// diskNeeded is disk space for the inputs of the elastic part, and for the spilled data of two tasks at once.
const diskNeeded = 1 * resource.GiB

// unsuitable returns in one clause why this machine cannot run the mix; empty if it can.
func unsuitable(ctx context.Context, work string) string {
	if sandbox.InMemory(work) {
		return fmt.Sprintf("%s lies in memory, where programs cannot spill to", work)
	}
	if _, err := agent.Capacity(node[resource.Memory], node[resource.CPU]); err != nil {
		return err.Error()
	}
	if text, err := exec.CommandContext(ctx, "sort", "--version").Output(); err != nil ||
		!bytes.Contains(text, []byte("GNU coreutils")) {
		return "there is no GNU sort"
	}
	if _, err := exec.LookPath("gzip"); err != nil {
		return "there is no gzip"
	}
	return sandbox.NoContainers(ctx, work)
}
