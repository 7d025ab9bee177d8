package pufferfish

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// TestPufferfishAlone: the simulated run time of a job on a node of its own equals the model's, and the job fails there
// if it fails in the model.
func TestPufferfishAlone(t *testing.T) {
	for i := range apps {
		j := apps[i].draw(rand.New(rand.NewPCG(1, uint64(i))))
		for _, heap := range heaps {
			c := pufferfishCluster(len(j.cold) + 1)
			// Each container is alone on its node.
			for n := range c.Nodes {
				c.Nodes[n].Capacity[resource.Memory] = heap
			}
			c.KeepTasks = true
			r, err := yarnBox(heap).ToTheEnd(c, inBoxes([]submission{{j, 0}}, heap, 1))
			if err != nil {
				t.Fatal(err)
			}
			want, ok := j.with(heap)
			if got := r.Jobs[0].Done; got != ok {
				t.Errorf("%v with %d GB done: %v, the model says %v", j, heap/resource.GB, got, ok)
			}
			if !ok {
				continue
			}
			var longest time.Duration
			for _, task := range r.Tasks {
				longest = max(longest, task.Finished.Sub(task.Launched))
			}
			// In addition there are the start of the executor, and heartbeats until its end is known.
			if beside := longest - want.all; beside < 0 || beside > 10*time.Second {
				t.Errorf("%v with %d GB: %v, the model says %v", j, heap/resource.GB, longest, want.all)
			}
		}
	}
}

// TestPufferfishApps: the models agree with the paper on memory and on the numbers of jobs and executors.
func TestPufferfishApps(t *testing.T) {
	jobs := 0
	for i := range apps {
		a := &apps[i]
		jobs += a.jobs
		var most resource.Amount
		for k := range 1001 {
			m := a.memoryAt(float64(k) / 1000)
			if m <= 0 {
				t.Errorf("%v uses %d bytes at %d/1000", a, m, k)
			}
			most = max(most, m)
		}
		if most != a.peak {
			t.Errorf("%v uses at most %d, want its peak of %d", a, most, a.peak)
		}
	}
	if jobs != 178 {
		t.Errorf("%d jobs, want the paper's 178", jobs)
	}
	// For a third of the time Kmeans, Pagerank and Terasort use at most 64, 49 and 86 % of their heaps.
	for _, c := range []struct {
		name  string
		large bool
		most  float64 // GB
	}{{"KM", false, 0.64 * 64}, {"PR", false, 0.49 * 64}, {"TS", true, 0.86 * 18}} {
		below, a := 0, app(c.name, c.large)
		for k := range 999 {
			if float64(a.memoryAt((float64(k)+0.5)/999)) <= (c.most+0.01)*1e9 {
				below++
			}
		}
		if below < 323 || below > 343 {
			t.Errorf("%s uses at most %.1f GB for %d of 999 parts of its time, want a third", c.name, c.most, below)
		}
	}
}
