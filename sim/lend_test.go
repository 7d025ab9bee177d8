package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

// Where tasks lend, the cores of an overdrawn node are shared by the grants, as on a machine. A has two cores and is
// paused from 10 s to 20 s, in which B starts on one of them. From then on both run at two thirds of their speed,
// until B ends.
func TestOverdrawnNodeIsSharedByWeight(t *testing.T) {
	ends := map[bool][2]timeline.Time{true: {timeline.Seconds(135), timeline.Seconds(95)},
		false: {timeline.Seconds(110), timeline.Seconds(170)}}
	for lends, want := range ends {
		c := Config{Nodes: Uniform(1, resource.Of(2*resource.Core, 8*testGB)), Caps: resource.KindsOf(resource.CPU),
			Lends: lends, KeepTasks: true, Incidents: []Incident{{At: 10 * time.Second, Kind: JobPause, Job: 1},
				{At: 20 * time.Second, Kind: JobResume, Job: 1}}}
		job := func(id cluster.JobID, cores resource.Amount, lasts time.Duration) workload.Job {
			return workload.Job{After: -1,
				Job: cluster.Job{ID: id, Name: fmt.Sprint(id), Submitted: timeline.Time(id-1) * timeline.Seconds(5),
					Stages: []cluster.Stage{{Name: "s", Tasks: 1, Ideal: resource.Of(cores*resource.Core, testGB), Duration: lasts}}}}
		}
		p, err := policy.New("fifo", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := Run(c, &workload.Workload{Jobs: []workload.Job{job(1, 2, 100*time.Second), job(2, 1, 60*time.Second)}}, p)
		if err != nil {
			t.Fatal(err)
		}
		for i, end := range want {
			if got := res.Tasks[i].Finished; time.Duration(got-end).Abs() > time.Microsecond {
				t.Errorf("lends %v: task %d ends at %v, want %v", lends, i+1, got, end)
			}
		}
	}
}

// playToEnd plays a run, in which every job must succeed.
func playToEnd(t *rapid.T, r *run) {
	res, err := r.play()
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range res.Jobs {
		if !j.Done {
			t.Fatalf("job %d is not done: %+v", j.ID, j)
		}
	}
}

// loan is an overdrawn node.
type loan struct {
	known map[*task]bool // tasks on the node, and whether their programs ran
	began timeline.Time  // when the node became overdrawn
	until timeline.Time  // the node must not be overdrawn any more; 0 if it is not
}

// The bound of decision 44, for any policy: on a node whose tasks go on beside tasks that borrowed their cores
//   - each task runs at no less than C/G of its speed, if they are granted G cores of C;
//   - nothing is launched until all have their cores again, except for what was decided before;
//   - that takes at most G/C times the run time that is left of the tasks that must end, if no other task goes on
//     meanwhile.
func TestResumedTasksGetTheirCoresBack(t *testing.T) {
	loans := 0
	rapid.Check(t, func(t *rapid.T) {
		cores := resource.Amount(rapid.IntRange(1, 6).Draw(t, "cores"))
		c := Config{Nodes: Uniform(rapid.IntRange(1, 3).Draw(t, "nodes"), resource.Of(cores*resource.Core, 64*testGB)),
			Caps: resource.KindsOf(resource.CPU), Lends: true}
		w := &workload.Workload{}
		for i := range rapid.IntRange(2, 12).Draw(t, "jobs") {
			id := cluster.JobID(i + 1)
			s := cluster.Stage{Name: "s", Tasks: rapid.IntRange(1, 8).Draw(t, "tasks"),
				Duration: time.Duration(rapid.IntRange(1, 60).Draw(t, "lasts")) * time.Second,
				Ideal:    resource.Of(resource.Amount(rapid.IntRange(1, int(4*cores)).Draw(t, "quarters"))*resource.Core/4, testGB)}
			w.Jobs = append(w.Jobs,
				workload.Job{After: -1, Job: cluster.Job{ID: id, Name: fmt.Sprint("job", id), Stages: []cluster.Stage{s},
					Submitted: timeline.Seconds(float64(rapid.IntRange(0, 60).Draw(t, "submitted")))}})
			at := time.Duration(rapid.IntRange(1, 90).Draw(t, "paused")) * time.Second
			resumed := at + time.Duration(rapid.IntRange(1, 60).Draw(t, "for"))*time.Second
			c.Incidents = append(c.Incidents,
				Incident{At: at, Kind: JobPause, Job: id, PageOut: rapid.Bool().Draw(t, "pages out")},
				Incident{At: resumed, Kind: JobResume, Job: id})
		}
		slices.SortStableFunc(c.Incidents, func(a, b Incident) int { return int(a.At - b.At) })
		p, err := policy.New(rapid.SampledFrom(policy.Names()).Draw(t, "policy"), nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := newRun(c, w, p)
		if err != nil {
			t.Fatal(err)
		}
		nodes := map[*node]*loan{}
		r.audit = func(here *node) {
			l := nodes[here]
			if l == nil {
				l = &loan{}
				nodes[here] = l
			}
			if l.look(t, r.now, here) {
				loans++
			}
		}
		playToEnd(t, r)
	})
	if t.Logf("%d loans", loans); loans == 0 {
		t.Error("no node was overdrawn")
	}
}

// look checks a node that has been settled, and reports whether another task went on beside borrowers.
func (l *loan) look(t *rapid.T, now timeline.Time, here *node) (another bool) {
	const tolerance = timeline.Time(time.Microsecond)
	if l.until > 0 && now > l.until+tolerance {
		t.Fatalf("at %v a node is overdrawn, want until %v", now, l.until)
	}
	capacity := here.capacity[resource.CPU]
	known, granted, wentOn := map[*task]bool{}, resource.Amount(0), false
	var awake []*task
	for _, task := range here.tasks {
		runs := task.flow == nil || !task.flow.held
		ran, was := l.known[task]
		if known[task] = runs; runs {
			awake = append(awake, task)
			granted += task.grant[resource.CPU]
			wentOn = wentOn || was && !ran
		}
		if !was && l.until > 0 {
			if task.result.Decided > l.began {
				t.Fatalf("at %v task %v was launched on a node that is overdrawn since %v", now, task.id, l.began)
			}
			wentOn = true
		}
	}
	l.known = known
	if granted <= capacity {
		l.until = 0
		return false
	}
	for _, task := range awake {
		if least := float64(capacity) / float64(granted); task.flow.pace < least*(1-1e-9) {
			t.Fatalf("at %v task %v runs at pace %v, want at least %v", now, task.id, task.flow.pace, least)
		}
	}
	switch {
	case l.until == 0:
		l.began = now
	case !wentOn:
		return false
	}
	// The tasks with the most to do may stay as far as they have room; all others must end.
	left := func(t *task) float64 { return t.flow.left - float64(now-t.flow.since)*t.flow.pace }
	slices.SortFunc(awake, func(a, b *task) int { return int(left(b) - left(a)) })
	room := capacity
	for _, task := range awake {
		if room -= task.grant[resource.CPU]; room < 0 {
			l.until = now.Add(time.Duration(left(task) * float64(granted) / float64(capacity)))
			break
		}
	}
	return true
}
