// Package fault describes what is wrong with a file, and where. A reader of files that people or other programs wrote
// returns a *Fault for an error that they can correct, and any other error if the file could not be read.
package fault

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bellows-rm/bellows/core/cluster"
)

// Fault is a mistake in a file. Its text is one sentence that begins with FILE:LINE.
type Fault struct {
	File string
	Line int // counted from 1; 0 is the file as a whole
	What string
}

// At returns a fault of a line, counted from 1; line 0 is the file as a whole.
func At(file string, line int, format string, operands ...any) *Fault {
	return &Fault{File: file, Line: line, What: fmt.Sprintf(format, operands...)}
}

func (f *Fault) Error() string { // it may quote arbitrary content of a file
	if f.Line == 0 {
		return cluster.Printable(f.File + ": " + f.What)
	}
	return cluster.Printable(fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.What))
}

// All are the faults of a file, in the order of its lines, for a reader that continues after the first. As an error
// it has a line for each.
type All []*Fault

func (a *All) Error() string {
	lines := make([]string, len(*a))
	for i, f := range *a {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the faults.
func (a *All) Unwrap() []error {
	all := make([]error, len(*a))
	for i, f := range *a {
		all[i] = f
	}
	return all
}

// Is reports whether err says that the content of a file is wrong, as opposed to that the file could not be read.
func Is(err error) bool {
	var f *Fault
	return errors.As(err, &f)
}
