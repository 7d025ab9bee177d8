package demo

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/sandbox"
	"github.com/bellows-rm/bellows/door/sandbox/hungry"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/internal/testfile"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/node/agent"
)

// TestMain makes the test program also the supervisor of the containers that it starts, and the program inside them.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == agent.SuperviseCommand {
		os.Exit(agent.Supervise(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == hungry.Command {
		os.Exit(hungry.Run(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// canned is a result in which sharing is faster in one part, and slower in the other, where one task's output is wrong.
func canned() *Result {
	const s, mib = time.Second, resource.MiB
	busy := 0.7
	return &Result{Parts: []Part{
		{Name: Elastic, About: "5 jobs of 3 sorts each; a sort is fastest with 145MiB and can run with 48MiB",
			Node: resource.Of(2000, 208*mib), Fixed: Run{About: "fixed sizes", JobRuntime: 14 * s, Makespan: 24 * s, AtOnce: 1,
				Used: 100 * mib, Right: 15},
			Shared: Run{About: "elastic sizes", JobRuntime: 7 * s, Makespan: 15 * s, AtOnce: 1.94, Used: 130 * mib,
				UnderSized: 7, Right: 15,
				Why: "job 1 (sort-1), task 1.0.1: under-sized to 48MiB: ends 10:00:02, no later than its job (10:00:04)"}},
		{Name: Flex, About: "9 programs whose memory comes and goes", Node: resource.Of(2000, 640*mib),
			Fixed: Run{About: "REGULAR containers", JobRuntime: 10 * s, Makespan: 20 * s, AtOnce: 1.3, Used: 130 * mib,
				Right: 9},
			Shared: Run{About: "FLEX containers", JobRuntime: 12 * s, Makespan: 21 * s, AtOnce: 3, Used: 320 * mib,
				Swapped: 81 * mib, Killed: 1, Right: 8, Wrong: []string{"job 3 (sort): task 3.0.0 ended as failed: exit code 4"},
				Others: &busy}},
		{Name: Flex, LeftOut: "there can be no swap"},
	}}
}

func TestReport(t *testing.T) {
	var out bytes.Buffer
	if err := Write(&out, canned()); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > terminal.Width {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	testfile.Golden(t, "report.txt", out.Bytes())
}

// Every container fits the largest job of its kind, and all peaks together exceed the node's memory.
func TestHungryJobs(t *testing.T) {
	const memory = 384 * resource.MiB
	for _, class := range []cluster.Class{cluster.Regular, cluster.Flex} {
		w := hungryJobs(memory, class)
		for i := range w.Jobs {
			if err := w.Jobs[i].Check(); err != nil {
				t.Errorf("%v: %v", class, err)
			}
		}
		if len(w.Jobs) != 9 {
			t.Errorf("%d jobs", len(w.Jobs))
		}
	}
}

// Faults are reported: a failed task, and results that differ.
func TestTake(t *testing.T) {
	begun := time.Now()
	at := func(seconds int) time.Time { return begun.Add(time.Duration(seconds) * time.Second) }
	var r Run
	r.take([]api.Job{
		{ID: 1, Name: "a", Submitted: at(0), Finished: at(4),
			Tasks: []api.Task{{Outcome: cluster.Succeeded, UnderSized: true, Why: "fits", Started: at(1), Ended: at(4)}}},
		{ID: 2, Name: "b", Submitted: at(1), Finished: at(3),
			Tasks: []api.Task{{Outcome: cluster.OutOfMemory, Detail: "too little"}}},
	}, begun)
	if r.JobRuntime != 3*time.Second || r.Makespan != 4*time.Second || r.UnderSized != 1 || r.Killed != 1 ||
		len(r.Wrong) != 1 || r.Why == "" {
		t.Errorf("%+v", r)
	}
}

// TestRealRun runs two small programs in real containers; their outputs differ.
func TestRealRun(t *testing.T) {
	place, err := sandbox.Make(sandbox.Parent(""), 0)
	if err != nil {
		t.Skipf("needs a disk to work on: %v", err)
	}
	t.Cleanup(func() {
		if err := place.Remove(context.Background()); err != nil {
			t.Error(err)
		}
	})
	node := resource.Of(resource.Core, 128*resource.MiB)
	d := demonstration{Options: Options{Say: func(line string) { t.Log(line) }, Show: func(string) {}}, work: place.Dir}
	if why := d.unsuitable(t.Context(), node); why != "" {
		t.Skipf("needs real containers: %s", why)
	}
	for _, c := range []struct {
		second       string
		right, wrong int
	}{{"echo same", 2, 0}, {"echo other", 0, 1}, {"exit 3", 1, 1}} {
		w := &workload.Workload{}
		for _, script := range []string{"echo same", c.second} {
			stage := cluster.Stage{Name: "s", Tasks: 1, Ideal: resource.Of(100, 16*resource.MiB),
				Command: cluster.Command{Args: []string{"sh", "-c", script}}}
			w.Jobs = append(w.Jobs, workload.Job{After: -1, Job: cluster.Job{Name: "j", Stages: []cluster.Stage{stage}}})
		}
		r, err := d.run(t.Context(), &under{about: "test", policy: "fair"}, node, w)
		if err != nil {
			t.Fatal(err)
		}
		if r.Right != c.right || len(r.Wrong) != c.wrong || r.Makespan <= 0 {
			t.Errorf("%s: %+v", c.second, r)
		}
	}
}
