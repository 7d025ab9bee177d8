package jobs

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
)

// rates of a container where the network is not measured.
func rates(cpu, memory, swap, read, written int64) api.Rates {
	return api.Rates{CPU: &cpu, Memory: &memory, Swap: &swap, Read: &read, Written: &written}
}

// spans follow each other, each of the given seconds.
func spans(seconds float64, all ...api.Rates) []api.UsageSpan {
	var out []api.UsageSpan
	for i, r := range all {
		out = append(out, api.UsageSpan{FromSeconds: float64(i) * seconds, LengthSeconds: seconds, Rates: r})
	}
	return out
}

func TestPrintUsage(t *testing.T) {
	now, _, _ := canned()
	const mib = 1 << 20
	job := api.Job{ID: 7, Name: "sort", Owner: "ann", Status: cluster.StatusRunning, Submitted: now.Local(),
		Tasks: []api.Task{{Run: 1, State: api.TaskRunning}}}
	one := api.TaskUsage{Task: cluster.TaskID{Job: 7}, Run: 1, State: api.TaskRunning, Started: now,
		DurationSeconds: 200, MeasuredSeconds: 200, CPUMillicores: 2000, MemoryBytes: 1 << 30,
		Mean: rates(1025, 480*mib, 0, 0, 20e6), Peak: rates(2000, 960*mib, 0, 0, 80e6),
		Spans: spans(50, rates(100, 64*mib, 0, 0, 0), rates(2000, 960*mib, 0, 0, 0), rates(1000, 512*mib, 0, 0, 0),
			rates(1000, 400*mib, 0, 0, 80e6))}
	view(t, "usage-one", func(b *bytes.Buffer) error {
		return printUsage(b, &job, []api.TaskUsage{one}, "count network bytes: it needs CAP_SYS_ADMIN")
	})

	// A second run whose beginning was not measured, and one that was not measured at all.
	two := one
	two.Task.Index, two.Run, two.GapSeconds, two.MeasuredSeconds, two.DurationSeconds = 1, 12, 30, 60, 60
	two.StillSeconds = 12
	two.Started = now.Add(100 * time.Second)
	two.Mean, two.Peak = rates(1500, 960*mib, 1<<30, 1<<20, 0), rates(2000, 960*mib, 1<<31, 100e6, 0)
	two.Spans = spans(30, api.Rates{CPU: two.Mean.CPU}, rates(1500, 960*mib, 1<<30, 100e6, 0))
	two.Spans[0].Gap = true
	none := api.TaskUsage{Task: cluster.TaskID{Job: 7, Index: 2}, Run: 1, Started: now, DurationSeconds: 4000,
		CPUMillicores: 2000, MemoryBytes: 1 << 30, Missing: "it was not measured: the disk was full"}
	view(t, "usage-some", func(b *bytes.Buffer) error { return printUsage(b, &job, []api.TaskUsage{one, two, none}, "") })
	view(t, "usage-none", func(b *bytes.Buffer) error { return printUsage(b, &job, []api.TaskUsage{none}, "") })
	view(t, "usage-nothing", func(b *bytes.Buffer) error { return printUsage(b, &job, nil, "") })
}

// A column has the mean of its time: its sum over all columns is what was used. What is unknown for more than half of
// a column is unknown, not 0.
func TestSum(t *testing.T) {
	now := time.Unix(1e9, 0)
	cpu := measures[0]
	run := api.TaskUsage{Started: now, Spans: spans(1.5, rates(1000, 0, 0, 0, 0), rates(0, 0, 0, 0, 0),
		rates(500, 0, 0, 0, 0), api.Rates{})}
	later := api.TaskUsage{Started: now.Add(2 * time.Second), Spans: spans(1, rates(100, 0, 0, 0, 0))}
	got := sum([]api.TaskUsage{run, later}, &cpu, now, 1, 7)
	for i, want := range []float64{1000, 500, 100, 500, 500, math.NaN(), 0} {
		if got[i] != want && !(math.IsNaN(got[i]) && math.IsNaN(want)) {
			t.Errorf("column %d is %v, want %v", i, got[i], want)
		}
	}
}
