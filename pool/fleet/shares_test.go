package fleet

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
)

// cores is a need of cores and next to no memory.
func cores(n int) resource.Vector {
	return resource.Of(resource.Amount(n)*resource.Core, resource.MiB)
}

// pooled is an owner with one pool of executors of a number of cores, of which some have started.
func pooled(wanted, held, each int) party {
	p := party{pools: []claim{{tasks: wanted, wanted: wanted, held: held, need: cores(each)}},
		held: times(cores(each), held)}
	if wanted > held {
		p.least = cores(each)
	}
	return p
}

// kept is pooled without tasks.
func kept(held, each int) party {
	p := pooled(held, held, each)
	p.pools[0].tasks = 0
	return p
}

// jobs is an owner without a pool, who has some cores and waits for others.
func jobs(held, waits int) party {
	p := party{held: cores(held), jobs: cores(held), waits: cores(waits)}
	if held == 0 {
		p.held, p.jobs = resource.Vector{}, resource.Vector{}
	}
	if waits > 0 {
		p.least = cores(1)
	}
	return p
}

func TestDivide(t *testing.T) {
	for _, c := range []struct {
		name    string
		cores   int
		parties []party
		want    [][]limits
	}{
		{"nobody waits", 4, []party{pooled(2, 2, 1), pooled(1, 1, 1)}, [][]limits{{unlimited}, {unlimited}}},
		{"alone, and it waits itself", 4, []party{pooled(9, 4, 1)}, [][]limits{{unlimited}}},
		{"another pool has nothing", 4, []party{pooled(9, 4, 1), pooled(9, 0, 1)}, [][]limits{{{2, 2, true}}, {unlimited}}},
		{"jobs of another wait", 4, []party{pooled(9, 4, 1), jobs(0, 100)}, [][]limits{{{2, 2, true}}, {}}},
		{"another waits for little", 4, []party{pooled(9, 4, 1), jobs(0, 1)}, [][]limits{{{3, 3, true}}, {}}},
		{"another waits, and has its share", 4, []party{pooled(9, 2, 1), jobs(2, 100)}, [][]limits{{unlimited}, {}}},
		{"kept executors beyond the share", 4, []party{pooled(4, 4, 1), jobs(0, 100)}, [][]limits{{{2, 2, true}}, {}}},
		{"five cores for two: they do not take one from each other", 5, []party{pooled(9, 3, 1), pooled(9, 2, 1)},
			[][]limits{{{3, 2, true}}, {unlimited}}},
		{"three owners", 3, []party{pooled(9, 3, 1), pooled(9, 0, 1), pooled(9, 0, 1)},
			[][]limits{{{1, 1, true}}, {{1, 1, true}}, {{1, 1, true}}}},
		{"who has nothing is due one, however large", 5, []party{pooled(9, 5, 1), pooled(1, 0, 4)},
			[][]limits{{{1, 1, true}}, {unlimited}}},
		{"a large one that runs a task", 5, []party{pooled(1, 1, 4), jobs(0, 2)}, [][]limits{{{1, 1, true}}, {}}},
		{"a large kept one is beyond the share", 5, []party{kept(1, 4), jobs(0, 2)}, [][]limits{{{1, 0, true}}, {}}},
	} {
		got := divide(resource.Of(resource.Amount(c.cores)*resource.Core, resource.GiB), c.parties)
		for i := range got {
			if len(got[i]) == 0 {
				got[i] = []limits{}
			}
			if want := c.want[i]; !reflect.DeepEqual(got[i], append([]limits{}, want...)) {
				t.Errorf("%s: party %d has %+v, want %+v", c.name, i, got[i], want)
			}
		}
	}
}

// Two pools of one owner share what is due to the owner.
func TestDividePoolsOfOneOwner(t *testing.T) {
	one := party{owner: api.Owner{UID: 1}, held: cores(6), pools: []claim{{9, 9, 3, cores(1)}, {9, 9, 3, cores(1)}}}
	got := divide(resource.Of(6*resource.Core, resource.GiB), []party{one, pooled(9, 0, 1)})
	if want := []limits{{1, 1, true}, {1, 1, true}}; !reflect.DeepEqual(got[0], want) {
		t.Errorf("the limits are %+v, want %+v", got[0], want)
	}
}

// Owners with random demands who keep to their limits, where the machine gives what is free to whoever waits in
// random order, come to rest: none takes from another what it gives back later, and none has more than a fair share
// while another waits with less, but for one executor.
func TestDivideComesToRest(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		machine := 2 + r.IntN(20)
		capacity := resource.Of(resource.Amount(machine)*resource.Core, resource.GiB)
		parties := make([]party, 2+r.IntN(4))
		for i := range parties {
			parties[i] = pooled(r.IntN(2*machine), 0, 1)
		}
		free, quiet := machine, 0
		for step := 0; quiet < 5; step++ {
			if step > 200 {
				t.Fatalf("seed %d: no rest", seed)
			}
			quiet++
			for i, l := range divide(capacity, parties) {
				c := &parties[i].pools[0]
				target := min(c.wanted, l[0].most)
				if over := c.held - target; over > 0 {
					c.held, free, quiet = c.held-over, free+over, 0
				}
				parties[i].least = resource.Vector{}
				if c.held < target {
					parties[i].least = c.need
				}
			}
			for _, i := range r.Perm(len(parties)) {
				p := &parties[i]
				for c := &p.pools[0]; free > 0 && p.least != (resource.Vector{}) && c.held < c.wanted; free-- {
					c.held++
					quiet = 0
				}
				*p = pooled(p.pools[0].wanted, p.pools[0].held, 1)
			}
		}
		entitled := entitle(capacity, parties)
		for i := range parties {
			for k := range parties {
				a, b := parties[i].pools[0], parties[k].pools[0]
				if b.held < b.wanted && dominant(capacity, parties[k].held) < entitled[k]-rounding && a.held > b.held+1 {
					t.Fatalf("seed %d: %+v waits beside %+v, of %d cores", seed, b, a, machine)
				}
			}
		}
	}
}
