package foresee

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/eventlog"
	"github.com/bellows-rm/bellows/sim/trial"
)

// now is when the tests ask.
const now = timeline.Time(1000 * time.Second)

func after(d time.Duration) timeline.Time { return now.Add(d) }

// job has one task of one core.
func job(id cluster.JobID, memory resource.Amount, runs time.Duration) cluster.Job {
	return cluster.Job{ID: id, Name: fmt.Sprint("job", id), Submitted: now,
		Stages: []cluster.Stage{{Name: "s", Tasks: 1, Ideal: resource.Of(resource.Core, memory*resource.GB), Duration: runs}}}
}

// present is a node of 10 GB and 10 cores with job 1, which has run for 60 s, and jobs that wait.
func present(policy string, running, asked cluster.Job, waiting ...cluster.Job) *eventlog.Present {
	running.Submitted = after(-time.Minute)
	p := &eventlog.Present{Header: eventlog.Header{Policy: policy}, Now: now, Job: asked}
	node := cluster.Node{Name: "n", Capacity: resource.Of(10*resource.Core, 10*resource.GB)}
	p.Found = append(p.Found, cluster.Event{Kind: cluster.NodeJoined, NewNode: &node})
	for _, j := range slices.Concat([]cluster.Job{running}, waiting) {
		p.Found = append(p.Found, cluster.Event{Kind: cluster.JobSubmitted, Job: j.ID, NewJob: &j})
	}
	progress := &cluster.Progress{}
	if d := running.Stages[0].Duration; d > 0 {
		progress.Ends = after(d - time.Minute)
	}
	p.Found = append(p.Found, cluster.Event{Kind: cluster.TaskAdopted, Task: cluster.TaskID{Job: running.ID},
		Grant: running.Stages[0].Ideal, Launched: after(-time.Minute), Found: &cluster.Condition{Progress: progress}},
		cluster.Event{Kind: cluster.Continued})
	return p
}

func plan(t *testing.T, p *eventlog.Present, policy string, assume time.Duration) *Answer {
	t.Helper()
	f, err := New(p, trial.Contender{Label: policy, Policy: policy,
		Settings: map[string]string{"fair.reservations": "false"}}, assume)
	if err != nil {
		t.Fatal(err)
	}
	a, err := f.Plan()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A job that fits starts at once. Under a policy that lets it pass a larger job, that job waits longer.
func TestPlan(t *testing.T) {
	p := present("fifo", job(1, 8, 2*time.Minute), job(3, 2, 5*time.Minute), job(2, 9, 30*time.Second))
	a := plan(t, p, "fifo", 0)
	if want := (Times{after(90 * time.Second), after(390 * time.Second)}); a.Times != want || len(a.Moved) > 0 ||
		a.IntervalKnown || a.Why != "" {
		t.Errorf("fifo: %+v, want %v", a, want)
	}
	a = plan(t, p, "fair", 0)
	if want := (Times{now, after(5 * time.Minute)}); a.Times != want || len(a.Moved) != 1 {
		t.Fatalf("fair: %+v, want %v", a, want)
	}
	m := a.Moved[0]
	if m.Job.ID != 2 || m.Before != (Times{after(time.Minute), after(90 * time.Second)}) ||
		m.After != (Times{after(5 * time.Minute), after(330 * time.Second)}) {
		t.Errorf("%+v", m)
	}
	if again := plan(t, p, "fair", 0); !reflect.DeepEqual(again, a) {
		t.Errorf("%+v, and again %+v", a, again)
	}
}

// What waits for a task of unknown run time has no known start, unless a run time is assumed.
func TestPlanOfUnknownRunTime(t *testing.T) {
	p := present("fifo", job(1, 8, 0), job(2, 4, time.Minute))
	a := plan(t, p, "fifo", 0)
	if a.Start != timeline.Never || a.End != timeline.Never || a.Why == "" ||
		!slices.Equal(a.Unknown, []cluster.JobID{1}) {
		t.Errorf("%+v", a)
	}
	if a = plan(t, p, "fifo", 3*time.Minute); a.Times != (Times{after(2 * time.Minute), after(3 * time.Minute)}) ||
		a.Why != "" {
		t.Errorf("%+v", a)
	}
	if a = plan(t, present("fifo", job(1, 8, time.Hour), job(2, 1, 0)), "fifo",
		0); a.Times != (Times{now, timeline.Never}) {
		t.Errorf("%+v", a)
	}
}

// A task that should have ended ends at once.
func TestPlanOfOverdueTask(t *testing.T) {
	a := plan(t, present("fifo", job(1, 8, 10*time.Second), job(2, 4, time.Minute)), "fifo", 0)
	if a.Times != (Times{now, after(time.Minute)}) || a.Overdue != 1 {
		t.Errorf("%+v", a)
	}
}

// Run times that were learned can be wrong by their usual error; those that were stated are taken as stated.
func TestInterval(t *testing.T) {
	running, asked := job(1, 8, 2*time.Minute), job(2, 4, 40*time.Second)
	running.Stages[0].Told = cluster.Provenance{Model: "median", Samples: 5, Error: 0.25}
	a := plan(t, present("fifo", running, asked), "fifo", 0)
	if a.Times != (Times{after(60 * time.Second), after(100 * time.Second)}) || !a.IntervalKnown {
		t.Errorf("%+v", a)
	}
	if a.Early != (Times{after(48 * time.Second), after(88 * time.Second)}) ||
		a.Late != (Times{after(75 * time.Second), after(115 * time.Second)}) {
		t.Errorf("early %v, late %v", a.Early, a.Late)
	}
}

// A job that never fits, and a policy or setting that does not exist, are the user's mistakes.
func TestNever(t *testing.T) {
	p := present("fifo", job(1, 8, time.Minute), job(2, 11, time.Minute))
	for c, want := range map[string]string{"fifo": `job "job2" stage "s" memory`, "none": `policy "none"`} {
		if _, err := New(p, trial.Contender{Policy: c}, 0); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", c, err)
		}
	}
	if _, err := New(p, trial.Contender{Policy: "fair", Settings: map[string]string{"fair.none": "1"}}, 0); err == nil {
		t.Error("a setting that does not exist")
	}
}
