package advise

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/format/importer"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/internal/testfile"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/sim/trial"
)

// advised runs the command.
func advised(t *testing.T, words ...string) (string, error) {
	t.Helper()
	c := Command()
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetErr(io.Discard)
	c.SetArgs(append([]string{"--quiet"}, words...))
	c.SilenceErrors, c.SilenceUsage = true, true
	err := c.Execute()
	return out.String(), err
}

const (
	trace    = "testdata/trace.txt"
	imported = "../../../../format/importer/testdata/"
)

// The pages of small records of each kind, and the JSON of one.
func TestPages(t *testing.T) {
	for name, words := range map[string][]string{
		"nextflow":      {trace, "--nodes", "1", "--node-memory", "144GiB"},
		"nextflow-json": {trace, "--nodes", "1", "--node-memory", "144GiB", "--json"},
		"without-asked": {imported + "trace.txt"},
		"slurm":         {imported + "sacct-names.txt", "--node-memory", "24GiB", "--nodes", "1"},
		"spark":         {imported + "spark.jsonl"},
		"swf":           {imported + "swf.txt", "--format", "swf"},
		"no-swap":       {imported + "sacct-names.txt", "--node-memory", "24GiB", "--nodes", "1", "--swap", "0B"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := advised(t, append(words, "--policy", "fair")...)
			if err != nil {
				t.Fatal(err)
			}
			testfile.Golden(t, name+".golden", []byte(text))
		})
	}
}

// The page in HTML needs no other file, is sound, and has a strip for each way.
func TestHTML(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.html")
	if _, err := advised(t, trace, "--nodes", "1", "--html", file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, link := range []string{"http://", "https://", "src=", "href=", "@import", "<script"} {
		if strings.Contains(strings.ReplaceAll(page, "http://www.w3.org/2000/svg", ""), link) {
			t.Errorf("the page has %s", link)
		}
	}
	picture := page[strings.Index(page, "<svg"):]
	picture = picture[:strings.Index(picture, "</svg>")+len("</svg>")]
	d := xml.NewDecoder(strings.NewReader(picture))
	for err == nil {
		_, err = d.Token()
	}
	if !errors.Is(err, io.EOF) {
		t.Errorf("the picture: %v", err)
	}
	for _, want := range []string{asAsked, ofPeaks, asLearned} {
		if !strings.Contains(picture, ">"+want+"<") {
			t.Errorf("the picture has no %s", want)
		}
	}
}

// What a name in a record says is shown, and no part of the page.
func TestHostileNames(t *testing.T) {
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	file, html := filepath.Join(folder, "trace.txt"), filepath.Join(folder, "page.html")
	hostile := "<script>alert('x')</script>"
	if err := os.WriteFile(file, bytes.ReplaceAll(text, []byte("TRIM"), []byte(hostile)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := advised(t, file, "--html", html)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(html)
	if err != nil || strings.Contains(string(page), "<script") || !strings.Contains(out, "<script") {
		t.Errorf("the page in HTML: %v\n%s", err, page)
	}
	if !strings.Contains(out, `--app '<script>alert('\''x'\'')</script>'`) {
		t.Errorf("what is to be pasted is not quoted:\n%s", out)
	}
}

// Mistakes of the user are one sentence each.
func TestMistakes(t *testing.T) {
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"missing.txt"}, "missing.txt: no such file"},
		{[]string{file("hello\n")}, "is not one that is recognised: name it by --format"},
		{[]string{file("")}, "is not one that is recognised"},
		{[]string{"-"}, "format: must be given for standard input"},
		{[]string{file("JobID   JobName\n------ -----\n1 x\n")}, `must separate its columns by |, as "sacct --parsable2" does`},
		{[]string{file("task_id\tname\tstatus\n")}, "f:1: head: must name the column"},
		{[]string{trace, "--policy", "fair,fifo"}, "policy: must be one, but 2 are given"},
		{[]string{trace, "--policy", "nonsense"}, "nonsense"},
		{[]string{trace, "--node-memory", "100MiB"}, "no task of the record fits on a node"},
		{[]string{trace, "--nodes", "0"}, "nodes"},
		{[]string{trace, "--swap", "-1B"}, "swap"},
		{[]string{trace, "--format", "dates"}, "format"},
		{[]string{trace, trace, "--format", "workload"}, "a workload must be one file, but there are 2"},
	} {
		if _, err := advised(t, c.words...); err == nil || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(strings.TrimSpace(err.Error()), "\n") {
			t.Errorf("%q: %v, want %s", c.words, err, c.want)
		}
	}
	_, err := advised(t, file("hello\n"))
	if got := command.ExitCode(err); got != command.WrongUsage {
		t.Errorf("exit code %d", got)
	}
}

// drawn is a record of a few tasks.
func drawn(t *rapid.T) *record {
	r := &record{machine: machineOf(4, 8)}
	parts := rapid.IntRange(1, 4).Draw(t, "parts")
	for i := range rapid.IntRange(1, 20).Draw(t, "tasks") {
		x := task{app: profile.App{Name: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "app")},
			submitted: timeline.Time(rapid.IntRange(0, 50).Draw(t, "at")) * timeline.Time(time.Second),
			part:      1 + i%parts, cpus: resource.Amount(rapid.IntRange(1, 4).Draw(t, "cpus")) * resource.Core,
			asked: resource.Amount(rapid.IntRange(1, 8).Draw(t, "asked")) * resource.GiB,
			peak:  resource.Amount(rapid.IntRange(1, 8<<10).Draw(t, "peak")) * resource.MiB,
			ran:   time.Duration(rapid.IntRange(1, 90).Draw(t, "ran")) * time.Second}
		for p := 1; p < x.part; p++ {
			x.behind = append(x.behind, p)
		}
		if rapid.Bool().Draw(t, "two phases") {
			of := func(m resource.Amount) resource.Vector { return resource.Vector{}.With(resource.Memory, m) }
			x.phases = []cluster.Phase{{Duration: x.ran / 2, Demand: of(x.peak / 2)},
				{Duration: x.ran - x.ran/2, Demand: of(x.peak)}}
		}
		r.tasks = append(r.tasks, x)
	}
	return r
}

// Whatever was recorded: every way can be simulated, boxes lose nothing and reserve what they say, parts of the record
// wait for each other, the picture has as much below its curves as was reserved and used, and the same record gives the
// same outcome.
func TestWays(t *testing.T) {
	fair := trial.Contender{Label: "fair", Policy: "fair"}
	rapid.Check(t, func(t *rapid.T) {
		r := drawn(t)
		most := r.peaks()
		for _, name := range []string{asAsked, ofPeaks, asLearned} {
			c := r.simulate(fair, name, 64*resource.GiB)
			if c.way.Error != "" || len(c.runs) != len(r.tasks) {
				t.Fatalf("%s: %+v", name, c.way)
			}
			if again := r.simulate(fair, name, 64*resource.GiB); again.way != c.way {
				t.Fatalf("%s: %+v, and again %+v", name, c.way, again.way)
			}
			begin, end := timeline.Never, timeline.Time(0)
			ended := map[int]timeline.Time{}
			reserved, used := 0.0, 0.0
			for i := range c.runs {
				x := &c.runs[i]
				begin, end = min(begin, x.submitted), max(end, x.ended)
				ended[x.task.part] = max(ended[x.task.part], x.ended)
				lasted := x.ended.Sub(x.started).Seconds()
				reserved += float64(x.reserved) * lasted
				used += float64(x.reserved)*lasted - gigabyteHours*wasted(x.task, x.reserved, x.ended.Sub(x.started))
				want := map[string]resource.Amount{asAsked: x.task.needs(), ofPeaks: most[x.task.app]}[name]
				if want != 0 && (x.reserved != want || x.ended.Sub(x.started) != x.task.ran || x.failures > 0) {
					t.Fatalf("%s: %+v of %+v", name, x, x.task)
				}
			}
			for i := range c.runs {
				for _, p := range c.runs[i].task.behind {
					if c.runs[i].started < ended[p] {
						t.Fatalf("%s: a task of part %d starts before part %d has ended", name, c.runs[i].task.part, p)
					}
				}
			}
			if name == asLearned {
				continue // what is used may be more than what is reserved
			}
			booked, inUse := c.columns(begin, end)
			each := end.Sub(begin).Seconds() / columns
			for _, s := range []struct {
				what   string
				values []float64
				want   float64
			}{{"reserved", booked, reserved}, {"used", inUse, used}} {
				area := 0.0
				for _, v := range s.values {
					area += v * each
				}
				if math.Abs(area-s.want) > 1e-6*(s.want+1) {
					t.Fatalf("%s: the picture has %v byte-seconds %s, want %v", name, area, s.what, s.want)
				}
			}
		}
	})
}

// How many run at once is the mean over the time in which others wait, or the most if none ever does.
func TestAtOnce(t *testing.T) {
	at := func(s int) timeline.Time { return timeline.Time(s) * timeline.Time(time.Second) }
	for _, c := range []struct {
		runs []ran
		want float64
	}{
		{[]ran{{submitted: 0, started: 0, ended: at(10)}, {submitted: 0, started: 0, ended: at(4)}}, 2},
		{[]ran{{submitted: 0, started: 0, ended: at(10)}, {submitted: at(1), started: at(10), ended: at(12)}}, 1},
		{[]ran{{submitted: 0, started: 0, ended: at(6)}, {submitted: 0, started: 0, ended: at(2)},
			{submitted: at(1), started: at(6), ended: at(7)}}, (2*1 + 1*4) / 5.0},
	} {
		if got := (&course{runs: c.runs}).atOnce(); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v at once, want %v: %+v", got, c.want, c.runs)
		}
	}
}

// A task of an application learns from those that ended before it starts, and from no other.
func TestNothingIsKnownBefore(t *testing.T) {
	r := &record{machine: machineOf(8, 64)}
	for i := range 3 {
		r.tasks = append(r.tasks, task{app: profile.App{Name: "a"}, submitted: timeline.Time(i) * timeline.Time(time.Minute),
			cpus: resource.Core, asked: 8 * resource.GiB, peak: resource.GiB, ran: 90 * time.Second})
	}
	c := r.simulate(trial.Contender{Label: "fair", Policy: "fair"}, asLearned, 64*resource.GiB)
	for i, want := range []resource.Amount{cluster.FirstReservation, cluster.FirstReservation, resource.GiB} {
		if got := c.runs[i].reserved; got < want || got > want+want/2 {
			t.Errorf("task %d reserves %s, want %s", i, resource.FormatMemory(got), resource.FormatMemory(want))
		}
	}
	if c.way.Failures+c.way.Lost > 0 {
		t.Errorf("%+v", c.way)
	}
}

// Of the jobs of a daemon, tasks count that ended well and were measured, with what they used beyond their boxes in
// swap, and without the time in which they stood still.
func TestJobsOfTheDaemon(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(1000+s), 0) }
	mib := func(n int) *int64 { v := int64(n) << 20; return &v }
	id := func(stage, index int32) cluster.TaskID { return cluster.TaskID{Job: 7, Stage: stage, Index: index} }
	j := &api.Job{ID: 7, Name: "j", Owner: "ann", App: "sort", Submitted: at(0), Ended: true,
		Stages: []api.Stage{{Stage: cluster.Stage{Name: "s", Tasks: 2, Ideal: resource.Of(2*resource.Core, resource.GiB)}},
			{Class: cluster.Flex, Stage: cluster.Stage{Name: "t", Tasks: 1, Parents: []int{0}, MaxMemory: 4 * resource.GiB,
				Ideal: resource.Of(resource.Core, 64*resource.MiB)}}},
		Earlier: []api.Task{{Task: id(0, 0), Run: 1, Outcome: cluster.OutOfMemory, Started: at(0), Ended: at(1)}},
		Tasks: []api.Task{{Task: id(0, 0), Run: 2, Outcome: cluster.Succeeded, Started: at(1), Ended: at(11)},
			{Task: id(0, 1), Run: 1, Outcome: cluster.Succeeded, Started: at(1), Ended: at(11)}, // not measured
			{Task: id(1, 0), Run: 1, Outcome: cluster.Succeeded, Started: at(11), Ended: at(31)}}}
	used := []api.TaskUsage{
		{Task: id(0, 0), Run: 2, Spans: []api.UsageSpan{{LengthSeconds: 10, Rates: api.Rates{Memory: mib(300)}}}},
		{Task: id(1, 0), Run: 1, StillSeconds: 4, Spans: []api.UsageSpan{
			{LengthSeconds: 8, Rates: api.Rates{Memory: mib(100)}},
			{LengthSeconds: 12, StillSeconds: 4, Rates: api.Rates{Memory: mib(500), Swap: mib(100)}}}}}
	r := &record{ends: map[profile.App]importer.Ends{}}
	r.takeJob(j, used)
	if len(r.tasks) != 2 || r.unmeasured != 1 ||
		r.ends[profile.App{Owner: "ann", Name: "sort", Stage: "s"}] != (importer.Ends{All: 1, ForMemory: 1}) {
		t.Fatalf("%+v", r)
	}
	a, b := &r.tasks[0], &r.tasks[1]
	if a.asked != resource.GiB || a.peak != 300*resource.MiB || a.ran != 10*time.Second || a.cpus != 2*resource.Core {
		t.Errorf("the first task: %+v", a)
	}
	if b.asked != 4*resource.GiB || b.peak != 600*resource.MiB || b.ran != 16*time.Second || len(b.phases) != 2 ||
		len(b.behind) != 1 || b.behind[0] != a.part {
		t.Errorf("the other task: %+v", b)
	}
}

// What each task read counts where the record has it, and else what its stage read.
func TestInputsOfTasks(t *testing.T) {
	r := &record{}
	of := func(input resource.Amount) cluster.Stage {
		return cluster.Stage{Tasks: 3, Ideal: resource.Of(resource.Core, resource.GiB), Duration: time.Second, Input: input}
	}
	r.take(&workload.Workload{Jobs: []workload.Job{
		{After: -1, Job: cluster.Job{Name: "j", Stages: []cluster.Stage{of(7), of(7), of(0)}},
			Truth: []workload.StageTruth{{Input: workload.ForEach([]resource.Amount{1, 0, 3})}}},
	}}, 100)
	var got []resource.Amount
	for i := range r.tasks {
		got = append(got, r.tasks[i].input)
	}
	if want := []resource.Amount{1, 7, 3, 7, 7, 7, 0, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("the tasks read %v, want %v", got, want)
	}
}

// The recorded workflows, where they are: what is asked is far more than what is used, and learned reservations waste
// less than boxes.
func TestRecordedWorkflows(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	const file = "../../../../../shared/data/nextflow-sizey/tasks-merged.csv.gz"
	if _, err := os.Stat(file); err != nil {
		t.Skip("needs ../shared/data/nextflow-sizey, recorded by others")
	}
	text, err := advised(t, file, "--tasks", "1500", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	if d.Asked == nil || *d.Asked < 1.5*d.Used || len(d.Ways) != 3 || d.Ways[2].Lost > 0 ||
		d.Ways[2].Wasted > d.Ways[0].Wasted/4 {
		t.Errorf("%s; %+v", d.Headline, d.Ways)
	}
}

func machineOf(cores, gib int64) workload.ClusterShape {
	return workload.ClusterShape{Nodes: 1,
		Node: resource.Of(resource.Amount(cores)*resource.Core, resource.Amount(gib)*resource.GiB)}
}
