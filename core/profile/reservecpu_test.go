package profile

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// used is a run that used some CPU in the mean, millicores.
func used(cpu resource.Amount) Run { return Run{Duration: time.Minute, CPU: cpu} }

// curbed is one that would have used more.
func curbed(cpu resource.Amount) Run {
	return Run{Duration: time.Minute, CPU: cpu, AtLeast: resource.KindsOf(resource.CPU)}
}

func repeated(r Run, n int) (all []Run) {
	for range n {
		all = append(all, r)
	}
	return all
}

// What is reserved of CPU is a little more than nearly all runs used, between a twentieth of a core and a core. Nothing
// known is a core, and so is nothing but lower bounds.
func TestReserveCPU(t *testing.T) {
	unknown := used(0)
	unknown.Unknown = resource.KindsOf(resource.CPU)
	byPhase := Run{Phases: []cluster.Phase{{Duration: 30 * time.Second, Demand: resource.Of(800, 0)},
		{Duration: 90 * time.Second, Demand: resource.Of(40, 0)}}}
	for name, c := range map[string]struct {
		runs        []Run
		least, most resource.Amount
		words       string
	}{
		"nothing known":         {nil, 1000, 1000, "no run is known"},
		"not measured":          {repeated(unknown, 5), 1000, 1000, "no run is known"},
		"one that waits":        {repeated(used(3), 1), 50, 50, "1 run, 3m cores"},
		"one":                   {repeated(used(200), 1), 201, 230, "1 run, 200m cores"},
		"many alike":            {repeated(used(200), 30), 200, 205, "30 runs, 200m cores at most"},
		"one of many used more": {append(repeated(used(100), 6), used(300)), 301, 400, "7 runs, 300m cores at most"},
		"all of it":             {repeated(used(1700), 4), 1000, 1000, "4 runs, 1.7 cores at most"},
		"by phase":              {[]Run{byPhase}, 231, 260, "1 run, 230m cores"},
		"lower bounds alone": {repeated(curbed(30), 4), 1000, 1000,
			"4 runs, 30m cores at most, of 4 of them a lower bound"},
		"bounds that say nothing": {append(repeated(used(300), 4), repeated(curbed(100), 20)...), 300, 340,
			"24 runs, 300m cores at most, of 20 of them a lower bound"},
		"used all of its share": {append(repeated(used(300), 4), curbed(290)), 580, 640,
			"5 runs, 300m cores at most, of 1 of them a lower bound"},
		"a liar": {append(repeated(used(2), 20), curbed(50)), 100, 110,
			"21 runs, 50m cores at most, of 1 of them a lower bound"},
	} {
		t.Run(name, func(t *testing.T) {
			var h History
			app := App{Owner: "ada", Name: "waits"}
			for _, r := range c.runs {
				if _, err := h.Observe(app, r); err != nil {
					t.Fatal(err)
				}
			}
			cpu, evidence := h.ReserveCPU(app)
			if cpu < c.least || cpu > c.most || evidence.String() != c.words {
				t.Errorf("reserves %d: %s; want %d to %d: %s", cpu, evidence.String(), c.least, c.most, c.words)
			}
			text, err := h.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			again, notes, err := ReadHistory(text)
			if err != nil || len(notes) > 0 {
				t.Fatal(err, notes)
			}
			if read, _ := again.ReserveCPU(app); read != cpu {
				t.Errorf("read back, it reserves %d instead of %d", read, cpu)
			}
		})
	}
}

// A program that wants a core, and whose history says that it wants next to nothing, gets a core after a few runs on a
// machine without a free CPU, where each uses what is reserved for it.
func TestReservedCPUGrows(t *testing.T) {
	var h History
	app := App{Name: "liar"}
	for range 25 {
		_, _ = h.Observe(app, used(1))
	}
	runs := 0
	for {
		cpu, _ := h.ReserveCPU(app)
		if cpu == resource.Core {
			break
		}
		if runs++; runs > 5 {
			t.Fatalf("after %d runs it reserves %d", runs, cpu)
		}
		_, _ = h.Observe(app, curbed(cpu))
	}
	for range 10 {
		_, _ = h.Observe(app, curbed(100))
	}
	if cpu, _ := h.ReserveCPU(app); cpu != resource.Core {
		t.Errorf("lower bounds lowered the reservation to %d", cpu)
	}
}
