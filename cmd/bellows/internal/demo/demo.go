// Package demo runs the same real programs twice on a small part of this machine, once with fixed memory and once with
// shared memory, checks their results, and says which run was faster and why.
package demo

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/sandbox"
	"github.com/bellows-rm/bellows/node/agent"
)

// The parts of the demonstration.
const (
	Elastic = "elastic" // sorts that may have less than their ideal memory
	Flex    = "flex"    // programs whose memory use rises and falls
)

// Options say what is demonstrated.
type Options struct {
	Parts []string // Elastic, Flex or both
	Dir   string   // where the working directory is made; empty is the folder for temporary files
	// Say gets the events, a line at a time; Show gets a line that changes all the time.
	Say, Show func(line string)
}

// Result is the result of a demonstration.
type Result struct {
	Parts []Part        `json:"parts" doc:"one for each part that was asked for"`
	Took  time.Duration `json:"took_ns" doc:"time that the demonstration took"`
}

// Part is the result of one part.
type Part struct {
	Name    string          `json:"name" doc:"elastic or flex"`
	About   string          `json:"about" doc:"the programs, in one sentence"`
	LeftOut string          `json:"left_out,omitempty" doc:"why the part did not run, in one clause; the other fields then say nothing"`
	Node    resource.Vector `json:"node" doc:"what the programs share: CPU in millicores, memory in bytes, disk and network in bytes per second"`
	Fixed   Run             `json:"fixed" doc:"the [run](#demo-runs) with containers of fixed sizes"`
	Shared  Run             `json:"shared" doc:"the [run](#demo-runs) in which the programs share memory"`
}

// Demonstrate runs the demonstration. Before it returns, it removes everything that it made, also after an error or
// when ctx ends. A failure of a program is a part of the result, not an error.
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
	o.Say(fmt.Sprintf("working in %s and in control groups named bellows-*; both are removed at the end", place.Dir))
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

// diskNeeded is disk space for the input and the spilled data of sorts, and for swap.
const diskNeeded = 2 * resource.GiB

// demonstration is one part in progress.
type demonstration struct {
	Options
	work string
}

// input is the folder with the programs' input.
func (d *demonstration) input() string { return filepath.Join(d.work, sandbox.InputDir) }

// unsuitable returns in one clause why this machine cannot run the demonstration on node; empty if it can.
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
	if text, err := exec.CommandContext(ctx, "sort", "--version").Output(); err != nil ||
		!strings.Contains(string(text), "GNU coreutils") {
		return "there is no GNU sort"
	}
	return ""
}
