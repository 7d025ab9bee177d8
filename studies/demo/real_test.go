package demo

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/internal/testfile"
)

// cannedReal is a result of two jobs, and of the short jobs alone.
func cannedReal() *RealResult {
	two := cannedFlex()
	short := FlexRun{Allocation: alone.Label, Round: 1,
		Stream: []FlexJob{{Name: "short", Ended: time.Second / 4, Finished: true, Attempts: 1, ID: 1}}}
	none := FlexResult{Node: two.Node, Attempts: two.Attempts, Programs: two.Programs, Runs: []FlexRun{short},
		Summaries: []FlexSummary{summariseFlex(&alone, []*FlexRun{&short}, two.Node)}}
	two.Missing = []string{"the server: there is no memcached"}
	return &RealResult{Sizes: []FlexResult{none, *two}}
}

func TestRealReport(t *testing.T) {
	var out bytes.Buffer
	if err := cannedReal().Write(&out); err != nil {
		t.Fatal(err)
	}
	testfile.Golden(t, "real.txt", out.Bytes())
	narrow(t, out.String())
	out.Reset()
	if err := (&RealResult{Sizes: []FlexResult{{Why: "there is no disk"}}}).Write(&out); err != nil ||
		!strings.Contains(out.String(), "left out: there is no disk.") {
		t.Errorf("%v, %s", err, &out)
	}
}

func TestRealPictures(t *testing.T) {
	pictures := cannedReal().Pictures()
	if len(pictures) != 3 {
		t.Fatalf("%d pictures, want 3", len(pictures))
	}
	for _, p := range pictures {
		svg, err := p.SVG()
		if err != nil {
			t.Fatalf("%s: %v", p.Name, err)
		}
		wellFormed(t, svg)
	}
	if none := (&RealResult{Sizes: []FlexResult{{Why: "there is no disk"}}}).Pictures(); len(none) > 0 {
		t.Errorf("of nothing: %v", none)
	}
}

// TestKept: a kept run reads back unchanged, and is not used for other programs.
func TestKept(t *testing.T) {
	r := cannedFlex()
	k := &keptRuns{t.TempDir()}
	flex := &r.Runs[2]
	flex.samples = append(flex.samples, sample{at: 7 * time.Second}) // when no container ran
	if got, err := k.load(r, breathing, 1); got != nil || err != nil {
		t.Errorf("nothing was kept: %v, %v", got, err)
	}
	if err := k.save(r, flex); err != nil {
		t.Fatal(err)
	}
	got, err := k.load(r, breathing, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got.Makespan() != flex.Makespan() || got.Used() != flex.Used() || got.Suspended() != flex.Suspended() ||
		got.AtOnce() != flex.AtOnce() || got.UsedWaiting() != flex.UsedWaiting() ||
		len(got.samples) != len(flex.samples) || len(got.Stream) != len(flex.Stream) {
		t.Errorf("kept %+v, got %+v", flex, got)
	}
	if got, err := k.load(r, breathing, 2); got != nil || err != nil {
		t.Errorf("round 2 was not kept: %v, %v", got, err)
	}
	r.Programs = r.Programs[:1]
	if _, err := k.load(r, breathing, 1); err == nil || !strings.Contains(err.Error(), "name another directory") {
		t.Errorf("runs of other programs: %v", err)
	}
}
