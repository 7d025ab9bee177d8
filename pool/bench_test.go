package pool_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/pool"
)

// BenchmarkAssignments measures the time from the report of a task to the next task of the same executor: 10
// applications share stub executors in the process of the pool, whose tasks last so long that one becomes free as
// often as one of 112 with tasks of 1 s (Mira, section V). With http each executor has a connection to a socket.
// p75/8 is p75 over that of the fewest executors: the goal at 112 is at most 1.5.
func BenchmarkAssignments(b *testing.B) {
	for _, how := range []string{"calls", "http"} {
		few := 0.0
		for _, n := range []int{8, 112, 1000} {
			b.Run(fmt.Sprintf("%s/executors=%d", how, n), func(b *testing.B) {
				p75 := benchAssignments(b, n, how == "http")
				if n == 8 {
					few = p75
				}
				if few > 0 {
					b.ReportMetric(p75/few, "p75/8")
				}
			})
		}
	}
}

// asker asks for the next task of an executor.
type asker func(ctx context.Context, number int, n executor.Next) (executor.Work, error)

// served returns an asker that asks over a socket.
func served(b *testing.B, p *pool.Pool) asker {
	socket := filepath.Join(b.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		b.Fatal(err)
	}
	s := &http.Server{Handler: p.Handler()}
	b.Cleanup(func() { _ = s.Close() })
	go func() { _ = s.Serve(l) }()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2000,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}}}
	return func(ctx context.Context, number int, n executor.Next) (work executor.Work, err error) {
		m, err := executor.Encode(n)
		if err != nil {
			return work, err
		}
		r, err := http.NewRequestWithContext(ctx, "POST", fmt.Sprintf("http://pool/executors/%d/next", number),
			bytes.NewReader(m))
		if err != nil {
			return work, err
		}
		answer, err := client.Do(r)
		if err != nil {
			return work, err
		}
		defer answer.Body.Close()
		_, err = executor.Read(answer.Body, pool.MostMessage, answer.ContentLength, &work)
		return work, err
	}
}

// benchAssignments returns the time that three quarters of the assignments took at most, in us.
func benchAssignments(b *testing.B, n int, overHTTP bool) (p75 float64) {
	p := begin(b, nil)
	defer p.Close()
	ask := func(ctx context.Context, number int, n executor.Next) (executor.Work, error) {
		work, _, err := p.Next(ctx, number, n, nil)
		return work, err
	}
	if overHTTP {
		ask = served(b, p)
	}
	ctx, end := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() { endless(ctx, p, fmt.Sprintf("application-%08d", i)) })
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	finished := make(chan struct{})
	var mu sync.Mutex
	var took []time.Duration
	lasts := time.Duration(n) * time.Second / 112
	began, cpu := time.Now(), ownCPU()
	for number := range n {
		all.Go(func() {
			lease, err := p.Register(ctx, executor.Registration{Executor: number, Secret: "secret"})
			if err != nil {
				b.Error(err)
				return
			}
			var done *executor.Report
			time.Sleep(rand.N(lasts)) // so that they do not all become free at once
			for ctx.Err() == nil {
				asked := time.Now()
				work, err := ask(ctx, number, executor.Next{Lease: lease.Lease, Done: done})
				if err != nil {
					return
				}
				if done != nil && work.Do == executor.DoRun {
					mu.Lock()
					took = append(took, time.Since(asked))
					mu.Unlock()
					if left.Add(-1) == 0 {
						close(finished)
					}
				}
				done = nil
				if work.Do == executor.DoRun {
					done = &executor.Report{Work: work.Work}
					select {
					case <-time.After(lasts):
					case <-ctx.Done():
					}
				}
			}
		})
	}
	<-finished
	used, lasted := ownCPU()-cpu, time.Since(began)
	end()
	all.Wait()
	slices.Sort(took)
	at := func(q float64) float64 { return float64(took[int(q*float64(len(took)-1))].Microseconds()) }
	b.ReportMetric(at(0.5), "p50-us")
	b.ReportMetric(at(0.75), "p75-us")
	b.ReportMetric(at(0.99), "p99-us")
	b.ReportMetric(used.Seconds()/lasted.Seconds(), "cores")
	b.ReportMetric(0, "ns/op")
	return at(0.75)
}

// endless is an application that always has tasks.
func endless(ctx context.Context, p *pool.Pool, key string) {
	lease, err := p.Enrol(ctx, executor.Enrolment{Key: key}, nil)
	for growths, after, added, ended := int64(0), int64(0), 0, 0; err == nil; {
		if added-ended < 1000 {
			growths++
			s := executor.StageGrowth{Sizes: make([]int, 1000)}
			if growths == 1 {
				s.Function = "f"
			}
			added += 1000
			_, err = p.Grow(ctx, lease.Application, executor.Growth{Lease: lease.Lease, Number: growths,
				Stages: []executor.StageGrowth{s}}, nil)
			continue
		}
		var out executor.Results
		out, _, err = p.Collect(ctx, lease.Application, executor.Collect{Lease: lease.Lease, After: after})
		ended += len(out.Results)
		if n := len(out.Results); n > 0 {
			after = out.Results[n-1].Number
		}
	}
}

// ownCPU is the CPU time of this process.
func ownCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkDemand measures how long it takes until a pool has taken what an application demands that starts its own
// tasks and has had many stages, which have ended: a change of the demand of the newest, and another stage in its
// place. x100 is the time over that with 100 stages: the goal is 1, and less than 1 ms with 20,000.
func BenchmarkDemand(b *testing.B) {
	few := 0.0
	for _, n := range []int{100, 20_000} {
		b.Run(fmt.Sprintf("stages=%d", n), func(b *testing.B) {
			p := begin(b, nil)
			defer p.Close()
			lease, err := p.Enrol(b.Context(), executor.Enrolment{Key: "the key of a driver", Drives: true}, nil)
			if err != nil {
				b.Fatal(err)
			}
			number := int64(0)
			say := func(stages ...executor.StageGrowth) {
				number++
				g := executor.Growth{Lease: lease.Lease, Number: number, Stages: stages}
				if _, err := p.Grow(b.Context(), lease.Application, g, nil); err != nil {
					b.Fatal(err)
				}
			}
			for i := range n {
				say(executor.StageGrowth{Stage: i, Function: "f", Demand: 1})
				say(executor.StageGrowth{Stage: i})
			}
			for b.Loop() {
				say(executor.StageGrowth{Stage: n - 1, Demand: 2})
				say(executor.StageGrowth{Stage: n - 1})
				say(executor.StageGrowth{Stage: n - 1, Anew: true})
			}
			each := float64(b.Elapsed().Nanoseconds()) / float64(3*b.N)
			if n == 100 {
				few = each
			}
			b.ReportMetric(each/1000, "us/growth")
			if few > 0 {
				b.ReportMetric(each/few, "x100")
			}
		})
	}
}
