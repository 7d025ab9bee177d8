package sim_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
)

// learning is a job whose reservation is learned, of one task that needs so many MB for so many seconds in turn.
func learning(id int, app string, at time.Duration, phases ...[2]int) workload.Job {
	var truth []cluster.Phase
	for _, p := range phases {
		truth = append(truth, cluster.Phase{Duration: time.Duration(p[0]) * time.Second,
			Demand: resource.Of(resource.Core/2, resource.Amount(p[1])*resource.MB)})
	}
	j := workload.Job{After: -1, Job: cluster.Job{ID: cluster.JobID(id), Name: fmt.Sprint(app, id), Owner: "ada", App: app,
		Class: cluster.Flex, Submitted: timeline.Time(at), MaxAttempts: 3,
		Stages: []cluster.Stage{{Name: "s", Tasks: 1, Ideal: resource.Of(resource.Core/2, 0)}}},
		Truth: []workload.StageTruth{{Phases: workload.ForAll(truth)}}}
	j.Learn()
	return j
}

// renewing runs learning jobs on a node of 10 GB, with or without renewal. It checks that no reservation is renewed
// down to less than the task holds, and returns how often the reservation of each job was.
func renewing(t *testing.T, how string, swap resource.Amount, jobs ...workload.Job) (r *sim.Result,
	renewed map[cluster.JobID]int) {
	t.Helper()
	p, err := policy.New("bellows", map[string]string{"bellows.renew": how, "bellows.patience": "0s"})
	if err != nil {
		t.Fatal(err)
	}
	holds := map[cluster.TaskID]resource.Amount{}
	renewed = map[cluster.JobID]int{}
	memory := map[cluster.TaskID]resource.Amount{}
	c := sim.Config{Nodes: sim.Uniform(1, resource.Of(8*resource.Core, 10*resource.GB)), History: &profile.History{},
		Machine: sim.Machine{Swap: swap, SwapSpeed: 2 * resource.GB, Paging: sim.SSDPaging}}
	c.ObserveContainers = func(m sim.ContainerMemory) { holds[m.Container.Task] = m.Resident + m.Swapped }
	c.Observe = func(_ timeline.Time, _ []cluster.Event, decisions []cluster.Decision) {
		for i := range decisions {
			d := &decisions[i]
			if d.Kind == cluster.Resize && d.Grant[resource.Memory] != memory[d.Task] {
				renewed[d.Task.Job]++
				if is := d.Grant[resource.Memory]; is < min(holds[d.Task], memory[d.Task]) {
					t.Errorf("task %s holds %d bytes, and is to reserve %d", d.Task, holds[d.Task], is)
				}
			}
			if d.Kind == cluster.Start || d.Kind == cluster.Resize {
				memory[d.Task] = d.Grant[resource.Memory]
			}
		}
	}
	if r, err = sim.Run(c, &workload.Workload{Jobs: jobs}, p); err != nil {
		t.Fatal(err)
	}
	return r, renewed
}

// A program that needs most of its memory early lets the next one start while it runs. One that needs it late lets the
// next one start where the node has swap, and keeps it out otherwise. Without renewal the next one waits for its end.
func TestRenewal(t *testing.T) {
	for _, c := range []struct {
		what    string
		swap    resource.Amount
		phases  [][2]int
		with    time.Duration // from the start of the last run until the other job starts
		without time.Duration
	}{
		{"early", 20 * resource.GB, [][2]int{{20, 6000}, {180, 500}}, 20 * time.Second, 200 * time.Second},
		{"late", 20 * resource.GB, [][2]int{{180, 500}, {20, 6000}}, time.Second, 200 * time.Second},
		{"late, little swap", 2 * resource.GB, [][2]int{{180, 500}, {20, 6000}}, 200 * time.Second, 200 * time.Second},
		{"late, without swap", 0, [][2]int{{180, 500}, {20, 6000}}, 200 * time.Second, 200 * time.Second},
		{"both", 20 * resource.GB, [][2]int{{20, 6000}, {100, 500}, {20, 6000}, {60, 400}}, 140 * time.Second,
			200 * time.Second},
		{"constant", 20 * resource.GB, [][2]int{{200, 6000}}, 200 * time.Second, 200 * time.Second},
	} {
		swapped := map[string]resource.Amount{}
		for how, want := range map[string]time.Duration{"on": c.with, "off": c.without} {
			var jobs []workload.Job
			for i := range 6 {
				jobs = append(jobs, learning(2*i+1, "a", time.Duration(2*i)*10*time.Minute, c.phases...))
				jobs = append(jobs, learning(2*i+2, "b", time.Duration(2*i+1)*10*time.Minute, [2]int{30, 6000}))
			}
			last := time.Duration(12) * 10 * time.Minute
			jobs = append(jobs, learning(13, "a", last, c.phases...), learning(14, "b", last+time.Second, [2]int{30, 6000}))
			r, renewed := renewing(t, how, c.swap, jobs...)
			waited := r.Jobs[13].Started.Sub(r.Jobs[12].Started)
			if diff := (waited - want).Abs(); diff > 2*time.Second || how == "off" && len(renewed) > 0 || renewed[13] > 2 {
				t.Errorf("%s, renewal %s: the other job starts after %v, want %v; renewed %v", c.what, how, waited, want, renewed)
			}
			if swapped[how] = r.SwappedBytes; len(r.Unfinished())+len(r.Failures()) > 0 {
				t.Errorf("%s, renewal %s: %d jobs do not end", c.what, how, len(r.Unfinished()))
			}
		}
		if swapped["on"] > swapped["off"] && (c.phases[0][1] == 6000 || c.swap == 0) { // else it grows from little
			t.Errorf("%s: %d bytes went to swap, without renewal %d", c.what, swapped["on"], swapped["off"])
		}
	}
}

// Whatever programs do, and whatever their histories say, all jobs end as without renewal, few reservations change, and
// the same run gives the same result. The engine fails a step that reserves more than the node has.
func TestRenewalOfAnything(t *testing.T) {
	changes, tasks := 0, 0
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		var jobs []workload.Job
		at := time.Duration(0)
		for i := range 40 {
			var phases [][2]int
			for range 1 + random.IntN(6) {
				phases = append(phases, [2]int{1 + random.IntN(60), 50 + random.IntN(1<<(4+random.IntN(9)))})
			}
			at += time.Duration(random.IntN(90)) * time.Second
			jobs = append(jobs, learning(i+1, fmt.Sprint("app", random.IntN(4)), at, phases...))
		}
		swap := resource.Amount(seed%2) * 40 * resource.GB
		r, renewed := renewing(t, "on", swap, jobs...)
		if again, _ := renewing(t, "on", swap, jobs...); !reflect.DeepEqual(again, r) {
			t.Errorf("seed %d: the same run gives another result", seed)
		}
		if without, _ := renewing(t, "off", swap, jobs...); len(r.Unfinished()) != len(without.Unfinished()) ||
			len(r.Failures()) > len(without.Failures()) {
			t.Errorf("seed %d: %d jobs do not end, and %d fail; without renewal %d and %d", seed, len(r.Unfinished()),
				len(r.Failures()), len(without.Unfinished()), len(without.Failures()))
		}
		for id, n := range renewed {
			// down to 50 MB and up to 10 GB, by an eighth at least, in each of three runs
			if most := 3 * 2 * 6 * 8; n > most {
				t.Errorf("seed %d: the reservation of job %d changes %d times", seed, id, n)
			}
			changes += n
		}
		tasks += len(jobs)
	}
	if changes == 0 || changes > 3*tasks {
		t.Errorf("%d changes of the reservations of %d tasks", changes, tasks)
	}
	t.Logf("%d changes of the reservations of %d tasks", changes, tasks)
}
