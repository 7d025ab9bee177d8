package memory

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// wish is a container as Algorithm 1 sees it.
type wish struct {
	id      cluster.ContainerID
	job     int
	limit   resource.Amount
	max     resource.Amount
	short   bool // c.is_ocm(); otherwise it was recently
	granted resource.Amount
}

// puffSlowly is Algorithm 1 line by line, as decision 10 interprets it: containers of a job share a ratio, and changes
// too small to be worth a call are omitted.
func puffSlowly(memory resource.Amount, phi float64, c []wish) {
	slices.SortFunc(c, func(a, b wish) int { return compareIDs(a.id, b.id) }) // jobs are ranked by their numbers here
	allocated := resource.Amount(0)
	for i := range c {
		allocated += c[i].limit
	}
	n := float64(len(c))
	job := 0 // the last that got a share
	for i := range c {
		if !c[i].short {
			continue
		}
		if job != 0 && job != c[i].job {
			phi /= n
		}
		job = c[i].job
		bm := min(resource.Amount(phi*float64(c[i].limit)), (memory-allocated)/2, c[i].max-c[i].limit)
		if bm > c[i].limit/100 || bm > 0 && c[i].limit+bm == c[i].max {
			c[i].granted = bm
			allocated += bm
		}
	}
}

// TestPuffAgainstSlowTwin compares one puff of random containers with the plain version of the algorithm.
func TestPuffAgainstSlowTwin(t *testing.T) {
	for seed := range *seeds * 10 {
		r := rand.New(rand.NewPCG(seed, 11))
		memory := resource.Amount(1000 + r.IntN(20_000))
		var wishes []wish
		var in Input
		first := -1
		for i := range 1 + r.IntN(8) {
			job := 1 + r.IntN(4)
			w := wish{id: cluster.ContainerID{Task: cluster.TaskID{Job: cluster.JobID(job), Index: int32(i)}, Run: 1},
				job: job, limit: resource.Amount(100 + r.IntN(2000)), short: r.IntN(3) > 0}
			w.max = w.limit + resource.Amount(1+r.IntN(3000))
			wishes = append(wishes, w)
			in.Started = append(in.Started, Started{Limit: w.limit,
				Envelope: Envelope{Container: w.id, Envelope: cluster.Envelope{Class: cluster.Flex, Min: 1, Max: w.max,
					Rank: job}}})
			if w.short {
				in.Readings = append(in.Readings, Reading{Container: w.id, Anonymous: w.limit, Swap: 500, Pressed: true})
				first = i
			}
		}
		var total resource.Amount
		for _, w := range wishes {
			total += w.limit
		}
		if first < 0 || memory-total < 200 { // the node is full: see the scenarios
			continue
		}
		puffSlowly(memory, 0.4, wishes)
		m, err := New(Paper())
		if err != nil {
			t.Fatal(err)
		}
		in.Node = &NodeReading{Memory: memory, SwapFree: 1 << 40}
		var outcomes []Outcome
		for _, a := range m.Step(at(1), in) {
			outcomes = append(outcomes, Outcome{Action: a.ID})
		}
		got := map[cluster.ContainerID]resource.Amount{}
		for _, a := range m.Step(at(3), Input{Outcomes: outcomes}) {
			if a.Kind == Grow {
				got[a.Container] = a.Limit
			}
		}
		for _, w := range wishes {
			want := resource.Amount(0)
			if w.granted > 0 {
				want = w.limit + w.granted
			}
			if got[w.id] != want {
				t.Fatalf("seed %d: %s grows to %d, want %d, of %s", seed, w.id, got[w.id], want, fmt.Sprintf("%+v", wishes))
			}
		}
	}
}
