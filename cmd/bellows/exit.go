package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/bellows-rm/bellows/server"
)

// Exit codes that scripts can trust.
const (
	exitFailed = 1 // the work failed
	exitUsage  = 2 // the input or the usage was wrong
	// exitInterrupted is what shells use for a command that Ctrl-C ended.
	exitInterrupted = 130
)

// usageError is a mistake of the user: it says which field, value and limit.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// usagef returns a usageError.
func usagef(format string, operands ...any) error {
	return usageError{fmt.Errorf(format, operands...)}
}

// usage marks an error, if there is one, as a mistake of the user.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// codeError ends the process with a code and without another word: all was said before.
type codeError int

func (e codeError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// exitCode returns the exit code for what a command returned. Errors from before a command began are mistakes in its
// usage.
func exitCode(err error, started bool) int {
	var code codeError
	var wrong usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &wrong), !started, server.IsInvalid(err):
		return exitUsage
	}
	return exitFailed
}

// errorText returns what to print for err: one line for one sentence, and where to read on after a wrong usage.
func errorText(err error) string {
	var silent codeError
	if err == nil || errors.As(err, &silent) || errors.Is(err, context.Canceled) {
		return ""
	}
	text := strings.TrimSpace(err.Error())
	text = strings.ReplaceAll(text, "\n", " ")
	return fmt.Sprintf("bellows: %s", text)
}
