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

	"github.com/bellows-rm/bellows/internal/boundeddisk"
	"github.com/bellows-rm/bellows/internal/testfile"
	"github.com/bellows-rm/bellows/resource"
)

// TestDemandMix: the programs of the mix are at least six, and existing ones that tools names; not all of them
// fit at once.
func TestDemandMix(t *testing.T) {
	jobs, err := demandJobs()
	if err != nil {
		t.Fatal(err)
	}
	if len(jobs) < 6 {
		t.Errorf("%d programs", len(jobs))
	}
	if len(jobs) <= demandAtOnce {
		t.Errorf("%d programs, and %d run at once: there is nothing to choose", len(jobs), demandAtOnce)
	}
	node := demandNode(jobs, 24*resource.MB)
	if node[resource.CPU] > 2*resource.Core || node[resource.Disk] != 24*resource.MB {
		t.Errorf("the node has %v", node)
	}
	for i := range jobs {
		j := &jobs[i]
		if err := j.Check(); err != nil {
			t.Error(err)
		}
		if j.App != j.Name || !slices.Contains(tools, j.Name) || len(j.Stages) != 1 || j.Stages[0].Tasks != 1 {
			t.Errorf("%s: application %q, %d stages", j.Name, j.App, len(j.Stages))
		}
		boxed := under(&demandPolicies[0], *j, 5*resource.MB).Stages[0].Ideal[resource.Disk]
		if free := under(&demandPolicies[2], *j, 5*resource.MB).Stages[0].Ideal[resource.Disk]; boxed != 5*resource.MB || free != 0 || j.Stages[0].Ideal[resource.Disk] != 0 {
			t.Errorf("%s reserves %v of the disk in a box, and %v otherwise", j.Name, boxed, free)
		}
	}
}

// TestDemandInputs makes small inputs twice, and gets the same.
func TestDemandInputs(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	if names := lacking(); len(names) > 0 {
		t.Skipf("needs the programs %v", names)
	}
	var sums []string
	for range 2 {
		dir := t.TempDir()
		if err := makeInputs(t.Context(), dir, 1); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sh", "-c", "git -C repository rev-parse HEAD; sqlite3 database .dump | cksum; cksum gzip-1 sort.bz2 python.json tree/*")
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

// A program that reads at 10 for 10 s, computes for 10 s and reads at 4 for 5 s.
func readsTwice() curve {
	return curve{{10 * time.Second, 10, 200}, {10 * time.Second, 0, 1000}, {5 * time.Second, 4, 200}}
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
	if p := (curve{{time.Second, 0, 0}}).progress(); p[0] != 1 {
		t.Errorf("without any work: %v", p)
	}
}

// TestDemand: a program demands what it demanded alone at the same progress, however long it takes.
func TestDemand(t *testing.T) {
	alone := readsTwice()
	if got := fmt.Sprint(alone.demand(alone)); got != "[10 10 10 10 10 10 10 10 10 10 0 0 0 0 0 0 0 0 0 0 4 4 4 4 4]" {
		t.Errorf("alone: %s", got)
	}
	slow := slices.Clone(alone)
	slow[0] = Piece{20 * time.Second, 5, 100} // half as fast while it reads first
	if got := slow.demand(alone); len(got) != 35 || got[0] != 10 || got[19] != 10 || got[20] != 0 || got[29] != 0 || got[30] != 4 {
		t.Errorf("slowed down: %v", got)
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
	m.at, m.total = []time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond, 3 * time.Second}, []resource.Amount{100, 150, 250, 250}
	if got := fmt.Sprint(m.perSecond(2500 * time.Millisecond)); got != "[100 50 0]" {
		t.Errorf("%s", got)
	}
}

// cannedDemand is a result of two rounds with two programs.
func cannedDemand() *DemandResult {
	const s = time.Second
	r := &DemandResult{Build: "devel", CPUs: 2, Repeats: 1, Node: resource.Of(400, 384*resource.MiB).With(resource.Disk, 10*resource.MB), Speed: 10 * resource.MB, Tenths: 1,
		Verified: []boundeddisk.Check{{What: "buffered writes", Achieved: 10_100_000}, {What: "direct reads", Achieved: 9_900_000}}}
	use := curve{{10 * s, 8 * resource.MB, 100}, {10 * s, 0, 200}}
	l := &learned{Alone: []AloneResult{{Name: "gzip", Took: []time.Duration{20 * s}, Typical: use, Peak: 8 * resource.MB},
		{Name: "sort", Took: []time.Duration{20 * s}, Typical: use, Peak: 8 * resource.MB}}}
	for _, a := range l.Alone {
		bytes, cpu := use.totals()
		r.Programs = append(r.Programs, DemandProgram{Name: a.Name, Command: a.Name, Alone: figure([]float64{20}), CPU: cpu, Bytes: bytes, Peak: a.Peak, Phases: use})
	}
	for round := 1; round <= 2; round++ {
		for i, second := range []time.Duration{20 * s, 20 * s, 10 * s} {
			run := DemandRun{Policy: demandPolicies[i].Label, Round: round, CPU: 6 * s, Busy: 8 * s, Counted: 0.95,
				Jobs: []DemandJob{{"gzip", 0, 20 * s, use}, {"sort", second, second + time.Duration(20+round)*s, append(slices.Clone(use), Piece{time.Duration(round) * s, 0, 0})}}}
			run.Disk = make([]resource.Amount, int(run.Makespan()/s))
			for _, j := range run.Jobs {
				for t := range 10 {
					run.Disk[int(j.Started/s)+t] += 8 * resource.MB
				}
			}
			run.Areas = areas(r.Speed, run.Makespan(), run.Disk, run.demanded(r))
			r.Runs = append(r.Runs, run)
		}
	}
	r.summarise()
	return r
}

func TestDemandReport(t *testing.T) {
	var out bytes.Buffer
	if err := cannedDemand().Write(&out); err != nil {
		t.Fatal(err)
	}
	testfile.Golden(t, "demand.txt", out.Bytes())
	narrow(t, out.String())
}

func TestDemandPicture(t *testing.T) {
	testfile.Golden(t, "demand.svg", drawn(t, cannedDemand().Pictures()))
}

// TestPairedRatio compares runs of the same round only.
func TestPairedRatio(t *testing.T) {
	run := func(round int, took time.Duration) *DemandRun {
		return &DemandRun{Round: round, Jobs: []DemandJob{{Ended: took}}}
	}
	a := []*DemandRun{run(1, 20*time.Second), run(2, 40*time.Second), run(3, time.Hour)}
	b := []*DemandRun{run(2, 20*time.Second), run(1, 10*time.Second)}
	if e := pairedRatio(a, b); e.Mean < 1.999 || e.Mean > 2.001 || !e.Interval() {
		t.Errorf("%+v, want 2", e)
	}
}

// TestStoredDemand judges the stored result again: everything that it says follows from its runs, it is no trial, and its
// report and its picture are the published ones.
func TestStoredDemand(t *testing.T) {
	file, err := os.Open(filepath.Join("..", "..", "docs", "demand-real.json.gz"))
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
		if got := areas(r.Speed, run.Makespan(), run.Disk, run.demanded(&r)); got != run.Areas {
			t.Errorf("round %d of %s: areas %+v, stored are %+v", run.Round, run.Policy, got, run.Areas)
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
	testfile.Golden(t, filepath.Join("..", "..", "..", "docs", "demand-real.txt"), out.Bytes())
	testfile.Golden(t, filepath.Join("..", "..", "..", "docs", "demand-real.svg"), drawn(t, r.Pictures()))
}
