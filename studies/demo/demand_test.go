package demo

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/eventlog"
	"github.com/bellows-rm/bellows/internal/testfile"
	"github.com/bellows-rm/bellows/studies/boundeddisk"
)

// TestDemandMixes: the jobs of each mix are at least six, and run programs that its tools name; not all of them fit
// at once in boxes of their peak.
func TestDemandMixes(t *testing.T) {
	for _, m := range demandMixes {
		jobs, err := m.jobs()
		if err != nil {
			t.Fatal(err)
		}
		if len(jobs) < 6 {
			t.Errorf("%s: %d jobs", m.name, len(jobs))
		}
		node, want := m.node(jobs, 24*resource.MB), resource.Vector{}
		for i := range jobs {
			j := &jobs[i]
			if err := j.Check(); err != nil {
				t.Error(err)
			}
			if j.App != j.Name || len(j.Stages) == 1 && !slices.Contains(m.tools, j.Name) {
				t.Errorf("%s: application %q", j.Name, j.App)
			}
			for k := range j.Stages {
				want = want.Add(j.Stages[k].Ideal)
				if j.Stages[k].Tasks != 1 {
					t.Errorf("%s has %d tasks", programName(j, k), j.Stages[k].Tasks)
				}
			}
		}
		if node[resource.CPU] > 2*resource.Core || node[resource.CPU] >= want[resource.CPU] ||
			node[resource.Disk] != 24*resource.MB || node[resource.Memory] != want[resource.Memory] {
			t.Errorf("%s: the node has %v, the jobs want %v", m.name, node, want)
		}
	}
}

// TestDemandBoxes: fixed boxes reserve the peak of the disk where the mix is about the disk.
func TestDemandBoxes(t *testing.T) {
	job := cluster.Job{Name: "sort", Stages: []cluster.Stage{{Name: "run"}}}
	l := &learned{Alone: []AloneResult{{Name: "sort", Stages: []AloneStage{{Peak: 5 * resource.MB}}}}}
	for _, test := range []struct {
		mix    string
		policy int
		want   resource.Amount
	}{{"disk", 0, 5 * resource.MB}, {"disk", 2, 0}, {"cores", 0, 0}, {"cores", 2, 0}, {"weights", 2, 0}} {
		m := demandMixOf(test.mix)
		if got := m.under(&m.policies[test.policy], job, l).Stages[0].Ideal[resource.Disk]; got != test.want {
			t.Errorf("%s, %s: reserves %v of the disk, want %v", test.mix, m.policies[test.policy].Label, got, test.want)
		}
	}
	if job.Stages[0].Ideal[resource.Disk] != 0 {
		t.Error("the job was changed")
	}
}

// TestDemandInputs makes small inputs of each mix twice, and gets the same.
func TestDemandInputs(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	for _, m := range demandMixes {
		if m.programs != m.name {
			continue
		}
		if names := m.lacking(); len(names) > 0 {
			t.Skipf("needs the programs %v", names)
		}
		var sums []string
		for range 2 {
			dir := t.TempDir()
			if err := m.makeInputs(t.Context(), dir, 1); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("sh", "-c",
				"git -C repository rev-parse HEAD; sqlite3 database .dump | cksum; cksum *-1 *.bz2 python.json tree/*")
			cmd.Dir = dir
			sum, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			sums = append(sums, string(sum))
			if err := clearResults(dir); err != nil {
				t.Fatal(err)
			}
			if left, err := os.ReadDir(filepath.Join(dir, results)); err != nil || len(left) > 0 {
				t.Errorf("%v, %v", left, err)
			}
		}
		if sums[0] != sums[1] || strings.Count(sums[0], "\n") < 10 {
			t.Errorf("%s\ndiffers from\n%s", sums[0], sums[1])
		}
	}
}

// A program that reads at 10 for 10 s, computes for 10 s and reads at 4 for 5 s.
func readsTwice() curve {
	return curve{piece(10, 10, 200), piece(10, 0, 1000), piece(5, 4, 200)}
}

func piece(seconds int, disk, cpu resource.Amount) Piece {
	return Piece{Length: time.Duration(seconds) * time.Second, Disk: disk, CPU: cpu}
}

func TestCurve(t *testing.T) {
	c := readsTwice()
	if disk, cpu := c.totals(); c.length() != 25*time.Second || disk != 120 || cpu != 13 {
		t.Errorf("%v, %v bytes, %v s", c.length(), disk, cpu)
	}
	want := []float64{(100.0/120 + 2.0/13) / 2, (100.0/120 + 12.0/13) / 2, 1}
	for i, got := range c.progress() {
		if d := got - want[i]; d > 1e-9 || d < -1e-9 {
			t.Errorf("at the end of piece %d it is %v, want %v", i, got, want[i])
		}
	}
	if p, i := c.at(10 * time.Second); i != 1 || p.CPU != 1000 {
		t.Errorf("after 10 s: piece %d, %v", i, p)
	}
	if _, i := c.at(25 * time.Second); i != -1 {
		t.Errorf("after the end: piece %d", i)
	}
	if p := (curve{piece(1, 0, 0)}).progress(); p[0] != 1 {
		t.Errorf("without any work: %v", p)
	}
}

// TestDemand: a program demands what it demanded alone at the same progress, however long it takes.
func TestDemand(t *testing.T) {
	alone := readsTwice()
	if got := fmt.Sprint(alone.demand(alone,
		(*Piece).disk)); got != "[10 10 10 10 10 10 10 10 10 10 0 0 0 0 0 0 0 0 0 0 4 4 4 4 4]" {
		t.Errorf("alone: %s", got)
	}
	slow := slices.Clone(alone)
	slow[0] = piece(20, 5, 100) // half as fast while it reads first
	if got := slow.demand(alone, (*Piece).disk); len(got) != 35 || got[0] != 10 || got[19] != 10 || got[20] != 0 ||
		got[29] != 0 || got[30] != 4 {
		t.Errorf("slowed down: %v", got)
	}
	stopped := slices.Insert(slices.Clone(alone), 1, piece(3, 0, 0)) // after it has read
	stopped[1].Suspended = 3 * time.Second
	if got := fmt.Sprint(stopped.demand(alone, (*Piece).cpu)[8:15]); got != "[200 200 0 0 0 1000 1000]" {
		t.Errorf("stopped: CPU %v", got)
	}
}

func TestAreas(t *testing.T) {
	got := areas(10, 2500*time.Millisecond, []resource.Amount{10, 4, 5}, []resource.Amount{14, 4, 11})
	if want := (Areas{Idle: 6, Beyond: 5}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestDiskMeter(t *testing.T) {
	var m diskMeter
	m.look(boundeddisk.Meter{Read: 99}) // before it begins
	m.begin(time.Now(), boundeddisk.Meter{Read: 100})
	m.at, m.total = []time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond, 3 * time.Second},
		[]resource.Amount{100, 150, 250, 250}
	if got := fmt.Sprint(m.perSecond(2500 * time.Millisecond)); got != "[100 50 0]" {
		t.Errorf("%s", got)
	}
}

// cannedDemand is a result of two rounds with two programs.
func cannedDemand() *DemandResult {
	const s = time.Second
	r := &DemandResult{Build: "devel", CPUs: 2, Repeats: 1, Node: resource.Of(400, 384*resource.MiB).With(resource.Disk,
		10*resource.MB), Speed: 10 * resource.MB, Tenths: 1,
		Verified: []boundeddisk.Check{{What: "buffered writes", Achieved: 10_100_000},
			{What: "direct reads", Achieved: 9_900_000}}}
	use := curve{piece(10, 8*resource.MB, 100), piece(10, 0, 200)}
	for _, name := range []string{"gzip", "sort"} {
		bytes, cpu := use.totals()
		r.Programs = append(r.Programs, DemandProgram{Name: name, Command: name, Alone: figure([]float64{20}), CPU: cpu,
			Bytes: bytes, Peak: 8 * resource.MB, Phases: use})
	}
	for round := 1; round <= 2; round++ {
		for i, second := range []time.Duration{20 * s, 20 * s, 10 * s} {
			run := DemandRun{Policy: r.mix().policies[i].Label, Round: round, CPU: 6 * s, Busy: 8 * s, Counted: 0.95,
				Jobs: []DemandJob{{Name: "gzip", Ended: 20 * s, Use: use},
					{Name: "sort", Started: second, Ended: second + time.Duration(20+round)*s,
						Use: append(slices.Clone(use), piece(round, 0, 0))}}}
			run.Disk = make([]resource.Amount, int(run.Makespan()/s))
			for _, j := range run.Jobs {
				for t := range 10 {
					run.Disk[int(j.Started/s)+t] += 8 * resource.MB
				}
			}
			run.judge(r)
			r.Runs = append(r.Runs, run)
		}
	}
	r.summarise()
	return r
}

// cannedCores is a result of two rounds with two jobs, of which one has two programs that follow each other. Under
// ecs the programs of different jobs run beside each other, and one is stopped.
func cannedCores() *DemandResult {
	const s = time.Second
	r := &DemandResult{Mix: "cores", Build: "devel", CPUs: 2, Repeats: 1,
		Node: resource.Of(2000, 384*resource.MiB).With(resource.Disk, 10*resource.MB), Speed: 10 * resource.MB, Tenths: 10,
		Verified: []boundeddisk.Check{{What: "direct reads", Achieved: 9_900_000}}}
	use := curve{piece(60, 2*resource.MB, 200), piece(40, 0, 2000)}
	for _, name := range []string{"xz", "mirror/fetch", "mirror/pack"} {
		bytes, cpu := use.totals()
		p := DemandProgram{Name: name, Command: name, Alone: figure([]float64{100}), CPU: cpu, Bytes: bytes,
			Peak: 2 * resource.MB, Cores: 2000, PeakCPU: 2000, Count: 2, Phases: use}
		if name == "mirror/pack" {
			p.After = []string{"mirror/fetch"}
		}
		r.Programs = append(r.Programs, p)
	}
	for round := 1; round <= 2; round++ {
		for i, starts := range [][]time.Duration{{200 * s, 0, 100 * s}, {0, 100 * s, 200 * s}, {0, 0, 110 * s}} {
			run := DemandRun{Policy: r.mix().policies[i].Label, Round: round, CPU: 276 * s, Busy: 280 * s, Counted: 0.95}
			for k, p := range r.Programs {
				j := DemandJob{Name: p.Name, Started: starts[k], Ended: starts[k] + 100*s, Use: use}
				if k > 0 {
					j.Job = "mirror"
				}
				if i == 2 && k == 0 {
					still := piece(10*round, 0, 0)
					still.Suspended = still.Length
					j.Use, j.Ended = slices.Insert(slices.Clone(use), 1, still), j.Ended+still.Length
					run.Stops, run.Resizes = 1, 4
				}
				run.Jobs = append(run.Jobs, j)
			}
			run.Disk = make([]resource.Amount, int(run.Makespan()/s))
			run.judge(r)
			r.Runs = append(r.Runs, run)
		}
	}
	r.summarise()
	return r
}

func TestDemandReport(t *testing.T) {
	for name, r := range map[string]*DemandResult{"demand": cannedDemand(), "cores": cannedCores()} {
		var out bytes.Buffer
		if err := r.Write(&out); err != nil {
			t.Fatal(err)
		}
		testfile.Golden(t, name+".txt", out.Bytes())
		narrow(t, out.String())
		testfile.Golden(t, name+".svg", drawn(t, r.Pictures()))
	}
}

// TestJobsOfPrograms: a job waits for its first program, and ends with its last one.
func TestJobsOfPrograms(t *testing.T) {
	r := cannedCores()
	static, ecs := r.of(&r.mix().policies[0])[0], r.of(r.mix().last())[1]
	if static.wait() != 100*time.Second || static.jobTime() != 250*time.Second {
		t.Errorf("static: jobs wait %v and take %v", static.wait(), static.jobTime())
	}
	// From 60 s on two programs demand four cores, but one of them is stopped until 80 s. It ends at 120 s, 10 s after
	// the third began.
	if ecs.Over != 30*time.Second || ecs.Suspended != 20*time.Second || ecs.jobTime() != 165*time.Second {
		t.Errorf("ecs: over-allocated for %v, stopped for %v, jobs take %v", ecs.Over, ecs.Suspended, ecs.jobTime())
	}
	if r.Least != 200*time.Second { // of the two programs that follow each other
		t.Errorf("no schedule is shorter than %v", r.Least)
	}
}

// TestStopsInLog counts a program that is stopped for longer as stopped once.
func TestStopsInLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w, err := eventlog.NewWriter(file, eventlog.Header{})
	if err != nil {
		t.Fatal(err)
	}
	a, b := cluster.TaskID{Job: 1}, cluster.TaskID{Job: 2}
	for i, d := range []cluster.Decision{{Kind: cluster.Resize, Task: a},
		{Kind: cluster.Suspend, Task: a, By: cluster.HeldByLeveling},
		{Kind: cluster.Suspend, Task: b, By: cluster.HeldByOwner},
		{Kind: cluster.Suspend, Task: a, By: cluster.HeldByLeveling}, {Kind: cluster.Resume, Task: a},
		{Kind: cluster.Suspend, Task: a, By: cluster.HeldByLeveling}} {
		if err := w.Decisions(timeline.Time(i), []cluster.Decision{d}); err != nil {
			t.Fatal(err)
		}
	}
	var r DemandRun
	if err := r.count(path); err != nil || r.Stops != 2 || r.Resizes != 1 {
		t.Errorf("%d stops, %d resizes, %v", r.Stops, r.Resizes, err)
	}
}

// TestPairedRatio compares runs of the same round only.
func TestPairedRatio(t *testing.T) {
	run := func(round int, took time.Duration) *DemandRun {
		return &DemandRun{Round: round, Jobs: []DemandJob{{Ended: took}}}
	}
	a := []*DemandRun{run(1, 20*time.Second), run(2, 40*time.Second), run(3, time.Hour)}
	b := []*DemandRun{run(2, 20*time.Second), run(1, 10*time.Second)}
	if e := pairedRatio(a, b, (*DemandRun).Makespan); e.Mean < 1.999 || e.Mean > 2.001 || !e.Interval() {
		t.Errorf("%+v, want 2", e)
	}
}

// TestStoredDemand judges the stored results again: everything that they say follows from their runs, they are no
// trials, and their reports and pictures are the published ones.
func TestStoredDemand(t *testing.T) {
	for _, name := range []string{"demand-real", "demand-cores"} {
		t.Run(name, func(t *testing.T) { judgeAgain(t, name) })
	}
}

func judgeAgain(t *testing.T, name string) {
	file, err := os.Open(filepath.Join("..", "..", "docs", name+".json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var r DemandResult
	in := json.NewDecoder(unpacked)
	in.DisallowUnknownFields()
	if err := in.Decode(&r); err != nil {
		t.Fatal(err)
	}
	if why := r.trial(); len(why) > 0 {
		t.Errorf("a trial: %v", why)
	}
	said := r.Policies
	for i := range r.Runs {
		run := &r.Runs[i]
		stored := *run
		if run.judge(&r); !reflect.DeepEqual(*run, stored) {
			t.Errorf("round %d of %s: areas %+v, stored are %+v", run.Round, run.Policy, run.Areas, stored.Areas)
		}
	}
	least := r.Least
	if r.summarise(); !reflect.DeepEqual(r.Policies, said) || r.Least != least {
		t.Errorf("the runs say %+v, stored is %+v", r.Policies, said)
	}
	var out bytes.Buffer
	if err := r.Write(&out); err != nil {
		t.Fatal(err)
	}
	testfile.Golden(t, filepath.Join("..", "..", "..", "docs", name+".txt"), out.Bytes())
	testfile.Golden(t, filepath.Join("..", "..", "..", "docs", name+".svg"), drawn(t, r.Pictures()))
}
