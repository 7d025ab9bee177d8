package server

import (
	"errors"
	"fmt"
	"net/http"
)

// Code is the kind of an Error. There are few, so that a client can act on each.
type Code string

const (
	Invalid     Code = "invalid"     // 400: the request has a mistake; Message names field, value and limit
	Denied      Code = "denied"      // 403: the caller may not do that
	NotFound    Code = "not-found"   // 404: there is no such job, task or profile
	Conflict    Code = "conflict"    // 409: not in the present state
	Unavailable Code = "unavailable" // 503: the daemon is starting, stopping or not there
	Internal    Code = "internal"    // 500: what was attempted failed; Message says on what
)

var statusOf = map[Code]int{
	Invalid: http.StatusBadRequest, Denied: http.StatusForbidden, NotFound: http.StatusNotFound,
	Conflict: http.StatusConflict, Unavailable: http.StatusServiceUnavailable, Internal: http.StatusInternalServerError,
}

// Error is what the API answers when it does not do what was asked. It is one sentence.
type Error struct {
	Code    Code   `json:"code" enum:"invalid,denied,not-found,conflict,unavailable,internal" doc:"what kind of error"`
	Message string `json:"message" doc:"one sentence"`
}

func (e *Error) Error() string { return e.Message }

// Errorf returns an Error.
func Errorf(code Code, format string, operands ...any) *Error {
	return &Error{code, fmt.Sprintf(format, operands...)}
}

// CodeOf returns the code of an Error in err's chain; "" if there is none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// IsInvalid reports whether err is an Error that says that the caller's input was wrong.
func IsInvalid(err error) bool {
	code := CodeOf(err)
	return code == Invalid || code == NotFound
}

// codeOf returns the code for an HTTP status.
func codeOf(status int) Code {
	for code, s := range statusOf {
		if s == status {
			return code
		}
	}
	if status >= 400 && status < 500 {
		return Invalid
	}
	return Internal
}
