package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// Attempts of a task pause before they begin, except the first: what made the task fail (a network, a license, a
// lock) may be back by then. The pause after the first attempt is the job's RetryDelay, and each pause is twice the
// one before, at most LongestRetryDelay unless RetryDelay is longer. Meanwhile the task holds nothing, and is not
// pending. Runs that do not count as attempts begin at once.

const (
	// DefaultRetryDelay is the RetryDelay of a job that is submitted without one.
	DefaultRetryDelay = time.Second
	// LongestRetryDelay bounds how long pauses between attempts grow.
	LongestRetryDelay = 5 * time.Minute
	// MostRetries is how often a task may be tried again.
	MostRetries = MostAttempts - 1
)

// RetryOn says after which ends a task is tried again, if attempts are left. After any other end its job fails at
// once: who retries for want of memory, with more of it, gains nothing by running a broken program again.
type RetryOn uint8

const (
	RetryOnAny   RetryOn = iota // after every failure
	RetryOnOOM                  // if it ended for want of memory
	RetryOnError                // if it ended otherwise: by itself, by a signal, by its time limit, or unobserved
)

var retryOnNames = [...]string{"any", "oom", "error"}

// RetryOnNames are the texts of a RetryOn.
func RetryOnNames() []string { return slices.Clone(retryOnNames[:]) }

func (r RetryOn) String() string { return NameOf(retryOnNames[:], r, "retry_on") }

// MarshalText implements encoding.TextMarshaler.
func (r RetryOn) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. An empty text is any.
func (r *RetryOn) UnmarshalText(text []byte) error {
	i := slices.Index(retryOnNames[:], string(text))
	if i < 0 && len(text) > 0 {
		return fmt.Errorf("retry on %q: must be oom, error or any", text)
	}
	*r = RetryOn(max(i, 0))
	return nil
}

// After reports whether a task is tried again after an attempt with that outcome, which is not Succeeded.
func (r RetryOn) After(o Outcome) bool {
	return r == RetryOnAny || (r == RetryOnOOM) == (o == OutOfMemory)
}

// MoreMemory says, as a clause on why a task was started, that an attempt reserves more because the one before ended
// for want of memory while it held an amount.
func MoreMemory(attempt int, reserves, held resource.Amount) string {
	return fmt.Sprintf("attempt %d reserves %s: attempt %d %s %s", attempt, resource.FormatMemory(reserves), attempt-1,
		wantedMemory, resource.FormatMemory(held))
}

const wantedMemory = "ended for want of memory with"

// WhyMoreMemory returns what MoreMemory said, from the clauses on why a task was started; empty if it said nothing.
func WhyMoreMemory(clauses string) string {
	for clause := range strings.SplitSeq(clauses, "; ") {
		if strings.HasPrefix(clause, "attempt ") && strings.Contains(clause, wantedMemory) {
			return clause
		}
	}
	return ""
}

// Pause returns how long a task of j pauses after it has failed that many times.
func (j *Job) Pause(failed int) time.Duration {
	d := j.RetryDelay
	for ; failed > 1 && d > 0 && d < LongestRetryDelay; failed-- {
		d = min(2*d, LongestRetryDelay)
	}
	return d
}

// RetryByDefault makes tasks of j pause between attempts for as long as usual, for a job that does not state how long.
func (j *Job) RetryByDefault() {
	if j.MaxAttempts > 1 {
		j.RetryDelay = DefaultRetryDelay
	}
}
