package importer

import (
	"bytes"
	"compress/gzip"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/internal/testfile"
)

// example is a small handmade file.
type example struct {
	name   string
	format func() Format
	files  []string
	real   string // path of recorded files, below the data next to the project; a pattern
}

// machinesFile is the second input of Bitbrains, in addition to its samples.
const machinesFile = "vm,cores,cpu_capacity_mhz,mem_provisioned_mb\n1,2,4000.0,2048.0\n2,0,0.0,0.0\n3,,,0\n"

func examples() []example {
	return []example{
		{"swim", func() Format { return DefaultSWIM() }, []string{"swim.tsv"}, "swim/*.tsv.gz"},
		{"alibaba2018", func() Format { return DefaultAlibaba() }, []string{"alibaba.csv"}, "alibaba2018-dags/*.csv.gz"},
		{"alibaba2018-usage", func() Format { f := DefaultAlibaba(); f.Usage = true; return f }, []string{"alibaba.csv"}, ""},
		{"alibaba2018-batch", func() Format { return DefaultAlibaba() }, []string{"batch_task.csv"}, ""},
		{"alibaba2018-kept", func() Format { f := DefaultAlibaba(); f.KeepFailed, f.KeepRunning = true, true; return f },
			[]string{"batch_task.csv"}, ""},
		{"sparrow", func() Format { return DefaultSparrow() }, []string{"sparrow.tr"}, "sparrow-traces/*.tr.gz"},
		{"decima", func() Format { return DefaultDecima() }, []string{"decima.jsonl"}, "decima-tpch/*.jsonl.gz"},
		{"decima-waves", func() Format { f := DefaultDecima(); f.Waves = true; return f }, []string{"decima.jsonl"}, ""},
		{"spark-eventlog", func() Format { return DefaultSpark() }, []string{"spark.jsonl"}, "spark-eventlogs/original/*"},
		{"spark-two", func() Format { return DefaultSpark() }, []string{"spark.jsonl", "spark-large.jsonl"}, ""},
		{"spark-killed", func() Format { return DefaultSpark() }, []string{"spark-killed.jsonl"}, ""},
		{"bitbrains", func() Format {
			f := DefaultBitbrains()
			f.VMs = Source{"vms.csv", strings.NewReader(machinesFile)}
			return f
		}, []string{"bitbrains.csv"}, "bitbrains/rnd-*.csv.gz"},
		{"google-vms", func() Format { return DefaultGoogleVMs() }, []string{"google.csv"}, "google2011-vms/*.csv.gz"},
		{"bitbrains-published", func() Format { return DefaultBitbrains() }, []string{"17.csv"}, ""},
		{"google-tasks", func() Format { return DefaultGoogleVMs() }, []string{"task_usage.csv", "task_events.csv"}, ""},
		{"nextflow", func() Format { return DefaultNextflow() }, []string{"nextflow.csv"}, "nextflow-sizey/*.csv.gz"},
		{"nextflow-trace", func() Format { return DefaultNextflow() }, []string{"trace.txt"}, ""},
		{"swf", func() Format { return DefaultSWF() }, []string{"swf.txt"}, ""},
		{"slurm", func() Format { return DefaultSlurm() }, []string{"sacct.txt"}, ""},
		{"slurm-names", func() Format { return DefaultSlurm() }, []string{"sacct-names.txt"}, ""},
	}
}

func exampleOf(t testing.TB, name string) example {
	t.Helper()
	for _, e := range examples() {
		if e.name == name {
			return e
		}
	}
	t.Fatalf("no example %s", name)
	return example{}
}

func (e example) sources(t testing.TB) []Source {
	t.Helper()
	var all []Source
	for _, name := range e.files {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, Source{name, bytes.NewReader(text)})
	}
	return all
}

func imported(t testing.TB, name string, o Options) *Result {
	t.Helper()
	e := exampleOf(t, name)
	r, err := Import(e.format(), e.sources(t), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// testdata/*.golden has the imported workload of each example, with notes and suggested cluster.
func TestExamples(t *testing.T) {
	for _, e := range examples() {
		t.Run(e.name, func(t *testing.T) {
			r := imported(t, e.name, Options{Seed: 1})
			var got bytes.Buffer
			if err := workload.Write(&got, r.Workload, workload.Header{Cluster: &r.Cluster}); err != nil {
				t.Fatal(err)
			}
			for _, n := range r.Notes {
				got.WriteString(n + "\n")
			}
			testfile.Golden(t, e.name+".golden", got.Bytes())
		})
	}
}

// What ended without success, and why, is counted by what recurs, also where it is left out; and so are tasks whose
// request is not in the file.
func TestEnds(t *testing.T) {
	for name, want := range map[string]Result{
		"slurm-names": {Ends: map[profile.App]Ends{{Owner: "ann", Name: "align"}: {All: 1, ForMemory: 1},
			{Owner: "bob", Name: "report"}: {All: 1}}},
		"nextflow":       {Ends: map[profile.App]Ends{{Name: "NF:ALIGN"}: {All: 1, ForMemory: 1}}},
		"nextflow-trace": {Ends: map[profile.App]Ends{{Name: "REPORT"}: {All: 1, ForMemory: 1}}, Unasked: 3},
		"slurm":          {Unasked: 1},
		"swf":            {},
	} {
		got := imported(t, name, Options{})
		if !reflect.DeepEqual(got.Ends, want.Ends) || got.Unasked != want.Unasked {
			t.Errorf("%s: ends %v, unasked %d; want %v, %d", name, got.Ends, got.Unasked, want.Ends, want.Unasked)
		}
	}
}

// The name of a Slurm job is what recurs, and all stages of a process have its name where they are to teach each other.
func TestWhatRecurs(t *testing.T) {
	var apps, stages []string
	for _, j := range imported(t, "slurm-names", Options{}).Workload.Jobs {
		apps = append(apps, j.Owner+" "+j.App)
	}
	if want := []string{"ann align", "ann align", "bob report"}; !slices.Equal(apps, want) {
		t.Errorf("applications %q, want %q", apps, want)
	}
	f := DefaultNextflow()
	f.NameStages = true
	text := "task_id\tname\tstatus\tcpus\tmemory\tsubmit\tduration\trealtime\tpeak_rss\n" +
		"1\tSORT (a)\tCOMPLETED\t1\t2 GB\t2024-02-01 10:00:00.000\t9s\t9s\t300 MB\n" +
		"2\tSORT (b)\tCOMPLETED\t1\t4 GB\t2024-02-01 10:00:00.000\t9s\t9s\t600 MB\n"
	r, err := Import(f, []Source{{"trace.txt", strings.NewReader(text)}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Workload.Jobs[0].Stages {
		stages = append(stages, s.Name)
	}
	if want := []string{"SORT", "SORT"}; !slices.Equal(stages, want) {
		t.Errorf("stages %q, want %q", stages, want)
	}
}

func TestSWIMModel(t *testing.T) {
	w := imported(t, "swim", Options{Bandwidth: Estimated}).Workload
	a := w.Jobs[0].Stages
	// 300 MB of input are 3 splits of 128 MiB; a map reads 100 MB at 10 MB/s after a start-up of 2 s.
	if len(a) != 1 || a[0].Tasks != 3 || a[0].Duration != 12*time.Second || a[0].Ideal[resource.Disk] != 8888889 {
		t.Errorf("map-only job: %+v", a)
	}
	// 3 GB of shuffle are 12 reducers of 250 MB, which fit into a buffer of 0.56 GiB.
	b := w.Jobs[1].Stages
	if len(b) != 2 || b[1].Tasks != 12 || b[1].Elastic() || b[1].Parents[0] != 0 || b[1].Duration != 27*time.Second {
		t.Errorf("job with reducers: %+v", b)
	}
	f := DefaultSWIM()
	f.MostReducers = 2
	if b := f.stages(1000, 3e9, 0); b[1].Tasks != 2 || !b[1].Elastic() || b[1].MinMemory != resource.GiB ||
		b[1].Ideal[resource.Memory] != 2678571429 {
		t.Errorf("reducers that do not fit: %+v", b[1])
	}
}

func TestAlibabaModel(t *testing.T) {
	for _, c := range []struct {
		name    string
		number  int
		parents []int
	}{
		{"M1", 1, nil}, {"R4_1_2_3", 4, []int{1, 2, 3}}, {"J3_1_2_Stg4", 3, []int{1, 2}}, {"J30_4_25_", 30, []int{4, 25}},
		{"task_NzY=", 0, nil}, {"MergeTask", 0, nil}, {"7_1", 0, nil}, {"R2_2_2", 2, []int{2}},
	} {
		if number, parents := taskNumbers(c.name); number != c.number || !slices.Equal(parents, c.parents) {
			t.Errorf("%s is task %d after %v, want %d after %v", c.name, number, parents, c.number, c.parents)
		}
	}
	w := imported(t, "alibaba2018", Options{}).Workload
	j := w.Jobs[1] // j_1 was submitted before j_2
	if w.Jobs[0].Name != "j_1" || j.Submitted != timeline.Time(100*time.Second) || len(j.Stages) != 3 {
		t.Fatalf("jobs %+v", w.Jobs)
	}
	if s := j.Stages[1]; s.Tasks != 2 || s.Duration != 25*time.Second || s.Ideal != resource.Of(500, 5497558139) ||
		!slices.Equal(s.Parents, []int{0}) {
		t.Errorf("R2_1: %+v", s)
	}
	if s := j.Stages[2]; !slices.Equal(s.Parents, []int{0, 1}) || s.Ideal != resource.Of(1000, 2*resource.GiB) {
		t.Errorf("J3_1_2: %+v", s)
	}
}

func TestSparkModel(t *testing.T) {
	j := imported(t, "spark-eventlog", Options{}).Workload.Jobs[0]
	if len(j.Stages) != 3 || !slices.Equal(j.Stages[1].Parents, []int{0}) || !slices.Equal(j.Stages[2].Parents, []int{1}) {
		t.Fatalf("stages %+v", j.Stages)
	}
	sort := j.Stages[1]
	// An executor has 1 GiB of heap, of which 60 % less 300 MiB is execution memory, and 384 MiB outside the heap, for
	// 2 tasks.
	x := executor{slots: 2, heap: resource.GiB, overhead: 384 * resource.MiB, fraction: 0.6}
	outside := x.outside()
	if want := (resource.GiB - amount(0.6*float64(resource.GiB-300*resource.MiB)) +
		384*resource.MiB) / 2; outside != want {
		t.Errorf("a task has %d bytes beside execution memory, want %d", outside, want)
	}
	// It had 100 MB and spilled 300 MB, 60 MB on disk: written and read at 100 MB/s, 1.2 s of 5.2 s.
	e := sort.Elasticity
	if sort.Ideal[resource.Memory] != outside+400*resource.MB || sort.MinMemory != outside+100*resource.MB ||
		sort.Duration != 4*time.Second ||
		e.Kind != cluster.Points || len(e.Points) != 2 || e.Points[0].Memory != sort.MinMemory ||
		e.Points[0].Slowdown != 1.3 {
		t.Errorf("sort: %+v", sort)
	}
	if scan := j.Stages[0]; scan.Input != 200*resource.MB || sort.Input != 50*resource.MB || j.Stages[2].Input != 0 {
		t.Errorf("the stages read %d, %d and %d bytes", scan.Input, sort.Input, j.Stages[2].Input)
	}
	// CPU time is half of the run time. 50 MB are read in 4 s, half of them from other nodes.
	if d := j.Task(1, 0).Phases[0].Demand; d != (resource.Vector{650, outside + 400*resource.MB, 6250000, 6250000}) {
		t.Errorf("demand of a sort: %v", d)
	}
}

// With two logs of different memory, the cost of under-sizing is fitted to both.
func TestSparkTwoLogs(t *testing.T) {
	r := imported(t, "spark-two", Options{})
	for _, j := range r.Workload.Jobs {
		s := j.Stages[1]
		if !s.Elastic() || s.Duration != 4*time.Second {
			t.Errorf("%s: %+v", j.Name, s)
		}
		if got, _ := s.DurationAt(s.MinMemory); (got - 5200*time.Millisecond).Abs() > 2*time.Millisecond {
			t.Errorf("%s: %v with the least memory, want what was measured, 5.2s", j.Name, got)
		}
	}
	if r.Cluster.Nodes != 4 {
		t.Errorf("%d nodes, want the executors of both applications", r.Cluster.Nodes)
	}
}

func TestMachinesModel(t *testing.T) {
	r := imported(t, "bitbrains", Options{})
	if len(r.Workload.Jobs) != 1 {
		t.Fatalf("%d jobs", len(r.Workload.Jobs))
	}
	j := r.Workload.Jobs[0]
	if s := j.Stages[0]; s.Ideal != resource.Of(2000, 2*resource.GiB) || s.Duration != 20*time.Minute {
		t.Errorf("provisioned: %+v", s)
	}
	want := []cluster.Phase{
		{Duration: 15 * time.Minute, Demand: resource.Vector{500, 512 * resource.MiB, 1000, 0}},
		{Duration: 5 * time.Minute, Demand: resource.Vector{500, 1074266112, 5000, 10000}},
	}
	if got := j.Task(0, 0).Phases; !slices.Equal(got, want) {
		t.Errorf("used: %+v", got)
	}
}

func TestNextflowModel(t *testing.T) {
	w := imported(t, "nextflow", Options{}).Workload
	j := w.Jobs[0]
	var names []string
	parents := map[string][]int{}
	for _, s := range j.Stages {
		names = append(names, s.Name)
		parents[s.Name] = s.Parents
	}
	if !slices.Equal(names, []string{"NF:INDEX", "NF:QC", "NF:ALIGN", "NF:REPORT"}) {
		t.Fatalf("stages %v", names)
	}
	// QC and ALIGN began after INDEX had ended, and REPORT after ALIGN and QC; that it waits for INDEX is implied.
	if !slices.Equal(parents["NF:QC"], []int{0}) || !slices.Equal(parents["NF:ALIGN"], []int{0}) ||
		!slices.Equal(parents["NF:REPORT"], []int{1, 2}) {
		t.Errorf("parents %v", parents)
	}
	if m := j.Truth[2].IdealMemory.Values(); !slices.Equal(m, []resource.Amount{6 * resource.GB, 8 * resource.GB}) ||
		j.Stages[2].Ideal != resource.Of(4000, 8*resource.GB) {
		t.Errorf("memory %v of %v", m, j.Stages[2].Ideal)
	}
}

// A trace as people read it and one of programs (trace.raw) have the same tasks.
func TestNextflowTrace(t *testing.T) {
	j := imported(t, "nextflow-trace", Options{}).Workload.Jobs
	const mb = 1 << 20 // Nextflow's MB
	if len(j) != 1 || j[0].Name != "trace" || len(j[0].Stages) != 2 {
		t.Fatalf("jobs %+v", j)
	}
	index, align := j[0].Stages[0], j[0].Stages[1]
	// INDEX kept 1.803 cores busy for 59.8 s. Two tasks of ALIGN took 1280 s with at most 8 GB, and 2 s; it waits for
	// INDEX.
	if index.Name != "INDEX" || index.Tasks != 1 || index.Duration != 59800*time.Millisecond ||
		index.Ideal != resource.Of(2000, resource.Amount(math.Round(512.4*mb))) {
		t.Errorf("INDEX: %+v", index)
	}
	if align.Name != "ALIGN" || align.Tasks != 2 || align.Duration != 641*time.Second ||
		!slices.Equal(align.Parents, []int{0}) || align.Ideal != resource.Of(8000, 8*resource.GiB) {
		t.Errorf("ALIGN: %+v", align)
	}
	if m := j[0].Truth[1].IdealMemory.Values(); !slices.Equal(m, []resource.Amount{8 * resource.GiB, 12 * mb}) {
		t.Errorf("ALIGN has %v", m)
	}
	if in := j[0].Truth[1].Input.Values(); !slices.Equal(in, []resource.Amount{24588687770, 2 * mb}) { // 22.9 GB, 2 MB
		t.Errorf("ALIGN reads %v", in)
	}
	raw := "task_id\tname\tstatus\tsubmit\tduration\trealtime\t%cpu\tpeak_rss\trchar\n" +
		"1\tINDEX (s1)\tCOMPLETED\t1706781600123\t65000\t59800\t180.3\t537290342\t1288490189\n" +
		"2\tALIGN (s1)\tCACHED\t1706781670456\t1284000\t1280000\t705.0\t8589934592\t24588687770\n" +
		"4\tALIGN (s2)\tCOMPLETED\t1706781670456\t2000\t2000\t99.0\t12582912\t2097152\n"
	r, err := Import(DefaultNextflow(), []Source{{"trace.txt.gz", strings.NewReader(raw)}}, Options{})
	if err != nil || !reflect.DeepEqual(r.Workload.Jobs, j) {
		t.Errorf("raw: %+v, %v; want %+v", r, err, j)
	}
}

func TestNextflowValues(t *testing.T) {
	for text, want := range map[string]float64{"0": 0, "9s": 9000, "350ms": 350, "1d 2h 3m 4.5s": 93784500, "1.5": 1.5,
		"1h5m": -1, "5x": -1, "": -1, "ms": -1} {
		if got, ok := nextflowTime(text); ok != (want >= 0) || ok && got != want {
			t.Errorf("time %q: %v, %v", text, got, ok)
		}
	}
	for text, want := range map[string]float64{"0": 0, "17 B": 17, "1.5 KB": 1536, "3 GB": 3 << 30, "2 TB": 2 << 40,
		"1 KM": -1, "1GB": -1, "1 MiB": -1, "": -1} {
		if got, ok := nextflowSize(text); ok != (want >= 0) || ok && got != want {
			t.Errorf("size %q: %v, %v", text, got, ok)
		}
	}
}

// A machine of 2, then 4 cores of 1,000 MHz had samples after 0, 300, 299+300 and 1,500 s.
func TestBitbrainsPublished(t *testing.T) {
	r := imported(t, "bitbrains-published", Options{})
	j := r.Workload.Jobs[0]
	if s := j.Stages[0]; j.Name != "vm-17" || j.Class != cluster.Flex || s.Ideal != resource.Of(4000, 4*resource.GiB) ||
		s.Duration != 30*time.Minute {
		t.Errorf("provisioned: %+v", j)
	}
	const gib = resource.GiB
	want := []cluster.Phase{
		{Duration: 599 * time.Second, Demand: resource.Vector{200, gib, 1100, 0}}, // two samples
		{Duration: 901 * time.Second, Demand: resource.Vector{2000, gib / 2, 0, 4000}},
		{Duration: 300 * time.Second, Demand: resource.Vector{0, 2 * gib, 0, 0}},
	}
	if got := j.Task(0, 0).Phases; !slices.Equal(got, want) {
		t.Errorf("used %+v, want %+v", got, want)
	}
	notes := strings.Join(r.Notes, "\n")
	if !strings.Contains(notes, "before them and were left out: 1") ||
		!strings.Contains(notes, "replaced by the previous sample: 2") {
		t.Errorf("notes %s", notes)
	}
	_, err := Import(DefaultBitbrains(), exampleOf(t, "bitbrains").sources(t), Options{})
	if err == nil || !strings.Contains(err.Error(), "vms: must name the file with the provisioned resources") {
		t.Errorf("derived samples without machines: %v", err)
	}
}

// 100 % are 4 cores and 8 GiB. Task 0 of job 5 requested an eighth of each and has three samples of 300 s, given in
// another order; task 1 has events alone, from 610 s to 910 s. Job 6 has one sample and no event, job 7 was never
// started.
func TestGoogleTasks(t *testing.T) {
	jobs := imported(t, "google-tasks", Options{}).Workload.Jobs
	if len(jobs) != 2 || jobs[0].Name != "job-5" || jobs[1].Name != "job-6" {
		t.Fatalf("%+v", jobs)
	}
	j := jobs[0]
	if s := j.Stages[0]; s.Tasks != 2 || s.Ideal != resource.Of(500, resource.GiB) || s.Duration != 600*time.Second ||
		j.Class != cluster.Flex || j.Submitted != 0 {
		t.Errorf("job 5: %+v", j)
	}
	want := []cluster.Phase{{Duration: 600 * time.Second, Demand: resource.Of(1000, resource.GiB/2)},
		{Duration: 300 * time.Second, Demand: resource.Of(0, resource.GiB)}}
	if got := j.Task(0, 0).Phases; !slices.Equal(got, want) {
		t.Errorf("task 0 did %+v, want %+v", got, want)
	}
	want = []cluster.Phase{{Duration: 300 * time.Second, Demand: resource.Of(500, resource.GiB)}}
	if got := j.Task(0, 1).Phases; !slices.Equal(got, want) {
		t.Errorf("task 1 did %+v, want %+v", got, want)
	}
	if s := jobs[1].Stages[0]; s.Ideal != resource.Of(2000, 2*resource.GiB) ||
		jobs[1].Submitted != timeline.Time(300*time.Second) {
		t.Errorf("job 6: %+v", jobs[1])
	}
}

// MaxNodes and MaxProcs are 4 and 32. Job 1 has 4 processors that ran 100 s at 95 s of CPU with 2,000 KB of the 2,048
// KB and 200 s requested. Job 2 was given no memory and no limit.
func TestSWFModel(t *testing.T) {
	r := imported(t, "swf", Options{})
	if len(r.Workload.Jobs) != 2 || r.Cluster.Nodes != 4 || r.Cluster.Node[resource.CPU] != 8000 {
		t.Fatalf("%+v on %+v", r.Workload.Jobs, r.Cluster)
	}
	j := r.Workload.Jobs[0]
	if s := j.Stages[0]; s.Tasks != 4 || s.Ideal != resource.Of(1000, 2048*resource.KiB) || s.Duration != 200*time.Second {
		t.Errorf("job 1: %+v", s)
	}
	want := []cluster.Phase{{Duration: 100 * time.Second, Demand: resource.Of(950, 2000*resource.KiB)}}
	if got := j.Task(0, 3).Phases; !slices.Equal(got, want) || j.Owner != "user-7" {
		t.Errorf("job 1 used %+v, owner %s", got, j.Owner)
	}
	j = r.Workload.Jobs[1]
	if s := j.Stages[0]; s.Tasks != 1 || s.Ideal != resource.Of(1000, 2*resource.GiB) || s.Duration != 50*time.Second ||
		j.Submitted != timeline.Time(30*time.Second) {
		t.Errorf("job 2: %+v", j)
	}
}

// Job 100 has 2 nodes of 4 CPUs and 4 GiB, and ran two tasks of up to 1,234 KiB on each for 26 h. Job 101 asked for
// memory per CPU.
func TestSlurmModel(t *testing.T) {
	jobs := imported(t, "slurm", Options{}).Workload.Jobs
	if len(jobs) != 3 {
		t.Fatalf("%+v", jobs)
	}
	const ran = 26*time.Hour + 3*time.Minute + 4*time.Second
	j := jobs[0]
	if s := j.Stages[0]; s.Tasks != 2 || s.Ideal != resource.Of(4000, 4*resource.GiB) || s.Duration != 48*time.Hour ||
		j.Owner != "ann" {
		t.Errorf("job 100: %+v", j)
	}
	want := []cluster.Phase{{Duration: ran, Demand: resource.Of(3999, 2*1234*resource.KiB)}}
	if got := j.Task(0, 1).Phases; !slices.Equal(got, want) {
		t.Errorf("job 100 used %+v, want %+v", got, want)
	}
	if s := jobs[1].Stages[0]; s.Tasks != 1 || s.Ideal != resource.Of(4000, 8*resource.GiB) ||
		s.Duration != 61*time.Second || jobs[1].Submitted != timeline.Time(10*time.Second) || jobs[1].Name != "job-101_3" {
		t.Errorf("job 101: %+v", jobs[1])
	}
	if s := jobs[2].Stages[0]; s.Ideal[resource.Memory] != 512*resource.MiB {
		t.Errorf("job 102 did not say what it needs: %+v", s)
	}
}

func TestSlurmValues(t *testing.T) {
	for text, want := range map[string]float64{"601": 601, "01:02.5": 62.5, "2-00:00:01": 172801, "1:00": 60, "": -1,
		"1-5": -1, "UNLIMITED": -1, "1:2:3:4": -1, "::": -1} {
		if got, ok := slurmTime(text); ok != (want >= 0) || ok && got != want {
			t.Errorf("time %q: %v, %v", text, got, ok)
		}
	}
	for text, want := range map[string]float64{"0": 0, "1.5K": 1536, "3G": 3 << 30, "17": 17, "": -1, "K": -1, "4X": -1} {
		if got, ok := slurmSize(text); ok != (want >= 0) || ok && got != want {
			t.Errorf("size %q: %v, %v", text, got, ok)
		}
	}
}

// precede returns the pairs of the interval order that imply all others.
func TestPrecede(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) interval {
			begin := rapid.Int64Range(0, 12).Draw(t, "begin")
			return interval{begin, begin + rapid.Int64Range(1, 5).Draw(t, "length")}
		}), 1, 8).Draw(t, "intervals")
		n := len(all)
		reach := make([][]bool, n) // from the given pairs
		for i := range reach {
			reach[i] = make([]bool, n)
		}
		for i, parents := range precede(all) {
			for _, p := range parents {
				reach[p][i] = true
			}
		}
		for i := range n {
			for k := range n {
				if direct := reach[i][k]; direct {
					for m := range n {
						if all[i].end <= all[m].begin && all[m].end <= all[k].begin {
							t.Fatalf("%v: %d before %d is said, but follows by way of %d", all, i, k, m)
						}
					}
				}
			}
		}
		for m := range n {
			for i := range n {
				for k := range n {
					reach[i][k] = reach[i][k] || reach[i][m] && reach[m][k]
				}
			}
		}
		for i := range n {
			for k := range n {
				if want := all[i].end <= all[k].begin; reach[i][k] != want {
					t.Fatalf("%v: %d before %d is %v", all, i, k, reach[i][k])
				}
			}
		}
	})
	if p := precede([]interval{{5, 5}, {5, 5}}); p[0] != nil || p[1] != nil {
		t.Errorf("two that took no time wait for each other: %v", p)
	}
}

func TestOptions(t *testing.T) {
	names := func(o Options) string {
		var all []string
		for _, j := range imported(t, "swim", o).Workload.Jobs {
			all = append(all, j.Name)
		}
		return strings.Join(all, "")
	}
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, "abcd"}, {Options{From: time.Minute}, "bcd"}, {Options{To: time.Minute}, "a"},
		{Options{From: time.Minute, To: 2 * time.Hour}, "bc"}, {Options{Jobs: 2}, "ab"}, {Options{Jobs: 9}, "abcd"},
	} {
		if got := names(c.o); got != c.want {
			t.Errorf("%+v keeps %s, want %s", c.o, got, c.want)
		}
	}
	if a, b := names(Options{Jobs: 2, Sample: true, Seed: 3}), names(Options{Jobs: 2, Sample: true, Seed: 3}); a != b ||
		len(a) != 2 {
		t.Errorf("the same seed draws %s and %s", a, b)
	}
	w := imported(t, "sparrow", Options{ArrivalsScale: 0.5, TasksScale: 2, MemoryScale: 0.25}).Workload
	j := w.Jobs[1] // first in the file, 5 s after the job before it
	if j.Submitted != timeline.Time(2500*time.Millisecond) || j.Stages[0].Tasks != 6 ||
		j.Stages[0].Ideal[resource.Memory] != resource.GiB/2 {
		t.Errorf("scaled: %+v", j)
	}
	if d := j.Truth[0].Duration.Values(); len(d) != 6 || d[0] != d[1] || d[4] != 29500*time.Millisecond {
		t.Errorf("durations of more tasks: %v", d)
	}
	w = imported(t, "sparrow", Options{TasksScale: 0.01}).Workload
	if j := w.Jobs[1]; j.Stages[0].Tasks != 1 || len(j.Truth[0].Duration.Values()) != 1 {
		t.Errorf("at least one task is left: %+v", j)
	}
	if _, err := Import(DefaultSparrow(), []Source{{"f", strings.NewReader("0 1 1 1\n9999999 1 1 1\n")}},
		Options{ArrivalsScale: 100}); err == nil || !strings.Contains(err.Error(), "must be at most 87600h0m0s") {
		t.Errorf("jobs decades apart: %v", err)
	}
	for _, o := range []Options{{From: -1}, {From: 5, To: 5}, {Jobs: -1}, {Load: -1}, {MemoryScale: -2},
		{From: 1000 * time.Hour}} {
		e := exampleOf(t, "swim")
		if _, err := Import(e.format(), e.sources(t), o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

// Jobs of different days can be submitted at once, and the class of all jobs be chosen. What shows more of the workload
// is said.
func TestHints(t *testing.T) {
	hints := func(e string, o Options) (*Result, string) {
		r := imported(t, e, o)
		return r, strings.Join(r.Notes, "\n")
	}
	const apart, breathes, unknown = "--arrivals-scale 0 submits", "--class flex imports them", "No task spilled"
	r, notes := hints("sparrow", Options{ArrivalsScale: 1e4})
	if !strings.Contains(notes, apart) || r.Workload.Jobs[2].Submitted == 0 {
		t.Errorf("jobs that do not overlap: %s", notes)
	}
	r, notes = hints("sparrow", Options{AtOnce: true})
	if strings.Contains(notes, apart) || r.Workload.Jobs[2].Submitted != 0 {
		t.Errorf("at once: %s, %+v", notes, r.Workload.Jobs)
	}
	r, notes = hints("nextflow", Options{})
	if !strings.Contains(notes, breathes) || r.Workload.Jobs[0].Class != cluster.Regular {
		t.Errorf("nextflow: %s", notes)
	}
	flex := cluster.Flex
	r, notes = hints("nextflow", Options{Class: &flex})
	if strings.Contains(notes, breathes) || r.Workload.Jobs[0].Class != flex {
		t.Errorf("nextflow as flex: %s", notes)
	}
	if _, notes = hints("bitbrains", Options{}); strings.Contains(notes, breathes) {
		t.Errorf("machines are flex already: %s", notes)
	}
	if _, notes = hints("spark-eventlog", Options{}); strings.Contains(notes, unknown) {
		t.Errorf("a log with spills: %s", notes)
	}
	text, err := os.ReadFile("testdata/spark.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	dry := bytes.ReplaceAll(text, []byte(`"Disk Bytes Spilled":60000000`), []byte(`"Disk Bytes Spilled":0`))
	if _, notes := sparkImport(t, Source{"f", bytes.NewReader(dry)}); !strings.Contains(notes, unknown) {
		t.Errorf("a log without spills: %s", notes)
	}
}

// The demand on the suggested cluster is at most its load, and would exceed the load with one node less.
func TestSuggestion(t *testing.T) {
	for _, load := range []float64{0.2, 0.8, 3} {
		e := exampleOf(t, "sparrow")
		r, err := Import(e.format(), e.sources(t), Options{Load: load, Node: resource.Of(1000, 0), TasksScale: 50})
		if err != nil {
			t.Fatal(err)
		}
		most := max(r.Asked[resource.CPU], r.Asked[resource.Memory])
		n := float64(r.Cluster.Nodes)
		if most > load+1e-9 || n > 1 && most*n/(n-1) <= load {
			t.Errorf("load %v: %d nodes are asked for %v", load, r.Cluster.Nodes, r.Asked)
		}
	}
}

// Compressed files give the same workload, and errors of truncated files say how many bytes were read.
func TestPacked(t *testing.T) {
	e := exampleOf(t, "swim")
	text, err := os.ReadFile("testdata/swim.tsv")
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Repeat(text[:bytes.IndexByte(text, '\n')+1], 1)
	for i := range 3000 {
		text = append(text, strings.Replace("jX\t70\t1\t5\t6\t7\n", "X", time.Duration(i*7919).String(), 1)...)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := Import(e.format(), []Source{{"day.tsv.gz", bytes.NewReader(packed.Bytes())}}, Options{})
	if err != nil || len(r.Workload.Jobs) != 3001 {
		t.Fatalf("packed: %v", err)
	}
	_, err = Import(e.format(), []Source{{"day.tsv.gz", bytes.NewReader(packed.Bytes()[:packed.Len()/2])}}, Options{})
	if err == nil || !strings.Contains(err.Error(), "day.tsv.gz:") ||
		!strings.Contains(err.Error(), "the gzip data is truncated: it ends after") {
		t.Errorf("truncated: %v", err)
	}
}

// data is the folder of recorded workloads next to the project.
const data = "../../../shared/data"

// recordings returns the recorded files of an example, or skips the test.
func recordings(t testing.TB, e example) (files []Source, close func()) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(data, e.real))
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		t.Skipf("needs ../shared/data/%s, workloads recorded by others", e.real)
	}
	var opened []*os.File
	for _, p := range paths {
		f, err := os.Open(p)
		if err != nil {
			t.Fatal(err)
		}
		opened = append(opened, f)
		files = append(files, Source{p, f})
	}
	return files, func() {
		for _, f := range opened {
			f.Close()
		}
	}
}

// formatFor is the format of recorded files, with the other files that it needs.
func formatFor(t testing.TB, e example, files []Source) Format {
	f := e.format()
	if b, ok := f.(*Bitbrains); ok {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(files[0].Name), "vms.csv"))
		if err != nil {
			t.Fatal(err)
		}
		b.VMs = Source{"vms.csv", bytes.NewReader(text)}
	}
	return f
}

// Recorded workloads are imported completely: the numbers of jobs and tasks are those of their descriptions.
func TestRecordings(t *testing.T) {
	for _, c := range []struct {
		name  string
		jobs  int
		tasks int64
	}{
		{"swim", 5894, 252698}, // 205,713 maps by the default split of their input, more where output is larger, and reducers
		{"alibaba2018", 6587, 3099332},
		{"sparrow", 2910, 122878},
		{"decima", 154, 177885},
		{"spark-eventlog", 4, 26 + 235 + 107 + 13504},
		{"bitbrains", 492, 492},
		{"google-vms", 1600, 1600},
		{"nextflow", 6, 14736},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := exampleOf(t, c.name)
			files, closeAll := recordings(t, e)
			defer closeAll()
			r, err := Import(formatFor(t, e, files), files, Options{Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			s := workload.Summarise(r.Workload)
			if s.Jobs != c.jobs || s.Tasks != c.tasks {
				t.Errorf("%d jobs with %d tasks, want %d with %d", s.Jobs, s.Tasks, c.jobs, c.tasks)
			}
			var file bytes.Buffer
			if err := workload.Write(&file, r.Workload, workload.Header{Cluster: &r.Cluster}); err != nil {
				t.Fatal(err)
			}
			if err := readable(&file); err != nil {
				t.Error(err)
			}
		})
	}
}

// readable returns an error unless a workload file can be read.
func readable(file io.Reader) error {
	r, err := workload.NewReader(file, "x")
	if err == nil {
		_, err = r.Rest()
	}
	return err
}
