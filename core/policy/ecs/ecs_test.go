package ecs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy/contract"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// table is a node with a book about it.
type table struct {
	*testing.T
	book *book.Book
	plan *book.Plan
}

func newTable(t *testing.T, cores resource.Amount) *table {
	b := book.NewBook(nil)
	b.Snapshot().Lends = true
	s := &table{T: t, book: b, plan: b.Open(0)}
	s.enter(0, cluster.Event{Kind: cluster.NodeJoined,
		NewNode: &cluster.Node{Name: "n1", Capacity: resource.Of(cores*resource.Core, 100*resource.GB)}})
	s.enter(0, cluster.Event{Kind: cluster.Synced})
	return s
}

// withSettings returns the policy with settings, each a name and a value.
func withSettings(t *testing.T, settings ...string) *ecs {
	t.Helper()
	s := contract.Settings{Policy: "ecs", Values: map[string]string{}}
	for i := 0; i < len(settings); i += 2 {
		s.Values[settings[i]] = settings[i+1]
	}
	p := New(&s)
	if s.Err != nil {
		t.Fatal(s.Err)
	}
	return p.(*ecs)
}

func (s *table) enter(now timeline.Time, e cluster.Event) {
	s.Helper()
	if err := s.book.Enter(now, &e); err != nil {
		s.Fatal(err)
	}
}

// closed closes the plan and returns what was decided.
func (s *table) closed() []cluster.Decision {
	s.Helper()
	decisions, err := s.book.Close()
	if err != nil {
		s.Fatal(err)
	}
	return decisions
}

func (s *table) node() *book.NodeState { return s.book.Snapshot().Nodes[0] }

// submit submits a job with the given stages.
func (s *table) submit(id cluster.JobID, stages ...cluster.Stage) *book.JobState {
	s.Helper()
	s.enter(0, cluster.Event{Kind: cluster.JobSubmitted, Job: id, NewJob: &cluster.Job{ID: id, Name: fmt.Sprint(id),
		Stages: stages}})
	j, _ := s.book.Snapshot().Job(id)
	return j
}

// start starts tasks by phase and launches them at time 0.
func (s *table) start(j *book.JobState, stage, tasks int) (started []*book.TaskState) {
	s.Helper()
	return s.startAt(j, stage, make([]timeline.Time, tasks)...)
}

// startAt starts a task by phase for each of some times, and launches it then.
func (s *table) startAt(j *book.JobState, stage int, launched ...timeline.Time) (started []*book.TaskState) {
	s.Helper()
	for _, at := range launched {
		d := phased{}
		need, why, _ := d.grant(j, stage)
		before := len(s.node().Tasks)
		d.begin(s.plan, j, stage, s.node(), need, why)
		if len(s.node().Tasks) == before {
			_, err := s.book.Close()
			s.Fatal(err)
		}
		t := s.node().Tasks[before]
		s.enter(at, cluster.Event{Kind: cluster.DecisionDone, Decision: t.Decision, Task: t.ID})
		started = append(started, t)
	}
	return started
}

// phasesOf is a stage whose tasks demand cores for some time, such as "20s:1 40s:3".
func phasesOf(tasks int, text string, parents ...int) cluster.Stage {
	s := cluster.Stage{Tasks: tasks, Ideal: resource.Of(0, resource.GB), Parents: parents}
	for word := range strings.FieldsSeq(text) {
		var name string
		lasts, cores, _ := strings.Cut(word, ":")
		cores, name, _ = strings.Cut(cores, ":")
		d, err := time.ParseDuration(lasts)
		cpu, err2 := resource.ParseCPU(cores)
		if err != nil || err2 != nil {
			panic(text)
		}
		s.Phases = append(s.Phases, cluster.Phase{Name: name, Duration: d, Demand: resource.Of(cpu, resource.GB)})
		s.Ideal[resource.CPU] = max(s.Ideal[resource.CPU], cpu)
	}
	return s
}

// The float of a task is how late it can end until its job ends later: behind it come the tasks of its stage that
// have not started, and the stages after that.
func TestFloats(t *testing.T) {
	for _, c := range []struct {
		name   string
		stages []cluster.Stage
		start  []int // how many tasks of each stage
		want   string
	}{
		{"one task", []cluster.Stage{phasesOf(1, "40s:1")}, []int{1}, "0.0:0s"},
		{"equal tasks", []cluster.Stage{phasesOf(2, "40s:1")}, []int{2}, "0.0:0s 0.1:0s"},
		{"beside a longer stage", []cluster.Stage{phasesOf(1, "40s:1"), phasesOf(1, "100s:1")}, []int{1, 1},
			"0.0:1m0s 1.0:0s"},
		{"before a stage that ends first", []cluster.Stage{phasesOf(1, "40s:1"), phasesOf(1, "100s:1"),
			phasesOf(1, "20s:1", 0)}, []int{1, 1}, "0.0:40s 1.0:0s"},
		{"before the last stage", []cluster.Stage{phasesOf(1, "90s:1"), phasesOf(1, "100s:1"), phasesOf(1, "20s:1", 0)},
			[]int{1, 1}, "0.0:0s 1.0:10s"},
		{"a parent of a higher index", []cluster.Stage{phasesOf(1, "20s:1", 1), phasesOf(1, "30s:1"), phasesOf(1, "70s:1")},
			[]int{0, 1, 1}, "1.0:20s 2.0:0s"},
		// A stage with two parents begins when the later one has ended, whichever comes first in its list.
		{"after two parents", []cluster.Stage{phasesOf(1, "40s:1"), phasesOf(1, "100s:1"), phasesOf(1, "20s:1", 0, 1)},
			[]int{1, 1}, "0.0:1m0s 1.0:0s"},
		{"after two parents, the later one first", []cluster.Stage{phasesOf(1, "40s:1"), phasesOf(1, "100s:1"),
			phasesOf(1, "20s:1", 1, 0)}, []int{1, 1}, "0.0:1m0s 1.0:0s"},
		// A stage with two children ends in time for the one that must start first, whichever comes first in the job.
		{"before two children", []cluster.Stage{phasesOf(1, "30s:1"), phasesOf(1, "20s:1", 0), phasesOf(1, "50s:1", 0),
			phasesOf(1, "100s:1")}, []int{1, 0, 0, 1}, "0.0:20s 3.0:0s"},
		{"before two children, the longer one first", []cluster.Stage{phasesOf(1, "30s:1"), phasesOf(1, "50s:1", 0),
			phasesOf(1, "20s:1", 0), phasesOf(1, "100s:1")}, []int{1, 0, 0, 1}, "0.0:20s 3.0:0s"},
		// One of two waves is left; two tasks of the job run at a time.
		{"waves", []cluster.Stage{phasesOf(3, "20s:1"), phasesOf(1, "100s:1")}, []int{1, 1}, "0.0:1m0s 1.0:0s"},
		{"waves of one", []cluster.Stage{phasesOf(3, "20s:1")}, []int{1}, "0.0:0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newTable(t, 16)
			j := s.submit(1, c.stages...)
			for i, n := range c.start {
				s.start(j, i, n)
			}
			var f float
			if !f.of(0, s.book.Snapshot(), j) {
				t.Fatal("the float is unknown")
			}
			var got []string
			for _, task := range j.Tasks {
				end, _ := earliestEnd(0, s.book.Snapshot(), task)
				got = append(got, fmt.Sprintf("%d.%d:%v", task.ID.Stage, task.ID.Index, f.latest(task).Sub(end)))
			}
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("floats are %s, want %s", text, c.want)
			}
		})
	}
}

// What a node does not demand follows the phases of its tasks; a task that is held goes on when its hold ends, where
// it was.
func TestDemands(t *testing.T) {
	s := newTable(t, 4)
	long := s.start(s.submit(1, phasesOf(1, "20s:1 40s:3")), 0, 1)[0]
	short := s.start(s.submit(2, phasesOf(1, "20s:1 20s:3")), 0, 1)[0]
	var d demands
	spare := func(now timeline.Time, released *book.TaskState) (text string) {
		d.look(now, s.book.Snapshot(), s.node(), released)
		for at := now; at < timeline.Never; at = d.spare.NextStep(at) {
			text += fmt.Sprintf("%v:%v ", at, d.spare.At(at)[resource.CPU])
		}
		return strings.TrimSpace(text)
	}
	if got, want := spare(0, nil), "0s:2000 20s:-2000 40s:1000 1m0s:4000"; got != want {
		t.Errorf("spare is %s, want %s", got, want)
	}
	if at, over := d.over(0); !over || at != timeline.Seconds(20) {
		t.Errorf("over-allocated at %v, %v", at, over)
	}
	s.node().Leveled = &cluster.Answer{Shifts: []cluster.Shift{{Task: short.ID, From: timeline.Seconds(20),
		To: timeline.Seconds(60)}}}
	if got, want := spare(0, nil), "0s:2000 20s:1000 1m0s:1000 1m20s:4000"; got != want {
		t.Errorf("with a shift, spare is %s, want %s", got, want)
	}
	s.plan = s.book.Open(timeline.Seconds(10))
	s.plan.SuspendUntil(short, timeline.Seconds(50), long.ID, cluster.Because(cluster.LevelingEnds))
	s.node().Leveled = nil
	if got, want := spare(timeline.Seconds(10), nil), "10s:3000 20s:1000 50s:0 1m0s:1000 1m20s:4000"; got != want {
		t.Errorf("held, spare is %s, want %s", got, want)
	}
	if got, want := spare(timeline.Seconds(10), short), "10s:2000 20s:-2000 40s:1000 1m0s:4000"; got != want {
		t.Errorf("released, spare is %s, want %s", got, want)
	}
	if _, err := s.book.Close(); err != nil {
		t.Fatal(err)
	}
}

// The tasks of a stage in the same phase move together, as late as their job allows; everything else is fixed.
func TestQuestion(t *testing.T) {
	s := newTable(t, 16)
	s.start(s.submit(1, phasesOf(2, "20s:1 20s:2"), phasesOf(1, "100s:1"), phasesOf(1, "10s:1:shuffle 20s:2")), 0, 2)
	j, _ := s.book.Snapshot().Job(1)
	s.start(j, 1, 1)
	s.start(j, 2, 1)
	s.start(s.submit(2, cluster.Stage{Tasks: 1, Ideal: resource.Of(500, resource.GB)}), 0, 1) // of an unknown run time
	e := withSettings(t)
	q := e.question(0, s.book.Snapshot(), s.node())
	if q.every != 10*time.Second || len(q.problem.Fixed) != 10 || len(q.problem.Sets) != 2 {
		t.Fatalf("%d intervals of %v, %d sets", len(q.problem.Fixed), q.every, len(q.problem.Sets))
	}
	if fixed := q.problem.Fixed; slices.Min(fixed) != 1500 || slices.Max(fixed) != 1500 {
		t.Errorf("fixed are %v", fixed)
	}
	for i, want := range []string{"[2000 2000 4000 4000] 6 0 false", "[1000 2000 2000] 7 1 false"} {
		set := &q.problem.Sets[i]
		if got := fmt.Sprint(set.Demand, set.Float, set.Shuffle, set.Suspended); got != want {
			t.Errorf("set %d is %s, want %s", i, got, want)
		}
	}
	if q.problem.Suspension != 4800 || q.problem.Delay != 800 || q.problem.Capacity != 16000 {
		t.Errorf("a suspension costs %d, a delay %d", q.problem.Suspension, q.problem.Delay)
	}
	if e.sets = 1; len(e.question(0, s.book.Snapshot(), s.node()).groups[0].tasks) != 2 {
		t.Error("the set that demands most is not the one that moves")
	}
}

// Tasks that move together end late by the least of their floats, so that none delays its job: of tasks of one stage
// that were launched one after the other, the last one has the least.
func TestFloatOfSetIsTheLeast(t *testing.T) {
	for name, launched := range map[string][]timeline.Time{
		"the last task was launched last":  {0, timeline.Seconds(20)},
		"the first task was launched last": {timeline.Seconds(20), 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTable(t, 16)
			s.start(s.submit(2, phasesOf(1, "300s:1")), 0, 1) // the window reaches further than the first job
			j := s.submit(1, phasesOf(2, "40s:1"), phasesOf(1, "100s:1"))
			s.start(j, 1, 1)
			s.startAt(j, 0, launched...)
			q := withSettings(t).question(timeline.Seconds(20), s.book.Snapshot(), s.node())
			// They end at 40s and 60s, and need not end before 100s.
			if len(q.groups) != 1 || len(q.groups[0].tasks) != 2 || q.groups[0].float != 40*time.Second {
				t.Fatalf("%d sets: %+v", len(q.groups), q.groups)
			}
			if want := int(40 * time.Second / q.every); q.problem.Sets[0].Float != want {
				t.Errorf("may end %d intervals of %v late, want %d", q.problem.Sets[0].Float, q.every, want)
			}
		})
	}
}

// A problem reaches to the last latest finish of the tasks of a node, but to no more than twice their last earliest
// finish: what follows later is not in it.
func TestWindowOfQuestion(t *testing.T) {
	for _, c := range []struct {
		name   string
		behind string // a stage of the same job that has not started
		want   time.Duration
	}{
		{"the latest finish comes first", "50s:1", 50 * time.Second},
		{"twice the earliest finish comes first", "200s:1", 60 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newTable(t, 16)
			s.start(s.submit(1, phasesOf(1, "30s:1"), phasesOf(1, c.behind)), 0, 1)
			q := withSettings(t).question(0, s.book.Snapshot(), s.node())
			if got := time.Duration(len(q.problem.Fixed)) * q.every; got != c.want {
				t.Errorf("%d intervals of %v, want %v", len(q.problem.Fixed), q.every, c.want)
			}
		})
	}
}

// The next answer replaces all shifts of the one before: a task that leveling holds goes on at once if the newest
// answer does not stop it now, however full the node is, and is held until another time if it says so.
func TestNewestAnswerCounts(t *testing.T) {
	shift := func(from, to float64) []cluster.Shift {
		return []cluster.Shift{{From: timeline.Seconds(from), To: timeline.Seconds(to)}}
	}
	for _, c := range []struct {
		name   string
		shifts []cluster.Shift // of the task that is held from 20s until 60s, at 30s
		want   string
	}{
		{"it does not stop", nil, "resume: not shifted"},
		{"it was to stop before", shift(10, 25), "resume: not shifted"},
		{"it stops later", shift(40, 70), "resume: not shifted"},
		{"it stops for as long", shift(20, 60), ""},
		{"it stops for longer", shift(20, 70), "suspend until 1m10s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newTable(t, 4)
			long := s.start(s.submit(1, phasesOf(1, "200s:3")), 0, 1)[0]
			held := s.start(s.submit(2, phasesOf(1, "1s:1 100s:3")), 0, 1)[0]
			s.plan = s.book.Open(timeline.Seconds(20))
			s.plan.SuspendUntil(held, timeline.Seconds(60), long.ID, cluster.Because(cluster.LevelingEnds))
			s.closed()
			for i := range c.shifts {
				c.shifts[i].Task = held.ID
			}
			s.node().Leveled = &cluster.Answer{Shifts: c.shifts}
			s.plan = s.book.Open(timeline.Seconds(30))
			withSettings(t).carryOut(timeline.Seconds(30), s.plan, s.node(), false)
			var got []string
			for _, d := range s.closed() {
				switch {
				case d.Task != held.ID:
					t.Errorf("decided %+v", d)
				case d.Kind == cluster.Resume && d.Reason.Code == cluster.NotShifted:
					got = append(got, "resume: not shifted")
				case d.Kind == cluster.Suspend:
					got = append(got, fmt.Sprintf("suspend until %v", d.At))
				default:
					t.Errorf("decided %+v", d)
				}
			}
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("decided %q, want %q", text, c.want)
			}
		})
	}
}

// The shifts of a schedule are the times in which a set does not run before its end.
func TestShiftsOfSchedule(t *testing.T) {
	s := newTable(t, 16)
	s.start(s.submit(1, phasesOf(1, "30s:1"), phasesOf(1, "100s:1")), 0, 1)
	j, _ := s.book.Snapshot().Job(1)
	s.start(j, 1, 1)
	q := withSettings(t).question(timeline.Seconds(5), s.book.Snapshot(), s.node())
	for _, c := range []struct{ runs, want string }{
		{"xxx.......", ""},
		{"..xxx", "5s-25s"},
		{"x..x.x....", "15s-35s 45s-55s"},
	} {
		runs := make([]bool, 10)
		for i, run := range c.runs {
			runs[i] = run == 'x'
		}
		var got []string
		for _, shift := range q.shifts([][]bool{runs}) {
			got = append(got, fmt.Sprintf("%v-%v", shift.From, shift.To))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: shifts are %q, want %q", c.runs, text, c.want)
		}
	}
}

// A task is short if its run time is in the lower cluster of those of all stages; then it gets its largest phase.
func TestShortTasksGetTheirPeak(t *testing.T) {
	s := newTable(t, 16)
	a := s.submit(1, phasesOf(1, "5s:1 5s:2"))
	var d phased
	d.short.on = true
	if d.short.follow(s.plan); d.short.is(a.Job, 0) {
		t.Error("the only stage is short")
	}
	b := s.submit(2, phasesOf(1, "40s:1 60s:2"))
	if !d.short.follow(s.plan) || !d.short.is(a.Job, 0) || d.short.is(b.Job, 0) {
		t.Errorf("longest is %v", d.short.longest)
	}
	for _, c := range []struct {
		job  *book.JobState
		want resource.Amount
	}{{a, 2000}, {b, 1000}} {
		if need, _, _ := d.grant(c.job, 0); need[resource.CPU] != c.want {
			t.Errorf("job %d starts with %v", c.job.ID, need)
		}
	}
}

// A grant of CPU is a weight only if it follows the phases: otherwise tasks are granted what they may use.
func TestECSWeighs(t *testing.T) {
	for _, c := range []struct {
		cpu, overcommit string
		want            bool
	}{{"quota", "true", false}, {"weight", "true", true}, {"weight", "false", false}} {
		if p := withSettings(t, "ecs.cpu", c.cpu, "ecs.overcommit", c.overcommit); p.Traits().Weighs != c.want {
			t.Errorf("%+v: %+v", c, p.Traits())
		}
	}
}
