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

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/internal/testfile"
	"github.com/bellows-rm/bellows/live/api"
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
func pages(all ...[]api.Job) iter.Seq2[[]api.Job, error] {
	return func(yield func([]api.Job, error) bool) {
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
	for _, all := range [][][]api.Job{{nil}, {jobs}, {jobs[:3], jobs[3:]}} {
		var b bytes.Buffer
		if err := writeJobs(&b, pages(all...), tasks); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Jobs  []api.Job
			Tasks []api.Task
		}
		if err := json.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatalf("%v: %s", err, b.String())
		}
		if want := slices.Concat(all...); len(got.Jobs) != len(want) || len(want) > 0 && got.Jobs[3].ID != want[3].ID ||
			len(got.Tasks) != len(tasks) {
			t.Errorf("printed %s", b.String())
		}
	}
}

func pointer[T any](v T) *T { return &v }

// canned is a machine with one job of each kind.
func canned() (now time.Time, jobs []api.Job, tasks []api.Task) {
	now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	stage := api.Stage{Stage: cluster.Stage{Name: "a", Tasks: 300}, Succeeded: 17, Running: 3, Pending: 280,
		IdealBytes: 4 << 30}
	jobs = []api.Job{
		{ID: 1, Name: "sort", Owner: "ann", Status: cluster.StatusSucceeded, Ended: true, Started: now.Add(-time.Hour),
			Finished: now.Add(-50 * time.Minute), ExitCode: pointer(0), TaskCount: 1, SucceededCount: 1},
		{ID: 2, Name: "a name that is far too long to be shown", Owner: "somebody-with-a-long-name",
			Status: cluster.StatusFailed, Ended: true, Started: now.Add(-time.Hour), Finished: now.Add(-59 * time.Minute),
			ExitCode: pointer(137), TaskCount: 1},
		{ID: 12345, Name: "join", Owner: "bob", Status: cluster.StatusRunning, Started: now.Add(-90 * time.Second),
			Stages: []api.Stage{stage}, TaskCount: 300, SucceededCount: 17,
			Waiting: "would fit under-sized (600MB), but end 03:05:00, after its job (03:04:30)"},
		{ID: 12346, Name: "train", Owner: "bob", Status: cluster.StatusPending,
			Stages: []api.Stage{{Stage: cluster.Stage{Tasks: 2}, Pending: 2}}, TaskCount: 2,
			Waiting: "no node has 8GiB and 4 cores free"},
	}
	id := cluster.TaskID{Job: 12345}
	tasks = []api.Task{
		{Task: id, Run: 2, State: api.TaskRunning, Grant: api.Grant{MemoryBytes: 2 << 30}, AskedBytes: 4 << 30,
			UnderSized: true,
			Started:    now.Add(-30 * time.Second), Usage: &cluster.Reading{Memory: pointer[int64](1700 << 20),
				Anonymous: pointer[int64](1500 << 20)}},
		{Task: cluster.TaskID{Job: 12345, Index: 1}, Run: 1, State: api.TaskEnded, Outcome: cluster.Failed,
			Grant: api.Grant{MemoryBytes: 4 << 30}, AskedBytes: 4 << 30, Started: now.Add(-80 * time.Second),
			Ended: now.Add(-20 * time.Second),
			Exit:  &cluster.Exit{Code: 3, Peak: 3 << 30, Used: 5 << 29}, Detail: "ended with exit code 3"},
		{Task: cluster.TaskID{Job: 12345, Index: 12}, Run: 1, State: api.TaskEnded, Outcome: cluster.OutOfMemory,
			Grant: api.Grant{MemoryBytes: 4 << 30}, AskedBytes: 4 << 30, Started: now.Add(-80 * time.Second),
			Ended: now.Add(-20 * time.Second),
			Exit:  &cluster.Exit{Code: 137}, Detail: "the kernel killed a process of it for memory"},
		{Task: cluster.TaskID{Job: 12345, Index: 13}, Run: 1, State: api.TaskStarting,
			Grant: api.Grant{MemoryBytes: 4 << 30}, AskedBytes: 4 << 30},
	}
	return now, jobs, tasks
}

// breathes is a machine on which memory is short.
func breathes(now time.Time) (jobs []api.Job, tasks []api.Task) {
	const mib = 1 << 20
	job := func(id cluster.JobID, name string, class cluster.Class, n int, most int64) api.Job {
		return api.Job{ID: id, Name: name, Owner: "ann", Status: cluster.StatusRunning, Submitted: now.Add(-time.Minute),
			Started: now.Add(-40 * time.Second), TaskCount: n,
			Stages: []api.Stage{{Stage: cluster.Stage{Tasks: n, MaxMemory: resource.Amount(most)}, Running: n,
				IdealBytes: 64 * mib, Class: class}}}
	}
	task := func(id cluster.TaskID, state cluster.ContainerState, anonymous, swap, limit int64, why string) api.Task {
		t := api.Task{Task: id, Run: 1, State: api.TaskRunning, Grant: api.Grant{MemoryBytes: 64 * mib},
			Started: now.Add(-40 * time.Second), Why: "fits with its ideal memory, 64MiB",
			Usage: &cluster.Reading{State: state, Memory: pointer(anonymous + 10*mib), Anonymous: &anonymous, Swap: &swap,
				Limit: &limit, Why: why, Since: now.Add(-12 * time.Second)}}
		if state == cluster.ContainerSuspended {
			t.Suspended = &api.Still{By: cluster.HeldByMemory, Since: t.Usage.Since, Lends: true}
		}
		return t
	}
	jobs = []api.Job{job(7, "stands", cluster.Flex, 1, 0), job(8, "pages", cluster.Flex, 1, 96*mib),
		job(9, "waits", cluster.Regular, 1, 0), job(10, "some", cluster.Flex, 3, 0)}
	jobs[2].Status, jobs[2].Started = cluster.StatusPending, time.Time{}
	jobs[3].Waiting = "no node has 64MiB and 1 core free"
	tasks = []api.Task{
		task(cluster.TaskID{Job: 7}, cluster.ContainerSuspended, 188<<10, 79024<<10, 10268<<10,
			"out of memory: held 99.7MiB with what was in swap, and could hold 93.9MiB; likely to go on in 26s"),
		task(cluster.TaskID{Job: 8}, cluster.ContainerRunning, 90*mib, 30*mib, 96*mib,
			"held 60MiB of 64MiB, and the node had plenty left"),
		{Task: cluster.TaskID{Job: 9}, Run: 1, State: api.TaskStarting, Grant: api.Grant{MemoryBytes: 64 * mib},
			AskedBytes: 64 * mib, Why: "fits with its ideal memory, 64MiB",
			Usage: &cluster.Reading{State: cluster.ContainerWaiting,
				Why: "needs 64MiB, and job 7 is out of memory already", Since: now.Add(-3 * time.Second)}},
		task(cluster.TaskID{Job: 10}, cluster.ContainerRunning, 40*mib, 0, 64*mib,
			"nobody was out of memory, and the node had 30MiB left"),
		task(cluster.TaskID{Job: 10, Index: 1}, cluster.ContainerSuspended, 188<<10, 95092<<10, 10268<<10,
			"job 7 comes first and is out of memory"),
		{Task: cluster.TaskID{Job: 10, Index: 2}, Run: 1, State: api.TaskEnded, Outcome: cluster.OutOfMemory,
			Grant: api.Grant{MemoryBytes: 64 * mib}, Started: now.Add(-80 * time.Second), Ended: now.Add(-20 * time.Second),
			Exit: &cluster.Exit{Code: 137, Peak: 64 * mib}, Detail: "the kernel killed a process of it for memory"},
	}
	tasks[1].AskedBytes = 96 * mib
	return jobs, tasks
}

// Views of jobs that lack memory: one is suspended, one pages at its maximum, one has not begun, one has tasks of each
// kind.
func TestViewsOfBreathing(t *testing.T) {
	now, _, _ := canned()
	jobs, tasks := breathes(now)
	inUTC(t)
	view(t, "breathing", func(b *bytes.Buffer) error { return printJobs(b, pages(jobs), tasks, now) })
	for _, j := range jobs {
		e := api.Explanation{Why: "Where the job stands."}
		for _, k := range tasks {
			if k.Task.Job != j.ID {
				continue
			}
			j.Tasks = append(j.Tasks, k)
			if k.State != api.TaskEnded {
				e.Tasks = append(e.Tasks, api.TaskExplanation{Task: k.Task, Grant: api.Grant{MemoryBytes: k.MemoryBytes},
					IdealBytes: 64 << 20, Why: k.Why, Usage: k.Usage})
			}
		}
		if j.Name == "pages" {
			e.Tasks[0].EstimatedEnd = now // The task is late.
		}
		if j.Name == "stands" {
			for i := range cluster.JobID(5) {
				e.Tasks[0].Holders = append(e.Tasks[0].Holders,
					api.Holder{Task: cluster.TaskID{Job: 9 - i}, Bytes: 64 << (24 - i)})
			}
		}
		e.Job = j
		view(t, "breathing-"+j.Name, func(b *bytes.Buffer) error { return printTasks(b, &j, now) })
		view(t, "breathing-"+j.Name+"-explained", func(b *bytes.Buffer) error { return printExplanation(b, &e, now) })
	}
}

func TestViews(t *testing.T) {
	// Times of day are shown in the user's time zone.
	inUTC(t)

	now, jobs, tasks := canned()
	view(t, "jobs", func(b *bytes.Buffer) error { return printJobs(b, pages(jobs), tasks, now) })
	view(t, "jobs-paged", func(b *bytes.Buffer) error {
		return printJobs(b, pages(jobs[:1], jobs[1:3], jobs[3:]), tasks, now)
	})
	view(t, "no-jobs", func(b *bytes.Buffer) error { return printJobs(b, pages(nil), nil, now) })
	job := jobs[2]
	job.Tasks, job.Submitted = tasks, now.Add(-2*time.Minute)
	view(t, "tasks", func(b *bytes.Buffer) error { return printTasks(b, &job, now) })
	view(t, "explanation", func(b *bytes.Buffer) error {
		return printExplanation(b, &api.Explanation{
			Job: job, Why: "The next task of the job has not started: would fit under-sized (600MB), but end 03:05:00, " +
				"after its job (03:04:30).",
			EarliestStart: now.Add(12 * time.Second), EstimatedEnd: now.Add(time.Minute),
			Tasks: []api.TaskExplanation{
				{Task: tasks[0].Task, Grant: api.Grant{MemoryBytes: 2 << 30}, IdealBytes: 4 << 30, Slowdown: 1.25,
					EstimatedEnd: now.Add(40 * time.Second),
					Why:          "under-sized to 2GiB: ends 03:04:45, no later than its job (03:05:05)"},
			},
			Decisions: []api.DecisionNote{
				{At: now.Add(-30 * time.Second), Kind: cluster.Start, Task: tasks[0].Task,
					Why: "under-sized to 2GiB: ends 03:04:45, no later than its job (03:05:05)"},
				{At: now.Add(-30 * time.Second), Kind: cluster.Unreserve, Task: tasks[0].Task, Why: "its task started"},
			},
		}, now)
	})
}

// What is expected of a job, as learned, as stated and unknown.
func TestViewsOfForecasts(t *testing.T) {
	inUTC(t)
	now, _, _ := canned()
	stage := func(name string) api.Stage {
		return api.Stage{Stage: cluster.Stage{Name: name, Tasks: 1}, Pending: 1}
	}
	j := api.Job{ID: 7, Name: "sort", Owner: "ada", Submitted: now, App: "sort -S # *.txt", AppDerived: true,
		DeadlineSeconds: 600, Stages: []api.Stage{stage("sort"), stage("check"), stage("report")}}
	sort := &j.Stages[0]
	sort.Input, sort.Together, sort.Phases = 3*resource.GiB, true, make([]cluster.Phase, 2)
	sort.Told = cluster.Provenance{Model: "median", Samples: 3, Error: 0.08}
	j.Stages[1].Phases = make([]cluster.Phase, 1)
	e := api.Explanation{Job: j, Why: "The next task of the job has not started: no node has 1GiB free.",
		Forecasts: []api.Forecast{
			{Name: "sort", DurationSeconds: 62.5, Runs: 3, Told: sort.Told, Unknown: []string{"network"},
				Phases: []api.ForecastPhase{
					{Name: "read", LengthSeconds: 20.25, CPU: 350, Memory: 600 << 20, Disk: 101_234_567},
					{FromSeconds: 20.25, LengthSeconds: 42.25, CPU: 1950, Memory: 1 << 30}},
				Notes: []string{"network: never measured.",
					"Its runs went 2 ways, and the likeliest is expected (75 % of them); 25 % took 3m0s (2 phases, not 3)."}},
			{Name: "check", DurationSeconds: 5, Phases: []api.ForecastPhase{{LengthSeconds: 5, CPU: 1000, Memory: 50 << 20}},
				Notes: []string{"The phases are as stated with the job."}},
			{Name: "report", Notes: []string{"Nothing is known of its demand over time: no measured run of its " +
				"application has succeeded before."}},
		}}
	view(t, "forecast", func(b *bytes.Buffer) error { return printTasks(b, &j, now) })
	view(t, "forecast-explained", func(b *bytes.Buffer) error { return printExplanation(b, &e, now) })
	running := api.Explanation{Job: api.Job{ID: 8, Name: "sort", Stages: j.Stages[:1]},
		Why: "The last task of the job is running.",
		Tasks: []api.TaskExplanation{{Task: cluster.TaskID{Job: 8}, Grant: api.Grant{MemoryBytes: 1 << 30},
			IdealBytes: 1 << 30, Slowdown: 1, InPhase: api.InPhase{Phase: 2, Phases: 3},
			EstimatedEnd: now.Add(40 * time.Second), Why: "fits with its ideal memory, 1GiB"}}}
	view(t, "phase-explained", func(b *bytes.Buffer) error { return printExplanation(b, &running, now) })
}

func TestThrottledViews(t *testing.T) {
	inUTC(t)
	now, jobs, tasks := canned()
	job := jobs[2]
	job.Tasks, job.Submitted = nil, now.Add(-2*time.Minute)
	e := api.Explanation{Why: "The remaining tasks of the job are running."}
	for i, th := range []api.Throttle{
		{Bound: api.Bound{Disk: 10e6}, Until: now.Add(time.Minute), InForce: true,
			Why: "node pressure: the node gives 40MB/s of disk, of 110MB/s", How: "by standing still part of the time"},
		{Bound: api.Bound{Disk: 10e6, Network: 20e6}, Until: now.Add(time.Minute),
			Why: "node pressure: the node gives 40MB/s of disk, of 110MB/s"},
		{Bound: api.Bound{Disk: 10e6}, Until: now.Add(time.Minute), Failed: "record the throttle: no space left on device"},
	} {
		k := tasks[0]
		k.Task.Index, k.Throttle, k.State = int32(i), &th, api.TaskRunning
		job.Tasks = append(job.Tasks, k)
		e.Tasks = append(e.Tasks, api.TaskExplanation{Task: k.Task, Grant: api.Grant{MemoryBytes: k.MemoryBytes},
			IdealBytes: k.MemoryBytes, Why: k.Why, Throttle: &th})
	}
	e.Job = job
	for i, answer := range []api.Answer{api.AnswerSuperseded, api.AnswerDone, api.AnswerFailed, api.AnswerPending} {
		n := api.DecisionNote{At: now, Kind: cluster.Throttle, Task: tasks[0].Task,
			Why: "node pressure: the node gives 40MB/s of disk, of 110MB/s", Bound: api.Bound{Disk: int64(i+1) * 1e6},
			Until: now.Add(time.Minute), Answer: answer}
		if answer == api.AnswerFailed {
			n.Detail = "no such device"
		}
		e.Decisions = append(e.Decisions, n)
	}
	e.Decisions = append(e.Decisions, api.DecisionNote{At: now, Kind: cluster.Suspend, Task: tasks[0].Task,
		Why: "paused by its owner", Answer: api.AnswerSuperseded, Detail: "its task ended first"})
	view(t, "throttled", func(b *bytes.Buffer) error { return printTasks(b, &job, now) })
	one := job
	one.ID, one.Tasks = 7, []api.Task{job.Tasks[0]}
	one.Tasks[0].Task.Job, one.Waiting = 7, ""
	view(t, "throttled-jobs", func(b *bytes.Buffer) error {
		return printJobs(b, pages([]api.Job{job, one}), append(job.Tasks, one.Tasks...), now)
	})
	view(t, "throttled-explained", func(b *bytes.Buffer) error { return printExplanation(b, &e, now) })
}

// inUTC shows times in UTC until the test ends.
func inUTC(t *testing.T) {
	local := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = local })
}

// A task that was resized, one that is being resized, one whose resize failed, and one that was found resized.
func TestResizedViews(t *testing.T) {
	inUTC(t)
	now, jobs, tasks := canned()
	e := api.Explanation{Job: jobs[2], Why: "The remaining tasks of the job are running."}
	e.Job.Tasks = nil
	was, is := api.Grant{CPUMillicores: 300, MemoryBytes: 1 << 30}, api.Grant{CPUMillicores: 2000, MemoryBytes: 3 << 29}
	for i, r := range []api.Resized{
		{Was: was, Since: now, InForce: true, Why: "its phase 2 is granted 2 cores and 1.5GiB"},
		{Was: was, Since: now, Why: "its phase 2 is granted 2 cores and 1.5GiB"},
		{Was: was, Since: now, Failed: "record the new size: no space left on device"},
		{Was: was, InForce: true},
	} {
		k := tasks[0]
		k.Task.Index, k.State, k.Grant = int32(i), api.TaskRunning, is
		k.Sized = api.Sized{ByPhase: i < 3, MostCPU: int64(i % 2 * 3000), Resized: &r}
		e.Job.Tasks = append(e.Job.Tasks, k)
		e.Tasks = append(e.Tasks, api.TaskExplanation{Task: k.Task, Grant: is, IdealBytes: 2 << 30, Slowdown: 1,
			Why: k.Why, Sized: k.Sized})
	}
	e.Decisions = append(e.Decisions, api.DecisionNote{At: now, Kind: cluster.Resize, Task: tasks[0].Task, Grant: &is,
		Why: "its phase 2 is granted 2 cores and 1.5GiB", Answer: api.AnswerDone})
	view(t, "resized-explained", func(b *bytes.Buffer) error { return printExplanation(b, &e, now) })
}

// A task whose reservation was renewed, and one that was resized for another reason since.
func TestRenewedViews(t *testing.T) {
	inUTC(t)
	now, jobs, tasks := canned()
	e := api.Explanation{Job: jobs[2], Why: "The remaining tasks of the job are running."}
	e.Job.Tasks = nil
	was, is := api.Grant{CPUMillicores: 1000, MemoryBytes: 640 << 20}, api.Grant{CPUMillicores: 1000,
		MemoryBytes: 120 << 20}
	why := "reserves 120MiB: the rest of the run needs 110MiB by 6 runs"
	for i, r := range []api.Resized{
		{Was: was, Since: now, InForce: true, Why: why},
		{Was: is, Since: now, InForce: true, Why: "its phase 3 is granted 1 core and 120MiB"},
	} {
		k := tasks[0]
		k.Task.Index, k.State, k.Grant = int32(i), api.TaskRunning, is
		k.Sized = api.Sized{Resized: &r, Renewed: &api.Renewed{Since: now.Add(-time.Minute), Why: why}}
		e.Job.Tasks = append(e.Job.Tasks, k)
		e.Tasks = append(e.Tasks, api.TaskExplanation{Task: k.Task, Grant: is, IdealBytes: 120 << 20, Slowdown: 1, Why: k.Why,
			Sized: k.Sized})
	}
	view(t, "renewed-explained", func(b *bytes.Buffer) error { return printExplanation(b, &e, now) })
}

// Where programs of a FLEX container see what it has, and not what it may have, explain says so.
func TestLimitShownIsExplained(t *testing.T) {
	const says = "take what it has when they start for all that it may have"
	for _, shown := range []bool{true, false} {
		r := cluster.Reading{State: cluster.ContainerRunning, Anonymous: pointer[int64](40 << 20),
			Limit: pointer[int64](64 << 20), Swap: pointer[int64](0), LimitShown: shown}
		if text := memoryOf(&r, 1<<30, time.Now()); strings.Contains(text, says) != shown {
			t.Errorf("shown %v: %s", shown, text)
		}
	}
}

// A task that its owner paused, one whose pause failed, and one that runs; and the phases that they are in.
func TestPausedViews(t *testing.T) {
	inUTC(t)
	now, jobs, _ := canned()
	job := jobs[2]
	job.Submitted = now.Add(-2 * time.Minute)
	e := api.Explanation{Why: "The remaining tasks of the job are running."}
	by := api.Paused{By: "ann", Since: now.Add(-time.Minute)}
	failed := by
	failed.Failed = "no freezer"
	for i, k := range []api.Task{
		{Paused: &by, Suspended: &api.Still{By: cluster.HeldByOwner, Since: by.Since, Lends: true}},
		{Paused: &by, Suspended: &api.Still{By: cluster.HeldByOwner, Since: by.Since},
			Usage: &cluster.Reading{Anonymous: pointer[int64](1500 << 20), Swap: pointer[int64](1 << 20)}},
		{Paused: &failed},
		{Paused: &by, Suspended: &api.Still{By: cluster.HeldByOwner, Since: by.Since},
			PagedOut: &api.PagedOut{Bytes: 1 << 30, Stays: "900MiB stay in memory: swap has room for 0B"}},
		{Grant: api.Grant{Disk: 20e6, Network: 5e6}},
	} {
		k.Task, k.Run, k.State, k.MemoryBytes, k.Started = cluster.TaskID{Job: job.ID, Index: int32(i)}, 1,
			api.TaskRunning, 2<<30, now.Add(-90*time.Second)
		k.InPhase = api.InPhase{Phase: 1 + i%2, Phases: 2, Since: now.Add(-time.Minute)}
		if i == 4 {
			k.Name = "merge"
		}
		job.Tasks = append(job.Tasks, k)
		e.Tasks = append(e.Tasks, api.TaskExplanation{Task: k.Task, Grant: k.Grant, InPhase: k.InPhase,
			IdealBytes: k.MemoryBytes, Why: "fits with its ideal memory, 2GiB"})
	}
	e.Job = job
	view(t, "paused", func(b *bytes.Buffer) error { return printTasks(b, &job, now) })
	view(t, "paused-jobs", func(b *bytes.Buffer) error { return printJobs(b, pages([]api.Job{job}), job.Tasks, now) })
	view(t, "paused-explained", func(b *bytes.Buffer) error { return printExplanation(b, &e, now) })
}

// The schedule by which the demand on a node is leveled: proved, with a gap, not used, and being solved.
func TestLeveledViews(t *testing.T) {
	inUTC(t)
	now, jobs, _ := canned()
	e := api.Explanation{Job: jobs[2], Why: "The remaining tasks of the job are running."}
	e.Job.Tasks = nil
	for i, shifts := range [][]api.Shift{nil, {{From: now.Add(time.Second), To: now.Add(time.Minute)}},
		{{From: now.Add(time.Minute), To: now.Add(2 * time.Minute)},
			{From: now.Add(3 * time.Minute), To: now.Add(4 * time.Minute)}}} {
		e.Tasks = append(e.Tasks, api.TaskExplanation{Task: cluster.TaskID{Job: e.Job.ID, Index: int32(i)},
			Grant: api.Grant{MemoryBytes: 1 << 30}, IdealBytes: 1 << 30, Why: "fits with its ideal memory, 1GiB",
			Shifts: shifts})
	}
	best, good := api.Schedule{Value: 12.5, Bound: 12.5, Proved: true, States: 3210},
		api.Schedule{Value: 14, Bound: 12.5, Gap: 0.108, States: 400_000}
	e.Levelings = []api.Leveling{
		{Node: "n1", Asked: now, Answered: now, Result: "value 12.5, proved optimal, 3,210 states", Newest: &best,
			Used: &best},
		{Node: "n2", Asked: now, Answered: now,
			Result: "value 14, bound 12.5, gap 10.8 %, 400,000 states; not used, because the node changed while it was solved",
			Newest: &good, Stale: true, Used: &best},
		{Node: "n3", Asked: now, Result: "being solved"},
	}
	view(t, "leveled-explained", func(b *bytes.Buffer) error { return printExplanation(b, &e, now) })
}

// A task that leveling holds for another one, one that its owner paused as well, one that was found held, and one
// that could not be held.
func TestHeldUntilViews(t *testing.T) {
	inUTC(t)
	now, jobs, _ := canned()
	job := jobs[2]
	job.Submitted, job.Waiting = now.Add(-2*time.Minute), ""
	e := api.Explanation{Why: "Of the 4 remaining tasks of the job, 1 is running, 1 is paused, 2 are held by leveling."}
	by := api.Paused{By: "ann", Since: now.Add(-time.Minute)}
	held := api.Leveled{Since: now.Add(-10 * time.Second), Until: now.Add(20 * time.Second),
		For: cluster.TaskID{Job: 7, Index: 1}, Why: "node pressure: the node gives 2 cores, of 2 cores"}
	found, failed := api.Leveled{Until: held.Until}, held
	failed.Failed = "no freezer"
	still := api.Still{By: cluster.HeldByLeveling, Since: held.Since, Lends: true}
	both := still
	both.By |= cluster.HeldByOwner
	for i, k := range []api.Task{
		{Leveled: &held, Suspended: &still, Usage: &cluster.Reading{Anonymous: pointer[int64](1500 << 20),
			Swap: pointer[int64](0)}},
		{Leveled: &held, Paused: &by, Suspended: &both},
		{Leveled: &found, Suspended: &still},
		{Leveled: &failed},
	} {
		k.Task, k.Run, k.State, k.MemoryBytes, k.Started = cluster.TaskID{Job: job.ID, Index: int32(i)}, 1,
			api.TaskRunning, 2<<30, now.Add(-90*time.Second)
		job.Tasks = append(job.Tasks, k)
		e.Tasks = append(e.Tasks, api.TaskExplanation{Task: k.Task, Grant: k.Grant, IdealBytes: k.MemoryBytes,
			Why: "fits with its ideal memory, 2GiB"})
	}
	e.Job = job
	e.Decisions = []api.DecisionNote{{At: held.Since, Kind: cluster.Suspend, Task: job.Tasks[0].Task, Until: held.Until,
		For: held.For, Why: held.Why, Answer: api.AnswerDone}}
	view(t, "held-until", func(b *bytes.Buffer) error { return printTasks(b, &job, now) })
	one := job
	one.ID, one.Tasks = 7, []api.Task{job.Tasks[0], job.Tasks[2]}
	one.Tasks[0].Task.Job, one.Tasks[1].Task.Job = 7, 7
	view(t, "held-until-jobs", func(b *bytes.Buffer) error {
		return printJobs(b, pages([]api.Job{job, one}), append(job.Tasks, one.Tasks...), now)
	})
	view(t, "held-until-explained", func(b *bytes.Buffer) error { return printExplanation(b, &e, now) })
}

// Tasks that wait for memory before a phase: one whose memory has left, one behind others, and one that its owner
// paused as well.
func TestMemoryWaitViews(t *testing.T) {
	inUTC(t)
	now, jobs, _ := canned()
	job := jobs[2]
	job.Submitted, job.Waiting = now.Add(-2*time.Minute), ""
	e := api.Explanation{Why: "Of the 3 remaining tasks of the job, 1 is paused, 2 are held by leveling."}
	until := now.Add(20 * time.Minute)
	held := &api.Leveled{Since: now.Add(-10 * time.Second), Until: until, Why: "not printed"}
	found := &api.Leveled{Until: until}
	by, still := api.Paused{By: "ann", Since: now.Add(-time.Minute)},
		api.Still{By: cluster.HeldByLeveling, Since: held.Since, Lends: true}
	waits := []api.MemoryWait{{Phase: 2, Needs: 6 << 30, Free: 5 << 30},
		{Phase: 3, Needs: 6 << 30, Has: 2 << 30, Free: 5 << 30, Behind: []cluster.TaskID{{Job: job.ID}, {Job: 7, Index: 1}}},
		{Phase: 2, Needs: 6 << 30, Has: 1 << 30, Free: 5 << 30, Behind: []cluster.TaskID{{Job: job.ID}}}}
	for i, k := range []api.Task{
		{Leveled: held, Suspended: &still, PagedOut: &api.PagedOut{Bytes: 2 << 30}},
		{Leveled: found, Suspended: &still, Usage: &cluster.Reading{Anonymous: pointer[int64](1500 << 20),
			Swap: pointer[int64](0)}},
		{Leveled: held, Paused: &by, Suspended: &still, PagedOut: &api.PagedOut{Bytes: 1 << 30, Stays: "swap is full"}},
	} {
		k.Task, k.Run, k.State, k.MemoryBytes, k.Started = cluster.TaskID{Job: job.ID, Index: int32(i)}, 1,
			api.TaskRunning, 2<<30, now.Add(-90*time.Second)
		job.Tasks = append(job.Tasks, k)
		e.Tasks = append(e.Tasks, api.TaskExplanation{Task: k.Task, Grant: k.Grant, IdealBytes: 6 << 30,
			Sized: api.Sized{ByPhase: true}, Why: "its first phase fits: 1 core, of 1 core at most, with 2GiB",
			MemoryWait: &waits[i]})
	}
	e.Job = job
	view(t, "memory-wait-explained", func(b *bytes.Buffer) error { return printExplanation(b, &e, now) })
}

func TestNameOfProgram(t *testing.T) {
	for program, want := range map[string]string{
		"/usr/bin/sort": "sort", "./a b": "a b", "évil": "évil", "evil\x1b[2J": `evil\x1b[2J`, "caf\xe9": `caf\xe9`,
		"a\uFFFD": "a?", "./ ": "job",
		strings.Repeat("é", 150): strings.Repeat("é", 100), strings.Repeat("\n", 150): strings.Repeat(`\n`, 100),
	} {
		got := nameOf(program)
		if got != want || !cluster.IsName(got) {
			t.Errorf("%q is called %q, want %q", program, got, want)
		}
	}
}

// Why a job has failed is said once, with its clauses.
func TestAFailureIsExplainedOnce(t *testing.T) {
	for _, detail := range []string{"task 1.0.0: ended with exit code 3",
		"task 1.0.0: ended with exit code 3; it is not tried again, because retry_on is oom"} {
		var out bytes.Buffer
		e := api.Explanation{Job: api.Job{ID: 1, Status: cluster.StatusFailed, Ended: true, Detail: detail},
			Why: "The job has ended: failed, because of " + detail + "."}
		if err := printExplanation(&out, &e, time.Now()); err != nil {
			t.Fatal(err)
		}
		printed := strings.Join(strings.Fields(out.String()), " ")
		if got := strings.Count(printed, detail); got != 1 {
			t.Errorf("%q is said %d times: %s", detail, got, printed)
		}
	}
}

// Names that other users have chosen cannot control the terminal.
func TestTablesAndSentencesArePrintable(t *testing.T) {
	var out bytes.Buffer
	const evil = "evil\x1b[2J\x1b]0;owned\a\r\nX\u202e\x9b"
	jobs := func(yield func([]api.Job, error) bool) {
		yield([]api.Job{{ID: 1, Name: evil, Owner: evil, Waiting: evil}}, nil)
	}
	if err := printJobs(&out, jobs, nil, time.Now()); err != nil {
		t.Fatal(err)
	}
	e := api.Explanation{Job: api.Job{ID: 1, Name: evil, Detail: evil}, Why: evil}
	if err := printExplanation(&out, &e, time.Now()); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if got := strings.TrimSuffix(line, "\n"); cluster.Printable(got) != got {
			t.Errorf("%q is printed", line)
		}
	}
}
