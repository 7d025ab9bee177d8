package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Exit codes that scripts can trust.
const (
	Failed     = 1 // the work failed
	WrongUsage = 2 // wrong input or usage
	// Interrupted is the code of shells for a command that Ctrl-C ended.
	Interrupted = 130
)

// usageError is a mistake of the user: it names the field, the value and the limit.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// Usagef returns an error that is a mistake of the user: it names the field, the value and the limit.
func Usagef(format string, operands ...any) error {
	return usageError{fmt.Errorf(format, operands...)}
}

// Usage marks an error, if there is one, as a mistake of the user.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// Code is an error that ends the process with a code and without a message, because the messages have been printed.
type Code int

// Error implements error.
func (e Code) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// ExitCode returns the exit code for the error of a command.
func ExitCode(err error) int {
	var code Code
	var wrong usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	case errors.Is(err, context.Canceled):
		return Interrupted
	case errors.As(err, &wrong):
		return WrongUsage
	}
	return Failed
}

// errorText returns the text of err with one line per sentence.
func errorText(err error) string {
	var silent Code
	if err == nil || errors.As(err, &silent) || errors.Is(err, context.Canceled) {
		return ""
	}
	return strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", " ")
}
