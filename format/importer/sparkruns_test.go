package importer

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// runsOf returns the runs of an example after replacements in its text: pairs of old and new.
func runsOf(t *testing.T, f *Spark, name, app string, replace ...string) ([]StageRun, []string, error) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(replace); i += 2 {
		if !bytes.Contains(text, []byte(replace[i])) {
			t.Fatalf("%s has no %q", name, replace[i])
		}
	}
	return f.Runs([]Source{{"f", strings.NewReader(strings.NewReplacer(replace...).Replace(string(text)))}}, app, nil)
}

// The log has two tasks that scan 200 MB and write 50 MB in 2 s each; two that sort for 5.2 s, read 25 MB locally and
// 25 MB over the network, and spill 60 MB with 100 MB of execution memory; and one that collects for 0.5 s. An
// executor has 1 GiB of heap and 384 MiB besides for two tasks, of which 510446797 bytes are a task's share of what
// is not for execution. CPU time is half of the time.
func TestSparkRuns(t *testing.T) {
	runs, notes, err := runsOf(t, DefaultSpark(), "spark.jsonl", "")
	if err != nil || len(notes) != 1 || notes[0] != "tasks failed or were killed and were left out: 1" {
		t.Fatal(err, notes)
	}
	const base, per = 510446797, 704 * resource.MiB
	want := func(stage string, tasks int, ended int64, lasting time.Duration, input, memory, disk,
		network resource.Amount) StageRun {
		return StageRun{profile.App{Owner: "ann", Name: "sorter", Stage: stage}, tasks,
			profile.Run{Ended: timeline.Milliseconds(1700000000000 + ended), Duration: lasting,
				Features: profile.Features{Cores: resource.Core, Memory: per, Input: input},
				Phases: []cluster.Phase{{Duration: lasting, Demand: resource.Of(500, memory).With(resource.Disk,
					disk).With(resource.Network, network)}}}}
	}
	all := []StageRun{
		want("0 scan", 2, 3100, 2*time.Second, 200e6, base, 125e6, 0),
		want("1 sort", 2, 8300, 5200*time.Millisecond, 50e6, base+100e6, 27884615, 4807692),
		want("3 collect", 1, 10500, 500*time.Millisecond, 0, base, 0, 0),
	}
	if !reflect.DeepEqual(runs, all) {
		t.Errorf("got %+v, want %+v", runs, all)
	}
	h := &profile.History{}
	for _, r := range runs {
		if notes, err := h.Observe(r.App, r.Run); err != nil || len(notes) > 0 {
			t.Errorf("%+v: %v %v", r, err, notes)
		}
	}
	j := &cluster.Job{Owner: "ann", App: "sorter", Stages: []cluster.Stage{{Name: "0 scan"}, {Name: "1 sort"}}}
	if !h.Forecast(j, []int{0, 1}) || j.Stages[0].Duration != 2*time.Second || j.Stages[0].Told.Samples != 1 {
		t.Errorf("the forecast is %+v", j.Stages)
	}
	remote := DefaultSpark()
	remote.InputOverNetwork, remote.TaskBase = true, resource.GiB
	if runs, _, err = runsOf(t, remote, "spark.jsonl", "mine"); err != nil || runs[0].App.Name != "mine" ||
		runs[0].Run.Phases[0].Demand != resource.Of(500, resource.GiB).With(resource.Disk, 25e6).With(resource.Network,
			100e6) {
		t.Error(err, runs)
	}
}

// Other versions of Spark do not have everything, which is unknown then, and not 0.
func TestSparkRunsOfOtherVersions(t *testing.T) {
	const peak = `"Peak Execution Memory":`
	for name, c := range map[string]struct {
		replace []string
		unknown [3]resource.Kinds // of scan, sort, collect
		input   bool              // known
		says    string
	}{
		"2.0: no CPU time": {[]string{`"Executor CPU Time":`, `"X":`, `"Executor Deserialize CPU Time":`, `"Y":`},
			[3]resource.Kinds{resource.KindsOf(resource.CPU), resource.KindsOf(resource.CPU), resource.KindsOf(resource.CPU)},
			true,
			"stages have tasks whose cpu is not in the log; it is unknown: 3"},
		"a Java without it": {[]string{`"Executor CPU Time":1000000000`, `"Executor CPU Time":0`},
			[3]resource.Kinds{resource.KindsOf(resource.CPU)}, true, "cpu is not in the log; it is unknown: 1"},
		"2.4: the peak is among the accumulated values": {[]string{peak + "100000000", `"X":100000000`, peak + "0", `"X":0`,
			`Finish Time":1700000008300,"Failed":false,"Killed":false,"Accumulables":[]`,
			`Finish Time":1700000008300,"Failed":false,"Killed":false,"Accumulables":[{"ID":1,"Name":"internal.metrics.peakExecutionMemory","Update":100000000,"Internal":true}]`},
			[3]resource.Kinds{resource.KindsOf(resource.Memory), 0, resource.KindsOf(resource.Memory)}, true,
			"memory is not in the log; it is unknown: 2"},
		"1.6: tasks without a shuffle have no metrics of it": {[]string{`"Shuffle Read Metrics":{"Remote Bytes Read":0,"Remote Bytes Read To Disk":0,"Local Bytes Read":0},`, ``},
			[3]resource.Kinds{resource.KindsOf(resource.Disk, resource.Network), 0,
				resource.KindsOf(resource.Disk, resource.Network)}, false, "network is not in the log; it is unknown: 2"},
		"files are unknown": {[]string{`"Input Metrics":{"Bytes Read":200000000}`, `"X":0`},
			[3]resource.Kinds{resource.KindsOf(resource.Disk)}, false, "disk is not in the log; it is unknown: 1"},
	} {
		runs, notes, err := runsOf(t, DefaultSpark(), "spark.jsonl", "", c.replace...)
		if err != nil || !strings.Contains(strings.Join(notes, "\n"), c.says) {
			t.Errorf("%s: %v %q", name, err, notes)
			continue
		}
		for i, r := range runs {
			d := r.Run.Phases[0].Demand
			if r.Run.Unknown != c.unknown[i] || r.Run.Unknown.In(d, 0) != d {
				t.Errorf("%s: %s: unknown %v, demand %v; want unknown %v", name, r.App.Stage, r.Run.Unknown, d, c.unknown[i])
			}
		}
		if known := runs[0].Run.Input != 0; known != c.input {
			t.Errorf("%s: input %d", name, runs[0].Run.Input)
		}
		if d := runs[1].Run.Phases[0].Demand[resource.Memory]; d != 610446797 {
			t.Errorf("%s: memory %d", name, d)
		}
	}
}

// Stages that are only partly in a log teach nothing. A log without a complete stage, or with an error, is the user's
// mistake.
func TestSparkRunsOfBadLogs(t *testing.T) {
	if runs, notes, err := runsOf(t, DefaultSpark(), "spark-killed.jsonl", ""); err != nil || len(runs) != 2 ||
		!strings.Contains(strings.Join(notes, "\n"), "cut off at the end") {
		t.Error(err, runs, notes)
	}
	more := `"Stage Name":"sort","Number of Tasks":3`
	runs, notes, err := runsOf(t, DefaultSpark(), "spark.jsonl", "", `"Stage Name":"sort","Number of Tasks":2`, more)
	if err != nil || len(runs) != 2 ||
		!strings.Contains(strings.Join(notes, "\n"),
			"stages did not run all their tasks, and nothing is learned of them: 1") {
		t.Error(err, runs, notes)
	}
	for want, replace := range map[string][]string{
		"f:16: SparkListenerTaskEnd: must have at least one stage all of whose tasks succeeded": {`"Number of Tasks":2`,
			`"Number of Tasks":9`, `"Number of Tasks":1`, `"Number of Tasks":9`},
		"f:20: App Name: must be in the log, or be given": {`"App Name":"sorter"`,
			`"App Name":""`},
		"f:1: event: must be a JSON object": {`{"Event":"SparkListenerLogStart"`, `{Event:"SparkListenerLogStart"`},
	} {
		if runs, _, err := runsOf(t, DefaultSpark(), "spark.jsonl", "", replace...); err == nil ||
			!strings.Contains(err.Error(), want[strings.Index(want, ": "):]) {
			t.Errorf("%v %v, want %s", err, runs, want)
		}
	}
	if _, _, err := DefaultSpark().Runs([]Source{{"f", strings.NewReader("")}}, "a", nil); err == nil {
		t.Error("an empty log is read")
	}
}

// Recorded logs, compressed as Spark compresses them, agree with the table of their tasks that others made of them.
func TestSparkRunsOfRecordings(t *testing.T) {
	e := exampleOf(t, "spark-eventlog")
	files, closeAll := recordings(t, e)
	defer closeAll()
	table := readTaskTable(t)
	for _, file := range files {
		runs, _, err := DefaultSpark().Runs([]Source{file}, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		log, _, _ := strings.Cut(filepath.Base(file.Name), "__")
		for _, r := range runs {
			stage, _, _ := strings.Cut(r.App.Stage, " ")
			of := table[log+" "+stage]
			if of == nil {
				t.Errorf("%s stage %s: is not in the table", log, stage)
				continue
			}
			d, n := r.Run.Phases[0].Demand, float64(of.tasks)
			for what, v := range map[string][2]float64{"tasks": {float64(r.Tasks), n},
				"duration": {r.Run.Duration.Seconds(), of.lasting / n}, "input": {float64(r.Run.Input), of.read / n},
				"network": {float64(d[resource.Network]), of.network / of.lasting},
				"disk":    {float64(d[resource.Disk]), of.disk / of.lasting}} {
				if math.Abs(v[0]-v[1]) > 1+0.001*v[1] {
					t.Errorf("%s stage %s: %s %v, want %v", log, stage, what, v[0], v[1])
				}
			}
			// the table is without deserialisation
			if cpu := float64(d[resource.CPU]); cpu < 1000*of.cpu/of.lasting-1 || cpu > 1000 {
				t.Errorf("%s stage %s: CPU %v, want %v or more", log, stage, cpu, 1000*of.cpu/of.lasting)
			}
		}
		if len(runs) == 0 {
			t.Errorf("%s: nothing is learned", log)
		}
	}
}

// tableRow sums up the tasks of a stage, in seconds and bytes.
type tableRow struct {
	tasks                             int
	lasting, cpu, read, disk, network float64
}

func readTaskTable(t *testing.T) map[string]*tableRow {
	t.Helper()
	f, err := os.Open(filepath.Join(data, "spark-eventlogs/tasks.csv.gz"))
	if err != nil {
		t.Skip("needs the table of tasks:", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(z).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for i, name := range rows[0] {
		at[name] = i
	}
	all := map[string]*tableRow{}
	for _, row := range rows[1:] {
		n := func(name string) float64 {
			v, err := strconv.ParseFloat(row[at[name]], 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		key := row[at["log"]] + " " + row[at["stage"]]
		if all[key] == nil {
			all[key] = &tableRow{}
		}
		s := all[key]
		s.tasks++
		s.lasting += max(n("finish_ms")-n("launch_ms"), 1) / 1000
		s.cpu += n("cpu_ms") / 1000
		s.read += n("input_bytes") + n("shuffle_read_local") + n("shuffle_read_remote")
		s.disk += n("input_bytes") + n("output_bytes") + n("shuffle_read_local") + n("shuffle_read_to_disk") +
			n("shuffle_write_bytes") + 2*n("disk_spilled")
		s.network += n("shuffle_read_remote")
	}
	return all
}

func FuzzSparkRuns(f *testing.F) {
	for _, name := range []string{"spark.jsonl", "spark-killed.jsonl"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		runs, _, err := DefaultSpark().Runs([]Source{{"f", bytes.NewReader(text)}}, "", nil)
		if err != nil {
			return
		}
		for _, r := range runs {
			if k, bad := r.Run.Phases[0].Demand.Negative(); bad || r.Run.Duration <= 0 || r.Run.Input < 0 {
				t.Errorf("%v of %+v", k, r)
			}
			if _, err := (&profile.History{}).Observe(r.App, r.Run); err != nil {
				t.Error(err)
			}
		}
	})
}

// Jobs of a workload name their application only if that is asked for, by the name under which its runs teach.
func TestSparkNamesApps(t *testing.T) {
	e := exampleOf(t, "spark-two")
	for name, named := range map[string]bool{"": false, "sorter": true} {
		f := DefaultSpark()
		f.NameApps = named
		r, err := Import(f, e.sources(t), Options{})
		if err != nil {
			t.Fatal(err)
		}
		runs, _, err := f.Runs(e.sources(t), "", nil)
		if err != nil || len(runs) != 6 {
			t.Fatal(err, runs)
		}
		for i := range r.Workload.Jobs {
			j := &r.Workload.Jobs[i].Job
			if j.App != name || named && profile.AppOf(j, 1) != runs[1].App {
				t.Errorf("job %q is of the application %q, and its second stage %v; want %q and %v", j.Name, j.App,
					profile.AppOf(j, 1), name, runs[1].App)
			}
		}
	}
}
