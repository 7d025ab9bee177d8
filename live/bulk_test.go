package live

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
)

// many are n jobs, of which some may be changed.
func many(n int, change func(i int, s *Submission) error) iter.Seq2[Submission, error] {
	return func(yield func(Submission, error) bool) {
		for i := range n {
			s := submission(1)
			s.Job.Name = fmt.Sprint("job ", i)
			var err error
			if change != nil {
				err = change(i, &s)
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

// Jobs that are submitted together are accepted as if one were submitted after the other, and survive a restart.
func TestSubmitAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		const n = 2*partJobs + 10 // several parts
		r.submit(submission(1))
		key := Key{Text: "a", Digest: sha256.Sum256([]byte("one"))}
		first, accepted, err := r.SubmitAll(t.Context(), user, key, many(n, nil))
		if err != nil || first != 2 || accepted != n {
			t.Fatal(first, accepted, err)
		}
		if first, accepted, err := r.SubmitAll(t.Context(), user, key, many(3, nil)); err != nil || first != 2 ||
			accepted != n {
			t.Errorf("again: %d jobs from %d, %v", accepted, first, err)
		}
		key.Digest[0]++
		if _, _, err := r.SubmitAll(t.Context(), user, key, many(3, nil)); api.KindOf(err) != api.KeyReused {
			t.Errorf("another request: %v", err)
		}
		if id := r.submit(submission(1)); id != n+2 {
			t.Errorf("the next job is %d", id)
		}
		check := func() {
			t.Helper()
			jobs, err := r.Jobs(t.Context())
			if err != nil || len(jobs) != n+2 {
				t.Fatalf("%d jobs, %v", len(jobs), err)
			}
			for i := range n {
				if j := &jobs[i+1]; j.ID != first+cluster.JobID(i) || j.Name != fmt.Sprint("job ", i) || j.Owner != "ada" {
					t.Fatalf("job %d is %+v", i, j)
				}
			}
			if env, err := r.config.Store.Environment(t.Context(), n+1); err != nil || !slices.Equal(env, submission(1).Env) {
				t.Errorf("environment %v, %v", env, err)
			}
			if env := r.jobs[n+1].Request.Env; env != nil {
				t.Errorf("environment %v is in memory", env)
			}
		}
		check()
		r.checkBoard()
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		r.fake = newFake()
		r.start(fifo(t))
		r.order(cluster.Start)
		check()
	})
}

// One mistake, and none of the jobs is there; the error names the job.
func TestSubmitAllOrNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		bad := errors.New("bad")
		for _, tt := range []struct {
			change func(s *Submission) error
			want   string
			kind   api.Kind
		}{
			{func(s *Submission) error {
				s.Dir = "x"
				return nil
			}, `jobs[300]: job "job 300" working directory "x": must be an absolute path`, api.Invalid},
			{func(s *Submission) error {
				s.Job.Stages[0].Tasks = 0
				return nil
			}, `jobs[300]: job "job 300" stage "sort" tasks 0: must be 1 to 1073741824`, api.Invalid},
			{func(s *Submission) error { s.Job.Stages[0].Ideal[resource.Memory] = 9 * resource.GiB; return nil },
				`jobs[300]: job "job 300" stage "sort" memory 9GiB: must be at most what a node has, 1GiB`, api.Invalid},
			{func(s *Submission) error {
				s.Job.Stages[0].Args = nil
				return nil
			}, `jobs[300]: job "job 300" stage "sort" command: must begin with the name of a program`, api.Invalid},
			{func(*Submission) error { return api.Errorf(api.Denied, "%w", bad) }, `jobs[300]: bad`, api.Denied},
		} {
			_, _, err := r.SubmitAll(t.Context(), user, Key{Text: "a"}, many(400, func(i int, s *Submission) error {
				if i == 300 {
					return tt.change(s)
				}
				return nil
			}))
			of, ok := errors.AsType[*OfJob](err)
			if !ok || of.Index != 300 || err.Error() != tt.want || api.KindOf(err) != tt.kind {
				t.Errorf("%v, want %s", err, tt.want)
			}
		}
		if _, _, err := r.SubmitAll(t.Context(), user, Key{}, many(0, nil)); api.KindOf(err) != api.Invalid {
			t.Errorf("no jobs: %v", err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := r.SubmitAll(gone, user, Key{}, many(5, nil)); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller who has gone: %v", err)
		}
		if jobs := r.all(1000); len(jobs) > 0 {
			t.Errorf("%d jobs are there", len(jobs))
		}
		r.noOrder()
		// The key of a request that was refused is free.
		if _, n, err := r.SubmitAll(t.Context(), user, Key{Text: "a"}, many(3, nil)); err != nil || n != 3 {
			t.Errorf("%d jobs, %v", n, err)
		}
	})
}

// Whoever submits at the same time gets other ids, and each finds its own jobs.
func TestSubmitAllAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				first, n, err := r.SubmitAll(t.Context(), user, Key{},
					many(partJobs+1, func(_ int, s *Submission) error { s.Job.Name = fmt.Sprint("of ", i); return nil }))
				if err != nil || n != partJobs+1 {
					t.Error(n, err)
					return
				}
				for id := first; id < first+cluster.JobID(n); id++ {
					if j, err := r.Job(t.Context(), id, false); err != nil || j.Name != fmt.Sprint("of ", i) {
						t.Errorf("job %d of %d: %+v, %v", id, i, j, err)
						return
					}
				}
			})
			all.Go(func() {
				for range 20 {
					if _, err := r.Submit(t.Context(), submission(1)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if jobs, err := r.Jobs(t.Context()); err != nil || len(jobs) != 4*(partJobs+1)+80 {
			t.Errorf("%d jobs, %v", len(jobs), err)
		}
		r.checkBoard()
	})
}

// BenchmarkSubmitAll submits 10,000 jobs to a daemon with 100 containers, each with an environment of 10 KB: in one
// request, and 1000 of them one by one. stop-ms is the longest time for which the loop did nothing else meanwhile.
func BenchmarkSubmitAll(b *testing.B) {
	env := []string{"PATH=/usr/bin:/bin"}
	for i := range 50 {
		env = append(env, fmt.Sprintf("VARIABLE_%d=%s", i, strings.Repeat("x", 200)))
	}
	with := func(_ int, s *Submission) error { s.Env = env; return nil }
	for _, n := range []int{10_000, -1000} {
		name := fmt.Sprint(n, " together")
		if n < 0 {
			name = fmt.Sprint(-n, " one by one")
		}
		b.Run(name, func(b *testing.B) {
			r := newBusy(b)
			ends := make(chan struct{})
			var longest time.Duration
			var probe sync.WaitGroup
			probe.Go(func() {
				for {
					select {
					case <-ends:
						return
					case <-time.After(200 * time.Microsecond):
					}
					begun := time.Now()
					if r.look(b.Context(), func() {}) == nil {
						longest = max(longest, time.Since(begun))
					}
				}
			})
			for b.Loop() {
				var err error
				if n > 0 {
					_, _, err = r.SubmitAll(b.Context(), user, Key{}, many(n, with))
				} else {
					for s := range many(-n, with) {
						if _, err = r.Submit(b.Context(), s); err != nil {
							break
						}
					}
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			close(ends)
			probe.Wait()
			b.ReportMetric(float64(longest)/float64(time.Millisecond), "stop-ms")
		})
	}
}

// Quotas count every job of a request: those of submissions, and those of jobs that wait.
func TestSubmitAllKeepsQuotas(t *testing.T) {
	for _, kind := range []cluster.QuotaKind{cluster.QuotaSubmissions, cluster.QuotaWaiting} {
		synctest.Test(t, func(t *testing.T) {
			r := newQuotaRig(t, ofUsers(cluster.Limits{kind: {Most: 3, Refuses: true}}))
			defer r.end()
			for _, n := range []int{4, 3} {
				_, accepted, err := r.SubmitAll(t.Context(), user, Key{Text: "a"}, many(n, nil))
				if over := n > 3; over != (api.KindOf(err) == api.OverQuota) || !over && (err != nil || accepted != n) {
					t.Errorf("quota %v: of %d jobs %d are accepted, %v", kind, n, accepted, err)
				}
			}
			if jobs := r.all(1000); len(jobs) != 3 {
				t.Errorf("%d jobs are there", len(jobs))
			}
		})
	}
}
