package demo

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/sandbox"
	"github.com/bellows-rm/bellows/internal/testfile"
	"github.com/bellows-rm/bellows/internal/testswap"
)

func container(job cluster.JobID) cluster.ContainerID {
	return cluster.ContainerID{Task: cluster.TaskID{Job: job}, Run: 1}
}

// cannedFlex is a result of one round: in containers of the peak one job runs after the other, in containers of half
// the peak one job is killed, in FLEX containers both run at once, one suspended for a while.
func cannedFlex() *FlexResult {
	const s = time.Second
	const mib = resource.MiB
	stream := func(took ...time.Duration) (jobs []FlexJob) {
		for i, d := range took {
			at := time.Duration(i) * s
			jobs = append(jobs, FlexJob{Name: "short", Submitted: at, Started: at, Ended: at + d, Finished: true, Attempts: 1,
				ID: 9})
		}
		return jobs
	}
	others := 0.1
	runs := []FlexRun{
		{Allocation: "static peak", Jobs: []FlexJob{
			{Name: "grow 1", Ended: 6 * s, Finished: true, Attempts: 1, ID: 1},
			{Name: "sort 0.3", Submitted: s, Started: 6 * s, Ended: 9 * s, Finished: true, Attempts: 1, ID: 2}},
			Stream: stream(s/2, 5*s, 4*s)},
		{Allocation: "static half", Jobs: []FlexJob{
			{Name: "grow 1", Ended: 8 * s, Attempts: 3, Kills: 3, ID: 1},
			{Name: "sort 0.3", Submitted: s, Started: s, Ended: 4 * s, Finished: true, Attempts: 1, ID: 2}},
			Stream: stream(s/2, s/2, s)},
		{Allocation: "FLEX", Swapped: 20 * mib, Jobs: []FlexJob{
			{Name: "grow 1", Ended: 6 * s, Finished: true, Attempts: 1, ID: 1},
			{Name: "sort 0.3", Submitted: s, Started: 2 * s, Ended: 6 * s, Finished: true, Attempts: 1, ID: 2}},
			Stream: stream(s/2, s/2, s)},
	}
	r := &FlexResult{Node: resource.Of(2000, 640*mib), Jobs: 2, Attempts: 3,
		Programs: []string{"grow, a working set that grows", "sort, a sort of numbers in memory"}}
	for i := range runs {
		run := &runs[i]
		run.Round, run.Slots, run.Others = 1, 6, &others
		for at := time.Duration(0); at < run.Makespan(); at += s {
			x := sample{at: at, containers: []held{{id: container(1), anonymous: 100 * mib, limit: 120 * mib}}}
			if i == 2 && at == 0 {
				x.waiting = 1
			}
			if at >= 2*s {
				x.containers = append(x.containers, held{id: container(2), anonymous: 40 * mib, swap: 20 * mib, limit: 40 * mib,
					suspended: i == 2 && at < 4*s}, held{id: container(9), anonymous: 30 * mib, limit: 64 * mib})
			}
			run.samples = append(run.samples, x)
		}
		r.Runs = append(r.Runs, *run)
		r.Summaries = append(r.Summaries, summariseFlex(&allocations[i], []*FlexRun{run}, r.Node))
	}
	return r
}

func TestFlexReport(t *testing.T) {
	var out bytes.Buffer
	if err := cannedFlex().Write(&out); err != nil {
		t.Fatal(err)
	}
	testfile.Golden(t, "flex.txt", out.Bytes())
	narrow(t, out.String())
}

func TestFlexPicture(t *testing.T) { testfile.Golden(t, "flex.svg", drawn(t, cannedFlex().Pictures())) }

func TestFlexRunFigures(t *testing.T) {
	r := &cannedFlex().Runs[2]
	const mib = float64(resource.MiB)
	for _, test := range []struct {
		what      string
		got, want float64
	}{
		{"makespan", r.Makespan().Seconds(), 6},
		{"finished", float64(r.Finished()), 2},
		{"mean runtime", r.MeanRuntime().Seconds(), (6 + 5) / 2.0},
		{"used", r.Used(), (100*6 + 70*4) * mib / 6},
		{"at once", r.AtOnce(), (6 + 2) / 6.0},
		{"suspended", r.Suspended(), 2 / 6.0},
		{"waiting", r.Waiting(), 3 / 6.0}, // a container at 0 s, and a suspended one from 2 to 4 s
		{"used while waiting", r.UsedWaiting(), (100 + 170*2) * mib / 3},
		{"granted while waiting", r.GrantedWaiting(), (120 + 224*2) * mib / 3},
	} {
		if d := test.got - test.want; d > 1e-6 || d < -1e-6 {
			t.Errorf("%s is %v, want %v", test.what, test.got, test.want)
		}
	}
}

// TestHold: a container that waits for memory before it begins does not count as running.
func TestHold(t *testing.T) {
	bytes := int64(resource.MiB)
	got := hold(map[cluster.ContainerID]cluster.Reading{
		container(1): {State: cluster.ContainerRunning, Anonymous: &bytes, Limit: &bytes},
		container(2): {State: cluster.ContainerSuspended, Swap: &bytes},
		container(3): {State: cluster.ContainerWaiting},
	})
	slices.SortFunc(got, func(a, b held) int { return cmp.Compare(a.id.Task.Job, b.id.Task.Job) })
	want := []held{{id: container(1), anonymous: resource.MiB, limit: resource.MiB},
		{id: container(2), swap: resource.MiB, suspended: true}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestPercentile(t *testing.T) {
	values := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for share, want := range map[float64]float64{0.5: 5, 0.95: 10, 0.99: 10, 0.1: 1, 0.11: 2} {
		if got := percentile(values, share); got != want {
			t.Errorf("percentile %v is %v, want %v", share, got, want)
		}
	}
	if got := percentile(nil, 0.5); got != 0 {
		t.Errorf("of nothing %v", got)
	}
}

// TestMixes: a container of the peak fits its program's largest job, and a container of half the peak does not.
func TestMixes(t *testing.T) {
	for _, machine := range []resource.Amount{resource.GiB, 2 * resource.GiB, 64 * resource.GiB} {
		memory := nodeMemory(machine)
		m := ownMix(memory)
		jobs := m.jobs()
		if len(jobs) != 9 {
			t.Fatalf("%d jobs", len(jobs))
		}
		for i := range jobs {
			for k := range allocations {
				job, args := jobs[i].job(m, &allocations[k])
				if err := job.Check(); err != nil {
					t.Errorf("%s: %v", allocations[k].Label, err)
				}
				if size := job.Stages[0].Ideal[resource.Memory]; size > memory/10*6 || len(args) != 5 {
					t.Errorf("%s: %v gets %s of %s", allocations[k].Label, args, resource.FormatMemory(size),
						resource.FormatMemory(memory))
				}
			}
		}
	}
}

// TestRealMix: jobs go to the programs in turn, and every third is large.
func TestRealMix(t *testing.T) {
	m, missing, err := realMix(t.Context(), t.TempDir(), 8)
	if err != nil {
		t.Fatal(err)
	}
	for _, why := range missing {
		t.Log(why)
	}
	jobs, large := m.jobs(), 0
	for i := range jobs {
		if jobs[i].share == 1 {
			large++
		}
		job, args := jobs[i].job(m, &allocations[i%len(allocations)])
		if err := job.Check(); err != nil || len(args) < 4 {
			t.Errorf("%v: %v", args, err)
		}
	}
	if len(jobs) != 8 || large != 3 {
		t.Errorf("%d jobs, %d large; want 8, 3", len(jobs), large)
	}
}

// tinyMix is one program of each kind, on a node that is slightly too small for all of them at once. The binary at
// program contains the programs.
func tinyMix(program string) *flexMix {
	m := ownMix(192 * resource.MiB)
	m.node[resource.Memory] = 240 * resource.MiB
	m.every, m.streamEvery = 100*time.Millisecond, 500*time.Millisecond
	m.stream[0] = program
	for i := range m.programs {
		m.programs[i].sizes = []float64{1}
		m.programs[i].least = 32 * resource.MiB
		whole := m.programs[i].command
		m.programs[i].command = func(share float64, most resource.Amount) []string {
			args := whole(share, most)
			args[0], args[4] = program, "200"
			return args
		}
	}
	return m
}

// TestFlexReal runs a small mix in FLEX containers and checks that everything is removed afterwards.
func TestFlexReal(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	place, err := sandbox.Make(sandbox.Parent(""), diskNeeded)
	if err != nil {
		t.Skipf("needs a disk to work on: %v", err)
	}
	t.Cleanup(func() { place.Remove(context.Background()) })
	if why := sandbox.NoContainers(t.Context(), place.Dir); why != "" {
		t.Skipf("needs real containers: %s", why)
	}
	// The programs are built apart, without the race detector: it needs several times the memory for its notes, which is
	// swapped out, so that the run took minutes and the tests that use swap waited for it.
	program := filepath.Join(t.TempDir(), "bellows-lab")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../bellows-lab")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	testswap.Need(t, 512<<20)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	r, err := runFlex(ctx, place.Dir, tinyMix(program), breathing, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Wrong(); err != nil || r.Finished() != 3 || len(r.Stream) == 0 || r.Used() <= 0 {
		t.Errorf("%v: %+v, %d short jobs, used %v", err, r.Jobs, len(r.Stream), r.Used())
	}
	left, err := filepath.Glob(filepath.Join(place.Dir, "state-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left are %v (%v)", left, err)
	}
}
