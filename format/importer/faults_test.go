package importer

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/format/fault"
	"github.com/bellows-rm/bellows/format/workload"
)

// edit changes one line of an example, counted from 1; for line 0 it appends a line.
type edit struct {
	line     int
	from, to string
	want     string // after FILE:
}

// spoilt returns the file of an example with one edit.
func spoilt(t *testing.T, e example, c edit) Source {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", e.files[0]))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if c.line == 0 {
		lines = append(lines, c.to)
	} else {
		if !strings.Contains(lines[c.line-1], c.from) {
			t.Fatalf("line %d of %s is %q, without %q", c.line, e.name, lines[c.line-1], c.from)
		}
		lines[c.line-1] = strings.Replace(lines[c.line-1], c.from, c.to, 1)
	}
	return Source{"f", strings.NewReader(strings.Join(lines, "\n") + "\n")}
}

// Every mistake in a file is reported with file, line and field. Each format is tested with wrong columns, negative and
// absurd numbers, NaN, duplicates and, where possible, cycles.
func TestFaults(t *testing.T) {
	for name, edits := range map[string][]edit{
		"swim": {
			{1, "\t20000000", "", "f:1: columns: must be 6 or 9, separated by tabs, but are 5"},
			{2, "60\t60", "-60\t60", `f:2: submit_time_s "-60": must be a number from 0`},
			{2, "1000", "NaN", `f:2: map_input_bytes "NaN": must be a number from 0`},
			{2, "1000", "1e300", `f:2: map_input_bytes "1e300": must be a number from 0`},
			{2, "1000", "9e17", "f:2: map_input_bytes"},
			{2, "3000000000", "x", `f:2: shuffle_bytes "x": must be a number`},
			{2, "b\t", "a\t", `f:2: job_id "a": given twice, first in line 1`},
			{2, "b\t", "\t", `f:2: job_id "": must not be empty`},
		},
		"alibaba2018": {
			{1, "avg_instance_s", "average", "f:1: head: must name the column avg_instance_s"},
			{3, ",3.0", "", "f:3: columns: must be 10 as in the head, but are 9"},
			{3, "25.0", "-1", `f:3: avg_instance_s "-1": must be a number from 0`},
			{3, "25.0", "NaN", `f:3: avg_instance_s "NaN": must be a number`},
			{3, ",2,", ",2.5,", `f:3: instances "2.5": must be a whole number from 0`},
			{3, "1.0,", "101,", `f:3: plan_mem "101": must be a number from 0 to 100`},
			{3, "R2_1", "M1", `f:3: task "M1": given twice in job j_2, first in line 2`},
			{2, "M1", "M1_3", `f:2: job "j_2" parents: must not form a cycle`},
			{3, "R2_1", `"R2_1`, "f:"},
		},
		"alibaba2018-batch": {
			{2, ",0.5", "", "f:2: columns: must be the 9 of batch_task.csv"},
			{1, "160", "-160", `f:1: end_s "-160": must be a number from 0`},
			{1, "M1", "M1_2", `f:1: job "j_1" parents: must not form a cycle`},
		},
		"sparrow": {
			{1, "10 3 20.0 10.5 20 29.5", "10 3",
				"f:1: columns: must be arrival, tasks, mean and a duration for each task, but are 2"},
			{1, " 29.5", "", `f:1: tasks "3": must be how many durations follow, 2`},
			{2, "5 1", "-5 1", `f:2: arrival_s "-5": must be a number from 0`},
			{2, "7 7", "7 NaN", `f:2: duration of task 0 "NaN": must be a number from 0`},
			{2, "7 7", "7 -7", `f:2: duration of task 0 "-7"`},
			{2, "5 1", "5 0", `f:2: tasks "0": must be a whole number from 1`},
			{0, "", " ", "f:4: columns"},
		},
		"decima": {
			{1, `"size"`, `size`, "f:1: query: must be a JSON object"},
			{1, `[0,1]`, `[0,2]`, "f:1: edges [0 2]: each must be a parent and a child, 0 to 1"},
			{1, `[[0,1]]`, `[[0,1],[1,0]]`, `f:1: job "q1-2g" parents: must not form a cycle`},
			{1, `"id":1`, `"id":0`, "f:1: stage id 0: must be its place in the list, 1"},
			{1, `500,510`, `-500,510`, "f:1: stage 0 duration -500: must be milliseconds from 0"},
			{1, `500,510`, `NaN,510`, "f:1: query: must be a JSON object"},
			{2, `"40":[1000,0]`, `"40":[]`, "f:2: stage 0 first: must hold durations"},
			{2, `"size":"5g","query":7`, `"size":"2g","query":1`, "f:2: size, query q1-2g: given twice, first in line 1"},
			{2, `"stages":[{`, `"stages":[],"x":[{`, "f:2: stages: must be at least one"},
		},
		"spark-eventlog": {
			{1, `{"Event"`, `{Event`, "f:1: event: must be a JSON object"},
			{1, `"Event"`, `"Evint"`, "f:1: Event: must be the name of an event of Spark"},
			{2, `"384m"`, `"much"`, `spark.executor.memoryOverhead "much": must be a size, such as 4g`},
			{7, `"Parent IDs":[]`, `"Parent IDs":[1]`, "must not form a cycle"},
		},
		"bitbrains": {
			{1, "vm,", "machine,", "f:1: head: must be vm,metric,values"},
			{2, "1,cpu_mhz,", "1,", "f:2: columns: must be vm, metric and values, but are 2"},
			{3, "512 512", "-512 512", `f:3: mem_mb sample 0 "-512": must be a number from 0 on, or -1`},
			{3, "512 512", "NaN 512", `f:3: mem_mb sample 0 "NaN"`},
			{3, "512 512", "512", `f:2: vm "1": must have as many samples of each metric, but has 4 of cpu_mhz and 3 of mem_mb`},
			{3, "mem_mb", "cpu_mhz", `f:3: metric "cpu_mhz": given twice for the machine`},
			{3, "mem_mb", "mem", `f:3: metric "mem": must be one of cpu_mhz`},
			{0, "", "1,cpu_mhz,4", `f:14: vm "1": given twice, first in line 2`},
			{8, "2,", "9,", `f:8: vm "9": must be in vms.csv`},
		},
		"google-vms": {
			{2, "10 50", "-10 50", `f:2: cpu_pct sample 0 "-10": must be a number from 0 on`},
			{2, "10 50", "NaN 50", `f:2: cpu_pct sample 0 "NaN"`},
			{2, ",10 50 50", "", "f:2: columns: must be vm, metric and values, but are 2"},
			{3, "mem_pct", "mem_mb", `f:3: metric "mem_mb": must be one of cpu_pct, mem_pct`},
			{0, "", "77_1,cpu_pct,4", `f:6: vm "77_1": given twice, first in line 2`},
		},
		"nextflow": {
			{1, "peak_rss", "peak", "f:1: head: must name the column peak_rss"},
			{2, ",0,0", ",0", "f:2: columns: must be 26 as in the head, but are 25"},
			{2, "4000000000", "-4", `f:2: memory_req_bytes "-4": must be bytes, or a size such as 1.5 GB, from 0`},
			{2, "150.0", "NaN", `f:2: pct_cpu "NaN": must be a number, or a percentage, from 0`},
			{2, "1700000011000", "1600000000000", `f:2: complete_ms "1600000000000": must not be before submit_ms`},
			{3, "rna,2", "rna,1", `f:3: task_id "1": given twice in workflow rna, first in line 2`},
			{3, `b)"`, `b)`, "f:"},
		},
		"bitbrains-published": {
			{1, "CPU cores", "Cores", "f:1: head: must name the column CPU cores; it names Timestamp [ms], Cores"},
			{2, ";\t2;", ";\tx;", `f:2: CPU cores "x": must be a number from 0`},
			{2, ";\t1.0", "", "f:2: columns: must be 11 as in the head, but are 10"},
			{6, "1376316346", "9376316346", `f:6: Timestamp [ms] "9376316346": must be less than 315360000 s after`},
		},
		"google-tasks": {
			{2, "0.25", "-1", `f:2: cpu_rate "-1": must be a number from 0`},
			{1, "1500000000", "15", "f:1: end_us \"15\": must not be before start_us"},
			{2, ",5,0,", ",5,,", `f:2: task "": must not be empty`},
			{3, ",0,0,0.5", "", "f:3: columns: must be 20, but are 17"},
		},
		"swf": {
			{4, " -1 -1", " -1", "f:4: columns: must be the 18 of the Standard Workload Format, but are 17"},
			{4, "1 0 10", "1 -5 10", `f:4: submit_s "-5": must be a number from -1`},
			{4, "100 4", "NaN 4", `f:4: run_s "NaN": must be a number from -1`},
			{5, "2  30", "1 30", `f:5: job_number "1": given twice, first in line 4`},
		},
		"slurm": {
			{1, "Submit", "Begin", "f:1: head: must name the column Submit; it names JobID, User"},
			{2, "1-02:03:04", "soon", `f:2: Elapsed "soon": must be seconds, or a time such as 1-02:03:04, from 0`},
			{2, "2024-01-01T00:00:00", "Unknown", `f:2: Submit "Unknown": must be seconds, or a date such as`},
			{2, "2024-01-01T00:00:00", "", `f:2: Submit "": must not be empty`},
			{4, "1234K", "1234Q", `f:4: MaxRSS "1234Q": must be bytes, or a size such as 123K or 4G, from 0`},
			{5, "101_3", "100", `f:5: JobID "100": given twice, first in line 2`},
			{5, "|4|", "|", "f:5: columns: must be 12 as in the head, but are 11"},
		},
		"slurm-names": {
			{2, "16G", "16X", `f:2: ReqMem "16X": must be bytes, or a size such as 123K or 4G, from 0`},
			{3, "3145728K", "-1K", `f:3: MaxRSS "-1K": must be bytes, or a size such as 123K or 4G, from 0`},
			{2, "02:10:00", "02:10:xx", `f:2: TotalCPU "02:10:xx": must be seconds, or a time such as 1-02:03:04`},
			{5, "|8|", "|many|", `f:5: AllocCPUS "many": must be a number from 0`},
		},
		"nextflow-trace": {
			{1, "peak_rss", "rss", "f:1: head: must name the column peak_rss"},
			{1, "submit", "when", "f:1: head: must name the column submit_ms or submit; it names task_id, hash"},
			{2, "1m 5s", "1m 5", `f:2: duration_ms "1m 5": must be milliseconds, or a time such as 1h 5m 9.5s, from 0`},
			{2, "512.4 MB", "512.4 MiB", `f:2: peak_rss "512.4 MiB": must be bytes, or a size such as 1.5 GB, from 0`},
			{2, "10:00:00", "10:60:00", `f:2: submit_ms "2024-02-01 10:60:00.123": must be milliseconds, or a date such as`},
			{3, "2\tcc", "1\tcc", `f:3: task_id "1": given twice in workflow f, first in line 2`},
			{3, "\t12.0 MB", "", "f:3: columns: must be 14 as in the head, but are 13"},
		},
	} {
		for i, c := range edits {
			t.Run(fmt.Sprintf("%s-%d", name, i+1), func(t *testing.T) {
				e := exampleOf(t, name)
				_, err := Import(e.format(), []Source{spoilt(t, e, c)}, Options{Seed: 1})
				if !fault.Is(err) || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "f:") {
					t.Errorf("line %d with %q for %q gives: %v, want %s", c.line, c.to, c.from, err, c.want)
				}
			})
		}
	}
}

// Every format rejects an assumption that is out of range, in one sentence.
func TestAssumptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		format Format
		want   string
	}{
		{&SWIM{}, "swim: split 0: must be above 0"},
		{&Alibaba{}, "alibaba2018: machine memory 0 bytes: must be at least 100"},
		{&Sparrow{}, "sparrow: task cpus 0 millicores: must be above 0"},
		{&Decima{}, "decima: executors 0: must be 1 to 1000000"},
		{&Spark{}, "spark-eventlog: spill rate 0 bytes/s: must be above 0"},
		{&Bitbrains{}, "bitbrains: interval 0s: must be 1s to 24h"},
		{&SWF{}, "swf: task memory 0 bytes: must be above 0"},
		{&Slurm{}, "slurm: task memory 0 bytes: must be above 0"},
		{&GoogleVMs{}, "google-vms: interval 0s: must be 1s to 24h"},
	} {
		if _, err := Import(c.format, nil, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T: %v, want %s", c.format, err, c.want)
		}
	}
}

// A file without a job is a fault of the file, whatever else it contains.
func TestEmptyFiles(t *testing.T) {
	for _, e := range examples() {
		_, err := Import(e.format(), []Source{{"f", strings.NewReader("")}}, Options{})
		if !fault.Is(err) || !strings.HasPrefix(err.Error(), "f:") {
			t.Errorf("%s: %v", e.name, err)
		}
	}
}

// fuzz imports arbitrary input; an accepted workload can be written and read back.
func fuzz(f *testing.F, name string, others ...string) {
	for _, n := range append([]string{name}, others...) {
		for _, s := range exampleOf(f, n).sources(f) {
			var text bytes.Buffer
			if _, err := text.ReadFrom(s.Data); err != nil {
				f.Fatal(err)
			}
			f.Add(text.Bytes())
		}
	}
	e := exampleOf(f, name)
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := Import(e.format(), []Source{{"f", bytes.NewReader(text)}},
			Options{Seed: 1, TasksScale: 0.1, ArrivalsScale: 1})
		if err != nil {
			return
		}
		var file bytes.Buffer
		if err := workload.Write(&file, r.Workload, workload.Header{Cluster: &r.Cluster}); err != nil {
			t.Fatalf("cannot be written: %v", err)
		}
		if err := readable(&file); err != nil {
			t.Fatalf("cannot be read again: %v", err)
		}
	})
}

func FuzzSWIM(f *testing.F)      { fuzz(f, "swim") }
func FuzzAlibaba(f *testing.F)   { fuzz(f, "alibaba2018", "alibaba2018-batch") }
func FuzzSparrow(f *testing.F)   { fuzz(f, "sparrow") }
func FuzzDecima(f *testing.F)    { fuzz(f, "decima") }
func FuzzSpark(f *testing.F)     { fuzz(f, "spark-eventlog", "spark-killed") }
func FuzzBitbrains(f *testing.F) { fuzz(f, "bitbrains", "bitbrains-published") }
func FuzzGoogleVMs(f *testing.F) { fuzz(f, "google-vms", "google-tasks") }
func FuzzSWF(f *testing.F)       { fuzz(f, "swf") }
func FuzzSlurm(f *testing.F)     { fuzz(f, "slurm", "slurm-names") }
func FuzzNextflow(f *testing.F)  { fuzz(f, "nextflow", "nextflow-trace") }
