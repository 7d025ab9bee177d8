package server

import (
	"context"
	"io"

	"github.com/bellows-rm/bellows/live/api"
)

// plan registers the operation of `bellows plan`. The client plays the cluster forward: a daemon that computes for
// seconds is slow for all others.
func (s *Server) plan(a *operations) {
	register(a, sizes, "POST", "/v1/plan", "plan",
		"Return the cluster as it is, and a job as it would be submitted, as an event log of two steps; nothing is "+
			"submitted", 200, func(ctx context.Context, in *body[api.Submission]) (*streamed, error) {
			caller := callerOf(ctx)
			p, owners, err := s.driver.Present(ctx, submissionOf(&in.Body, caller.Credentials))
			if err != nil {
				return nil, err
			}
			p.Found = caller.events(p.Found, owners, p.Header.Settings)
			return &streamed{func(w io.Writer) { _ = p.Write(w) }}, nil // The reader finds out if it is cut short.
		})
}
