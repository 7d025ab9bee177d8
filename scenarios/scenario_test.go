// Package scenarios runs text scenarios: each tells a story, describes a cluster, its jobs and what happens to them,
// and lists the expected decisions. All drivers must take the same decisions. See TestScenarios for the format.
package scenarios

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

var rewrite = flag.Bool("rewrite", false,
	"write the decisions that were taken into the scenarios; commit a change only if you understand it")

// TestScenarios runs every file of this folder. A file is a comment that tells the story, a description, a line of four
// dashes, and the decisions with their times and reasons, followed by the ends of the jobs. The description has one
// item per line:
//
//	nodes 2 cores=4 memory=10GB disk=100MB/s     nodes n1, n2; may be repeated
//	policy fair reservations=false               may be repeated: the scenario is run under each
//	heartbeat 1s starts=1                        nodes report by heartbeats
//	containers 2                                 nodes run at most two containers per core
//	lends cores                                  a task that stands still lends its cores and bandwidths
//	coordinator 1s cores=1 memory=1GB            jobs have coordinators, with this heartbeat
//	job A at=10s weight=2 attempts=3 queue=a.b owner=ada class=flex   its stages follow, or its only stage is on the
//	                                                                  same line
//	job A reserve=learned memory=6GB runs=6 ...  its reservation was learned from that many runs
//	stage map tasks=3 cores=1 memory=6GB disk=10MB/s min=1GB penalty=sawtooth:2 spill=50MB/s run=100s really=120s
//	stage reduce after=map data=n1,n2 ...         nodes that store its data
//	stage write phases=5s:disk=20MB/s,9s:cores=500m:network=5MB/s   forecast of a task
//	stage gang together=true ...                  its tasks start together
//	stage reduce after=map share=0.05 ...         its tasks start after that share of the tasks of each parent
//	job A deadline=90s retry=2s ...              longest wait; pause after the first attempt of a task, doubled after
//	                                             each further one
//	cancel A at=30s
//	pause A at=30s until=40s                     its owner pauses it, and resumes it
//	pause A at=30s until=40s out=1GB/s           meanwhile its memory goes out, and then comes back, at this speed
//	out 1GB/s                                    memory that a policy has paged out goes out, and comes back, at this
//	                                             speed
//	suspend A.map.1 at=20s until=30s for=B.0     leveling holds the task, so that the other one keeps going; for may be
//	                                             left out
//	resize A.map.1 at=20s cores=2 memory=4GB fails=true   its grant changes, if there is memory; each of cores, memory
//	                                                      and fails may be left out
//	fail A.map.1 after=5s runs=2 outcome=out-of-memory
//	leave n2 at=50s
//	holds n1 at=20s memory=8GB                   sum of the limits of the node's containers
//	pressed n1 at=20s disk=40MB/s network=9MB/s   what the node gives of the rates that are pressed; without a rate, it
//	                                              is relieved
//	still A.map.1 at=20s until=30s               the task makes no progress
//	enters A.write.0 at=40s phase=2              the task is reported to be in a phase, the first is 1
//	solver 1000 each=1ms                         the policy asks how to level nodes: see asking; the budget in states,
//	                                             and how long each takes
//	holds A.map.1 at=20s memory=8GB              what the task holds, which was granted what runs had taught
//	show tasks                                   also list when and where each task ran
//
// Cores are 1 and penalty is none by default; run without a value is unknown, and really is equal to run by default.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("*.txt")
	if err != nil || len(files) < 15 {
		t.Fatalf("only %d scenarios were found: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(file, ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s, err := parse(file, string(text))
			if err != nil {
				t.Fatal(err)
			}
			if s.story == "" {
				t.Errorf("%s: has no story: begin with a comment", file)
			}
			got := s.play(t)
			want := s.expected
			if got == want {
				return
			}
			if !*rewrite {
				t.Fatalf("decisions are\n%s\nwant\n%s", got, want)
			}
			if err := os.WriteFile(file, []byte(s.description+"----\n"+got), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// scenario is a cluster, the submitted jobs and the events.
type scenario struct {
	story       string
	description string // all lines above the dashes
	expected    string // all lines below them
	odd         int    // times that oddly returned

	nodes         []cluster.Node
	policies      []choice
	heartbeat     time.Duration
	starts        int
	containers    int // per core; 0 is any number
	lends         bool
	coordinates   time.Duration
	coordinator   resource.Vector
	jobs          []plannedJob
	cancellations []cancellation
	pauses        []pausing
	outSpeed      resource.Amount // at which memory goes out and comes back, bytes per second
	suspensions   []suspension
	resizings     []resizing
	revisions     []revision
	growths       []growing
	failures      []failure
	departures    []departure
	reports       []report
	pressures     []pressure
	halts         []halt
	entries       []entry
	holdings      []holding
	showTasks     bool
	asks          bool
	states        int           // the budget of a question
	each          time.Duration // that a state takes
}

// choice is a policy with its settings.
type choice struct {
	name     string
	settings map[string]string
	title    string // as written in the scenario
}

func (c choice) make(t tester) policy.Policy {
	t.Helper()
	p, err := policy.New(c.name, c.settings)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// plannedJob is a job with the truth about its tasks.
type plannedJob struct {
	cluster.Job
	really []time.Duration // per stage, at ideal memory
	// A job that is Open has all its stages with all their tasks here. It is submitted with the first stages, which have
	// so many tasks.
	first []int
}

// submitted returns the job as it is submitted.
func (j *plannedJob) submitted() *cluster.Job {
	if !j.Open {
		return &j.Job
	}
	job := j.Job
	job.Stages = slices.Clone(job.Stages[:len(j.first)])
	for i := range job.Stages {
		job.Stages[i].Tasks = j.first[i]
	}
	return &job
}

// growing is how an open job grows. What it cannot do any more, it does not. Of new stages it knows the names and how
// many tasks they have at first.
type growing struct {
	job int // index in jobs
	at  timeline.Time
	by  cluster.Growth
}

// event is the growth, with all of the new stages.
func (g *growing) event(j *plannedJob) cluster.Event {
	by := g.by
	by.Stages = slices.Clone(by.Stages)
	for i := range by.Stages {
		tasks := by.Stages[i].Tasks
		by.Stages[i] = j.Stages[slices.IndexFunc(j.Stages, func(s cluster.Stage) bool { return s.Name == by.Stages[i].Name })]
		by.Stages[i].Tasks = tasks
	}
	return cluster.Event{Kind: cluster.JobGrew, Job: j.ID, Found: &cluster.Condition{Growth: &by}}
}

type cancellation struct {
	job int // index in jobs
	at  timeline.Time
}

// revision changes the estimated run time of a job's stages while the job waits.
type revision struct {
	job      int // index in jobs
	at       timeline.Time
	duration time.Duration
}

// revised returns the job with the new estimate.
func (r *revision) revised(s *scenario) *cluster.Job {
	job := s.jobs[r.job].Job
	job.Stages = slices.Clone(job.Stages)
	for i := range job.Stages {
		job.Stages[i].Duration, job.Stages[i].Told = r.duration, cluster.Provenance{Model: "median", Samples: 2}
	}
	return &job
}

// failure makes the first runs of a task end early.
type failure struct {
	task    cluster.TaskID
	after   time.Duration
	runs    int
	outcome cluster.Outcome
}

type departure struct {
	node cluster.NodeID
	at   timeline.Time
}

// pausing is a job that its owner pauses, with its memory or without, and resumes later.
type pausing struct {
	job       int
	at, until timeline.Time
	out       bool
}

// event is the pause of a job.
func (p *pausing) event(id cluster.JobID) cluster.Event {
	e := cluster.Event{Kind: cluster.JobPaused, Job: id}
	e.SetCondition(cluster.Condition{PageOut: p.out})
	return e
}

// report gives the sum of the limits of a node's containers.
type report struct {
	node cluster.NodeID
	at   timeline.Time
	held resource.Amount
}

// pressure is what a node gives of the rates that are pressed, which slows nothing by itself.
type pressure struct {
	node  cluster.NodeID
	at    timeline.Time
	gives resource.Vector
}

// halt is a time in which a task makes no progress, if it runs then.
type halt struct {
	task      cluster.TaskID
	at, until timeline.Time
}

// entry is the report that a task is in a phase of its forecast, if it runs then. It says nothing about the truth.
type entry struct {
	task  cluster.TaskID
	at    timeline.Time
	phase int32
}

// holding is the report that a task holds some memory, if it runs then.
type holding struct {
	task cluster.TaskID
	at   timeline.Time
	held resource.Amount
}

// simulable reports whether the simulator can run s: s has no failures, its nodes run any number of containers, its
// FLEX containers grow by themselves, and no tasks compete for cores that were lent, which only the simulator knows
// how to slow down.
func (s *scenario) simulable() bool {
	flex := slices.ContainsFunc(s.jobs, func(j plannedJob) bool { return j.Class == cluster.Flex })
	return len(s.cancellations)+len(s.revisions)+len(s.failures)+len(s.departures)+len(s.reports)+len(s.halts)+
		len(s.entries)+len(s.holdings)+s.containers == 0 && !s.open() && !flex &&
		!(s.lends && len(s.pauses)+len(s.suspensions) > 0) && !s.grows()
}

// grows reports whether tasks are resized so that the simulator slows them down in another way: they get cores back
// or too little memory, or the order fails.
func (s *scenario) grows() bool {
	seen := map[cluster.TaskID]bool{}
	for _, r := range s.resizings {
		ideal := s.jobs[r.task.Job-1].Stages[r.task.Stage].Ideal
		if seen[r.task] || r.fails || r.to[resource.CPU] > ideal[resource.CPU] || r.to[resource.Memory] > 0 &&
			r.to[resource.Memory] < ideal[resource.Memory] {
			return true
		}
		seen[r.task] = true
	}
	return false
}

// open reports whether a job is submitted open, as only applications of a pool are.
func (s *scenario) open() bool {
	return slices.ContainsFunc(s.jobs, func(j plannedJob) bool { return j.Open })
}

// live reports whether a live driver can run s: it has no heartbeats and no open jobs, solves in no time, and reserves
// what it has learned itself.
func (s *scenario) live() bool {
	learns := slices.ContainsFunc(s.jobs, func(j plannedJob) bool { return j.Reserve == cluster.ReserveLearned })
	return s.heartbeat == 0 && s.each == 0 && !s.open() && !learns
}

// history is the result of one driver's run.
type history struct {
	steps []step
	jobs  []ending
	tasks []life
}

// step is one step of an engine. It owns its slices.
type step struct {
	now       timeline.Time
	events    []cluster.Event
	decisions []cluster.Decision
}

type ending struct {
	ended  bool
	status string
	at     timeline.Time
}

// life is when and where a task ran.
type life struct {
	task         cluster.TaskID
	node         cluster.NodeID
	memory       resource.Amount
	launched, at timeline.Time
	outcome      cluster.Outcome
}

// play runs s under each of its policies with every driver that can run it, checks that they agree, and returns the
// decisions.
func (s *scenario) play(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	for _, c := range s.policies {
		if len(s.policies) > 1 {
			fmt.Fprintf(&out, "== %s\n", c.title)
		}
		out.WriteString(s.playUnder(t, c))
	}
	return out.String()
}

// driver is a way to run a scenario.
type driver struct {
	name string
	run  func(t tester, s *scenario, c choice) history
}

// drivers returns the drivers that can run s. There are always two: a run without a second driver is replayed.
func (s *scenario) drivers() []driver {
	var all []driver
	if s.simulable() {
		all = append(all, driver{"sim", simulate})
	}
	if s.heartbeat == 0 {
		all = append(all, driver{"loop", loop}, driver{"loop long after the origin", loopLater})
		if s.live() && len(s.revisions) == 0 { // a live driver revises only by what it has learned itself
			all = append(all, driver{"live", runLive})
		}
	}
	return append(all, driver{"replay", replay(all[0])})
}

func (s *scenario) playUnder(t *testing.T, c choice) string {
	t.Helper()
	first, from := "", ""
	for _, d := range s.drivers() {
		h := d.run(t, s, c)
		if err := audit(s, c, &h); err != nil {
			t.Errorf("%s under %s: %v", c.title, d.name, err)
		}
		got := s.render(&h)
		if first == "" {
			first, from = got, d.name
		}
		if got != first {
			t.Errorf("%s: %s decides\n%s\nand %s\n%s", c.title, from, first, d.name, got)
		}
	}
	return first
}

// render prints a history in words.
func (s *scenario) render(h *history) string {
	var out strings.Builder
	line := func(at timeline.Time, format string, operands ...any) {
		fmt.Fprintf(&out, "%9s  %s\n", seconds(at), fmt.Sprintf(format, operands...))
	}
	for _, step := range h.steps {
		for i := range step.events {
			if e := &step.events[i]; e.Kind == cluster.Answered {
				line(step.now, "answer about %s: %s", s.nodes[e.Node].Name, e.Answer.Words())
			}
		}
		for i := range step.decisions {
			d := &step.decisions[i]
			what := ""
			switch d.Kind {
			case cluster.Start, cluster.Kill:
				what = s.taskName(d.Task) + " on " + s.nodes[d.Node].Name + mostText(d)
			case cluster.Suspend, cluster.Resume:
				what = s.taskName(d.Task) + " on " + s.nodes[d.Node].Name
				if d.By&cluster.HeldByLeveling != 0 {
					what += " until " + seconds(d.At)
				}
				if d.For != (cluster.TaskID{}) {
					what += " for " + s.taskName(d.For)
				}
			case cluster.Resize:
				what = s.taskName(d.Task) + " on " + s.nodes[d.Node].Name + " to " + d.Grant.String() + mostText(d)
			case cluster.Throttle:
				what = s.taskName(d.Task) + " on " + s.nodes[d.Node].Name + boundText(d)
			case cluster.Reserve, cluster.Unreserve:
				what = s.nodes[d.Node].Name + " for " + s.stageName(d.Task)
			case cluster.Ask:
				what = "about " + s.nodes[d.Node].Name
			case cluster.Wait:
				what = s.stageName(d.Task)
			case cluster.Wake:
				what = seconds(d.At)
			}
			line(step.now, "%s %s: %s", d.Kind, what, d.Reason.Words(seconds))
		}
	}
	if s.showTasks {
		for _, l := range h.tasks {
			line(l.launched, "%s ran on %s with %s until %s", s.taskName(l.task), s.nodes[l.node].Name,
				resource.FormatMemory(l.memory), seconds(l.at))
		}
	}
	for i, e := range h.jobs {
		if !e.ended {
			fmt.Fprintf(&out, "%9s  %s does not end\n", "", s.jobs[i].Name)
			continue
		}
		line(e.at, "%s %s", s.jobs[i].Name, e.status)
	}
	return out.String()
}

// mostText is what a task may use of CPU if it is more than it is granted.
func mostText(d *cluster.Decision) string {
	if most := d.Envelope.MostCPU; most > d.Grant[resource.CPU] {
		return ", where it may use " + resource.CPU.Format(most)
	}
	return ""
}

// boundText is what a Throttle bounds until when.
func boundText(d *cluster.Decision) (text string) {
	for _, k := range rates {
		if most := d.Bound[k]; most > 0 {
			text += " " + k.Field() + "=" + k.Format(most)
		}
	}
	if text == "" {
		return " no longer"
	}
	return text + " until " + seconds(d.At)
}

// seconds prints a time as seconds since the origin, to the millisecond.
func seconds(at timeline.Time) string {
	if at == timeline.Never {
		return "never"
	}
	ms := (int64(at) + 500_000) / 1_000_000
	return strconv.FormatFloat(float64(ms)/1000, 'f', -1, 64) + "s"
}

// stageName is "A", or "A.map" if the stage has a name.
func (s *scenario) stageName(id cluster.TaskID) string {
	j := &s.jobs[id.Job-1]
	stage := int(id.Stage)
	if s.coordinates > 0 {
		if stage--; stage < 0 {
			return j.Name + ".coordinator"
		}
	}
	if name := j.Stages[stage].Name; name != "" {
		return j.Name + "." + name
	}
	return j.Name
}

func (s *scenario) taskName(id cluster.TaskID) string {
	return s.stageName(id) + "." + strconv.Itoa(int(id.Index))
}

// tester is the common interface of *testing.T, *testing.F and *rapid.T.
type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
	Errorf(string, ...any)
}
