package bound

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/internal/testfile"
	"github.com/bellows-rm/bellows/sim"
)

// ratios collects results relative to the optimum, by subject and by name, in the order of their first occurrence.
type ratios struct {
	what, names []string
	all         map[[2]string][]float64
}

func (r *ratios) add(what, name string, got, best time.Duration) {
	if !slices.Contains(r.what, what) {
		r.what = append(r.what, what)
	}
	if !slices.Contains(r.names, name) {
		r.names = append(r.names, name)
	}
	key := [2]string{what, name}
	r.all[key] = append(r.all[key], float64(got)/float64(best))
}

// String prints the median and the worst ratio of each: the least for a bound, the largest for a policy.
func (r *ratios) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "Over the best possible: median and worst.\n\n%-24s", "")
	for _, what := range r.what {
		fmt.Fprintf(&out, "  %-18s", what)
	}
	slices.SortStableFunc(r.names, strings.Compare)
	for _, name := range r.names {
		fmt.Fprintf(&out, "\n%-24s", name)
		for _, what := range r.what {
			v := slices.Sorted(slices.Values(r.all[[2]string{what, name}]))
			if len(v) == 0 {
				fmt.Fprintf(&out, "  %-18s", "-")
				continue
			}
			worst := v[0]
			if strings.HasPrefix(name, "policy") {
				worst = v[len(v)-1]
			}
			fmt.Fprintf(&out, "  %5.3f %5.3f %6s", v[len(v)/2], worst, fmt.Sprintf("(%d)", len(v)))
		}
	}
	lines := strings.Split(out.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// bounds adds all bounds; bounds from rounded sizes share one name per resource.
func (r *ratios) bounds(what string, values []Value, largest, best time.Duration) {
	for _, v := range values {
		name := v.Name
		for _, k := range []resource.Kind{resource.CPU, resource.Memory} {
			if strings.HasPrefix(name, k.String()+" ") {
				name = k.String() + ", rounded"
			}
		}
		r.add(what, "bound "+name, v.Duration, best)
	}
	r.add(what, "bound, largest", largest, best)
}

// No bound is above the best schedule of a tiny workload, and no policy is below it. testdata has the distances.
func TestBoundsAndPoliciesAgainstOptimum(t *testing.T) {
	runs := 150
	if testing.Short() {
		runs = 50
	}
	r := &ratios{all: map[[2]string][]float64{}}
	for seed := range uint64(runs) {
		for _, elastic := range []bool{false, true} {
			checkTiny(t, seed, elastic, r)
		}
	}
	if testing.Short() {
		return
	}
	got := r.String()
	testfile.Golden(t, "ratios.txt", []byte(got))
}

func checkTiny(t *testing.T, seed uint64, elastic bool, r *ratios) {
	t.Helper()
	const memory = 40 // bytes, so that all sizes can be tried
	w := tinyWorkload(rand.New(rand.NewPCG(seed, 1)), memory, 6)
	nodes := sim.Uniform(1+int(seed%2), resource.Of(4*resource.Core, memory))
	x := newOptimum(w, nodes, elastic)
	makespan, sum := x.solve(true), x.solve(false)
	mean := sum / time.Duration(len(w.Jobs))
	which := map[bool]string{false: "rigid", true: "elastic"}[elastic]
	b := Of(w, nodes, elastic, Options{Iterations: DefaultIterations})
	if b.Makespan > makespan || b.AverageJobRuntime > mean {
		t.Fatalf("seed %d, %s: bounds %+v, but a schedule has makespan %v and mean %v\n%+v", seed, which, b, makespan, mean,
			w)
	}
	r.bounds(which+" makespan", b.Makespans, b.Makespan, makespan)
	r.bounds(which+" mean", b.Averages, b.AverageJobRuntime, mean)
	for _, name := range policy.Names() {
		p, err := policy.New(name, map[string]string{"yarn-me.granularity": "1B"})
		if err != nil {
			t.Fatal(err)
		}
		if p.Traits().UnderSizes && !elastic {
			continue // it may use resources that the best rigid schedule may not
		}
		result, err := sim.Run(sim.Config{Nodes: nodes}, w, p)
		if err != nil || len(result.Unfinished())+len(result.Failures()) > 0 {
			continue // a task that really needs more than it requests fails
		}
		var total time.Duration
		for i := range result.Jobs {
			total += result.Jobs[i].Runtime()
		}
		if result.Makespan < makespan || total < sum {
			t.Fatalf("seed %d, %s: %s has makespan %v and run times of %v, the best schedule has %v and %v\n%+v", seed, which,
				name, result.Makespan, total, makespan, sum, w)
		}
		r.add(which+" makespan", "policy "+name, result.Makespan, makespan)
		r.add(which+" mean", "policy "+name, total, sum)
	}
}
