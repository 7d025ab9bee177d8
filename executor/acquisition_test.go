package executor_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/pool"
)

// colds is how often executors are acquired that do not exist yet.
const colds = 3

// BenchmarkAcquisition measures how long the tasks of an application that come together wait for an executor each,
// until their first line: executors that are warm, because they have run a task of the same function for another
// application, and executors that are started at the same time as the tasks are ready (Mira, Fig. 3 and 10). The
// application speaks over the socket.
func BenchmarkAcquisition(b *testing.B) {
	for _, p := range programs {
		for _, n := range []int{2, 8, 28, 56, 112, 224} {
			b.Run(fmt.Sprintf("%s/executors=%d", p.name, n), func(b *testing.B) {
				s, processes := serveFleet(b, p, n, func(inner policy.Policy) policy.Policy { return inner }, nil)
				var warm, cold waits
				s.acquire(b, p, n, func() {})
				for b.Loop() {
					warm.add(s.acquire(b, p, n, func() {}))
				}
				for range colds {
					for i, cmd := range processes {
						_ = cmd.Process.Kill()
						_ = cmd.Wait()
						if _, err := s.pool.Left(b.Context(), i, executor.CauseLost, ""); err != nil {
							b.Fatal(err)
						}
					}
					var begun []*exec.Cmd
					cold.add(s.acquire(b, p, n, func() {
						for i := range n {
							begun = append(begun, p.start(s, i))
						}
					}))
					processes = begun
				}
				warm.report(b, "warm")
				cold.report(b, "cold")
				b.ReportMetric(float64(median(cold[2]))/float64(median(warm[2])), "cold/warm-p75")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// acquire runs tasks that are there at the same time, until all have begun, and returns how long each waited for its
// first line, ascending.
func (s *served) acquire(b *testing.B, p program, n int, meanwhile func()) (waited []time.Duration) {
	a, err := enrol(b.Context(), s.reach(), "acquires")
	if err != nil {
		b.Fatal(err)
	}
	gate := filepath.Join(s.dir, fmt.Sprint("gate-", rand.Text()))
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		b.Fatal(err)
	}
	ready := time.Now().UnixNano()
	if err := a.Grow(b.Context(), a.NewStage(executor.Stage{Function: p.meet, Path: s.path()}),
		slices.Repeat([][]byte{[]byte(gate)}, n)...); err != nil {
		b.Fatal(err)
	}
	a.Close()
	meanwhile()
	s.until(b, func(v pool.View) bool {
		return len(v.Applications) > 0 && v.Applications[len(v.Applications)-1].Running == n
	})
	gateway, err := os.OpenFile(gate, os.O_RDWR, 0) // lets them end
	if err != nil {
		b.Fatal(err)
	}
	defer gateway.Close()
	executors := map[int]bool{}
	for err = nil; err == nil; {
		var spans []span
		spans, err = collect(b.Context(), a, "")
		for _, ran := range spans {
			executors[ran.executor] = true
			waited = append(waited, time.Duration(ran.began-ready))
		}
	}
	if !errors.Is(err, io.EOF) {
		b.Fatal(err)
	}
	if len(executors) != n {
		b.Fatalf("%d executors ran %d tasks", len(executors), n)
	}
	slices.Sort(waited)
	return waited
}

// waits are the waits of the first, the half, three quarters and the last of some tasks, over several rounds.
type waits [4][]time.Duration

func (w *waits) add(sorted []time.Duration) {
	for i, q := range []float64{0, 0.5, 0.75, 1} {
		w[i] = append(w[i], sorted[int(q*float64(len(sorted)-1))])
	}
}

// report reports the medians over the rounds.
func (w *waits) report(b *testing.B, how string) {
	for i, name := range []string{"first", "p50", "p75", "last"} {
		b.ReportMetric(float64(median(w[i]).Microseconds())/1000, how+"-"+name+"-ms")
	}
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}
