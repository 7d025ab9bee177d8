package demo

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/resource"
)

func TestInputIsTheSameEverywhere(t *testing.T) {
	f := input{lines: 50_000, seed: 7}
	var out bytes.Buffer
	if err := f.write(&out); err != nil {
		t.Fatal(err)
	}
	if int64(out.Len()) != f.size() {
		t.Errorf("%d bytes, want %d", out.Len(), f.size())
	}
	want := []string{
		"0000117649 GET /item/06743/page43 200 mozilla",
		"1977326743 GET /item/12276/page26 200 mozilla",
		"0621132276 GET /item/34665/page15 200 mozilla",
	}
	lines := strings.SplitN(out.String(), "\n", 4)
	for i := range want {
		if lines[i] != want[i] {
			t.Errorf("line %d is %q, want %q", i+1, lines[i], want[i])
		}
	}
	sum := sha256.Sum256(out.Bytes())
	const known = "c694addc4d2059c55cb7eda535720cda569a65c3b9adca31b5961394be282abe"
	if got := hex.EncodeToString(sum[:]); got != known {
		t.Errorf("sum %s, want %s", got, known)
	}
}

// TestMixLeavesACoreIdle: the mix has enough tasks, and no two tasks with ideal memory fit side by side.
func TestMixLeavesACoreIdle(t *testing.T) {
	w, err := sizings[0].workload(idealModels(t))
	if err != nil {
		t.Fatal(err)
	}
	tasks, least := 0, node[resource.Memory]
	for i := range w.Jobs {
		s := &w.Jobs[i].Stages[0]
		tasks += s.Tasks
		ideal := s.Ideal[resource.Memory]
		least = min(least, ideal)
		if share := float64(ideal) / float64(node[resource.Memory]); share < 0.55 || share > 0.9 {
			t.Errorf("job %s: ideal memory %s is %.0f %% of the node, want 55 to 90", w.Jobs[i].Name,
				resource.FormatMemory(ideal), 100*share)
		}
		if s.Ideal[resource.CPU] != resource.Core {
			t.Errorf("job %s: cpus %s, want 1", w.Jobs[i].Name, resource.FormatCPU(s.Ideal[resource.CPU]))
		}
	}
	if len(w.Jobs) < 6 || tasks < 20 {
		t.Errorf("%d jobs and %d tasks, want at least 6 and 20", len(w.Jobs), tasks)
	}
	if 2*least <= node[resource.Memory] {
		t.Errorf("two tasks of %s fit into %s", resource.FormatMemory(least), resource.FormatMemory(node[resource.Memory]))
	}
	for _, f := range inputs {
		sizes := sizesOf(f)
		for i := 1; i < len(sizes); i++ {
			if sizes[i] <= sizes[i-1] {
				t.Errorf("%s: sizes %v, want them ascending", f.name, sizes)
			}
		}
	}
}
