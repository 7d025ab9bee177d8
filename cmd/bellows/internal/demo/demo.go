// Package demo runs the same real programs twice on a small part of this machine, once in fixed boxes of memory and once sharing it,
// checks what they computed, and says which was faster and why.
package demo

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/agent"
	"github.com/bellows-rm/bellows/internal/sandbox"
	"github.com/bellows-rm/bellows/resource"
)

// The parts of the demonstration.
const (
	Elastic = "elastic" // sorts that may have less memory than is ideal
	Flex    = "flex"    // programs whose memory comes and goes
)

// Options say what is demonstrated.
type Options struct {
	Parts []string // Elastic, Flex or both
	Dir   string   // where the working directory is made; empty is where temporary files go
	// Say is told what happens, a line at a time; Show what changes all the time.
	Say, Show func(line string)
}

// Result is everything that came of it.
type Result struct {
	Parts []Part        `json:"parts"`
	Took  time.Duration `json:"took_ns"`
}

// Part is what came of one part.
type Part struct {
	Name    string          `json:"name"`
	About   string          `json:"about"`
	LeftOut string          `json:"left_out,omitempty"` // why it did not run, in one clause
	Node    resource.Vector `json:"node"`
	Fixed   Run             `json:"fixed"`
	Shared  Run             `json:"shared"`
}

// Demonstrate carries the demonstration out. It takes away everything it made before it returns, also after an error or when ctx
// ends. What goes wrong with a program is a part of the result.
func Demonstrate(ctx context.Context, o Options) (res *Result, err error) {
	begun := time.Now()
	parent := sandbox.Parent(o.Dir)
	if _, err := sandbox.Sweep(ctx, parent); err != nil {
		return nil, err
	}
	place, err := sandbox.Make(parent, diskNeeded)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, place.Remove(ctx)) }()
	o.Say(fmt.Sprintf("working in %s and in control groups named bellows-*; both are taken away at the end", place.Dir))
	res = &Result{}
	for _, name := range o.Parts {
		d := demonstration{Options: o, work: place.Dir}
		part := Part{Name: name}
		switch name {
		case Elastic:
			err = d.elastic(ctx, &part)
		case Flex:
			err = d.flex(ctx, &part)
		}
		if err != nil {
			return nil, err
		}
		res.Parts = append(res.Parts, part)
	}
	res.Took = time.Since(begun)
	return res, nil
}

// diskNeeded is room for what sorts read and spill, and for swap.
const diskNeeded = 2 * resource.GiB

// demonstration is one part in progress.
type demonstration struct {
	Options
	work string
}

// input is where programs find what they read.
func (d *demonstration) input() string { return filepath.Join(d.work, sandbox.InputDir) }

// unsuitable returns in one clause why nothing can run on node here; empty if it can.
func (d *demonstration) unsuitable(ctx context.Context, node resource.Vector) string {
	if sandbox.InMemory(d.work) {
		return fmt.Sprintf("%s lies in memory, where programs cannot spill to", d.work)
	}
	if _, err := agent.Capacity(node[resource.Memory], node[resource.CPU]); err != nil {
		return err.Error()
	}
	return sandbox.NoContainers(ctx, d.work)
}

// withoutSort returns in one clause why this machine cannot sort; empty if it can.
func withoutSort(ctx context.Context) string {
	if text, err := exec.CommandContext(ctx, "sort", "--version").Output(); err != nil || !strings.Contains(string(text), "GNU coreutils") {
		return "there is no GNU sort"
	}
	return ""
}
