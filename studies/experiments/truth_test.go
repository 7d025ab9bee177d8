package experiments_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/internal/testfile"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/studies/chart"
)

// curve draws f over a range.
func curve(name string, from, to float64, f func(float64) float64) chart.Series {
	const steps = 200
	s := chart.Series{Name: name}
	for i := range steps + 1 {
		x := from + (to-from)*float64(i)/steps
		s.X, s.Y = append(s.X, x), append(s.Y, f(x))
	}
	return s
}

// slowdowns is run time over that alone of equal tasks that ask for ratio times what a disk or network has.
func slowdowns(name string, l sim.Loss) chart.Series {
	return curve(name, 0.5, 4, func(ratio float64) float64 { return max(1, ratio/l.Efficiency(ratio)) })
}

func paging(name string, c sim.Paging) chart.Series {
	return curve(name, 0.1, 1, func(resident float64) float64 {
		const whole = resource.TB
		return c.Slowdown(resource.Amount(resident*float64(whole)), whole)
	})
}

// breathing draws the memory of a FLEX container beside which a REGULAR one starts after 7 minutes and runs for 5, on
// a node of 64 GB.
func breathing(t *testing.T) []chart.Series {
	const gb = float64(resource.GB)
	var rise []cluster.Phase
	for step := range resource.Amount(19) {
		rise = append(rise, cluster.Phase{Duration: 15 * time.Second,
			Demand: resource.Of(resource.Core, (4+2*step)*resource.GB)})
	}
	rise = append(rise, cluster.Phase{Duration: 8 * time.Minute, Demand: resource.Of(resource.Core, 40*resource.GB)},
		cluster.Phase{Duration: 5 * time.Minute, Demand: resource.Of(resource.Core, 12*resource.GB)})
	w := &workload.Workload{Jobs: []workload.Job{
		{After: -1, Job: cluster.Job{ID: 1, Class: cluster.Flex,
			Stages: []cluster.Stage{{Tasks: 1, Ideal: resource.Of(resource.Core, 4*resource.GB), Duration: 20 * time.Minute}}},
			Truth: []workload.StageTruth{{Phases: workload.ForAll(rise)}}},
		{After: -1, Job: cluster.Job{ID: 2, Submitted: timeline.Seconds(420),
			Stages: []cluster.Stage{{Tasks: 1, Ideal: resource.Of(resource.Core, 36*resource.GB), Duration: 5 * time.Minute}}}}}}
	set, limit, resident := chart.Series{Name: "working set", Step: true, Dashed: true},
		chart.Series{Name: "limit", Step: true}, chart.Series{Name: "resident", Step: true}
	machine, err := sim.MachineOf("ssd")
	if err != nil {
		t.Fatal(err)
	}
	machine.Swap = 100 * resource.GB
	fifo, err := policy.New("fifo", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := sim.Config{Nodes: sim.Uniform(1, resource.Of(8*resource.Core, 64*resource.GB)), Machine: machine,
		Flex: sim.Flex{Manager: memory.Paper(), Look: 2 * time.Second}}
	c.ObserveContainers = func(m sim.ContainerMemory) {
		if m.Class == cluster.Regular {
			return
		}
		for _, of := range []struct {
			s     *chart.Series
			bytes resource.Amount
		}{{&set, m.WorkingSet}, {&limit, m.Limit}, {&resident, m.Resident}} {
			of.s.X, of.s.Y = append(of.s.X, m.At.Sub(0).Minutes()), append(of.s.Y, float64(of.bytes)/gb)
		}
	}
	_, err = sim.Run(c, w, fifo)
	if err != nil {
		t.Fatal(err)
	}
	return []chart.Series{set, limit, resident}
}

// The pictures of truth.md are drawn by the functions that the simulator uses.
func TestPicturesOfTheTruth(t *testing.T) {
	bounded := func(v float64) *float64 { return &v }
	for name, p := range map[string]*chart.Plot{
		"contention": {Title: "Over-allocated disks and networks",
			Subtitle: "simulated: tasks that ask for nothing but the one resource", X: "demand over capacity",
			Y: "run time over that alone", YMin: bounded(0), Series: []chart.Series{
				slowdowns("hard disk", sim.HDDLoss), slowdowns("solid-state disk", sim.SSDLoss),
				slowdowns("network", sim.IncastLoss),
				slowdowns("shared without loss", sim.Loss{})}},
		"paging": {Title: "Paging", Subtitle: "simulated", X: "share of the working set that the grant holds",
			Y: "run time over that with all in memory", LogY: true, Series: []chart.Series{paging("hard disk", sim.HDDPaging),
				paging("solid-state disk", sim.SSDPaging)}},
		"collection": {Title: "Garbage collection", Subtitle: "simulated", X: "heap over live set",
			Y: "run time over that without collection", LogY: true,
			Series: []chart.Series{curve("JVM", 1.13, 6, func(r float64) float64 {
				slower, _ := sim.JVMCollection.Slowdown(r, 1)
				return slower
			}), {Name: "Hertz and Berger", X: []float64{2, 3, 5}, Y: []float64{1.7, 1.17, 1}, Points: true}}},
		"flex": {Title: "A FLEX container",
			Subtitle: "simulated: a REGULAR one of 36 GB starts beside it after 7 minutes, on 64 GB", X: "minutes", Y: "GB",
			YMin: bounded(0), Series: breathing(t)},
	} {
		got, err := p.SVG()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("..", "..", "docs", "truth", name+".svg")
		if testfile.Rewriting() {
			if err := os.WriteFile(path, got, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the simulator's functions give (%v); draw it anew with -rewrite if that is right", path,
				err)
		}
	}
}
