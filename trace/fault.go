package trace

import (
	"errors"
	"fmt"

	"github.com/bellows-rm/bellows/cluster"
)

// Fault is a mistake in a file: what is wrong, where. Its text is one sentence that begins with FILE:LINE.
type Fault struct {
	File string
	Line int // counted from 1; 0 is the file as a whole
	What string
}

func (f *Fault) Error() string { // it may quote whatever a file holds
	if f.Line == 0 {
		return cluster.Printable(f.File + ": " + f.What)
	}
	return cluster.Printable(fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.What))
}

// IsFault reports whether err says that a file is wrong, as opposed to that it could not be read.
func IsFault(err error) bool {
	var f *Fault
	return errors.As(err, &f)
}
