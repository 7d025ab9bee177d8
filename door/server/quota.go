package server

import (
	"context"
	"slices"

	"github.com/bellows-rm/bellows/live/api"
)

// quotas adds the operation about quotas.
func (s *Server) quotas(a *operations) {
	register(a, own, "GET", "/v1/quotas", "quotas",
		"List the caller's quotas and those of queues, and how much of each is taken; for operators the quotas of all "+
			"users", 200, func(ctx context.Context, in *struct {
			User string `query:"user" doc:"only the quotas of the user of this name"`
		}) (*body[[]api.QuotaUse], error) {
			of, err := callerOf(ctx).mayAskFor(in.User, "quotas")
			if err != nil {
				return nil, err
			}
			all, err := s.driver.QuotaUse(ctx, of)
			if err != nil {
				return nil, err
			}
			if in.User != "" {
				all = slices.DeleteFunc(all, func(q api.QuotaUse) bool { return q.User != in.User })
			}
			return &body[[]api.QuotaUse]{callerOf(ctx).quotas(all, s.driver.QueuesOf)}, nil
		})
}
