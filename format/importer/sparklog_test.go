package importer

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/format/fault"
	"github.com/bellows-rm/bellows/format/workload"
)

// sparkLines are the lines of spark.jsonl, each with its end.
func sparkLines(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/spark.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")
}

func sourceOf(name string, lines []string) Source {
	return Source{name, strings.NewReader(strings.Join(lines, ""))}
}

// sparkImport returns the jobs of logs, and the notes.
func sparkImport(t *testing.T, sources ...Source) ([]workload.Job, string) {
	t.Helper()
	r, err := Import(DefaultSpark(), sources, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Workload.Jobs, strings.Join(r.Notes, "\n")
}

// A record that is wrong, or contradicts the others, is left out alone, and a note has the first.
func TestSparkLeavesRecordsOut(t *testing.T) {
	for i, c := range []struct {
		edit
		records, tasks int // left out; left of the log
	}{
		{edit{2, `{"Event"`, `{Event`, "f:2: event: must be a JSON object"}, 1, 5},
		{edit{2, `{"Event"`, `{"Evint"`, "f:2: Event: must be the name of an event"}, 1, 5},
		{edit{3, `"Timestamp":1700000000000`, `"Timestamp":-1`, "f:3: Timestamp -1: must be milliseconds from 0"}, 1, 5},
		{edit{8, `"Finish Time":`, `"Finish Time":1,"X":`, "f:8: Finish Time 1: must not be before Launch Time"}, 1, 4},
		{edit{8, `"Peak Execution Memory":`, `"Peak Execution Memory":-1,"X":`, "f:8: Peak Execution Memory -1: must be"},
			1, 4},
		{edit{8, `"JVM GC Time":`, `"JVM GC Time":NaN,"X":`, "f:8: event: must be a JSON object"}, 1, 4},
		{edit{9, `"Task ID":1`, `"Task ID":0`, "f:9: Task ID 0: ended twice"}, 1, 5},
		{edit{8, `"Stage ID":0`, `"Stage ID":5`, "f:8: Stage ID 5: must be of a stage that was submitted"}, 1, 4},
		{edit{11, `"Stage ID":1`, `"Stage ID":0`, "f:11: Stage ID 0: submitted twice in attempt 0"}, 3, 3},
		{edit{16, `"Job ID":1`, `"Job ID":0`, "f:16: Job ID 0: started twice"}, 2, 5},
		{edit{14, `"Job ID":0`, `"Job ID":4`, "f:14: Job ID 4: ended, but did not start"}, 1, 5},
		{edit{14, `"Completion Time":17`, `"Completion Time":16`, "f:14: Completion Time 1600000008400: must not"}, 1, 5},
	} {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) {
			jobs, notes := sparkImport(t, spoilt(t, exampleOf(t, "spark-eventlog"), c.edit))
			want := fmt.Sprintf("contradict the rest of their log, and were left out: %d, first %s", c.records, c.want)
			tasks := 0
			for _, s := range jobs[0].Stages {
				tasks += s.Tasks
			}
			if !strings.Contains(notes, want) || tasks != c.tasks {
				t.Errorf("%d tasks, notes %s; want %d tasks, %s", tasks, notes, c.tasks, want)
			}
		})
	}
	lines := sparkLines(t)
	kept := append(lines[:6:6], lines[7]) // a task of a stage that was neither submitted nor announced
	_, err := Import(DefaultSpark(), []Source{sourceOf("f", kept)}, Options{})
	want := "f:8: SparkListenerTaskEnd: must have at least one task that succeeded, but it has none: Stage ID 0: " +
		"must be of"
	if !fault.Is(err) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("a log without a task that counts: %v, want %s", err, want)
	}
}

// An application that dropped the start of a job, or of a stage, has the same stages in the same order.
func TestSparkDroppedStarts(t *testing.T) {
	lines := sparkLines(t)
	lines[5] = strings.Replace(lines[5], `"Stage IDs":`, `"Stage Infos":[`+
		`{"Stage ID":1,"Stage Attempt ID":0,"Stage Name":"sort","Number of Tasks":2,"Parent IDs":[0]},`+
		`{"Stage ID":0,"Stage Attempt ID":0,"Stage Name":"scan","Number of Tasks":2,"Parent IDs":[]}],"Stage IDs":`, 1)
	whole, _ := sparkImport(t, sourceOf("f", lines))
	for without, note := range map[int]string{
		16: "left out: 1, first f:18: Job ID 1: ended, but did not start", 6: "left out: 1, first f:13: Job ID 0",
		7: "no record of their submission, and are as their jobs announced them: 1", 11: "as their jobs announced them: 1",
	} {
		jobs, notes := sparkImport(t, sourceOf("f", slices.Delete(slices.Clone(lines), without-1, without)))
		if !strings.Contains(notes, note) || !reflect.DeepEqual(jobs, whole) {
			t.Errorf("without line %d: %s; want %s; jobs %+v, want %+v", without, notes, note, jobs, whole)
		}
	}
}

// A log without its beginning is of the time in which its tasks ran.
func TestSparkWithoutBeginning(t *testing.T) {
	lines := sparkLines(t)
	jobs, _ := sparkImport(t, sourceOf("f", lines), sourceOf("events_2_a", lines[5:]))
	if len(jobs) != 2 || jobs[1].Name != "events_2_a" || time.Duration(jobs[1].Submitted) != 100*time.Millisecond {
		t.Errorf("%+v", jobs)
	}
}

// The parts of a log are one log, by number and not by name, wherever they stand among the files.
func TestSparkParts(t *testing.T) {
	lines := sparkLines(t)
	whole, _ := sparkImport(t, sourceOf("f", lines))
	var rolled []Source
	for i, line := range lines {
		rolled = append(rolled, sourceOf(fmt.Sprintf("logs/eventlog_v2_a/events_%d_a.zstd", i+1), []string{line}))
	}
	slices.SortFunc(rolled, func(a, b Source) int { return strings.Compare(a.Name, b.Name) })
	if !strings.Contains(rolled[0].Name, "events_10_") {
		t.Fatal("the parts are in the order of their numbers already")
	}
	rolled = append(rolled, Source{"logs/eventlog_v2_a/appstatus_a.inprogress", strings.NewReader("")})
	if jobs, notes := sparkImport(t, rolled...); !reflect.DeepEqual(jobs, whole) || strings.Contains(notes, "parts") {
		t.Errorf("a log of %d parts: %+v, want %+v; %s", len(lines), jobs, whole, notes)
	}
	databricks := func(folder string) []Source {
		return []Source{sourceOf(folder+"eventlog", lines[12:]),
			sourceOf(folder+"eventlog-2021-06-15--01-00.gz", lines[8:12]),
			sourceOf(folder+"eventlog-2021-06-14--20-00.gz", lines[:8])}
	}
	jobs, _ := sparkImport(t, append(databricks("a/"), append(databricks("b/"), sourceOf("f", lines))...)...)
	if len(jobs) != 3 || !reflect.DeepEqual(jobs[:1], whole) || !reflect.DeepEqual(jobs[2].Stages, whole[0].Stages) {
		t.Errorf("two logs of three parts and one of one: %+v, want thrice %+v", jobs, whole)
	}
}

// A compacted part replaces the parts before it. A part that is missing is said.
func TestSparkPartsInOrder(t *testing.T) {
	for _, c := range []struct{ given, want, note string }{
		{"events_3_a events_1_a events_2_a.compact events_2_a", "events_2_a.compact events_3_a", ""},
		{"events_4_a events_1_a events_2_a", "events_1_a events_2_a events_4_a",
			"parts of a log are missing before events_4_a: 1"},
		{"events_3_a", "events_3_a", "parts of a log are missing before events_3_a: 2"},
		{"events_7_a.lz4.compact events_8_a.lz4", "events_7_a.lz4.compact events_8_a.lz4", ""},
		{"events_1_a events_1_b", "events_1_a | events_1_b", ""},
		{"x/events_1_a y/events_2_a", "x/events_1_a | y/events_2_a", "parts of a log are missing before events_2_a: 1"},
		{"eventlog eventlog-old eventlog_2", "eventlog | eventlog-old | eventlog_2", ""},
		{"b a appstatus_a", "b | a", ""},
	} {
		var sources []Source
		for _, name := range strings.Fields(c.given) {
			sources = append(sources, Source{Name: name})
		}
		n := &notes{}
		var got []string
		for _, log := range DefaultSpark().logs(sources, n) {
			var names []string
			for _, s := range log {
				names = append(names, s.Name)
			}
			got = append(got, strings.Join(names, " "))
		}
		if all := strings.Join(got, " | "); all != c.want || strings.Join(n.sentences(), "\n") != c.note {
			t.Errorf("%s is %s with %q, want %s with %q", c.given, all, n.sentences(), c.want, c.note)
		}
	}
}

// A compressed log that was cut off, because its application was killed, counts as far as it is whole.
func TestSparkCutOffWhileCompressed(t *testing.T) {
	var file bytes.Buffer
	z, err := zstd.NewWriter(&file)
	if err != nil {
		t.Fatal(err)
	}
	lines, flushed := sparkLines(t), 0
	for i, line := range lines {
		if _, err := z.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
		if err := z.Flush(); err != nil {
			t.Fatal(err)
		}
		if i == 9 {
			flushed = file.Len() // the tasks of the first stage
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for cut, tasks := range map[int]int{flushed: 2, flushed + 20: 2, file.Len() - 1: 5} {
		jobs, notes := sparkImport(t, Source{"f.zstd", bytes.NewReader(file.Bytes()[:cut])})
		got := 0
		for _, s := range jobs[0].Stages {
			got += s.Tasks
		}
		if got != tasks || !strings.Contains(notes, "logs were cut off; what is whole is imported: 1") {
			t.Errorf("cut to %d bytes: %d tasks, %s; want %d", cut, got, notes, tasks)
		}
		source := Source{"f.zstd", bytes.NewReader(file.Bytes()[:cut])}
		_, said, err := DefaultSpark().Runs([]Source{source}, "", nil)
		if err != nil || !strings.Contains(strings.Join(said, "\n"), "were cut off") {
			t.Errorf("runs of the log cut to %d bytes: %v, %s", cut, err, said)
		}
	}
	_, err = Import(DefaultSpark(), []Source{{"f.zstd", bytes.NewReader(file.Bytes()[:30])}}, Options{})
	if !fault.Is(err) ||
		!strings.Contains(err.Error(), "but it has none: the zstd data is truncated: it ends after 0 bytes") {
		t.Errorf("nothing is whole: %v", err)
	}
}

// Tasks that failed are counted by application and stage, where the jobs name it, as other records are. Those that were
// killed, and those whose input was lost, have not failed by themselves.
func TestSparkEnds(t *testing.T) {
	app := profile.App{Owner: "ann", Name: "sorter", Stage: "0 scan"}
	for _, c := range []struct {
		end   string
		named bool
		want  map[profile.App]Ends
	}{
		{`{"Reason":"ExecutorLostFailure"}`, true, map[profile.App]Ends{app: {All: 1}}},
		{`{"Reason":"ExecutorLostFailure"}`, false, nil},
		{`{"Reason":"ExecutorLostFailure","Loss Reason":"Container killed by YARN for exceeding physical memory limits."}`, true,
			map[profile.App]Ends{app: {All: 1, ForMemory: 1}}},
		{`{"Reason":"ExecutorLostFailure","Loss Reason":"Command exited with code 137"}`, true,
			map[profile.App]Ends{app: {All: 1, ForMemory: 1}}},
		{`{"Reason":"ExceptionFailure","Class Name":"java.lang.OutOfMemoryError"}`, true,
			map[profile.App]Ends{app: {All: 1, ForMemory: 1}}},
		{`{"Reason":"ExceptionFailure","Class Name":"java.io.IOException"}`, true, map[profile.App]Ends{app: {All: 1}}},
		{`{"Reason":"TaskKilled"}`, true, nil},
		{`{"Reason":"FetchFailed"}`, true, nil},
	} {
		lines := sparkLines(t)
		lines[8] = strings.Replace(lines[8], `{"Reason":"ExecutorLostFailure"}`, c.end, 1)
		f := DefaultSpark()
		f.NameApps = c.named
		r, err := Import(f, []Source{sourceOf("f", lines)}, Options{})
		if err != nil || !reflect.DeepEqual(r.Ends, c.want) {
			t.Errorf("%s, named %v: %v, %v; want %v", c.end, c.named, r.Ends, err, c.want)
		}
	}
}
