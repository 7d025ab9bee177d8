package demo

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/sandbox"
	"github.com/bellows-rm/bellows/live"
)

// BenchmarkShortJobsBesideSuspended measures how long short jobs of one core wait and run on a node whose two cores are
// granted to two paused containers, and on the same node without these containers. Each of 20 rounds does both, odd
// rounds in the reverse order, with 12 jobs one after another. One iteration is the whole comparison; it takes some
// minutes.
//
// The goals: the jobs beside paused containers wait for less than 1 s (p95), and run at most twice as long as alone.
func BenchmarkShortJobsBesideSuspended(b *testing.B) {
	const rounds, jobs = 20, 12
	s := newShortJobs(b)
	for b.Loop() {
		waits, runs := map[string][]float64{}, map[string][]float64{} // seconds
		var ratios []float64
		for round := range rounds {
			medians := map[string]float64{}
			for half := range 2 {
				where, release := "alone", func() {}
				if half != round%2 {
					where, release = "beside", s.suspend(2)
				}
				var took []float64
				for range jobs {
					wait, run := s.run()
					waits[where] = append(waits[where], wait.Seconds())
					took = append(took, run.Seconds())
				}
				release()
				runs[where] = append(runs[where], took...)
				medians[where] = quantile(took, 0.5)
			}
			ratios = append(ratios, medians["beside"]/medians["alone"])
		}
		load, _ := os.ReadFile("/proc/loadavg")
		b.Logf("load at the end: %s", strings.TrimSpace(string(load)))
		say := func(name string, values []float64) {
			b.Logf("%s: median %.3f, p5 %.3f, p95 %.3f, from %.3f to %.3f of %d", name, quantile(values, 0.5),
				quantile(values, 0.05), quantile(values, 0.95), slices.Min(values), slices.Max(values), len(values))
			b.ReportMetric(quantile(values, 0.5), name+"-median")
			b.ReportMetric(quantile(values, 0.95), name+"-p95")
		}
		for _, where := range []string{"beside", "alone"} {
			say("wait-s-"+where, waits[where])
			say("run-s-"+where, runs[where])
		}
		say("run-ratio-of-rounds", ratios)
	}
	b.ReportMetric(0, "ns/op") // means nothing
}

// quantile returns the value below which the given share of values lies.
func quantile(values []float64, share float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}

// shortJobs is a machine of two cores on which short jobs run.
type shortJobs struct {
	*sandbox.Machine
	b   *testing.B
	ctx context.Context
	dir string
}

func newShortJobs(b *testing.B) *shortJobs {
	s := &shortJobs{b: b, ctx: b.Context(), dir: b.TempDir()}
	if why := sandbox.NoContainers(s.ctx, s.dir); why != "" {
		b.Skip(why)
	}
	m, err := sandbox.Open(s.dir, "fair", nil, resource.Of(2*resource.Core, 512*resource.MiB))
	if err != nil {
		b.Fatal(err)
	}
	s.Machine = m
	b.Cleanup(func() {
		if err := m.End(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return s
}

func (s *shortJobs) submit(script string) cluster.JobID {
	s.b.Helper()
	stage := cluster.Stage{Name: "s", Tasks: 1, Ideal: resource.Of(resource.Core, 32*resource.MiB)}
	stage.Args = []string{"sh", "-c", script}
	id, err := s.Driver.Submit(s.ctx, live.Submission{Job: cluster.Job{Name: "j", Stages: []cluster.Stage{stage}},
		Caller: sandbox.Caller(), Env: sandbox.Environment(), Dir: s.dir})
	if err != nil {
		s.b.Fatal(err)
	}
	return id
}

// suspend starts containers of one core each that compute without end, and returns when all are paused and lend their
// cores. release ends them.
func (s *shortJobs) suspend(n int) (release func()) {
	s.b.Helper()
	var ids []cluster.JobID
	for range n {
		id := s.submit("while :; do :; done")
		if _, err := s.Driver.WaitTask(s.ctx, cluster.TaskID{Job: id}, false); err != nil {
			s.b.Fatal(err)
		}
		if err := s.Driver.Pause(s.ctx, sandbox.Caller(), id, cluster.TaskID{}, false); err != nil {
			s.b.Fatal(err)
		}
		ids = append(ids, id)
	}
	for _, id := range ids {
		for {
			j, err := s.Driver.Job(s.ctx, id, false)
			if err != nil {
				s.b.Fatal(err)
			}
			if still := j.Tasks[0].Suspended; still != nil && still.Lends {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	return func() {
		for _, id := range ids {
			if err := s.Driver.Cancel(s.ctx, sandbox.Caller(), id); err != nil {
				s.b.Fatal(err)
			}
			if _, err := s.Driver.Wait(s.ctx, id); err != nil {
				s.b.Fatal(err)
			}
		}
	}
}

// run runs a short job, and returns how long it waited for its start and how long it ran.
func (s *shortJobs) run() (wait, run time.Duration) {
	s.b.Helper()
	id := s.submit("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
	j, err := s.Driver.Wait(s.ctx, id)
	if err != nil {
		s.b.Fatal(err)
	}
	tasks, err := s.Store.Tasks(s.ctx, id)
	if err != nil || len(tasks) != 1 || tasks[0].Outcome != cluster.Succeeded {
		s.b.Fatalf("job %d: %v, %+v", id, err, tasks)
	}
	started := time.Unix(0, int64(tasks[0].Started))
	return started.Sub(j.Submitted), time.Unix(0, int64(tasks[0].Ended)).Sub(started)
}
