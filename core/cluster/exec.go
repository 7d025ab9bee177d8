package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/bellows-rm/bellows/core/resource"
)

// What the kernel executes: see "Limits on size of arguments and environment" in execve(2).
const (
	longestString = 128<<10 - 1 // one argument or variable, bytes
	leastStrings  = 128 << 10   // all of them, with 8 bytes for each, however small the stack is
	mostStrings   = 6 << 20     // however large it is
	usualStrings  = 2 << 20     // with the usual stack of 8 MiB
)

// CheckExec returns an error if the kernel cannot execute the command of a stage: one of its variables is too long,
// or its arguments and its environment are too large together. env is the environment of the job, "NAME=value"; the
// variables of the stage replace those of the same name. h is what the program inherits, and may be nil.
func (j *Job) CheckExec(stage int, env []string, h *Inherited) error {
	c := &j.Stages[stage].Command
	sum := 0
	for _, arg := range c.Args {
		sum += executed(arg)
	}
	variable := func(name, pair string) error {
		n := executed(pair)
		sum += n
		if n > longestString+9 {
			return fmt.Errorf("variable %s: has %d bytes with its name, and the kernel executes no program with more than %d",
				strconv.Quote(Clip(name)), n-9, longestString)
		}
		return nil
	}
	for _, pair := range env {
		name, _, _ := strings.Cut(pair, "=")
		if _, replaced := c.Env[name]; replaced {
			continue
		}
		if err := variable(name, pair); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		if err := variable(name, name+"="+c.Env[name]); err != nil {
			return err
		}
	}
	if most := h.strings(); sum > most {
		return fmt.Errorf("command and environment: take %s, and the kernel executes no program with more than %s: "+
			"give it less, in a file, or raise its limit of the stack, of which that is a quarter",
			resource.FormatMemory(resource.Amount(sum)), resource.FormatMemory(resource.Amount(most)))
	}
	return nil
}

// executed is what a string takes: its bytes, a zero byte and a pointer.
func executed(text string) int {
	raw, err := DecodeText(text)
	if err != nil {
		raw = text // Another check refuses it.
	}
	return len(raw) + 9
}

// strings is how many bytes arguments and environment may take together. The limit of the stack bounds them.
func (h *Inherited) strings() int {
	if h == nil {
		return usualStrings
	}
	stack, stated := h.Limits["stack"]
	switch {
	case !stated:
		return usualStrings
	case stack.Soft < 0:
		return mostStrings
	}
	return int(max(leastStrings, min(mostStrings, stack.Soft/4)))
}
