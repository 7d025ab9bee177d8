package replay

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/sim/trial"
)

var (
	nodes = sim.Uniform(1, resource.Of(4*resource.Core, 8*resource.GiB))
	begun = time.Unix(1_700_000_000, 0)
)

// drawn are jobs whose estimates are wrong.
func drawn(r *rand.Rand) *workload.Workload {
	w := &workload.Workload{}
	for i := range 3 + r.IntN(10) {
		j := workload.Job{After: -1, Job: cluster.Job{ID: cluster.JobID(i + 1), Name: fmt.Sprint("job", i),
			Submitted: timeline.Seconds(float64(i) * 5 * r.Float64())}}
		if i > 0 {
			j.Submitted = max(j.Submitted, w.Jobs[i-1].Submitted)
		}
		for s := range 1 + r.IntN(2) {
			stage := cluster.Stage{Name: "s", Tasks: 1 + r.IntN(4),
				Ideal:    resource.Of(resource.Core, resource.Amount(1+r.IntN(4))*resource.GiB),
				Duration: time.Duration(1+r.IntN(60)) * time.Second}
			if s > 0 {
				stage.Parents = []int{0}
			}
			var took []time.Duration
			for range stage.Tasks {
				took = append(took, time.Duration(1+r.IntN(60_000))*time.Millisecond)
			}
			j.Stages, j.Truth = append(j.Stages, stage), append(j.Truth, workload.StageTruth{Duration: workload.ForEach(took)})
		}
		w.Jobs = append(w.Jobs, j)
	}
	return w
}

// recordedBy is the history of a daemon whose machine does what the simulator says.
func recordedBy(t *testing.T, name string, w *workload.Workload) *history {
	t.Helper()
	p, err := policy.New(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := sim.Run(sim.Config{Nodes: nodes, KeepTasks: true}, w, p)
	if err != nil {
		t.Fatal(err)
	}
	at := func(x timeline.Time) time.Time { return begun.Add(time.Duration(x)) }
	h := &history{}
	for i := range w.Jobs {
		j := api.Job{ID: w.Jobs[i].ID, Name: w.Jobs[i].Name, Ended: true, Submitted: at(w.Jobs[i].Submitted)}
		for _, s := range w.Jobs[i].Stages {
			j.Stages = append(j.Stages, api.Stage{Stage: s})
		}
		for _, task := range r.Tasks {
			if task.ID.Job == j.ID {
				j.Tasks = append(j.Tasks, api.Task{Task: task.ID, Run: 1, Grant: api.Grant{MemoryBytes: int64(task.Memory)},
					Booked: at(task.Decided), Started: at(task.Launched), Ended: at(task.Finished)})
			}
		}
		past, ok := pastOf(&j, nil)
		if !ok {
			t.Fatalf("job %d: none of its tasks ran", j.ID)
		}
		h.jobs = append(h.jobs, past)
	}
	return h
}

// A history under the policy that made it is what happened, and takes no less than the lower bounds.
func TestReplayOfTheSamePolicy(t *testing.T) {
	for _, name := range []string{"fifo", "fair", "srjf", "drf"} {
		for seed := range uint64(50) {
			h := recordedBy(t, name, drawn(rand.New(rand.NewPCG(seed, 1))))
			o, b, err := h.would(trial.Contender{Label: name, Policy: name}, h.clusterOf(nodes))
			if err != nil {
				t.Fatal(err)
			}
			want := h.happened(nodes)
			if math.Abs(o.Utilisation-want.Utilisation) > 1e-9 {
				t.Errorf("%s, seed %d: utilisation %v, want %v", name, seed, o.Utilisation, want.Utilisation)
			}
			if o.Utilisation = want.Utilisation; o != want {
				t.Errorf("%s, seed %d: %+v, want %+v", name, seed, o, want)
			}
			if o.Makespan < b.Makespan-1e-9 || o.Completion < b.Completion-1e-9 {
				t.Errorf("%s, seed %d: %+v is better than the bounds %+v", name, seed, o, b)
			}
		}
	}
}

// The same history gives the same outcome, and another policy another one.
func TestReplayOfAnotherPolicy(t *testing.T) {
	h := recordedBy(t, "fifo", drawn(rand.New(rand.NewPCG(7, 1))))
	one, _, err := h.would(trial.Contender{Label: "srjf", Policy: "srjf"}, h.clusterOf(nodes))
	if err != nil {
		t.Fatal(err)
	}
	two, _, err := h.would(trial.Contender{Label: "srjf", Policy: "srjf"}, h.clusterOf(nodes))
	if err != nil || one != two || one == h.happened(nodes) {
		t.Errorf("%v: %+v and %+v", err, one, two)
	}
}

// A job that was killed has the tasks that it ran, and stages that never began are left out.
func TestPastOfAKilledJob(t *testing.T) {
	second := func(n int) time.Time { return begun.Add(time.Duration(n) * time.Second) }
	stage := func(name string, tasks int, parents ...int) api.Stage {
		return api.Stage{Stage: cluster.Stage{Name: name, Tasks: tasks, Parents: parents,
			Ideal: resource.Of(resource.Core, resource.GiB)}}
	}
	run := func(stage, index int32, from, to int) api.Task {
		return api.Task{Task: cluster.TaskID{Job: 3, Stage: stage, Index: index}, Run: 1,
			Grant: api.Grant{MemoryBytes: int64(resource.GiB)}, Booked: second(from - 1), Started: second(from),
			Ended: second(to)}
	}
	j := &api.Job{ID: 3, Status: cluster.StatusCancelled, Ended: true, Submitted: second(0),
		Stages: []api.Stage{stage("never", 2), stage("first", 3), stage("last", 4, 0, 1)},
		Tasks:  []api.Task{run(1, 0, 2, 12), run(1, 2, 2, 8), run(2, 1, 12, 13)}}
	used := []api.TaskUsage{{Task: cluster.TaskID{Job: 3, Stage: 1}, Run: 1, StillSeconds: 4}}
	p, ok := pastOf(j, used)
	if !ok || len(p.job.Stages) != 2 || p.job.Stages[0].Tasks != 2 || p.job.Stages[1].Tasks != 1 ||
		len(p.job.Stages[1].Parents) != 1 || p.job.Stages[1].Parents[0] != 0 {
		t.Fatalf("%+v", p.job)
	}
	if d := p.job.Task(0, 0).Duration; d != 6*time.Second {
		t.Errorf("the first task ran for %v without the time for which it stood still", d)
	}
	if d := p.job.Task(0, 1).Duration; d != 6*time.Second || !p.started.Equal(second(2)) || !p.ended.Equal(second(13)) ||
		p.memory != float64(resource.GiB)*17 {
		t.Errorf("%v %+v", d, p)
	}
	if h := (&history{jobs: []past{p}}); h.launch() != time.Second {
		t.Errorf("tasks are launched %v after they were decided to start", h.launch())
	}
	if _, ok := pastOf(&api.Job{Stages: []api.Stage{stage("a", 1)}}, nil); ok {
		t.Error("a job that never ran")
	}
}

// What was measured becomes the phases of a task: no more CPU and memory than was requested, and as requested where
// nothing is known.
func TestPhasesOfAPast(t *testing.T) {
	is := func(v int64) *int64 { return &v }
	u := &api.TaskUsage{Spans: []api.UsageSpan{
		{LengthSeconds: 2, Rates: api.Rates{CPU: is(5000), Memory: is(int64(resource.MiB)), Read: is(7), Written: is(8)}},
		{LengthSeconds: 3, StillSeconds: 3},
		{LengthSeconds: 4, StillSeconds: 1, Gap: true}}}
	got := phasesOf(u, &cluster.Stage{Ideal: resource.Of(resource.Core, resource.GiB)})
	want := resource.Of(resource.Core, resource.MiB).With(resource.Disk, 15)
	if len(got) != 2 || got[0].Demand != want || got[0].Duration != 2*time.Second ||
		got[1].Demand != resource.Of(resource.Core, resource.GiB) || got[1].Duration != 3*time.Second {
		t.Errorf("%+v", got)
	}
}

func TestMoment(t *testing.T) {
	var m time.Time
	flag := moment(&m)
	for text, want := range map[string]time.Time{"2026-03-01": time.Date(2026, 3, 1, 0, 0, 0, 0, time.Local),
		"2026-03-01 18:30":     time.Date(2026, 3, 1, 18, 30, 0, 0, time.Local),
		"2026-03-01T18:30:00Z": time.Date(2026, 3, 1, 18, 30, 0, 0, time.UTC)} {
		if err := flag.Set(text); err != nil || !m.Equal(want) {
			t.Errorf("%s: %v %v", text, m, err)
		}
	}
	if err := flag.Set("24h"); err != nil || time.Since(m) < 24*time.Hour || time.Since(m) > 25*time.Hour {
		t.Errorf("%v %v", m, err)
	}
	for _, text := range []string{"", "yesterday", "-3h"} {
		if flag.Set(text) == nil {
			t.Errorf("%q is a time", text)
		}
	}
}
