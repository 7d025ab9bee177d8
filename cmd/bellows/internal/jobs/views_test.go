package jobs

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/cmd/internal/terminal"
	"github.com/bellows-rm/bellows/internal/testfile"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/resource"
)

// view compares the output of a view of canned data with testdata/views/NAME.txt, and checks that it fits a terminal.
func view(t *testing.T, name string, print func(*bytes.Buffer) error) {
	t.Helper()
	var b bytes.Buffer
	if err := print(&b); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > terminal.Width {
			t.Errorf("%s: %d columns, more than %d: %s", name, n, terminal.Width, line)
		}
	}
	testfile.Golden(t, "views/"+name+".txt", b.Bytes())
}

// pages returns an iterator over pages of jobs, without errors.
func pages(all ...[]live.Job) iter.Seq2[[]live.Job, error] {
	return func(yield func([]live.Job, error) bool) {
		for _, page := range all {
			if !yield(page, nil) {
				return
			}
		}
	}
}

// JSON that is printed page by page is one value.
func TestJobsAsJSON(t *testing.T) {
	_, jobs, tasks := canned()
	for _, all := range [][][]live.Job{{nil}, {jobs}, {jobs[:3], jobs[3:]}} {
		var b bytes.Buffer
		if err := writeJobs(&b, pages(all...), tasks); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Jobs  []live.Job
			Tasks []live.Task
		}
		if err := json.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatalf("%v: %s", err, b.String())
		}
		if want := slices.Concat(all...); len(got.Jobs) != len(want) || len(want) > 0 && got.Jobs[3].ID != want[3].ID || len(got.Tasks) != len(tasks) {
			t.Errorf("printed %s", b.String())
		}
	}
}

func pointer[T any](v T) *T { return &v }

// canned is a machine with one job of each kind.
func canned() (now time.Time, jobs []live.Job, tasks []live.Task) {
	now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	stage := live.Stage{Stage: cluster.Stage{Name: "a", Tasks: 300}, Succeeded: 17, Running: 3, Pending: 280, IdealBytes: 4 << 30}
	jobs = []live.Job{
		{ID: 1, Name: "sort", Owner: "ann", Status: cluster.StatusSucceeded, Ended: true, Started: now.Add(-time.Hour), Finished: now.Add(-50 * time.Minute),
			ExitCode: pointer(0), TaskCount: 1, SucceededCount: 1},
		{ID: 2, Name: "a name that is far too long to be shown", Owner: "somebody-with-a-long-name", Status: cluster.StatusFailed, Ended: true, Started: now.Add(-time.Hour),
			Finished: now.Add(-59 * time.Minute), ExitCode: pointer(137), TaskCount: 1},
		{ID: 12345, Name: "join", Owner: "bob", Status: cluster.StatusRunning, Started: now.Add(-90 * time.Second), Stages: []live.Stage{stage}, TaskCount: 300, SucceededCount: 17,
			Waiting: "would fit under-sized (600MB), but end 03:05:00, after its job (03:04:30)"},
		{ID: 12346, Name: "train", Owner: "bob", Status: cluster.StatusPending, Stages: []live.Stage{{Stage: cluster.Stage{Tasks: 2}, Pending: 2}}, TaskCount: 2, Waiting: "no node has 8GiB and 4 cores free"},
	}
	id := cluster.TaskID{Job: 12345}
	tasks = []live.Task{
		{Task: id, Run: 2, State: live.TaskRunning, MemoryBytes: 2 << 30, UnderSized: true, Started: now.Add(-30 * time.Second),
			Usage: &cluster.Reading{Memory: pointer[int64](1700 << 20), Anonymous: pointer[int64](1500 << 20)}},
		{Task: cluster.TaskID{Job: 12345, Index: 1}, Run: 1, State: live.TaskEnded, Outcome: cluster.Failed, MemoryBytes: 4 << 30, Started: now.Add(-80 * time.Second),
			Ended: now.Add(-20 * time.Second), Exit: &cluster.Exit{Code: 3, Peak: 3 << 30}, Detail: "ended with exit code 3"},
		{Task: cluster.TaskID{Job: 12345, Index: 12}, Run: 1, State: live.TaskEnded, Outcome: cluster.OutOfMemory, MemoryBytes: 4 << 30, Started: now.Add(-80 * time.Second),
			Ended: now.Add(-20 * time.Second), Exit: &cluster.Exit{Code: 137}, Detail: "the kernel killed a process of it for memory"},
		{Task: cluster.TaskID{Job: 12345, Index: 13}, Run: 1, State: live.TaskStarting, MemoryBytes: 4 << 30},
	}
	return now, jobs, tasks
}

// breathes is a machine on which memory is short.
func breathes(now time.Time) (jobs []live.Job, tasks []live.Task) {
	const mib = 1 << 20
	job := func(id cluster.JobID, name string, class cluster.Class, n int, most int64) live.Job {
		return live.Job{ID: id, Name: name, Owner: "ann", Status: cluster.StatusRunning, Submitted: now.Add(-time.Minute), Started: now.Add(-40 * time.Second),
			TaskCount: n, Stages: []live.Stage{{Stage: cluster.Stage{Tasks: n, MaxMemory: resource.Amount(most)}, Running: n, IdealBytes: 64 * mib, Class: class}}}
	}
	task := func(id cluster.TaskID, state cluster.ContainerState, anonymous, swap, limit int64, why string) live.Task {
		return live.Task{Task: id, Run: 1, State: live.TaskRunning, MemoryBytes: 64 * mib, Started: now.Add(-40 * time.Second), Why: "fits with its ideal memory, 64MiB",
			Usage: &cluster.Reading{State: state, Memory: pointer(anonymous + 10*mib), Anonymous: &anonymous, Swap: &swap, Limit: &limit, Why: why, Since: now.Add(-12 * time.Second)}}
	}
	jobs = []live.Job{job(7, "stands", cluster.Flex, 1, 0), job(8, "pages", cluster.Flex, 1, 96*mib), job(9, "waits", cluster.Regular, 1, 0), job(10, "some", cluster.Flex, 3, 0)}
	jobs[2].Status, jobs[2].Started = cluster.StatusPending, time.Time{}
	jobs[3].Waiting = "no node has 64MiB and 1 core free"
	tasks = []live.Task{
		task(cluster.TaskID{Job: 7}, cluster.ContainerSuspended, 188<<10, 79024<<10, 10268<<10, "out of memory: held 99.7MiB with what was in swap, and could hold 93.9MiB; likely to go on in 26s"),
		task(cluster.TaskID{Job: 8}, cluster.ContainerRunning, 90*mib, 30*mib, 96*mib, "held 60MiB of 64MiB, and the node had plenty left"),
		{Task: cluster.TaskID{Job: 9}, Run: 1, State: live.TaskStarting, MemoryBytes: 64 * mib, Why: "fits with its ideal memory, 64MiB",
			Usage: &cluster.Reading{State: cluster.ContainerWaiting, Why: "needs 64MiB, and job 7 is out of memory already", Since: now.Add(-3 * time.Second)}},
		task(cluster.TaskID{Job: 10}, cluster.ContainerRunning, 40*mib, 0, 64*mib, "nobody was out of memory, and the node had 30MiB left"),
		task(cluster.TaskID{Job: 10, Index: 1}, cluster.ContainerSuspended, 188<<10, 95092<<10, 10268<<10, "job 7 comes first and is out of memory"),
		{Task: cluster.TaskID{Job: 10, Index: 2}, Run: 1, State: live.TaskEnded, Outcome: cluster.OutOfMemory, MemoryBytes: 64 * mib, Started: now.Add(-80 * time.Second),
			Ended: now.Add(-20 * time.Second), Exit: &cluster.Exit{Code: 137, Peak: 64 * mib}, Detail: "the kernel killed a process of it for memory"},
	}
	return jobs, tasks
}

// Views of jobs that lack memory: one is suspended, one pages at its maximum, one has not begun, one has tasks of each
// kind.
func TestViewsOfBreathing(t *testing.T) {
	now, _, _ := canned()
	jobs, tasks := breathes(now)
	local := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = local })
	view(t, "breathing", func(b *bytes.Buffer) error { return printJobs(b, pages(jobs), tasks, now) })
	for _, j := range jobs {
		e := live.Explanation{Why: "Where the job stands."}
		for _, k := range tasks {
			if k.Task.Job != j.ID {
				continue
			}
			j.Tasks = append(j.Tasks, k)
			if k.State != live.TaskEnded {
				e.Tasks = append(e.Tasks, live.TaskExplanation{Task: k.Task, MemoryBytes: k.MemoryBytes, IdealBytes: 64 << 20, Why: k.Why, Usage: k.Usage})
			}
		}
		if j.Name == "pages" {
			e.Tasks[0].EstimatedEnd = now // The task is late.
		}
		if j.Name == "stands" {
			for i := range cluster.JobID(5) {
				e.Tasks[0].Holders = append(e.Tasks[0].Holders, live.Holder{Task: cluster.TaskID{Job: 9 - i}, Bytes: 64 << (24 - i)})
			}
		}
		e.Job = j
		view(t, "breathing-"+j.Name, func(b *bytes.Buffer) error { return printTasks(b, &j, now) })
		view(t, "breathing-"+j.Name+"-explained", func(b *bytes.Buffer) error { return printExplanation(b, &e, now) })
	}
}

func TestViews(t *testing.T) {
	// Times of day are shown in the user's time zone.
	local := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = local })

	now, jobs, tasks := canned()
	view(t, "jobs", func(b *bytes.Buffer) error { return printJobs(b, pages(jobs), tasks, now) })
	view(t, "jobs-paged", func(b *bytes.Buffer) error { return printJobs(b, pages(jobs[:1], jobs[1:3], jobs[3:]), tasks, now) })
	view(t, "no-jobs", func(b *bytes.Buffer) error { return printJobs(b, pages(nil), nil, now) })
	job := jobs[2]
	job.Tasks, job.Submitted = tasks, now.Add(-2*time.Minute)
	view(t, "tasks", func(b *bytes.Buffer) error { return printTasks(b, &job, now) })
	view(t, "explanation", func(b *bytes.Buffer) error {
		return printExplanation(b, &live.Explanation{
			Job: job, Why: "The next task of the job has not started: would fit under-sized (600MB), but end 03:05:00, after its job (03:04:30).",
			EarliestStart: now.Add(12 * time.Second), EstimatedEnd: now.Add(time.Minute),
			Tasks: []live.TaskExplanation{
				{Task: tasks[0].Task, MemoryBytes: 2 << 30, IdealBytes: 4 << 30, Slowdown: 1.25, EstimatedEnd: now.Add(40 * time.Second),
					Why: "under-sized to 2GiB: ends 03:04:45, no later than its job (03:05:05)"},
			},
			Decisions: []live.DecisionNote{
				{At: now.Add(-30 * time.Second), Kind: cluster.Start, Task: tasks[0].Task, Why: "under-sized to 2GiB: ends 03:04:45, no later than its job (03:05:05)"},
				{At: now.Add(-30 * time.Second), Kind: cluster.Unreserve, Task: tasks[0].Task, Why: "its task started"},
			},
		}, now)
	})
}

// What is expected of a job, as learned, as stated and unknown.
func TestViewsOfForecasts(t *testing.T) {
	local := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = local })
	now, _, _ := canned()
	stage := func(name string) live.Stage {
		return live.Stage{Stage: cluster.Stage{Name: name, Tasks: 1}, Pending: 1}
	}
	j := live.Job{ID: 7, Name: "sort", Owner: "ada", Submitted: now, App: "sort -S # *.txt", AppDerived: true, DeadlineSeconds: 600,
		Stages: []live.Stage{stage("sort"), stage("check"), stage("report")}}
	sort := &j.Stages[0]
	sort.Input, sort.Together, sort.Phases = 3*resource.GiB, true, make([]cluster.Phase, 2)
	sort.Told = cluster.Provenance{Model: "median", Samples: 3, Error: 0.08}
	j.Stages[1].Phases = make([]cluster.Phase, 1)
	e := live.Explanation{Job: j, Why: "The next task of the job has not started: no node has 1GiB free.", Forecasts: []live.Forecast{
		{Name: "sort", DurationSeconds: 62.5, Runs: 3, Told: sort.Told, Unknown: []string{"network"}, Phases: []live.ForecastPhase{
			{Name: "read", LengthSeconds: 20.25, CPU: 350, Memory: 600 << 20, Disk: 101_234_567},
			{FromSeconds: 20.25, LengthSeconds: 42.25, CPU: 1950, Memory: 1 << 30}},
			Notes: []string{"network: never measured.", "Its runs went 2 ways, and the likeliest is expected (75 % of them); 25 % took 3m0s (2 phases, not 3)."}},
		{Name: "check", DurationSeconds: 5, Phases: []live.ForecastPhase{{LengthSeconds: 5, CPU: 1000, Memory: 50 << 20}}, Notes: []string{"The phases are as stated with the job."}},
		{Name: "report", Notes: []string{"Nothing is known of its demand over time: no measured run of its application has succeeded before."}},
	}}
	view(t, "forecast", func(b *bytes.Buffer) error { return printTasks(b, &j, now) })
	view(t, "forecast-explained", func(b *bytes.Buffer) error { return printExplanation(b, &e, now) })
}

func TestThrottledViews(t *testing.T) {
	local := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = local })
	now, jobs, tasks := canned()
	job := jobs[2]
	job.Tasks, job.Submitted = nil, now.Add(-2*time.Minute)
	e := live.Explanation{Why: "The remaining tasks of the job are running."}
	for i, th := range []live.Throttle{
		{Disk: 10e6, Until: now.Add(time.Minute), InForce: true, Why: "node pressure: the node gives 40MB/s of disk, of 110MB/s", How: "by standing still part of the time"},
		{Disk: 10e6, Network: 20e6, Until: now.Add(time.Minute), Why: "node pressure: the node gives 40MB/s of disk, of 110MB/s"},
		{Disk: 10e6, Until: now.Add(time.Minute), Failed: "record the throttle: no space left on device"},
	} {
		k := tasks[0]
		k.Task.Index, k.Throttle, k.State = int32(i), &th, live.TaskRunning
		job.Tasks = append(job.Tasks, k)
		e.Tasks = append(e.Tasks, live.TaskExplanation{Task: k.Task, MemoryBytes: k.MemoryBytes, IdealBytes: k.MemoryBytes, Why: k.Why, Throttle: &th})
	}
	e.Job = job
	view(t, "throttled", func(b *bytes.Buffer) error { return printTasks(b, &job, now) })
	view(t, "throttled-explained", func(b *bytes.Buffer) error { return printExplanation(b, &e, now) })
}

func TestNameOfProgram(t *testing.T) {
	for program, want := range map[string]string{
		"/usr/bin/sort": "sort", "./a b": "a b", "évil": "évil", "evil\x1b[2J": `evil\x1b[2J`, "caf\xe9": `caf\xe9`, "a\uFFFD": "a?", "./ ": "job",
		strings.Repeat("é", 150): strings.Repeat("é", 100), strings.Repeat("\n", 150): strings.Repeat(`\n`, 100),
	} {
		got := nameOf(program)
		if got != want || !cluster.IsName(got) {
			t.Errorf("%q is called %q, want %q", program, got, want)
		}
	}
}

// Names that other users have chosen cannot control the terminal.
func TestTablesAndSentencesArePrintable(t *testing.T) {
	var out bytes.Buffer
	const evil = "evil\x1b[2J\x1b]0;owned\a\r\nX\u202e\x9b"
	jobs := func(yield func([]live.Job, error) bool) {
		yield([]live.Job{{ID: 1, Name: evil, Owner: evil, Waiting: evil}}, nil)
	}
	if err := printJobs(&out, jobs, nil, time.Now()); err != nil {
		t.Fatal(err)
	}
	e := live.Explanation{Job: live.Job{ID: 1, Name: evil, Detail: evil}, Why: evil}
	if err := printExplanation(&out, &e, time.Now()); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if got := strings.TrimSuffix(line, "\n"); cluster.Printable(got) != got {
			t.Errorf("%q is printed", line)
		}
	}
}
