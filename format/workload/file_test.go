package workload

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/fault"
	"github.com/bellows-rm/bellows/internal/testfile"
)

// Every field of a workload file has a row in docs/reference/recordings.md.
func TestEveryFieldIsDocumented(t *testing.T) {
	job := fault.Names(&jobRecord{})
	names := slices.Concat(fault.Names(&headerLine{}), job, fault.Names(&truthRecord{}), fault.Names(&truthFields{}),
		fault.Names(&cluster.Stage{}))
	if !slices.Contains(job, "deadline_ns") {
		t.Errorf("fields of a job: %q", job)
	}
	for _, name := range testfile.Undocumented(t, "../../docs/reference/recordings.md", "Workload files", names) {
		t.Errorf("no row for %s", name)
	}
}

// drawWorkload draws any workload that a file can contain, in canonical form: empty slices are nil.
func drawWorkload(t *rapid.T) *Workload {
	unit := rapid.SampledFrom([]time.Duration{1, time.Microsecond, time.Millisecond, time.Second}).Draw(t, "unit")
	w := &Workload{}
	var at timeline.Time
	for i := range rapid.IntRange(1, 5).Draw(t, "jobs") {
		j := Job{After: -1, Job: cluster.Job{ID: cluster.JobID(i + 1),
			Name: rapid.SampledFrom([]string{"", "sort <é> \"x\"", "j"}).Draw(t, "name")}}
		if rapid.Bool().Draw(t, "own id") {
			j.ID = cluster.JobID(1000 - i)
		}
		if i > 0 && rapid.Bool().Draw(t, "waits") {
			j.After = rapid.IntRange(0, i-1).Draw(t, "after")
		} else {
			at += timeline.Time(drawTime(t, unit, 0))
			j.Submitted = at
		}
		j.Queue, j.Owner = rapid.SampledFrom([]string{"", "q"}).Draw(t, "queue"),
			rapid.SampledFrom([]string{"", "me"}).Draw(t, "owner")
		j.Weight = rapid.SampledFrom([]float64{0, 0.1, 3}).Draw(t, "weight")
		j.Class = rapid.SampledFrom([]cluster.Class{cluster.Regular, cluster.Flex}).Draw(t, "class")
		j.MaxAttempts = rapid.IntRange(0, 3).Draw(t, "attempts")
		j.App, j.Deadline = rapid.SampledFrom([]string{"", "sort"}).Draw(t, "app"), drawTime(t, unit, 0)
		drawStages(t, &j, unit)
		w.Jobs = append(w.Jobs, j)
	}
	return w
}

func drawTime(t *rapid.T, unit, least time.Duration) time.Duration {
	return unit * time.Duration(rapid.Int64Range(int64(least), 1_000_000).Draw(t, "time"))
}

func drawMemory(t *rapid.T, least resource.Amount) resource.Amount {
	return resource.Amount(rapid.Int64Range(int64(least), int64(resource.MostMemory)).Draw(t, "memory"))
}

func drawStages(t *rapid.T, j *Job, unit time.Duration) {
	stages := rapid.IntRange(1, 3).Draw(t, "stages")
	commands, profiles := rapid.Bool().Draw(t, "commands"), rapid.Bool().Draw(t, "profiles")
	truth := make([]StageTruth, stages)
	said := false
	for i := range stages {
		s := cluster.Stage{Name: rapid.SampledFrom([]string{"", "map"}).Draw(t, "stage"),
			Tasks: rapid.IntRange(1, 4).Draw(t, "tasks"), Duration: drawTime(t, unit, 0)}
		s.Phases, s.Input, s.Together = drawPhases(t, unit, 0), drawMemory(t, 0), rapid.Bool().Draw(t, "together")
		s.Told = cluster.Provenance{Model: rapid.SampledFrom([]string{"", "median"}).Draw(t, "model"),
			Samples: rapid.IntRange(0, 9).Draw(t, "samples"), Error: rapid.SampledFrom([]float64{0, 0.1}).Draw(t, "error")}
		s.Ideal = resource.Vector{resource.Amount(rapid.Int64Range(0, 5000).Draw(t, "cpu")), drawMemory(t, 1), 0,
			resource.Amount(rapid.Int64Range(0, 9).Draw(t, "network"))}
		s.MinMemory = resource.Amount(rapid.Int64Range(0, int64(s.Ideal[resource.Memory])).Draw(t, "least"))
		breathes := j.Class == cluster.Flex && rapid.Bool().Draw(t, "breathes")
		if breathes {
			s.MaxMemory = drawMemory(t, s.Ideal[resource.Memory])
			s.HeartbeatTimeout = cluster.LeastHeartbeatTimeout + drawTime(t, unit, 0)
		}
		if rapid.Bool().Draw(t, "data") {
			s.DataOn = []string{"node1", "<node 2>"}
		}
		s.Elasticity = drawElasticity(t)
		if i > 0 && rapid.Bool().Draw(t, "waits") {
			s.Parents = []int{rapid.IntRange(0, i-1).Draw(t, "parent")}
		}
		if commands {
			s.Command = cluster.Command{Args: []string{"sort", "<&>", "{memory}"}, Env: map[string]string{"A": "1", "B": ""}}
			if breathes {
				s.Args[0], s.Runtime = "/bin/java", cluster.JVM
			}
		}
		if profiles {
			s.Profile = "p"
		}
		j.Stages = append(j.Stages, s)
		if rapid.Bool().Draw(t, "truth") {
			truth[i] = drawTruth(t, s.Tasks, unit)
			said = said || !truth[i].IsZero()
		}
	}
	if said {
		j.Truth = truth
	}
}

func drawElasticity(t *rapid.T) cluster.Elasticity {
	switch rapid.IntRange(0, 2).Draw(t, "elasticity") {
	case 1:
		return cluster.Elasticity{Kind: cluster.SawTooth, Factor: rapid.Float64Range(1, 100).Draw(t, "factor"), DiskRate: 7}
	case 2:
		m := drawMemory(t, 2)
		return cluster.Elasticity{Kind: cluster.Points, Points: []cluster.ElasticityPoint{{Memory: m - 1, Slowdown: 1.7},
			{Memory: m, Slowdown: 1}}}
	}
	return cluster.Elasticity{}
}

// drawPhases draws phases, at least as many as given; no phases are nil.
func drawPhases(t *rapid.T, unit time.Duration, least int) []cluster.Phase {
	all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) cluster.Phase {
		return cluster.Phase{Name: rapid.SampledFrom([]string{"", "map"}).Draw(t, "phase"), Duration: drawTime(t, unit, 0),
			Demand: resource.Vector{resource.Amount(rapid.IntRange(0, 2).Draw(t, "cpu")), drawMemory(t, 0)}}
	}), least, 5).Draw(t, "phases")
	return slices.Clip(append([]cluster.Phase(nil), all...))
}

func drawTruth(t *rapid.T, tasks int, unit time.Duration) StageTruth {
	var truth StageTruth
	phases := func() []cluster.Phase { return drawPhases(t, unit, 1) }
	if rapid.Bool().Draw(t, "per task") {
		var durations []time.Duration
		var memories []resource.Amount
		var each [][]cluster.Phase
		for range tasks {
			durations = append(durations, drawTime(t, unit, 1))
			memories = append(memories, drawMemory(t, 1))
			each = append(each, phases())
		}
		truth.Fresh = []time.Duration{drawTime(t, unit, 1), drawTime(t, unit, 1)}
		truth.First = []time.Duration{drawTime(t, unit, 1)}
		truth.Duration, truth.IdealMemory, truth.Phases = ForEach(durations), ForEach(memories), ForEach(each)
	} else {
		if rapid.Bool().Draw(t, "one duration") {
			truth.Duration = ForAll(drawTime(t, unit, 1))
		}
		if rapid.Bool().Draw(t, "one memory") {
			truth.IdealMemory = ForAll(drawMemory(t, 1))
		}
		truth.Phases = ForAll(phases())
		truth.Heap = &Heap{Live: drawMemory(t, 0), Size: drawMemory(t, 0)}
		e := drawElasticity(t)
		truth.Elasticity = &e
	}
	return truth
}

// A workload that is written with any compression is read back unchanged, and written again as the same bytes.
func TestWorkloadFileRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorkload(t)
		h := Header{Cluster: &ClusterShape{Nodes: 3, Node: resource.Vector{16000, 1 << 36, 5, 0}}}
		for _, c := range []Compression{Plain, Gzip, Zstd} {
			var file bytes.Buffer
			to, err := pack(&file, c)
			if err != nil {
				t.Fatal(err)
			}
			if err := Write(to, w, h); err != nil {
				t.Fatal(err)
			}
			if err := to.Close(); err != nil {
				t.Fatal(err)
			}
			in, err := Unpack(bytes.NewReader(file.Bytes()), "x")
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			got, header, err := read(in, "x")
			if err != nil {
				t.Fatalf("%v\n%s", err, file.Bytes())
			}
			if !reflect.DeepEqual(got, w) || !reflect.DeepEqual(header, h) {
				t.Fatalf("read back %+v\nwant %+v\n%s", got, w, file.Bytes())
			}
		}
	})
}

// A file that 0.1.0 wrote is read, and written as it is.
func TestRecordedWorkloadFile(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "version-2.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	w, h, err := read(bytes.NewReader(text), "x")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Write(&out, w, h); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), text) {
		t.Errorf("it is written as\n%s", &out)
	}
}

// Stages with the same truth share one name.
func TestTruthIsNamedOnce(t *testing.T) {
	truth := StageTruth{Duration: ForAll(time.Second),
		Phases: ForAll([]cluster.Phase{{Duration: time.Second, Demand: resource.Of(1, 2)}})}
	w := &Workload{}
	for i := range 1000 {
		stage := cluster.Stage{Tasks: 3, Ideal: resource.Of(1, 2)}
		w.Jobs = append(w.Jobs,
			Job{After: -1, Job: cluster.Job{ID: cluster.JobID(i + 1), Stages: []cluster.Stage{stage, stage}},
				Truth: []StageTruth{{}, truth}})
	}
	var out bytes.Buffer
	if err := Write(&out, w, Header{}); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(out.Bytes(), []byte("truth_profile")); n != 1 {
		t.Errorf("the truth is written %d times", n)
	}
	got, _, err := read(&out, "x")
	if err != nil || !reflect.DeepEqual(got, w) {
		t.Fatal(err)
	}
	if &got.Jobs[0].Task(1, 0).Phases[0] != &got.Jobs[999].Task(1, 0).Phases[0] {
		t.Error("stages that name the same truth do not share it")
	}
}

const workloadHeader = `{"bellows_workload":2}` + "\n"

func TestReadWorkloadRefuses(t *testing.T) {
	job := func(text string) string { return workloadHeader + text + "\n{\"jobs\":1}\n" }
	stage := func(text string) string {
		return job(`{"id":1,"name":"a","stages":[{"tasks":1,"ideal":[1000,5],` + text + `}]}`)
	}
	truth := func(text string) string {
		return job(`{"truth_profile":"t","truth":{` + text + "}}\n" +
			`{"id":1,"truth":["t"],"stages":[{"tasks":1,"ideal":[0,1]}]}`)
	}
	for _, c := range []struct{ text, want string }{
		{"", "x:1: the file is truncated after 0 jobs"},
		{"{}\n", "x:1: must be a workload file"},
		{`{"bellows_workload":1,"units":{"time":"s"}}` + "\n",
			"x:1: bellows_workload 1: must be 2, the version of the format"},
		{`{"bellows_workload":3}` + "\n", "x:1: bellows_workload 3: must be 2, the version of the format"},
		{`{"bellows_workload":2,"cluster":{"nodes":0}}` + "\n", "x:1: header cluster nodes 0: must be 1 to"},
		{workloadHeader + `{"jobs":1}` + "\n", "x:2: jobs 1: must be the number of jobs in the file, 0"},
		{workloadHeader + `{"jobs":0}` + "\n", "x: jobs: must be at least one"},
		{job(`{"id":1,"name":"a"}`), `x:2: job "a" stages: must be at least one`},
		{job(`{"id":1,"name":"a","submitted_ns":-1,"stages":[{"tasks":1,"ideal":[0,1]}]}`),
			"x:2: job \"a\" at -1ns: must be 0s to"},
		{job(`{"id":1,"name":"a","after":0,"stages":[{"tasks":1,"ideal":[0,1]}]}`),
			"after 0: must be the index of a job above"},
		{job(`{"id":1,"name":"a","stages":[{"tasks":0,"ideal":[0,1]}]}`), "tasks 0: must be 1 to"},
		{stage(`"parents":[0]`), "must not form a cycle"},
		{stage(`"parents":[1]`), "must be the index of a stage"},
		{stage(`"min_memory_bytes":6`), "min_memory 6B"},
		{stage(`"elasticity":{"kind":"wave"}`), `elasticity kind "wave"`},
		{truth(`"durations_ns":[-1]`), "task 0 duration -1ns: must be above 0s"},
		{truth(`"ideal_memories_bytes":[0]`), "task 0 memory 0 bytes"},
		{truth(`"phases":[{"duration_ns":1,"demand":[-1]}]`), "phase 1 cpus -1m cores: must not be negative"},
		{truth(`"task_phases":[[{"duration_ns":1}],[{"duration_ns":1}]]`),
			"task phases: must be one for each task, 1, but are 2"},
		{workloadHeader + `{"id":1,"submitted_ns":2,"stages":[{"tasks":1,"ideal":[0,1]}]}` + "\n" +
			`{"id":2,"name":"b","submitted_ns":1,"stages":[{"tasks":1,"ideal":[0,1]}]}` + "\n",
			`x:3: job "b" at 1ns: must not be before`},
		{workloadHeader + `{"id":2,"stages":[{"tasks":1,"ideal":[0,1]}]}` + "\n" +
			`{"id":2,"stages":[{"tasks":1,"ideal":[0,1]}]}` + "\n", `x:3: job "" id 2: another job has it`},
		{job(`{"id":1,"stages":[{"tasks":1,"ideal":[0,1]}]}`) + "x", "x:4: must end after the line with jobs"},
		{workloadHeader, "x:2: the file is truncated after 0 jobs"},
		{job(`{"id":1,"nme":"a"}`), `x:2: job nme: unknown field; must be one of id, name, owner, `},
		{job(`{"id":1,"stages":[{"tasks":"2"}]}`), "x:2: job stages.tasks: must not be a string"},
		{stage(`"class":1`), `x:2: job stages[0].class: unknown field; must be one of name, tasks, `},
		{stage(`"duration_ns":-1`), "duration -1ns: must not be negative"},
		{stage(`"needs":[1]`), `x:2: job stages[0].needs: unknown field; must be one of name, tasks, `},
		{job(`{"id":1,"after":-1,"stages":[]}`), "after -1: must be the index of a job"},
		{job(`{"id":1,"name":"a","open":true,"stages":[]}`), `x:2: job "a" open true: must be false`},
		{job(`{"id":1,"truth":["t"],"stages":[{"tasks":1,"ideal":[0,1]}]}`),
			`x:2: job "" truth "t": must be the name of a truth profile in a line above`},
		{job(`{"id":1,"truth":["",""],"stages":[{"tasks":1,"ideal":[0,1]}]}`),
			`truth: must be one for each stage, 1, but are 2`},
		{job(`{"truth_profile":"t"}`), `x:2: truth_profile "t": must be a name of its own, together with the field truth`},
		{job(`{"truth_profile":"t","truth":{}}` + "\n" + `{"truth_profile":"t","truth":{}}`),
			`x:3: truth_profile "t": must be a name of its own`},
		{job(`{"truth_profile":"t","truth":{"durations":[1]}}`),
			`x:2: truth profile truth.durations: unknown field; must be one of durations_ns, duration_ns, fresh_ns, first_ns, ideal_memory_bytes, elasticity, ideal_memories_bytes, phases, task_phases, heap`},
		{truth(`"durations_ns":[1,2]`), "durations: must be one for each task, 1, but are 2"},
	} {
		_, _, err := read(strings.NewReader(c.text), "x")
		if err == nil || !fault.Is(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\ngives %v, want %s", c.text, err, c.want)
		}
	}
}

// A compressed file cut at any point is rejected, and the error says how many bytes were read.
func TestTruncatedWorkloadFile(t *testing.T) {
	w, err := Generate(Uniform, DefaultGenerateOptions(Uniform))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"w.jsonl", "w.jsonl.gz", "w.jsonl.zst"} {
		path := filepath.Join(t.TempDir(), name)
		if err := Save(path, w, Header{}); err != nil {
			t.Fatal(err)
		}
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for cut := 0; cut < len(whole); cut += 97 {
			in, err := Unpack(bytes.NewReader(whole[:cut]), name)
			if err == nil {
				_, _, err = read(in, name)
				in.Close()
			}
			if !fault.Is(err) || !strings.HasPrefix(err.Error(), name) || !strings.Contains(err.Error(), "truncated") {
				t.Fatalf("%s cut to %d bytes: %v", name, cut, err)
			}
		}
	}
}

// A failed write leaves no file behind.
func TestSaveFileIsAtomic(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "w")
	if err := os.WriteFile(path, []byte("before"), 0o644); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("no more")
	err := SaveFile(path, Zstd, func(out io.Writer) error {
		if _, err := io.WriteString(out, "half"); err != nil {
			t.Fatal(err)
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); len(left) != 1 || string(text) != "before" || err != nil {
		t.Errorf("%d files, %q, %v", len(left), text, err)
	}
}

func TestDocumentedWorkloadFile(t *testing.T) {
	for i, text := range testfile.Examples(t, "../../docs/reference/recordings.md", "workload") {
		w, _, err := read(strings.NewReader(text), "example")
		if err != nil {
			t.Errorf("example %d: %v", i+1, err)
			continue
		}
		var again bytes.Buffer
		h := Header{Cluster: &ClusterShape{Nodes: 2, Node: resource.Of(16000, 64_000_000_000)}}
		if err := Write(&again, w, h); err != nil {
			t.Fatal(err)
		}
		if again.String() != text {
			t.Errorf("example %d is not how it is written:\n%s", i+1, again.String())
		}
	}
}

func FuzzReadWorkload(f *testing.F) {
	w, err := Generate(Uniform, GenerateOptions{Jobs: 2, Tasks: Range[int]{1, 3}, Memory: Range[resource.Amount]{1, 9},
		Duration: Range[time.Duration]{1e9, 2e9}})
	if err != nil {
		f.Fatal(err)
	}
	w.Jobs[0].Truth = []StageTruth{{Phases: ForAll([]cluster.Phase{{Name: "a", Duration: time.Second}}),
		Heap: &Heap{Live: 1}}}
	var text bytes.Buffer
	if err := Write(&text, w, Header{}); err != nil {
		f.Fatal(err)
	}
	f.Add(text.Bytes())
	f.Add([]byte(workloadHeader +
		`{"truth_profile":"t","truth":{"durations_ns":[3],"task_phases":[[{"duration_ns":1}]]}}` + "\n" +
		`{"id":1,"class":"flex","stages":[{"tasks":1,"ideal":[1,5],"max_memory_bytes":7}],"truth":["t"]}` +
		"\n{\"jobs\":1}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := Unpack(bytes.NewReader(data), "x")
		if err != nil {
			return
		}
		defer in.Close()
		w, h, err := read(in, "x")
		if err != nil {
			if !fault.Is(err) {
				t.Fatalf("no fault: %v", err)
			}
			return
		}
		var out bytes.Buffer
		if err := Write(&out, w, Header{Cluster: h.Cluster}); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again, _, err := read(&out, "x")
		if err != nil || !reflect.DeepEqual(again, w) {
			t.Fatalf("read again: %v\n%+v\n%+v", err, again, w)
		}
	})
}

// A workload file cannot contain what a job file rejects.
func TestWorkloadFileRefusesWhatOnlyFlexCanHave(t *testing.T) {
	for fields, want := range map[string]string{
		`"class":"flex","stages":[{"tasks":1,"ideal":[1,9],"heartbeat_timeout_ns":1999000000}]`: "heartbeat_timeout 1.999s: must be at least 2s",
		`"stages":[{"tasks":1,"ideal":[1,9],"max_memory_bytes":9}]`:                             "max_memory 9B: needs class flex",
		`"stages":[{"tasks":1,"ideal":[1,9],"args":["java"],"runtime":"jvm"}]`:                  "runtime jvm: needs class flex",
		`"class":"flex","stages":[{"tasks":1,"ideal":[1,9],"args":["java"],"runtime":"x"}]`:     "runtime x: must be jvm",
	} {
		_, _, err := read(strings.NewReader(workloadHeader+`{"id":1,"name":"j",`+fields+"}\n"+`{"jobs":1}`+"\n"), "x")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", fields, err, want)
		}
	}
}

// read reads a whole file.
func read(in io.Reader, name string) (*Workload, Header, error) {
	r, err := NewReader(in, name)
	if err != nil {
		return nil, Header{}, err
	}
	w, err := r.Rest()
	return w, r.Header, err
}
