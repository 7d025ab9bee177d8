package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

// ahead makes a policy look ahead.
type ahead struct{ policy.Policy }

func (a ahead) Traits() policy.Traits {
	t := a.Policy.Traits()
	t.LooksAhead = true
	return t
}

// told simulates a workload under fifo, and returns what the policy is told of running tasks.
func told(t *testing.T, looksAhead bool, c Config, jobs ...workload.Job) (all []happened, res *Result) {
	t.Helper()
	p, err := policy.New("fifo", nil)
	if err != nil {
		t.Fatal(err)
	}
	if looksAhead {
		p = ahead{p}
	}
	c.Observe = func(now timeline.Time, events []cluster.Event, _ []cluster.Decision) {
		for _, e := range events {
			if e.Kind >= cluster.TaskPhase {
				all = append(all, happened{now, e})
			}
		}
	}
	res, err = Run(c, &workload.Workload{Jobs: jobs}, p)
	if err != nil || len(res.Unfinished())+len(res.Failures()) > 0 {
		t.Fatal(err, res)
	}
	return all, res
}

type happened struct {
	at timeline.Time
	cluster.Event
}

// A policy that looks ahead is told which phases of the forecast a task enters: at once, or with the heartbeat of the
// node. Other policies are told nothing.
func TestPhasesAreReported(t *testing.T) {
	cores := func(n resource.Amount) resource.Vector { return resource.Of(n*resource.Core, testGB) }
	forecast := []cluster.Phase{{Duration: 2500 * time.Millisecond, Demand: cores(1)},
		{Duration: 3 * time.Second, Demand: cores(2)}}
	j := workload.Job{After: -1,
		Job: cluster.Job{ID: 1, Name: "j", Stages: []cluster.Stage{{Tasks: 1, Ideal: cores(2), Phases: forecast}}}}
	other := j
	other.Truth = []workload.StageTruth{{Phases: workload.ForAll(append(slices.Clone(forecast), forecast...))}}
	late := j
	late.Truth = []workload.StageTruth{{Phases: workload.ForAll([]cluster.Phase{{Duration: 7 * time.Second,
		Demand: cores(1)}, {Duration: time.Second}})}}
	at := Config{Nodes: Uniform(1, cores(2))}
	beats := at
	beats.Heartbeat = 2 * time.Second
	entered := func(at float64) []happened {
		return []happened{{timeline.Seconds(at), cluster.Event{Kind: cluster.TaskPhase, Task: cluster.TaskID{Job: 1},
			Phase: 1}}}
	}
	for name, c := range map[string]struct {
		c    Config
		job  workload.Job
		want []happened
	}{
		"as told":                   {at, j, entered(2.5)},
		"late":                      {at, late, entered(7)},
		"with heartbeats":           {beats, j, entered(4)},
		"other phases than told of": {at, other, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := told(t, true, c.c, c.job); !slices.Equal(got, c.want) {
				t.Errorf("told %+v, want %+v", got, c.want)
			}
			if got, _ := told(t, false, c.c, c.job); len(got) > 0 {
				t.Errorf("without looking ahead: told %+v", got)
			}
		})
	}
}

// A policy that looks ahead is told when the memory manager suspends and resumes containers.
func TestStillnessIsReported(t *testing.T) {
	c := Config{Nodes: Uniform(1, resource.Of(4*resource.Core, 4*testGB)), Machine: swapping(),
		Flex: Flex{Manager: memory.Default()}}
	jobs := []workload.Job{flexJob(1, 1, 1, 3), flexJob(2, 1, 1, 3)}
	got, res := told(t, true, c, jobs...)
	since := map[cluster.TaskID]timeline.Time{}
	stood := time.Duration(0)
	for _, e := range got {
		from, still := since[e.Task]
		switch {
		case e.Kind == cluster.TaskSuspended && !still && e.By == cluster.HeldByMemory:
			since[e.Task] = e.at
		case e.Kind == cluster.TaskResumed && still:
			stood += e.at.Sub(from)
			delete(since, e.Task)
		default:
			t.Errorf("told %+v", e)
		}
	}
	if stood == 0 || stood != res.Suspended || len(since) > 0 {
		t.Errorf("told of %v of standing still, want %v; still standing: %v", stood, res.Suspended, since)
	}
	got, same := told(t, false, c, jobs...)
	if len(got) > 0 || same.Suspended != res.Suspended || same.Makespan != res.Makespan {
		t.Errorf("without looking ahead: told %+v, %v", got, same)
	}
}

// Two tasks of 80 MB/s for ten seconds on a hard disk of 100 MB/s: with 1.6 times its speed demanded, it gives 100/1.15
// MB/s, until both end. With 140 MB/s demanded it gives 100/1.1, which is above nine tenths of its speed: no
// pressure, unless the machine is pressed below a larger share.
func TestPressureIsReported(t *testing.T) {
	job := func(id cluster.JobID, rate resource.Amount) workload.Job {
		phases := []cluster.Phase{{Duration: 10 * time.Second,
			Demand: resource.Of(resource.Core, testGB).With(resource.Disk, rate*testMB)}}
		return workload.Job{After: -1,
			Job: cluster.Job{ID: id, Name: "j",
				Stages: []cluster.Stage{{Tasks: 1, Ideal: resource.Of(resource.Core, testGB), Phases: phases}}}}
	}
	c := Config{Nodes: Uniform(1, resource.Vector{2 * resource.Core, 2 * testGB, 100 * testMB}),
		Machine: Machine{Disk: HDDLoss, PressedBelow: 0.9}}
	got, _ := told(t, true, c, job(1, 80), job(2, 80))
	gives := resource.Amount(86_956_521)
	if len(got) != 2 || got[0].at != 0 || got[0].Condition().Bound != (resource.Vector{}).With(resource.Disk, gives) ||
		got[1].at.Seconds() < 18.4 || got[1].at.Seconds() > 18.4001 || got[1].Condition().Bound != (resource.Vector{}) {
		t.Errorf("told %+v", got)
	}
	if got, _ := told(t, false, c, job(1, 80), job(2, 80)); len(got) > 0 {
		t.Errorf("without looking ahead: told %+v", got)
	}
	// The relief of a node that has left is no news.
	c.Nodes = Uniform(2, c.Nodes[0].Capacity)
	c.Incidents = []Incident{{At: 5 * time.Second, Kind: NodeLoss, Node: 0}}
	if got, _ := told(t, true, c, job(1, 80), job(2, 80)); len(got) != 3 || got[1].Node != 1 || got[2].Node != 1 {
		t.Errorf("with a node that leaves: told %+v", got)
	}
	c.Incidents = nil
	if got, _ := told(t, true, c, job(1, 80), job(2, 60)); len(got) > 0 {
		t.Errorf("without pressure: told %+v", got)
	}
	for below, want := range map[float64]int{0.92: 2, 0.9: 0, 0.8: 0} {
		c.Machine.PressedBelow = below
		if got, _ := told(t, true, c, job(1, 80), job(2, 60)); len(got) != want {
			t.Errorf("pressed below %v: told %+v", below, got)
		}
	}
	c.Machine.PressedBelow = 0.8
	if got, _ := told(t, true, c, job(1, 80), job(2, 80)); len(got) > 0 {
		t.Errorf("pressed below 0.8: told %+v", got)
	}
	// By default as on a machine: five times the capacity is demanded where a hard disk gives half of it.
	c.Machine.PressedBelow, c.Nodes[0].Capacity[resource.Disk] = 0, 30*testMB
	for rate, want := range map[resource.Amount]int{74: 0, 76: 2} {
		if got, _ := told(t, true, c, job(1, 75), job(2, rate)); len(got) != want {
			t.Errorf("%d MB/s of 30 demanded: told %+v", 75+rate, got)
		}
	}
}
