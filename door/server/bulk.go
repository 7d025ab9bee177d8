package server

import (
	"context"
	"encoding/json"
	"iter"
	"reflect"
	"strconv"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/live/api"
)

// bulkLimits are those of a request with a Bulk: some 3 KiB and 100 values for each of the most jobs.
var bulkLimits = bodyLimits{bytes: 32 << 20, values: 1_000_000}

// unreadBulk is a Bulk whose jobs are decoded when they are checked, so that one at a time takes memory for what it
// turns out not to need.
type unreadBulk struct {
	Env       []string           `json:"env"`
	Dir       string             `json:"dir"`
	Inherited *cluster.Inherited `json:"inherited"`
	Jobs      []json.RawMessage  `json:"jobs"`
}

// described implements standsFor.
func (unreadBulk) described() reflect.Type { return reflect.TypeFor[api.Bulk]() }

// limits implements limited.
func (*unreadBulk) limits() bodyLimits { return bulkLimits }

// submissions returns the jobs in the form that the driver accepts. It ends after the first that cannot be decoded.
func (b *unreadBulk) submissions(caller cluster.Credentials) iter.Seq2[live.Submission, error] {
	return func(yield func(live.Submission, error) bool) {
		for i, text := range b.Jobs {
			s := api.Submission{}
			if e := decode(text, &s, mostValues); e != nil {
				yield(live.Submission{}, e)
				return
			}
			b.Jobs[i] = nil
			if s.Env == nil {
				s.Env = b.Env
			}
			if s.Dir == "" {
				s.Dir = b.Dir
			}
			if s.Inherited == nil {
				s.Inherited = b.Inherited
			}
			if !yield(submissionOf(&s, caller), nil) {
				return
			}
		}
	}
}

func (s *Server) bulk(a *operations) {
	register(a, anyone, "POST", "/v1/jobs/bulk", "submit-bulk", "Submit jobs, all or none", 201,
		ofCaller(func(ctx context.Context, caller cluster.Credentials, in *keyed[unreadBulk]) (*body[api.SubmittedBulk],
			error) {
			key, err := in.key()
			if err != nil {
				return nil, err
			}
			if n := len(in.Body.Jobs); n < 1 || n > api.MostInBulk {
				return nil, wrong("jobs", strconv.Itoa(n), "must be 1 to %d", api.MostInBulk)
			}
			// Whoever waited for a quota would keep other large requests waiting.
			first, n, err := s.driver.SubmitAll(live.Hurried(ctx), caller, key, in.Body.submissions(caller))
			out := api.SubmittedBulk{IDs: make([]int64, n)}
			for i := range out.IDs {
				out.IDs[i] = int64(first) + int64(i)
			}
			return &body[api.SubmittedBulk]{out}, err
		}))
}
