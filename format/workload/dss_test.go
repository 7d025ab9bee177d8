package workload

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/fault"
	"github.com/bellows-rm/bellows/internal/testfile"
)

// fixture opens a trace of the YARN-ME authors' generator, or skips the test.
func fixture(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.Open(filepath.Join("../../../shared/fixtures/dss", name))
	if err != nil {
		t.Skip("needs ../shared/fixtures")
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestReadDSSFixtures(t *testing.T) {
	for _, c := range []struct {
		name        string
		jobs, tasks int
	}{
		{"tiny/t1.trace", 1, 1},
		{"tiny/t2.trace", 1, 3},
		{"tiny/t3.trace", 2, 6},
		{"tiny/t3-oneline-BUG.trace", 2, 6}, // the authors' own reader loses the second job
		{"u20-s777.trace", 20, 547},
		{"u100-s12345.trace", 100, 14970},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, err := ReadDSS(fixture(t, c.name), c.name)
			if err != nil {
				t.Fatal(err)
			}
			tasks := 0
			for i, j := range w.Jobs {
				for _, s := range j.Stages {
					tasks += s.Tasks
				}
				if i > 0 && j.Submitted < w.Jobs[i-1].Submitted {
					t.Errorf("job %s at %v comes after one at %v", j.Name, j.Submitted, w.Jobs[i-1].Submitted)
				}
				if n, ok := jobNumber(j.Name); !ok || cluster.JobID(n) != j.ID {
					t.Errorf("job %s has id %d", j.Name, j.ID)
				}
			}
			if len(w.Jobs) != c.jobs || tasks != c.tasks {
				t.Errorf("%d jobs with %d tasks, want %d with %d", len(w.Jobs), tasks, c.jobs, c.tasks)
			}
		})
	}
}

// dssJob is a job in the trace format, one field per line: start in line 1, id in 2, tasks from 3.
func dssJob(id, start string, classes ...string) string {
	return `{"job.start.ms": ` + start + ",\n" + `"job.id": ` + id + ",\n" + `"job.tasks": [` +
		strings.Join(classes, ",\n") + "]}\n"
}

const plainClass = `{"c.dur": 1000, "c.mem": 3000, "c.nr": 2}`

func TestReadDSS(t *testing.T) {
	text := dssJob(`"job_3"`, `"job_10"`, plainClass) +
		dssJob(`"job_10"`, "500",
			`{"c.dur": 1500, "c.mem": 100, "c.nr": 1, "c.prio": 20, "c.type": "reduce", "c.cores": 2, "c.penalty": "SAWTOOTH", "c.ib": 1.5}`,
			`{"c.dur": 1000, "c.mem": 2050, "c.nr": 7, "c.prio": 10, "c.type": "map", "c.penalty": "step", "c.ib": 3}`,
			`{"c.dur": 1000, "c.mem": 900, "c.nr": 7, "c.prio": 20, "c.type": "reduce"}`) +
		strings.ReplaceAll(dssJob(`"job_0"`, "0", plainClass), "\n", " ")
	w, err := ReadDSS(strings.NewReader(text), "x")
	if err != nil {
		t.Fatal(err)
	}
	if w.Jobs[0].Name != "job_0" || w.Jobs[1].ID != 10 || w.Jobs[2].ID != 3 || w.Jobs[2].After != 1 ||
		w.Jobs[1].After != -1 {
		t.Errorf("jobs in the wrong order: %+v", w.Jobs)
	}
	j := w.Jobs[1]
	if j.Submitted != timeline.Milliseconds(500) || len(j.Stages) != 3 {
		t.Fatalf("job_10: %+v", j)
	}
	s := j.Stages[0]
	if s.Name != "map" || s.Tasks != 7 || s.Duration != time.Second ||
		s.Ideal != resource.Of(resource.Core, 2050*resource.MB) ||
		s.Elasticity.Kind != cluster.Step || s.Elasticity.Factor != 3 || s.MinMemory != 300*resource.MB || s.Parents != nil {
		t.Errorf("first stage: %+v", s)
	}
	s = j.Stages[1]
	if s.Name != "reduce" || s.Ideal != resource.Of(2*resource.Core, 100*resource.MB) ||
		s.Elasticity.Kind != cluster.SawToothTable || s.MinMemory != 100*resource.MB {
		t.Errorf("second stage: %+v", s)
	}
	if s = j.Stages[2]; s.Name != "reduce-2" || s.Elastic() {
		t.Errorf("third stage: %+v", s)
	}

	e, err := ParsePenalty("sawtooth:2")
	if err != nil {
		t.Fatal(err)
	}
	w.SetPenalty(e, DefaultMinShare, DefaultGranularity)
	if s := w.Jobs[1].Stages[2]; s.Elasticity.Factor != 2 || s.MinMemory != 100*resource.MB {
		t.Errorf("third stage with a penalty: %+v", s)
	}
	if s := w.Jobs[1].Stages[0]; s.Elasticity.Kind != cluster.Step {
		t.Errorf("a stage's own penalty was replaced: %+v", s)
	}
	if s := w.Jobs[0].Stages[0]; s.MinMemory != 300*resource.MB {
		t.Errorf("10%% of 3000MB: %+v", s)
	}
}

func TestReadDSSRefuses(t *testing.T) {
	class := func(field, value string) string {
		return strings.Replace(plainClass, `"`+field+`": `+map[string]string{"c.dur": "1000", "c.mem": "3000",
			"c.nr": "2"}[field], `"`+field+`": `+value, 1)
	}
	job := func(classes ...string) string { return dssJob(`"job_1"`, "0", classes...) }
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "x: jobs: must be at least one, but the file holds none"},
		{"blank", " \n\n", "x: jobs: must be at least one, but the file holds none"},
		{"not an object", "\n[]", "x:2: job: must be a JSON object, but found ["},
		{"a text with line ends", `"a\nb\u2028"`, `x:1: job: must be a JSON object, but found a\nb\u2028`},
		{"not JSON", job(plainClass) + "nonsense",
			"x:4: job: must be JSON, but found an invalid character 'o' in literal null (expecting 'u')"},
		{"truncated", job(plainClass)[:60], "x:3: field: the file is truncated: it ends inside an object"},
		{"truncated between", job(plainClass) + "{", "x:4: object: the file is truncated: it ends inside an object"},
		{"twice the field", `{"job.id": "job_1",` + "\n" + `"job.id": "job_2"}`,
			"x:2: job.id: written twice, first in line 1"},
		{"unknown field", job(`{"c.dur": 1, "c.mem": 100, "c.nr": 1, "c.penaltee": "STEP"}`),
			`x:3: job_1 c.penaltee "STEP": unknown field; must be one of c.host, c.dur, c.prio, c.mem, c.type, c.nr, c.cores, c.penalty, c.ib`},
		{"twice the id", job(plainClass) + job(plainClass), `x:5: job_1 job.id "job_1": given twice, first in line 1`},
		{"bad id", dssJob(`"seven"`, "0", plainClass),
			`x:2: job.id "seven": must be job_N with a whole number N of at least 0`},
		{"huge id", dssJob(`"job_99999999999999999999"`, "0", plainClass),
			`x:2: job.id "job_99999999999999999999": must be job_N with a whole number N of at least 0`},
		{"id missing", `{"job.start.ms": 0}`, "x:1: job.id is missing: must be a string"},
		{"unknown job", dssJob(`"job_1"`, `"job_2"`, plainClass),
			`x:1: job_1 job.start.ms "job_2": must be milliseconds or the id of a job in the file`},
		{"bad job", dssJob(`"job_1"`, `"soon"`, plainClass),
			`x:1: job_1 job.start.ms "soon": must be milliseconds or job_N, the job whose end starts this one`},
		{"negative start", dssJob(`"job_1"`, `-1`, plainClass),
			`x:1: job_1 job.start.ms -1: must be a whole number from 0 to 315360000000`},
		{"start missing", `{"job.id": "job_1"}`,
			"x:1: job_1 job.start.ms is missing: must be a whole number from 0 to 315360000000"},
		{"waits for itself", dssJob(`"job_1"`, `"job_1"`, plainClass),
			"x:1: job_1 job.start.ms: must not form a cycle, but job_1 waits for job_1"},
		{"cycle", dssJob(`"job_1"`, `"job_2"`, plainClass) + dssJob(`"job_2"`, `"job_3"`, plainClass) +
			dssJob(`"job_3"`, `"job_2"`, plainClass),
			"x:4: job_2 job.start.ms: must not form a cycle, but job_2 waits for job_3 waits for job_2"},
		{"no tasks", job(), "x:3: job_1 job.tasks []: must be a list of at least one object"},
		{"tasks are no list", `{"job.tasks": 7}`, "x:1: job.tasks: must be a list of objects, but found 7"},
		{"tasks are no objects", `{"job.tasks": [7]}`, "x:1: job.tasks: must be a list of objects, but found 7"},
		{"zero tasks", job(class("c.nr", "0")), "x:3: job_1 c.nr 0: must be a whole number from 1 to 1073741824"},
		{"negative tasks", job(class("c.nr", "-3")), "x:3: job_1 c.nr -3: must be a whole number from 1 to 1073741824"},
		{"zero memory", job(class("c.mem", "0")), "x:3: job_1 c.mem 0: must be a whole number from 100 to 1000000000000"},
		{"little memory", job(plainClass, class("c.mem", "99")),
			"x:4: job_1 c.mem 99: must be a whole number from 100 to 1000000000000"},
		{"much memory", job(class("c.mem", "99999999999999999999")),
			"x:3: job_1 c.mem 99999999999999999999: must be a whole number from 100 to 1000000000000"},
		{"memory as text", job(class("c.mem", `"3000"`)),
			`x:3: job_1 c.mem "3000": must be a whole number from 100 to 1000000000000`},
		{"zero duration", job(class("c.dur", "0")), "x:3: job_1 c.dur 0: must be a whole number from 1 to 315360000000"},
		{"part of a duration", job(class("c.dur", "1.5")),
			"x:3: job_1 c.dur 1.5: must be a whole number from 1 to 315360000000"},
		{"NaN", job(class("c.dur", "NaN")),
			"x:3: c.dur: must be JSON, but found an invalid character 'N' looking for beginning of value"},
		{"duration missing", job(`{"c.mem": 100, "c.nr": 1}`),
			"x:3: job_1 c.dur is missing: must be a whole number from 1 to 315360000000"},
		{"zero cores", job(`{"c.dur": 1, "c.mem": 100, "c.nr": 1, "c.cores": 0}`),
			"x:3: job_1 c.cores 0: must be a whole number from 1 to 1000000"},
		{"other penalty", job(`{"c.dur": 1, "c.mem": 100, "c.nr": 1, "c.penalty": "POWER2", "c.ib": 2}`),
			`x:3: job_1 c.penalty "POWER2": must be STEP or SAWTOOTH`},
		{"factor missing", job(`{"c.dur": 1, "c.mem": 100, "c.nr": 1, "c.penalty": "STEP"}`),
			`x:3: job_1 c.ib is missing: must be a number from 1 to 1000000`},
		{"factor below 1", job(`{"c.dur": 1, "c.mem": 100, "c.nr": 1, "c.penalty": "STEP", "c.ib": 0.5}`),
			`x:3: job_1 c.ib 0.5: must be a number from 1 to 1000000`},
		{"penalty missing", job(`{"c.dur": 1, "c.mem": 100, "c.nr": 1, "c.ib": 2}`),
			`x:3: job_1 c.penalty is missing: must be a string`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ReadDSS(strings.NewReader(c.text), "x")
			if err == nil || err.Error() != c.want || !fault.Is(err) {
				t.Errorf("got  %v\nwant %v", err, c.want)
			}
		})
	}
}

func TestParsePenalty(t *testing.T) {
	for text, want := range map[string]string{
		"none": "none", "step:3": "step 3x", "sawtooth:1.5": "sawtooth-table 1.5x", "SAWTOOTH:1": "sawtooth-table 1x",
	} {
		if e, err := ParsePenalty(text); err != nil || e.String() != want || e.Check() != nil {
			t.Errorf("%s: %v, %v", text, e, err)
		}
	}
	for _, text := range []string{"", "step", "step:", "step:0.9", "step:NaN", "step:Inf", "step:-1", "power:2",
		"step:2:3", "none:1"} {
		if e, err := ParsePenalty(text); err == nil || !strings.HasPrefix(err.Error(), "penalty ") {
			t.Errorf("%s: %v, %v", text, e, err)
		}
	}
}

func FuzzReadDSS(f *testing.F) {
	f.Add(dssJob(`"job_1"`, "0", plainClass) + dssJob(`"job_2"`, `"job_1"`, plainClass))
	f.Add(dssJob(`"job_1"`, `"job_1"`, `{"c.dur": 1, "c.mem": 100, "c.nr": 1, "c.penalty": "STEP", "c.ib": 2}`))
	f.Add(`{"job.tasks": [{}, {}]}`)
	f.Add("\"a\\nb\"")
	f.Fuzz(func(t *testing.T, text string) {
		w, err := ReadDSS(strings.NewReader(text), "x")
		if err != nil {
			if !fault.Is(err) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("not one sentence about the file: %v", err)
			}
			return
		}
		for i := range w.Jobs {
			if err := w.Jobs[i].Check(); err != nil {
				t.Fatal(err)
			}
			if w.Jobs[i].After >= i {
				t.Fatalf("job %d waits for job %d, which comes later", i, w.Jobs[i].After)
			}
		}
	})
}

func TestWorkloadOrderOfLongChains(t *testing.T) {
	const n = 50_000
	w := &Workload{Jobs: make([]Job, n)}
	for i := range w.Jobs {
		w.Jobs[i].ID, w.Jobs[i].After = cluster.JobID(i), i+1
	}
	w.Jobs[n-1].After = -1
	if _, cycle := w.AfterCycle(); cycle != nil {
		t.Fatal("a chain was taken for a cycle")
	}
	w.Sort()
	for i := range w.Jobs {
		if w.Jobs[i].After != i-1 || w.Jobs[i].ID != cluster.JobID(n-1-i) {
			t.Fatalf("job %d at %d waits for %d", w.Jobs[i].ID, i, w.Jobs[i].After)
		}
	}
}

func TestDocumentedTrace(t *testing.T) {
	for i, text := range testfile.Examples(t, "../../docs/reference/simulation.md", "json") {
		w, err := ReadDSS(strings.NewReader(text), "example")
		if err != nil {
			t.Fatalf("example %d: %v", i+1, err)
		}
		if len(w.Jobs) != 2 || w.Jobs[1].After != 0 || !w.Jobs[1].Stages[1].Elastic() {
			t.Errorf("example %d: %+v", i+1, w.Jobs)
		}
	}
}

func TestEveryFieldOfATraceIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/simulation.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Concat(dssJobFields, dssTaskFields) {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/reference/simulation.md does not mention %s", name)
		}
	}
}

// A cycle of many jobs is refused in a sentence that a person can read.
func TestDSSLongCycle(t *testing.T) {
	const jobs = 1000
	var trace strings.Builder
	for i := range jobs {
		trace.WriteString(dssJob(fmt.Sprintf(`"job_%d"`, i), fmt.Sprintf(`"job_%d"`, (i+1)%jobs), plainClass))
	}
	_, err := ReadDSS(strings.NewReader(trace.String()), "x")
	if !fault.Is(err) || !strings.Contains(err.Error(), "must not form a cycle, but job_") || len(err.Error()) > 300 {
		t.Errorf("a cycle of %d jobs: %v", jobs, err)
	}
}
