package api

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Kind is the kind of an error, for callers that act on it. There are few kinds, and they are the same everywhere: the
// API sends the name with the HTTP status, and commands exit with the exit code. The zero Kind means none.
type Kind uint8

const (
	Invalid     Kind = iota + 1 // the request has a mistake; the text names field, value and limit
	NoToken                     // the request came over the network, and without a valid token
	Denied                      // the job belongs to another user, or the token does not allow the request
	NotFound                    // there is no such job, task or profile
	Conflict                    // not possible in the present state; the same request may succeed later
	Unavailable                 // the daemon is starting, stopping or absent, or too busy for now
	Internal                    // the daemon failed: a full disk, a store that cannot be written, a bug of a policy
	// a quota of the user or of the queue, or a pool, has too little left; the same request may succeed later
	OverQuota
	KeyReused // the key of the request belongs to another request: see live.Key
	Gone      // the lease that the request has has ended: register or enrol again
)

// kinds has a row for every Kind.
var kinds = [...]struct {
	name         string
	status, exit int
}{
	{},
	Invalid:     {"invalid", http.StatusBadRequest, 2},
	NoToken:     {"no-token", http.StatusUnauthorized, 1},
	Denied:      {"denied", http.StatusForbidden, 1},
	NotFound:    {"not-found", http.StatusNotFound, 2},
	Conflict:    {"conflict", http.StatusConflict, 1},
	Unavailable: {"unavailable", http.StatusServiceUnavailable, 1},
	Internal:    {"internal", http.StatusInternalServerError, 1},
	OverQuota:   {"over-quota", http.StatusTooManyRequests, 1},
	KeyReused:   {"key-reused", http.StatusUnprocessableEntity, 2},
	Gone:        {"gone", http.StatusGone, 1},
}

// KindNames returns the names of all kinds.
func KindNames() (names []string) {
	for k := Invalid; int(k) < len(kinds); k++ {
		names = append(names, k.String())
	}
	return names
}

// String returns the name of k; empty if k is no kind.
func (k Kind) String() string { return kinds[k].name }

// Status returns the HTTP status of k.
func (k Kind) Status() int { return kinds[k].status }

// ExitCode returns the exit code of a command that ends with an error of this kind: 2 if its input was wrong, else 1.
func (k Kind) ExitCode() int { return kinds[k].exit }

// MarshalText implements encoding.TextMarshaler.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. An unknown name, from a newer daemon, is Internal.
func (k *Kind) UnmarshalText(text []byte) error {
	*k = Internal
	for i := range kinds {
		if kinds[i].name == string(text) {
			*k = Kind(i)
		}
	}
	return nil
}

// KindOfStatus returns the kind of an HTTP status; Invalid for other statuses of 4xx, Internal for the rest.
func KindOfStatus(status int) Kind {
	for i := range kinds {
		if kinds[i].status == status {
			return Kind(i)
		}
	}
	if status >= 400 && status < 500 {
		return Invalid
	}
	return Internal
}

// Error is an error with its kind, as the API sends both, among other things. Its text is one sentence for people.
type Error struct {
	Kind    Kind   `json:"code"`
	Message string `json:"message"`
	cause   error
	// Retry is how long the caller should wait before the same request; 0 if that is unknown. See RetryAfter.
	Retry time.Duration `json:"-"`
}

// Errorf returns an Error. It wraps the errors that fmt.Errorf would wrap.
func Errorf(kind Kind, format string, operands ...any) *Error {
	err := fmt.Errorf(format, operands...)
	return &Error{Kind: kind, Message: err.Error(), cause: errors.Unwrap(err)}
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns the wrapped error; nil if the Error comes from a daemon.
func (e *Error) Unwrap() error { return e.cause }

// KindOf returns the kind of the Error in err's chain; 0 if there is none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return 0
}

// RetryAfter returns how long the caller should wait before a request that failed with an error; 0 if that is unknown.
func RetryAfter(err error) time.Duration {
	for ; err != nil; err = errors.Unwrap(err) {
		if e, ok := err.(*Error); ok && e.Retry > 0 {
			return e.Retry
		}
	}
	return 0
}
