package sim_test

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
)

// Two tasks read 60 MB/s each from a disk with 100 MB/s for 72 s, then continue with a larger working set.
func TestSeries(t *testing.T) {
	reads := phases(phase(60*time.Second, vector(0.5, 0.5, 60, 0)), phase(40*time.Second, vector(1, 1, 0, 0)))
	c := sim.Config{Nodes: sim.Uniform(2, vector(2, 4, 100, 0)), Series: sim.SeriesOptions{Resolution: 36 * time.Second},
		Incidents: []sim.Incident{{At: 36 * time.Second, Kind: sim.NodeLoss, Node: 1}}}
	s := simulate(t, c, "fifo", oneStage(1, 2, reads)).Series
	if s.Resolution != 36*time.Second || len(s.Samples) != 4 {
		t.Fatalf("series is %+v", s)
	}
	for i, want := range []sim.Sample{
		{Capacity: vector(4, 8, 200, 0), Granted: vector(2, 2, 0, 0), Used: vector(1*5/6.0, 1, 100, 0)},
		{Capacity: vector(2, 4, 100, 0), Granted: vector(2, 2, 0, 0), Used: vector(1*5/6.0, 1, 100, 0)},
		{Capacity: vector(2, 4, 100, 0), Granted: vector(2, 2, 0, 0), Used: vector(2, 2, 0, 0)},
		{Capacity: vector(2, 4, 100, 0), Granted: vector(2, 2, 0, 0), Used: vector(2, 2, 0, 0)},
	} {
		got := s.Samples[i]
		if want.At = timeline.Seconds(36 * float64(i)); got.At != want.At || got.Capacity != want.Capacity ||
			got.Granted != want.Granted {
			t.Errorf("sample %d is %+v, want %+v", i, got, want)
		}
		for k := range want.Used {
			if off := got.Used[k] - want.Used[k]; off < -2 || off > 2 {
				t.Errorf("sample %d: %v of %v is used, want %v", i, got.Used[k], resource.Kind(k), want.Used[k])
			}
		}
	}
}

// However long a run is, it has few samples, and their sum is the granted amount.
func TestSeriesIsBounded(t *testing.T) {
	c := sim.Config{Nodes: sim.Uniform(1, vector(1, 1, 0, 0)), Series: sim.SeriesOptions{Resolution: time.Second,
		Limit: 7}}
	for tasks := 1; tasks < 20; tasks++ {
		s := simulate(t, c, "fifo", oneStage(1, tasks, workload.StageTruth{})).Series
		if len(s.Samples) > 7 {
			t.Fatalf("%d tasks: %d samples", tasks, len(s.Samples))
		}
		total := 0.0
		end := timeline.Seconds(100 * float64(tasks))
		for _, sample := range s.Samples {
			total += float64(sample.Used[resource.Memory]) * min(sample.At.Add(s.Resolution), end).Sub(sample.At).Seconds()
		}
		if want := float64(GB) * 100 * float64(tasks); total < want*0.999 || total > want*1.001 {
			t.Errorf("%d tasks: %v byte seconds were used, want %v", tasks, total, want)
		}
	}
}
