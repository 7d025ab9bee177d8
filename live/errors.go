package live

import (
	"errors"
	"fmt"
)

// Kind says whose fault an error is.
type Kind uint8

const (
	World    Kind = iota // the machine: a full disk, a store that cannot be written, a time that ran out
	Mistake              // the caller's: one sentence names field, value and limit
	NotFound             // there is no such job or task
	Denied               // the caller may not do that to what is somebody else's
	Bug                  // ours: a policy took an impossible decision; nothing more is decided, containers go on
)

var kindNames = [...]string{"world", "mistake", "not-found", "denied", "bug"}

// String returns its name for people. The error codes of the API are those of package server.
func (k Kind) String() string { return kindNames[k] }

// Error is an error with its kind. Its text is one sentence for people.
type Error struct {
	Kind Kind
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of err: that of the Error in its chain, World if there is none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return World
}

func fault(kind Kind, format string, operands ...any) error {
	return &Error{Kind: kind, Err: fmt.Errorf(format, operands...)}
}
