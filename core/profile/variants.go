package profile

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/bellows-rm/bellows/core/resource"
)

// variant is the runs that went one way, and what was learned from them.
type variant struct {
	runs    []*numbered // the oldest first
	phases  int         // how many the runs have
	share   float64     // of the weight of all runs
	why     string
	joined  int // runs whose phases were joined, so that there are as many as in other runs
	without int // runs that were left out because their input is unknown
	unknown resource.Kinds
	targets []target
}

// name returns the name of phase i in the latest run that names it.
func (v *variant) name(i int) string {
	for _, r := range slices.Backward(v.runs) {
		if i < len(r.Phases) && r.Phases[i].Name != "" {
			return r.Phases[i].Name
		}
	}
	return ""
}

// learn sorts the runs into variants, the likeliest first, and fits models to each. input says whether the input of the
// run to be estimated is known: then learn uses only the runs with a known input if there are at least fewestRuns of
// them.
func (p *past) learn(input bool, allowed func(row string) bool) []*variant {
	all := make([]*numbered, len(p.runs))
	for i := range p.runs {
		all[i] = &p.runs[i]
	}
	known := slices.DeleteFunc(slices.Clone(all), func(r *numbered) bool { return r.Input == 0 })
	if input && len(known) >= fewestRuns {
		all = known
	}
	variants := p.variants(all)
	var l learner
	for _, v := range variants {
		v.without = len(p.runs) - len(all)
		v.prepare(func(r *numbered) float64 { return p.weight(r) })
		for i := range v.targets {
			t := &v.targets[i]
			l.choose(t, basisOf(t.runs, input), allowed)
		}
		if allowed(ByFuzzy) {
			v.tryFuzzy(p.samples(v, variants, input))
		}
	}
	return variants
}

// weight is 1 for the latest run.
func (p *past) weight(r *numbered) float64 {
	return math.Exp2(-float64(p.seen-1-r.Number) / HalfLife)
}

// prepare lists the targets of v.
func (v *variant) prepare(weight func(*numbered) float64) {
	v.unknown = ^resource.Kinds(0)
	for _, r := range v.runs {
		if len(r.Phases) == v.phases {
			v.unknown &= r.Unknown
		}
	}
	v.targets = nil
	whole := v.add(target{duration: true}, 0, weight, func(r *numbered) float64 { return r.Duration.Seconds() })
	var largest [resource.NumKinds]float64
	for k := range resource.NumKinds {
		if !v.unknown.Has(k) {
			t := v.add(target{kind: k}, 0, weight, func(r *numbered) float64 { return float64(r.Peak[k]) })
			largest[k] = t.median(0, -1)
		}
	}
	longest := whole.median(0, -1)
	for i := range v.phases {
		v.add(target{phase: i + 1, duration: true}, longest/100, weight, func(r *numbered) float64 {
			return r.Phases[i].Duration.Seconds()
		})
		for k := range resource.NumKinds {
			if !v.unknown.Has(k) {
				v.add(target{phase: i + 1, kind: k}, largest[k]/20, weight, func(r *numbered) float64 {
					return float64(r.Phases[i].Demand[k])
				})
			}
		}
	}
}

// add appends t with its value in each run that has it.
func (v *variant) add(t target, floor float64, weight func(*numbered) float64, value func(*numbered) float64) *target {
	t.floor = floor
	bound := func(r *numbered) bool { return !t.duration && r.AtLeast.Has(t.kind) }
	say := v.exactMedian(&t, bound, value)
	for _, r := range v.runs {
		if !v.has(&t, r) || bound(r) && value(r) <= say {
			continue
		}
		t.runs = append(t.runs, r)
		t.values = append(t.values, value(r))
		t.weight = append(t.weight, weight(r))
	}
	t.measureSpread()
	v.targets = append(v.targets, t)
	return &v.targets[len(v.targets)-1]
}

// has reports whether r has the number t.
func (v *variant) has(t *target, r *numbered) bool {
	return (t.phase == 0 || len(r.Phases) == v.phases) && (t.duration || !r.Unknown.Has(t.kind))
}

// exactMedian returns the median of the values that are no lower bounds; below all values if there are none, or if
// none is a bound.
func (v *variant) exactMedian(t *target, bound func(*numbered) bool, value func(*numbered) float64) float64 {
	if !slices.ContainsFunc(v.runs, bound) {
		return -1
	}
	var exact []float64
	for _, r := range v.runs {
		if v.has(t, r) && !bound(r) {
			exact = append(exact, value(r))
		}
	}
	if len(exact) == 0 {
		return -1
	}
	slices.Sort(exact)
	return exact[len(exact)/2]
}

// variants sorts runs into variants: first by the number of phases, then by what splits runs of the same number in two.
// Runs with more phases than most runs count as runs of fewer phases if their phases can be joined to the same phases.
// Runs without measured phases belong to the likeliest variant.
func (p *past) variants(runs []*numbered) []*variant {
	groups := map[int][]*numbered{}
	for _, r := range runs {
		groups[len(r.Phases)] = append(groups[len(r.Phases)], r)
	}
	var whole []*numbered
	if len(groups) > 1 {
		whole = groups[0]
		delete(groups, 0)
	}
	joined := p.align(groups)
	var variants []*variant
	for phases, group := range groups {
		for _, half := range halves(group) {
			variants = append(variants, &variant{runs: half.runs, phases: phases, why: half.why})
		}
	}
	p.rank(variants, runs)
	first := variants[0]
	if len(whole) > 0 {
		first.runs = append(first.runs, whole...)
		slices.SortFunc(first.runs, func(a, b *numbered) int { return cmp.Compare(a.Number, b.Number) })
		p.rank(variants, runs)
	}
	for _, v := range variants[1:] {
		if v.phases != first.phases {
			v.why = fmt.Sprintf("phases: %d instead of %d", v.phases, first.phases)
		}
	}
	first.why, first.joined = "", joined
	return variants
}

// align moves runs from groups with more phases than the largest group to the largest group, where their phases can be
// joined to the same phases. It returns how many it moved.
func (p *past) align(groups map[int][]*numbered) (moved int) {
	most, weight := 0, 0.0
	for phases, group := range groups {
		total := 0.0
		for _, r := range group {
			total += p.weight(r)
		}
		if total > weight || total == weight && phases < most {
			most, weight = phases, total
		}
	}
	if most == 0 {
		return 0
	}
	t := typicalOf(groups[most])
	for phases, group := range groups {
		if phases <= most {
			continue
		}
		var rest []*numbered
		for _, r := range group {
			if same, ok := t.aligned(r); ok {
				groups[most] = append(groups[most], same)
				moved++
			} else {
				rest = append(rest, r)
			}
		}
		groups[phases] = rest
		if len(rest) == 0 {
			delete(groups, phases)
		}
	}
	slices.SortFunc(groups[most], func(a, b *numbered) int { return cmp.Compare(a.Number, b.Number) })
	return moved
}

// rank sets shares and sorts: the largest share first, of equals the one with the latest run.
func (p *past) rank(variants []*variant, runs []*numbered) {
	total := 0.0
	for _, r := range runs {
		total += p.weight(r)
	}
	for _, v := range variants {
		v.share = 0
		for _, r := range v.runs {
			v.share += p.weight(r) / total
		}
	}
	slices.SortFunc(variants, func(a, b *variant) int {
		last := func(v *variant) int { return v.runs[len(v.runs)-1].Number }
		return cmp.Or(cmp.Compare(b.share, a.share), cmp.Compare(last(b), last(a)))
	})
}
