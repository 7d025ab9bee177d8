package server

import (
	"context"
	"encoding/json"
	"iter"
	"reflect"
	"strconv"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live"
)

// MostInBulk is the largest number of jobs of one Bulk.
const MostInBulk = 10_000

// bulkLimits are those of a request with a Bulk: some 3 KiB and 100 values for each of the most jobs.
var bulkLimits = bodyLimits{bytes: 32 << 20, values: 1_000_000}

// Bulk is jobs to run: all or none of them are accepted.
type Bulk struct {
	Env       []string           `json:"env,omitempty" doc:"the environment of the programs of jobs that state none, NAME=VALUE"`
	Dir       string             `json:"dir,omitempty" doc:"the working directory of jobs that state none, an absolute path"`
	Inherited *cluster.Inherited `json:"inherited,omitempty" doc:"what the programs of jobs inherit that state nothing of it"`
	Jobs      []Submission       `json:"jobs" doc:"1 to 10000 jobs, of at most 200000 values each"`
}

// SubmittedBulk is the answer to a Bulk.
type SubmittedBulk struct {
	IDs []int64 `json:"ids" doc:"of the jobs, in their order"`
}

// unreadBulk is a Bulk whose jobs are decoded when they are checked, so that one at a time takes memory for what it
// turns out not to need.
type unreadBulk struct {
	Env       []string           `json:"env"`
	Dir       string             `json:"dir"`
	Inherited *cluster.Inherited `json:"inherited"`
	Jobs      []json.RawMessage  `json:"jobs"`
}

// described implements standsFor.
func (unreadBulk) described() reflect.Type { return reflect.TypeFor[Bulk]() }

// limits implements limited.
func (*unreadBulk) limits() bodyLimits { return bulkLimits }

// submissions returns the jobs in the form that the driver accepts. It ends after the first that cannot be decoded.
func (b *unreadBulk) submissions(caller cluster.Credentials) iter.Seq2[live.Submission, error] {
	return func(yield func(live.Submission, error) bool) {
		for i, text := range b.Jobs {
			s := Submission{}
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
		func(ctx context.Context, in *keyed[unreadBulk]) (*body[SubmittedBulk], error) {
			caller, err := peer(ctx)
			if err != nil {
				return nil, err
			}
			key, err := in.key()
			if err != nil {
				return nil, err
			}
			if n := len(in.Body.Jobs); n < 1 || n > MostInBulk {
				return nil, wrong("jobs", strconv.Itoa(n), "must be 1 to %d", MostInBulk)
			}
			// Whoever waited for a quota would keep other large requests waiting.
			first, n, err := s.driver.SubmitAll(live.Hurried(ctx), caller, key, in.Body.submissions(caller))
			out := SubmittedBulk{IDs: make([]int64, n)}
			for i := range out.IDs {
				out.IDs[i] = int64(first) + int64(i)
			}
			return &body[SubmittedBulk]{out}, err
		})
}
