package bellows

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/sim/trial"
	"github.com/bellows-rm/bellows/studies/experiments/ecs"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// sharedData is the folder of recorded data next to the project.
const sharedData = "../../../../shared/data"

var renewalRuns = flag.Int("renewal-runs", 0,
	"how many workloads of each kind TestRenewal compares, also of recorded machines; 0 is two of programs alone")

// Jobs whose reservations are learned end earlier if those are renewed. Decision 88 has the numbers of 8 runs.
func TestRenewal(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	grounds := []lab.Ground{{Name: "programs", Make: programs}}
	runs := cmp.Or(*renewalRuns, 2)
	if *renewalRuns > 0 {
		grounds = append(grounds, lab.Ground{Name: "Bitbrains", Make: days(ecs.ReadBitbrains, 24*time.Hour, 7, false, true)},
			lab.Ground{Name: "Google", Make: days(ecs.ReadGoogle, 6*time.Hour, 4, false, true)},
			lab.Ground{Name: "Bitbrains, lying", Make: days(ecs.ReadBitbrains, 24*time.Hour, 7, true, true)})
	}
	l := &lab.Lab{Settings: lab.Settings{Data: sharedData, Seed: 1}}
	for _, g := range grounds {
		results := map[string][]renewed{}
		for run := range runs {
			for _, how := range []string{"on", "off"} {
				c, w, err := g.Make(l, run)
				if err != nil {
					t.Fatal(err)
				}
				o, err := measureRenewal(how, c, w)
				if err != nil {
					t.Fatalf("%s, run %d, renewal %s: %v", g.Name, run, how, err)
				}
				results[how] = append(results[how], o)
			}
		}
		ratio := func(number func(renewed) float64) trial.Estimate {
			return trial.GeometricMean(lab.Ratios(lab.Values(results["on"], number), lab.Values(results["off"], number)))
		}
		mean := ratio(func(o renewed) float64 { return o.Runtime })
		t.Logf("%s: mean run time %s, end of the last job %s, changes for each task %.2f; %+v", g.Name,
			lab.Interval(mean, 3), lab.Interval(ratio(func(o renewed) float64 { return o.Makespan }), 3),
			lab.Mean(lab.Values(results["on"], func(o renewed) float64 { return o.Renewals })), results)
		if mean.Mean > within {
			t.Errorf("%s: jobs take %.3f times as long as without renewal", g.Name, mean.Mean)
		}
	}
}

// Machines of Bitbrains whose histories lie come to an end without swap, too: containers that are short do not take in
// turn what others give for the first of them.
func TestLiesWithoutSwapEnd(t *testing.T) {
	if _, err := os.Stat(sharedData); err != nil {
		t.Skip("needs ../shared/data/bitbrains, recorded by others")
	}
	l := &lab.Lab{Settings: lab.Settings{Data: sharedData, Seed: 777}}
	for run := range 2 {
		c, w, err := days(ecs.ReadBitbrains, 24*time.Hour, 7, true, false)(l, run)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := measureRenewal("on", c, w); err != nil {
			t.Errorf("run %d: %v", run, err)
		}
	}
}

// runTime is that of a period of a virtual machine: the memory of days is moved within minutes.
const runTime = 30 * time.Minute

// days are virtual machines, each an application that runs once in each period of its trace; lying makes each run that
// of another machine.
func days(read func(dir string) ([]workload.Job, error), period time.Duration, periods int,
	lying, swap bool) func(*lab.Lab, int) (sim.Config, *workload.Workload, error) {
	var once sync.Once
	var all []workload.Job
	var err error
	return func(l *lab.Lab, run int) (sim.Config, *workload.Workload, error) {
		once.Do(func() { all, err = read(l.Data) })
		if err != nil {
			return sim.Config{}, nil, err
		}
		r := rand.New(rand.NewPCG(l.RunSeed(run), 0x4e2))
		var courses [][]cluster.Phase
		for _, at := range r.Perm(len(all)) {
			course, _ := all[at].Truth[0].Phases.Of(0)
			if u := lab.UsageOf(course); u.Peak[resource.Memory] > resource.GiB/4 && u.Lasts >= (time.Duration(periods)*
				period).Seconds() {
				courses = append(courses, course)
			}
			if len(courses) == 20 {
				break
			}
		}
		var jobs []workload.Job
		peaks := resource.Amount(0)
		for p := range periods {
			for _, k := range r.Perm(len(courses)) {
				truth := ecs.Between(courses[k], time.Duration(p)*period, time.Duration(p+1)*period)
				truth = profile.Lasting(truth, runTime)
				app := k
				if lying {
					app = r.IntN(len(courses))
				}
				jobs = append(jobs, one(fmt.Sprint("machine ", app), truth))
				if p == 0 {
					peaks += lab.UsageOf(courses[k]).Peak[resource.Memory]
				}
			}
		}
		c, w := crowded(jobs, peaks*35/100, swap, r)
		return c, w, nil
	}
}

// renewed is how a workload went.
type renewed struct {
	outcome
	Renewals float64 // of a task
	Swapped  float64 // GB
	Killed   float64 // attempts that ended for memory, or were requeued
}

func measureRenewal(how string, c sim.Config, w *workload.Workload) (o renewed, err error) {
	grants, renewals, starts := map[cluster.TaskID]resource.Amount{}, 0, 0
	c.Observe = func(_ timeline.Time, _ []cluster.Event, decisions []cluster.Decision) {
		for i := range decisions {
			d := &decisions[i]
			m := d.Grant[resource.Memory]
			if d.Kind == cluster.Resize && m != grants[d.Task] {
				renewals++
			}
			if d.Kind == cluster.Start {
				starts++
			}
			if d.Kind == cluster.Start || d.Kind == cluster.Resize {
				grants[d.Task] = m
			}
		}
	}
	contender := lab.Contender{Contender: trial.Contender{Label: how, Policy: "bellows",
		Settings: map[string]string{"bellows.renew": how}}, Flex: c.Flex}
	r, err := contender.ToTheEnd(c, w)
	if err != nil {
		return o, err
	}
	o.Runtime, o.Makespan, o.Failed = r.AverageJobRuntime.Seconds(), r.Makespan.Seconds(), len(r.Failures())
	o.Renewals, o.Swapped = float64(renewals)/float64(starts), float64(r.SwappedBytes)/1e9
	o.Killed = float64(r.ManagerKills)
	for i := range r.Jobs {
		o.Killed += float64(r.Jobs[i].OutOfMemory)
	}
	return o, nil
}
