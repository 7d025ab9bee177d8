package jobfile

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/fault"
	"github.com/bellows-rm/bellows/format/form"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/internal/testfile"
)

func readJobs(t *testing.T, text string) *workload.Workload {
	t.Helper()
	w, err := Read(strings.NewReader(text), "x", nil)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func writeJobs(t *testing.T, w *workload.Workload) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, w); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// everyField is a file with every field of the format.
const everyField = `
bellows: 1
name: sort-logs
queue: nightly
weight: 2
class: flex
retry: 2
retry_on: oom
retry_delay: 20s
app: sort
deadline: 5m
at: 90s
stages:
  - name: split
    memory: 64MiB
    command: split -n l/8 logs part- # a string is for sh -c
  - name: sort
    tasks: 4
    after: [split]
    cpus: 500m
    memory: 512MiB
    min_memory: 64MiB
    disk: 10MB/s
    network: 1MiB/s
    duration: 30s
    phases:
      - {name: read, duration: 10s, cpus: 500m, memory: 100MiB, disk: 100MB/s}
      - {duration: 20s, cpus: 250m, memory: 512MiB}
    input: 3GiB
    together: true
    elasticity: {sawtooth: 3, disk_rate: 20MB/s}
    command: [sort, -S, "{memory-16MiB}", "part-{task}"]
    env: {LC_ALL: C, TMPDIR: "/tmp/{job}"}
    dir: /data
    truth: {durations: [31s, 29s, 30s, 1m], memory: 500MiB, elasticity: none}
  - name: merge
    after: [sort, split]
    cpus: 2
    memory: 1GiB
    min_memory: 256MiB
    elasticity:
      points:
        - {memory: 256MiB, slowdown: 1.4}
        - {memory: 1GiB, slowdown: 0.99}
    command: |
      sort -m part-* >all
      rm part-*
    truth:
      duration: 5s
      elasticity: {step: 1.5}
      phases:
        - {name: read, duration: 2s, cpus: 500m, memory: 200MiB, disk: 100MB/s}
        - {duration: 3s, cpus: 2, memory: 1GiB, network: 20MB/s}
        - {duration: 0s}
      heap: {live: 300MiB, size: 2GiB}
  - name: both
    tasks: 2
    memory: 1GiB
    max_memory: 4GiB
    heartbeat_timeout: 1m
    command: [/usr/bin/java, Main]
    runtime: jvm
    truth:
      memories: [900MiB, 1.5GiB]
      task_phases:
        - [{duration: 1s, cpus: 1}]
        - - {duration: 1s}
          - {duration: 2s, memory: 1B}
      heap: {live: 1B}
      fresh: [5s, 4s, 6s]
      first: [1m]
---
# Comments and empty documents are skipped.
---
bellows: 1
name: report
after: sort-logs
stages: [{name: steer, coordinator: true}, {name: "1", memory: 1B, min_memory: 1B, elasticity: {sawtooth_table: 1.5}}]
---
bellows: 1
name: first
stages: [{name: only, memory: 1.5GiB, duration: 250ms}]
`

func TestReadJobs(t *testing.T) {
	w := readJobs(t, everyField)
	if len(w.Jobs) != 3 || w.Jobs[0].Name != "first" || w.Jobs[1].Name != "sort-logs" || w.Jobs[2].Name != "report" {
		t.Fatalf("jobs: %+v", w.Jobs)
	}
	for i := range w.Jobs {
		if w.Jobs[i].ID != cluster.JobID(i+1) {
			t.Errorf("job %q has id %d", w.Jobs[i].Name, w.Jobs[i].ID)
		}
	}
	if w.Jobs[2].After != 1 || w.Jobs[1].After != -1 || !w.Jobs[2].Stages[0].Coordinator ||
		w.Jobs[2].Stages[0].Ideal != (resource.Vector{}) {
		t.Errorf("report: %+v", w.Jobs[2])
	}
	j := w.Jobs[1]
	if j.Queue != "nightly" || j.Weight != 2 || j.Class != cluster.Flex || j.MaxAttempts != 3 ||
		j.RetryDelay != 20*time.Second || j.App != "sort" || j.Deadline != 5*time.Minute ||
		j.Submitted != timeline.Seconds(90) {
		t.Errorf("sort-logs: %+v", j.Job)
	}
	want := cluster.Stage{Name: "sort", Tasks: 4, Parents: []int{0}, MinMemory: 64 * resource.MiB,
		Duration: 30 * time.Second, Ideal: resource.Vector{500, 512 * resource.MiB, 10 * resource.MB, resource.MiB},
		Phases: []cluster.Phase{{Name: "read", Duration: 10 * time.Second, Demand: resource.Vector{500, 100 * resource.MiB,
			100 * resource.MB}}, {Duration: 20 * time.Second, Demand: resource.Vector{250, 512 * resource.MiB}}},
		Input: 3 * resource.GiB, Together: true,
		Elasticity: cluster.Elasticity{Kind: cluster.SawTooth, Factor: 3, DiskRate: 20 * resource.MB}}
	want.Command = cluster.Command{Args: []string{"sort", "-S", "{memory-16MiB}", "part-{task}"},
		Env: map[string]string{"LC_ALL": "C", "TMPDIR": "/tmp/{job}"}, Dir: "/data"}
	if !reflect.DeepEqual(j.Stages[1], want) {
		t.Errorf("stage sort:\ngot  %+v\nwant %+v", j.Stages[1], want)
	}
	commands := []cluster.Command{
		{Args: []string{"sh", "-c", "split -n l/8 logs part-"}},
		want.Command,
		{Args: []string{"sh", "-c", "sort -m part-* >all\nrm part-*\n"}},
		{Args: []string{"/usr/bin/java", "Main"}, Runtime: cluster.JVM},
	}
	for i := range j.Stages {
		if got := j.Stages[i].Command; !reflect.DeepEqual(got, commands[i]) {
			t.Errorf("command of stage %d:\ngot  %+v\nwant %+v", i, got, commands[i])
		}
	}
	truth := []workload.StageTruth{{},
		{Duration: workload.ForEach([]time.Duration{31 * time.Second, 29 * time.Second, 30 * time.Second, time.Minute}),
			IdealMemory: workload.ForAll(500 * resource.MiB), Elasticity: &cluster.Elasticity{}},
		{Duration: workload.ForAll(5 * time.Second), Elasticity: &cluster.Elasticity{Kind: cluster.Step, Factor: 1.5},
			Phases: workload.ForAll([]cluster.Phase{
				{Name: "read", Duration: 2 * time.Second, Demand: resource.Vector{resource.Core / 2, 200 * resource.MiB,
					100 * resource.MB}},
				{Duration: 3 * time.Second, Demand: resource.Vector{2 * resource.Core, resource.GiB, 0, 20 * resource.MB}}, {}}),
			Heap: &workload.Heap{Live: 300 * resource.MiB, Size: 2 * resource.GiB}},
		{IdealMemory: workload.ForEach([]resource.Amount{900 * resource.MiB, resource.GiB * 3 / 2}),
			Phases: workload.ForEach([][]cluster.Phase{{{Duration: time.Second, Demand: resource.Vector{resource.Core}}},
				{{Duration: time.Second}, {Duration: 2 * time.Second, Demand: resource.Vector{0, 1}}}}),
			Heap: &workload.Heap{Live: 1}, Fresh: []time.Duration{5 * time.Second, 4 * time.Second, 6 * time.Second},
			First: []time.Duration{time.Minute}}}
	if !reflect.DeepEqual(j.Truth, truth) {
		t.Errorf("truth:\ngot  %+v\nwant %+v", j.Truth, truth)
	}
}

// A job with several attempts that states no pause between them has the usual one; a stated pause of 0 means none, also
// when it is written.
func TestRetryDelay(t *testing.T) {
	for _, c := range []struct {
		fields string
		want   time.Duration
	}{
		{"", 0},
		{"retry: 1\n", cluster.DefaultRetryDelay},
		{"max_attempts: 2\n", cluster.DefaultRetryDelay}, // as files of bellows 0.1 say it
		{"retry: 1\nretry_delay: 0s\n", 0},
		{"retry_delay: 0s\nretry_on: any\n", 0},
		{"retry_delay: 3s\nretry_on: oom\n", 3 * time.Second},
		{"retry: 1\nretry_delay: 3s\n", 3 * time.Second},
	} {
		w := readJobs(t, "bellows: 1\nname: j\n"+c.fields+"stages:\n  - {name: s, memory: 1GiB}\n")
		if got := w.Jobs[0].RetryDelay; got != c.want {
			t.Errorf("%q: the pause is %v, want %v", c.fields, got, c.want)
		}
		if again := readJobs(t, string(writeJobs(t, w))); !reflect.DeepEqual(again, w) {
			t.Errorf("%q: written and read it is\n%+v, want\n%+v", c.fields, again.Jobs[0], w.Jobs[0])
		}
	}
}

func TestWriteJobs(t *testing.T) {
	w := readJobs(t, everyField)
	text := writeJobs(t, w)
	testfile.Golden(t, "every-field.yaml", text)
	if again := readJobs(t, string(text)); !reflect.DeepEqual(again, w) {
		t.Errorf("read back:\ngot  %+v\nwant %+v", again, w)
	}
}

// A trace of the YARN-ME authors can be converted to a job file.
func TestWriteJobsOfDSS(t *testing.T) {
	const trace = `{"job.start.ms": "job_1", "job.id": "job_3", "job.tasks": [
		{"c.dur": 1000, "c.mem": 3000, "c.nr": 2}, {"c.dur": 1000, "c.mem": 3000, "c.nr": 2}]}
		{"job.start.ms": 1500, "job.id": "job_1", "job.tasks": [
		{"c.dur": 1, "c.mem": 100, "c.nr": 1, "c.penalty": "SAWTOOTH", "c.ib": 1.5}]}`
	w, err := workload.ReadDSS(strings.NewReader(trace), "x")
	if err != nil {
		t.Fatal(err)
	}
	text := writeJobs(t, w)
	testfile.Golden(t, "from-dss.yaml", text)
	again := readJobs(t, string(text))
	for i := range w.Jobs {
		again.Jobs[i].ID = w.Jobs[i].ID
	}
	if !reflect.DeepEqual(again, w) {
		t.Errorf("read back:\ngot  %+v\nwant %+v", again, w)
	}
}

func TestReadJobsWithProfile(t *testing.T) {
	known := cluster.Profile{Ideal: resource.GiB, MinMemory: 64 * resource.MiB, Duration: time.Minute,
		Elasticity: cluster.Elasticity{Kind: cluster.Step, Factor: 1.5}}
	profiles := func(name string) (cluster.Profile, bool) { return known, name == "sort" }
	read := func(stage string) (*workload.Workload, error) {
		return Read(strings.NewReader("bellows: 1\nname: j\nstages:\n  - {name: s, "+stage+"}\n"), "x", profiles)
	}
	w, err := read("profile: sort")
	if err != nil {
		t.Fatal(err)
	}
	s := w.Jobs[0].Stages[0]
	if s.Ideal[resource.Memory] != resource.GiB || s.MinMemory != 64*resource.MiB || s.Duration != time.Minute ||
		!s.Elastic() {
		t.Errorf("from the profile: %+v", s)
	}
	if w, err = read("profile: sort, memory: 2GiB, min_memory: 1GiB, duration: 5s, elasticity: {step: 2}"); err != nil {
		t.Fatal(err)
	}
	s = w.Jobs[0].Stages[0]
	if s.Ideal[resource.Memory] != 2*resource.GiB || s.MinMemory != resource.GiB || s.Duration != 5*time.Second ||
		s.Elasticity.Factor != 2 {
		t.Errorf("what is written goes first: %+v", s)
	}
	if _, err = read("profile: sort, memory: 1MiB"); err != nil {
		t.Error("a minimum from the profile above the memory of the stage:", err)
	}
	if _, err = read("profile: grep"); err == nil ||
		err.Error() != `x:4: job "j" stage "s" profile grep: must be the name of a stored profile` {
		t.Error(err)
	}
}

// Without access to profiles, the names of profiles are kept for a later reader.
func TestReadJobsKeepsProfiles(t *testing.T) {
	text := "bellows: 1\nname: j\nstages:\n  - {name: s, profile: sort, command: 'sort -S {memory-16MiB}'}\n" +
		"  - {name: t, memory: 1MiB, command: true}\n"
	w := readJobs(t, text)
	if w.Jobs[0].Stages[0].Profile != "sort" || w.Jobs[0].Stages[1].Profile != "" ||
		w.Jobs[0].Stages[0].Ideal[resource.Memory] != 0 {
		t.Errorf("got %+v", w.Jobs[0])
	}
	if again := readJobs(t, string(writeJobs(t, w))); !reflect.DeepEqual(again, w) {
		t.Errorf("read back:\ngot  %+v\nwant %+v", again, w)
	}
	_, err := Read(strings.NewReader(strings.Replace(text, "{memory-16MiB}", "{mem}", 1)), "x", nil)
	if err == nil || !strings.Contains(err.Error(), "{mem}: unknown") {
		t.Error(err)
	}
}

// A file for a machine may leave open what is reserved, and one for the simulator may not.
func TestReadToRun(t *testing.T) {
	for _, c := range []struct {
		job, stage     string
		undecided      bool
		class          cluster.Class
		by             cluster.ReserveBy
		memory         resource.Amount
		wrong, onlyRun string // why it is refused, and why for a simulation
	}{
		{"", "memory: 1GiB", true, 0, 0, resource.GiB, "", ""},
		{"", "cpus: 1", true, 0, 0, 0, "", "memory is missing"},
		{"", "memory: auto", true, 0, 0, 0, "", "memory \"auto\" does not begin"},
		{"", "max_memory: 3GiB", true, 0, 0, 0, "", "memory is missing"},
		{"class: regular", "memory: 1GiB", false, 0, 0, resource.GiB, "", ""},
		{"reserve: stated", "memory: 1GiB", false, 0, 0, resource.GiB, "", ""},
		{"class: flex", "memory: 1GiB", false, cluster.Flex, 0, resource.GiB, "", ""},
		{"reserve: learned", "cpus: 1", false, cluster.Flex, cluster.ReserveLearned, 0, "", "memory is missing"},
		{"", "memory: 1GiB, min_memory: 1MiB", false, 0, 0, resource.GiB, "", ""},
		{"", "min_memory: 1MiB", false, 0, 0, 0, "memory is missing", ""},
		{"class: regular", "memory: auto", false, 0, 0, 0, "memory \"auto\" does not begin", ""},
		{"class: regular, reserve: learned", "memory: 1GiB", false, 0, 0, 0, "reserve learned: needs class flex", ""},
		{"reserve: guessed", "memory: 1GiB", false, 0, 0, 0, "must be stated or learned", ""},
	} {
		text := "{bellows: 1, name: j, " + c.job + ", stages: [{name: s, command: [sort, -S, '{memory-2GiB}'], " + c.stage +
			"}]}"
		if c.memory > 0 {
			text = strings.Replace(text, "memory-2GiB", "memory", 1) // what is stated is checked
		}
		text = strings.Replace(text, "j, , ", "j, ", 1)
		w, err := ReadToRun(strings.NewReader(text), "x", nil)
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v, want %s", text, err, c.wrong)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		j := &w.Jobs[0]
		if j.Undecided != c.undecided || j.Class != c.class || j.Reserve != c.by ||
			j.Stages[0].Ideal[resource.Memory] != c.memory || j.Stages[0].Reserved != nil {
			t.Errorf("%s: %+v", text, j)
		}
		w, err = Read(strings.NewReader(text), "x", nil)
		if c.onlyRun != "" {
			if err == nil || !strings.Contains(err.Error(), c.onlyRun) {
				t.Errorf("%s for a simulation: %v, want %s", text, err, c.onlyRun)
			}
		} else if err != nil || w.Jobs[0].Undecided || w.Jobs[0].Reserve != c.by {
			t.Errorf("%s for a simulation: %v", text, err)
		}
	}
}

func TestReadJobsRefuses(t *testing.T) {
	job := func(fields string) string {
		return "bellows: 1\nname: j\n" + fields + "\nstages: [{name: s, memory: 1MiB}]\n"
	}
	stage := func(fields string) string {
		return "bellows: 1\nname: j\nstages:\n  - {name: s, memory: 64MiB, " + fields + "}\n"
	}
	elastic := func(fields string) string { return stage("min_memory: 8MiB, elasticity: " + fields) }
	flex := func(fields string) string {
		return strings.Replace(stage(fields), "stages:", "class: flex\nstages:", 1)
	}
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "x: jobs: must be at least one, but the file holds none"},
		{"only separators", "---\n---\n# nothing\n", "x: jobs: must be at least one, but the file holds none"},
		{"not YAML", "bellows: 1\nname: [\n", "x:2: must be YAML: did not find expected node content"},
		{"tab", "bellows: 1\n\tname: j\n", "x:2: must be YAML: found a tab character that violates indentation"},
		{"a list", "- 1\n", "x:1: job: must be a mapping of field names to values, but is a list"},
		{"a text", "hello\n", `x:1: job: must be a mapping of field names to values, but is "hello"`},
		{"no version", "name: j\n", "x:1: job bellows is missing: must be 1, the version of the format"},
		{"other version", "name: j\nbellows: 2\n", "x:2: job bellows 2: must be 1, the version of the format"},
		{"no name", "bellows: 1\nstages: []\n", "x:1: job name is missing: must be a name of 1 to 200 printable characters"},
		{"empty name", "bellows: 1\nname:\n", "x:2: job name empty: must be a name of 1 to 200 printable characters"},
		{"name of two lines", "bellows: 1\nname: \"a\\nb\"\n",
			`x:2: job name a\nb: must be a name of 1 to 200 printable characters`},
		{"same name", job("at: 0s") + "---\n" + job("at: 0s"), `x:7: job "j" name j: given twice, first in line 1`},
		{"unknown field", job("stage: 1"),
			`x:3: job stage: unknown field; must be one of bellows, name, queue, weight, class, reserve, retry_on, retry_delay, at_most_once, keep_going, app, deadline, retry, at, after, stages; did you mean stages?`},
		{"field twice", job("at: 0s\nat: 1s"), `x:4: job at: written twice, first in line 3`},
		{"alias", "bellows: 1\nname: &a j\nqueue: *a\n",
			`x:3: job "j" queue an alias, which is not part of the format: must be a name of 1 to 200 printable characters`},
		{"weight 0", job("weight: 0"), `x:3: job "j" weight 0: must be a number above 0, at most 1e+06`},
		{"weight NaN", job("weight: NaN"), `x:3: job "j" weight NaN: must be a number above 0, at most 1e+06`},
		{"class", job("class: gold"), `x:3: job "j" class gold: must be regular or flex`},
		{"retry", job("retry: 1000"), `x:3: job "j" retry 1000: must be a whole number from 0 to 999`},
		{"retry twice", job("retry: 1\nmax_attempts: 2"), `x:4: job retry: written twice, first in line 3`},
		{"at without unit", job("at: 5"),
			`x:3: job "j" at 5: must be a duration with its unit, such as 90s, 1.5h or 250ms, up to 87600h0m0s`},
		{"at beyond all", job("at: 9999999h"),
			`x:3: job "j" at 9999999h: must be a duration with its unit, such as 90s, 1.5h or 250ms, up to 87600h0m0s`},
		{"at negative", job("at: -5s"), `x:3: job "j" at -5s: must be from 0s to 87600h0m0s`},
		{"at and after", job("at: 5s\nafter: k"),
			`x:4: job "j" after k: cannot be combined with at, because the end of the other job says when this one is submitted`},
		{"after nobody", job("after: k"), `x:1: job "j" after "k": must be the name of a job in the file`},
		{"after itself", job("after: j"), `x:1: job "j" after: must not form a cycle, but j waits for j`},
		{"no stages", "bellows: 1\nname: j\nstages: []\n",
			`x:3: job "j" stages an empty list: must be a list of at least one stage`},
		{"stages missing", "bellows: 1\nname: j\n", `x:1: job "j" stages is missing: must be a list of at least one stage`},
		{"stage without name", "bellows: 1\nname: j\nstages:\n  - {memory: 1MiB}\n",
			`x:4: job "j" stage name is missing: must be a name of 1 to 200 printable characters`},
		{"stage twice", "bellows: 1\nname: j\nstages:\n  - {name: s, memory: 1MiB}\n  - {name: s, memory: 1MiB}\n",
			`x:5: job "j" stage "s" name s: must not be that of another stage of the job`},
		{"tasks 0", stage("tasks: 0"), `x:4: job "j" stage "s" tasks 0: must be a whole number from 1 to 1073741824`},
		{"tasks negative", stage("tasks: -1"),
			`x:4: job "j" stage "s" tasks -1: must be a whole number from 1 to 1073741824`},
		{"tasks 1.5", stage("tasks: 1.5"), `x:4: job "j" stage "s" tasks 1.5: must be a whole number from 1 to 1073741824`},
		{"memory missing", "bellows: 1\nname: j\nstages: [{name: s}]\n",
			`x:3: job "j" stage "s" memory is missing: must be from 1B to 1000PB`},
		{"memory without unit", "bellows: 1\nname: j\nstages: [{name: s, memory: 512}]\n",
			`x:3: job "j" stage "s" memory "512" has no unit: write a number and one of B, KB, MB, GB, TB, PB (powers of 1000; K, M, G, T, P mean the same) or KiB, MiB, GiB, TiB, PiB (powers of 1024), such as 4GiB`},
		{"cpus", stage("cpus: 1\\n"),
			`x:4: job "j" stage "s" cpus "1\\n" has an unknown unit: write cores such as 2 or 1.5, or millicores such as 500m`},
		{"memory 0", "bellows: 1\nname: j\nstages: [{name: s, memory: 0MiB}]\n",
			`x:3: job "j" stage "s" memory 0MiB: must be from 1B to 1000PB`},
		{"memory huge", "bellows: 1\nname: j\nstages: [{name: s, memory: 1001PB}]\n",
			`x:3: job "j" stage "s" memory 1001PB: must be from 1B to 1000PB`},
		{"min_memory above memory", stage("min_memory: 65MiB"),
			`x:4: job "j" stage "s" min_memory 65MiB: must be at most memory, which is 64MiB`},
		{"max_memory below memory", flex("max_memory: 63MiB"),
			`x:5: job "j" stage "s" max_memory 63MiB: must be at least memory, which is 64MiB`},
		{"max_memory of a regular job", stage("max_memory: 1GiB"),
			`x:4: job "j" stage "s" max_memory 1GiB: needs class flex: a regular container keeps its memory`},
		{"heartbeats that nobody can send", flex("heartbeat_timeout: 1999ms"),
			`x:5: job "j" stage "s" heartbeat_timeout 1.999s: must be at least 2s, because a suspended container is silent for a while`},
		{"no heartbeats", flex("heartbeat_timeout: 0s"),
			`x:5: job "j" stage "s" heartbeat_timeout 0s: must be from 1ns to 87600h0m0s`},
		{"runtime", flex("runtime: go, command: [java]"), `x:5: job "j" stage "s" runtime go: must be jvm`},
		{"empty runtime", flex("runtime: , command: [java]"), `x:5: job "j" stage "s" runtime empty: must be jvm`},
		{"runtime of a regular job", stage("runtime: jvm, command: [java]"),
			`x:4: job "j" stage "s" runtime jvm: needs class flex: a regular container keeps its memory`},
		{"runtime without a command", flex("runtime: jvm, max_memory: 1GiB"),
			`x:5: job "j" stage "s" runtime jvm: must be left out without command`},
		{"runtime behind a shell", flex("runtime: jvm, max_memory: 1GiB, command: java Main"),
			`x:5: job "j" stage "s" runtime jvm: says that the program is java, but the command begins with "sh"; omit the runtime: every java in a flex container gets a heap (a command that is one text is for the shell: write a list)`},
		{"runtime of a compiler", flex("runtime: jvm, max_memory: 1GiB, command: [javac, A.java]"),
			`x:5: job "j" stage "s" runtime jvm: says that the program is java, but the command begins with "javac"; omit the runtime: every java in a flex container gets a heap`},
		{"cpus 0", stage("cpus: 0"), `x:4: job "j" stage "s" cpus 0: must be from 1m to 1000000`},
		{"duration 0", stage("duration: 0s"), `x:4: job "j" stage "s" duration 0s: must be from 1ns to 87600h0m0s`},
		{"coordinator", stage("coordinator: yes"), `x:4: job "j" stage "s" coordinator yes: must be true or false`},
		{"two coordinators", stage("coordinator: true, tasks: 2"), `x:4: job "j" stage "s" tasks 2: a coordinator is 1 task`},
		{"parent", stage("after: [t]"), `x:4: job "j" stage "s" after a list: "t" must be the name of a stage of the job`},
		{"cycle", "bellows: 1\nname: j\nstages:\n  - {name: s, memory: 1B, after: [t]}\n  - {name: t, memory: 1B, " +
			"after: [s]}\n", `x:1: job "j" parents: must not form a cycle, but s waits for t waits for s`},
		{"elasticity without minimum", stage("elasticity: {step: 2}"),
			`x:4: job "j" stage "s" min_memory is missing: must be given together with elasticity`},
		{"no shape", elastic("{disk_rate: 1MB/s}"),
			`x:4: job "j" stage "s" elasticity has 0 of step, sawtooth, sawtooth_table, points: must have exactly one`},
		{"two shapes", elastic("{step: 2, sawtooth: 2}"),
			`x:4: job "j" stage "s" elasticity has 2 of step, sawtooth, sawtooth_table, points: must have exactly one`},
		{"factor below 1", elastic("{step: 0.9}"),
			`x:4: job "j" stage "s" elasticity step 0.9: must be a number from 1 to 1e+06`},
		{"infinite factor", elastic("{sawtooth: .inf}"),
			`x:4: job "j" stage "s" elasticity sawtooth .inf: must be a number from 1 to 1e+06`},
		{"no points", elastic("{points: []}"),
			`x:4: job "j" stage "s" elasticity points an empty list: must be a list of at least one point`},
		{"falling points", elastic("{points: [{memory: 9MiB, slowdown: 2}, {memory: 8MiB, slowdown: 1}]}"),
			`x:4: job "j" stage "s" elasticity point 2 memory 8MiB: must be more than that of the point before, 9MiB`},
		{"point above ideal", elastic("{points: [{memory: 65MiB, slowdown: 2}]}"),
			`x:4: job "j" stage "s" elasticity point 1 memory 65MiB: must be at most ideal memory, which is 64MiB`},
		{"truth", stage("truth: {durations: [1s]}, tasks: 2"),
			`x:4: job "j" stage "s" truth durations a list: must be one for each task, 2, but are 1`},
		{"truth twice", stage("truth: {durations: [1s], duration: 1s}"),
			`x:4: job "j" stage "s" truth durations a list: cannot be combined with duration`},
		{"truth 0", stage("truth: {durations: [0s]}"),
			`x:4: job "j" stage "s" truth durations a list: each must be a duration with its unit, up to 87600h0m0s, but one is 0s`},
		{"truth of memory twice", stage("truth: {memory: 1B, memories: [1B]}"),
			`x:4: job "j" stage "s" truth memories a list: cannot be combined with memory`},
		{"truth of one memory", stage("truth: {memories: [1]}"),
			`x:4: job "j" stage "s" truth memories a list: each must be a size with its unit, up to 1000PB, but one is 1`},
		{"truth of too few memories", stage("truth: {memories: [1B]}, tasks: 2"),
			`x:4: job "j" stage "s" truth memories a list: must be one for each task, 2, but are 1`},
		{"no phases", stage("truth: {phases: []}"),
			`x:4: job "j" stage "s" truth phases an empty list: must be a list of at least one phase`},
		{"phase without duration", stage("truth: {phases: [{cpus: 1}]}"),
			`x:4: job "j" stage "s" truth phase 1 duration is missing: must be a duration with its unit, such as 90s, 1.5h or 250ms, up to 87600h0m0s`},
		{"mistyped field", stage("memroy: 1GiB"), `x:4: job "j" stage memroy: unknown field; must be one of ` +
			strings.Join(form.Names(&cluster.Stage{}), ", ") + ", truth; did you mean memory?"},
		{"phase with another field", stage("truth: {phases: [{duration: 1s, gpu: 1}]}"),
			`x:4: job "j" stage "s" truth phase 1 gpu: unknown field; must be one of ` +
				strings.Join(form.Names(&cluster.Phase{}), ", ")},
		{"phase of negative duration", stage("truth: {phases: [{duration: 1s}, {duration: -1s}]}"),
			`x:4: job "j" stage "s" truth phase 2 duration -1s: must be from 0s to 87600h0m0s`},
		{"phases for ever", stage("truth: {phases: [{duration: 87600h}, {duration: 1s}]}"),
			`x:4: job "j" stage "s" truth phases: must last 87600h0m0s at most together`},
		{"phases twice", stage("truth: {phases: [{duration: 1s}], task_phases: [[{duration: 1s}]]}"),
			`x:4: job "j" stage "s" truth task_phases a list: cannot be combined with phases`},
		{"phases of no task", stage("truth: {task_phases: [[]]}"),
			`x:4: job "j" stage "s" truth task_phases: must be a list of at least one phase for each task, but one is an empty list`},
		{"phases of too many tasks", stage("truth: {task_phases: [[{duration: 1s}], [{duration: 1s}]]}"),
			`x:4: job "j" stage "s" truth task_phases a list: must be one for each task, 1, but are 2`},
		{"phase of a task", stage("truth: {task_phases: [[{duration: 1s, disk: 1MB}]]}"),
			`x:4: job "j" stage "s" truth task 0 phase 1 disk "1MB" does not end in /s: write a number and one of B/s, KB/s, MB/s, GB/s, TB/s, PB/s (powers of 1000), KiB/s, MiB/s, GiB/s, TiB/s, PiB/s (powers of 1024), or kbit/s, Mbit/s, Gbit/s, Tbit/s (bits; 8 are a byte), such as 110MB/s or 1Gbit/s`},
		{"heap", stage("truth: {heap: 1GiB}"),
			`x:4: job "j" stage "s" truth heap: must be a mapping of field names to values, but is "1GiB"`},
		{"live set", stage("truth: {heap: {live: 0MiB}}"),
			`x:4: job "j" stage "s" truth heap live 0MiB: must be from 1B to 1000PB`},
		{"profile", stage("profile: [p]"),
			`x:4: job "j" stage "s" profile a list: must be a name of 1 to 200 printable characters`},
		{"empty command", stage(`command: [""]`), `x:4: job "j" stage "s" command: must begin with the name of a program`},
		{"no command", stage("command: []"),
			`x:4: job "j" stage "s" command an empty list: must be a list of at least one word`},
		{"some commands", "bellows: 1\nname: j\nstages:\n  - {name: s, memory: 1MiB, command: a}\n  - {name: t, " +
			"memory: 1MiB}\n", `x:5: job "j" stage "t" command is missing: must be given for every stage of a job or for none`},
		{"env without command", stage("env: {A: b}"),
			`x:4: job "j" stage "s" env a mapping: must be left out without command`},
		{"env", stage(`command: a, env: {"A=": b}`),
			`x:4: job "j" stage "s" env A=: must be the name of an environment variable`},
		{"env twice", stage(`command: a, env: {A: b, A: c}`), `x:4: job "j" stage "s" env A: written twice`},
		{"zero byte", stage(`command: "a\0"`), `x:4: job "j" stage "s" command a\x00: must not hold a zero byte`},
		{"placeholder", stage(`command: "a {disk}"`),
			`x:4: job "j" stage "s" command: placeholder {disk}: unknown; must be {memory}, {cpus}, {cpus:milli}, {task}, {tasks}, {number}, {item}, {stage}, {job} or {name}; write {{ for a brace`},
		{"placeholder at minimum", stage(`min_memory: 8MiB, command: "a {memory-8MiB}"`),
			`x:4: job "j" stage "s" command: placeholder {memory-8MiB}: is 0 bytes with a grant of 8MiB: must be at least 1KiB`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(strings.NewReader(c.text), "x", nil)
			if err == nil || err.Error() != c.want || !fault.Is(err) {
				t.Errorf("got  %v\nwant %v", err, c.want)
			}
		})
	}
}

func FuzzReadJobs(f *testing.F) {
	f.Add(everyField)
	f.Add("bellows: 1\nname: j\nstages: [{name: s, memory: 1MiB, command: \"{{x {memory*0.5:MiB}\"}]\n")
	f.Add("bellows: 1\nname: j\nafter: j\nstages: [{name: s, memory: 0.1GiB}]\n")
	f.Add("bellows: 1\nname: j\nstages: [{name: s, profile: p}, {name: t, profile: p, min_memory: 1B, elasticity: " +
		"{step: 2}}]\n")
	f.Add("bellows: 1\nname: j\nstages: [{name: s, memory: 1MiB, truth: {memories: [1B], phases: [{duration: 0s, " +
		"cpus: 1m}], heap: {}}}]\n")
	f.Add("bellows: 1\nname: j\nstages: [{name: s, memory: 1MiB, truth: {task_phases: [[{name: a, duration: 1s, " +
		"network: 1B/s}]], heap: {size: 1B}}}]\n")
	f.Add("bellows: 1\nname: j\nclass: flex\nstages: [{name: s, memory: 1MiB, max_memory: 1GiB, heartbeat_timeout: " +
		"2s, command: [java, A], runtime: jvm}]\n")
	f.Add("a: &a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		w, err := Read(strings.NewReader(text), "x", nil)
		if err != nil {
			if !fault.Is(err) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("not one sentence about the file: %v", err)
			}
			return
		}
		written := writeJobs(t, w)
		again, err := Read(bytes.NewReader(written), "x", nil)
		if err != nil {
			t.Fatalf("%v in\n%s", err, written)
		}
		if !reflect.DeepEqual(again, w) {
			t.Fatalf("read back:\ngot  %+v\nwant %+v\nin\n%s", again, w, written)
		}
	})
}

// A cycle is told in one line that a person can read, however long it is.
func TestLongCycles(t *testing.T) {
	const n = 1000
	var stages, jobs strings.Builder
	stages.WriteString("bellows: 1\nname: j\nstages:\n")
	for i := range n {
		fmt.Fprintf(&stages, "  - {name: s%d, memory: 1B, after: [s%d]}\n", i, (i+n-1)%n)
		fmt.Fprintf(&jobs, "---\nbellows: 1\nname: j%d\nafter: j%d\nstages: [{name: s, memory: 1B}]\n", i, (i+n-1)%n)
	}
	for text, want := range map[string]string{
		stages.String(): `x:1: job "j" parents: must not form a cycle, but s0 waits for s999 waits for s998 waits for s997 waits for ` +
			`s996 waits for s995 waits for s994 waits for s993, and 993 more`,
		jobs.String(): `x:2: job "j0" after: must not form a cycle, but j0 waits for j999 waits for j998 waits for j997 waits for ` +
			`j996 waits for j995 waits for j994 waits for j993, and 993 more`,
	} {
		if _, err := Read(strings.NewReader(text), "x", nil); err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}
