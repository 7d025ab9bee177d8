package pufferfish

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// TestProductionTrace: the trace has Table 2's jobs, submitted in order within its period, and each seed gives another
// trace.
func TestProductionTrace(t *testing.T) {
	var first []submission
	for seed := range uint64(5) {
		jobs := productionTrace(seed, 1)
		count := map[string]int{}
		for i, j := range jobs {
			count[j.String()]++
			if at := time.Duration(j.at); at < 0 || at >= hours || i > 0 && j.at < jobs[i-1].at {
				t.Errorf("seed %d: job %d of %d is submitted at %v", seed, i, len(jobs), at)
			}
			least := float64(j.leastHeapOf()) / 1e9
			if least < j.leastHeap[0]-0.01 || least > j.leastHeap[1]+0.01 {
				t.Errorf("seed %d: %v survives with %.2f GB, want %v", seed, j, least, j.leastHeap)
			}
		}
		for i := range apps {
			if a := &apps[i]; count[a.String()] != a.jobs {
				t.Errorf("seed %d: %d of %v, want %d", seed, count[a.String()], a, a.jobs)
			}
		}
		if first == nil {
			first = jobs
		} else if slices.EqualFunc(jobs, first, func(a, b submission) bool { return a.at == b.at }) {
			t.Errorf("seeds 0 and %d give the same times", seed)
		}
	}
}

// TestSameWorkForAllRivals: in any containers, a job has the same number of tasks with the same phases, except for the
// heap.
func TestSameWorkForAllRivals(t *testing.T) {
	jobs := syntheticWorkload(true, 1, 3)
	flex, boxes := inBoxes(jobs, 0, 1).Jobs, inBoxes(jobs, maxHeap, 1).Jobs
	for i := range jobs {
		f, b := &flex[i], &boxes[i]
		if f.Class != cluster.Flex || b.Class == cluster.Flex {
			t.Errorf("%s: class %v in FLEX containers, %v in boxes", f.Name, f.Class, b.Class)
		}
		for k := range f.Stages {
			if f.Stages[k].Tasks != b.Stages[k].Tasks || *f.Truth[k].Heap != *b.Truth[k].Heap {
				t.Errorf("%s stage %d differs: %+v and %+v", f.Name, k, f.Stages[k], b.Stages[k])
			}
			if got := f.Stages[k].Ideal[resource.Memory]; got != minCont ||
				f.Stages[k].MaxMemory != maxHeap {
				t.Errorf("%s stage %d starts with %d and grows to %d", f.Name, k, got, f.Stages[k].MaxMemory)
			}
			for n, phases := range f.Truth[k].Phases.Values() {
				if !slices.Equal(phases, b.Truth[k].Phases.Values()[n]) {
					t.Errorf("%s stage %d task %d has other phases in FLEX containers than in boxes of 64 GB", f.Name, k, n)
				}
			}
		}
	}
}

// TestEndless: jobs that never end count as the slowest.
func TestEndless(t *testing.T) {
	trial := rivalTrial{Normal: []float64{1, 2, 3}, Endless: 1}
	if m := trial.quantile(0.5); m != 2 {
		t.Errorf("median %v, want 2", m)
	}
	if worst := trial.quantile(0.9); !math.IsInf(worst, 1) {
		t.Errorf("90th percentile %v, want infinite", worst)
	}
}
