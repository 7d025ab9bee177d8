package live

import (
	"cmp"

	"github.com/bellows-rm/bellows/live/api"
)

// health is what keeps a Driver from some of its work; it does all of it while nothing is set. Only the loop uses it.
type health struct {
	broken   error // a bug of the policy, after which the engine decides nothing
	trouble  error // why the outbox cannot be emptied
	short    error // why no task starts: the disk is full, and ends are recorded in reserved space
	draining bool  // no new jobs are accepted
	careful  bool  // jobs that never started are submitted to the engine one by one
}

// worst is what matters most of what is wrong; nil if nothing is.
func (h *health) worst() error { return cmp.Or(h.broken, h.trouble, h.short) }

// triesAgain reports whether something is to be tried again that has failed.
func (h *health) triesAgain() bool { return h.trouble != nil || h.short != nil }

// notReady returns why the Driver does not serve.
func (h *health) notReady() error {
	if why := h.worst(); why != nil || !h.draining {
		return why
	}
	return errStopped
}

// accepts returns an error if no jobs are accepted.
func (h *health) accepts() error {
	switch {
	case h.draining:
		return errStopped
	case h.broken != nil:
		return h.broken
	case h.short != nil:
		return api.Errorf(api.Internal, "no jobs are accepted now: %w", h.short)
	case h.trouble != nil:
		return api.Errorf(api.Internal, "no jobs are accepted now: %w", h.trouble)
	}
	return nil
}
