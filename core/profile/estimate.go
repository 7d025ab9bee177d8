package profile

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Estimate is what past runs of an App say about a run with certain features.
type Estimate struct {
	// Variants are the ways in which the runs went, the likeliest first: at least one.
	Variants []Variant `json:"variants"`
	// Notes say, in a sentence each, what the estimate could not take into account.
	Notes []string `json:"notes,omitempty"`
}

// Variant is one way in which an App runs. Runs whose phases differ in number, or which take much longer or shorter
// without a reason in their features, are never averaged: they are two variants.
type Variant struct {
	Runs  int           `json:"runs"`              // how many of the kept runs went this way
	Share float64       `json:"share"`             // their share of all runs, where recent ones weigh more
	Last  timeline.Time `json:"last_ns,omitempty"` // when the latest of them ended
	// Why says how these runs differ from the runs of the likeliest variant; empty for the likeliest.
	Why string `json:"why,omitempty"`

	Duration time.Duration `json:"duration_ns"`
	// Phases add up to Duration. There are none if no run has any.
	Phases []cluster.Phase `json:"phases,omitempty"`
	// Peak is at least the demand of each phase.
	Peak resource.Vector `json:"peak,omitzero"`
	// Unknown has the kinds that were never measured, or never by phase: their demands and peak are 0.
	Unknown resource.Kinds `json:"unknown,omitempty"`
	// Told is where Duration comes from.
	Told cluster.Provenance `json:"told"`
	// Details say of each number where it comes from: the whole run first, then phase by phase.
	Details []Detail `json:"details"`
}

// Detail says where a number of a Variant comes from.
type Detail struct {
	// Phase counts from 1; 0 is the whole run, whose demand is its peak.
	Phase int `json:"phase,omitempty"`
	// Of is "duration" or the name of a resource.
	Of string `json:"of"`
	// Provenance has the model: see the names of rows. With one run the error is not known, and 0.
	cluster.Provenance
	// Spread is the difference of the largest and the smallest measured value, as a share of their median; durations are
	// scaled to the same input before. It is 0 with one run.
	Spread float64 `json:"spread,omitempty"`
}

// Estimate returns what the runs of app say about a run with features f; ok is false if there is none. One run is
// taken as it was, two to four give their median; both scale durations by the input, where it is known. From five
// runs on, each number has the model with the smallest error at runs that it was not fitted to: see the names of
// rows. Far outside of what was measured, the median predicts. A duration by ByFuzzy can be from more samples than
// runs are kept. The first estimate after an Observe fits the models, which takes some 40 ms for 25 runs of six
// phases; further ones take microseconds, or less if they are repeated. The caller must not change e.
func (h *History) Estimate(app App, f Features) (e Estimate, ok bool) {
	p := h.apps[app]
	if p == nil || len(p.runs) == 0 {
		return Estimate{}, false
	}
	if e, ok := p.asked[f]; ok {
		return e, true
	}
	input := 0
	if f.Input > 0 {
		input = 1
	}
	if p.learned[input] == nil {
		p.learned[input] = p.learn(f.Input > 0, func(row string) bool {
			return h.Rows == nil || slices.Contains(h.Rows, row)
		})
	}
	variants := p.learned[input]
	for _, v := range variants {
		e.Variants = append(e.Variants, v.estimate(f))
	}
	e.Notes = append(variants[0].notes(f), e.Variants[0].byFuzzy()...)
	if p.asked == nil || len(p.asked) >= mostAsked {
		p.asked = map[Features]Estimate{}
	}
	p.asked[f] = e
	return e, true
}

// byFuzzy says which phases have their lengths from the fuzzy model: Told is where the length of the whole comes from.
func (v *Variant) byFuzzy() (notes []string) {
	var phases []string
	var told cluster.Provenance
	for _, d := range v.Details {
		if d.Phase > 0 && d.Model == ByFuzzy {
			phases = append(phases, fmt.Sprint(d.Phase))
			told = cluster.Provenance{Samples: d.Samples, Error: max(told.Error, d.Error)}
		}
	}
	if phases == nil {
		return nil
	}
	return []string{fmt.Sprintf("phases %s: lengths by model %s, from %d runs, mean error at most %.0f %%",
		strings.Join(phases, ", "), ByFuzzy, told.Samples, 100*told.Error)}
}

// estimate predicts every target of v.
func (v *variant) estimate(f Features) Variant {
	out := Variant{Runs: len(v.runs), Share: v.share, Last: v.runs[len(v.runs)-1].Ended, Why: v.why, Unknown: v.unknown}
	if v.phases > 0 {
		out.Phases = make([]cluster.Phase, v.phases)
		for i := range out.Phases {
			out.Phases[i].Name = v.name(i)
		}
	}
	for i := range v.targets {
		t := &v.targets[i]
		value, from := t.predict(f)
		out.Details = append(out.Details, Detail{Phase: t.phase, Of: t.name(), Provenance: from, Spread: t.spread})
		switch {
		case t.duration && t.phase == 0:
			out.Duration, out.Told = asDuration(value), from
		case t.duration:
			out.Phases[t.phase-1].Duration = asDuration(value)
		case t.phase == 0:
			out.Peak[t.kind] = asAmount(value, t.kind)
		default:
			out.Phases[t.phase-1].Demand[t.kind] = asAmount(value, t.kind)
		}
	}
	stretch(out.Phases, out.Duration)
	for i := range out.Phases {
		out.Peak = out.Peak.Max(out.Phases[i].Demand)
	}
	return out
}

// stretch changes the durations of phases by one factor, so that they add up to total.
func stretch(phases []cluster.Phase, total time.Duration) {
	is, at, done := 0.0, 0.0, time.Duration(0)
	for i := range phases {
		is += phases[i].Duration.Seconds()
	}
	for i := range phases {
		at += phases[i].Duration.Seconds()
		end := total
		if i < len(phases)-1 {
			end = time.Duration(float64(total) * (at / is))
		}
		phases[i].Duration = max(end-done, 1)
		done += phases[i].Duration
	}
	for i := len(phases) - 1; i >= 0 && done > total; i-- { // a total of few nanoseconds
		less := min(done-total, phases[i].Duration)
		phases[i].Duration -= less
		done -= less
	}
}

func asDuration(seconds float64) time.Duration {
	return max(1, duration(min(seconds, cluster.LongestTime.Seconds())))
}

func asAmount(value float64, k resource.Kind) resource.Amount {
	return resource.Amount(math.Round(min(max(value, 0), float64(k.Most()))))
}

// notes says what of f the runs of v say nothing about.
func (v *variant) notes(f Features) (notes []string) {
	lowest, highest := rangeOf(v.runs)
	for i, kind := range featureKinds {
		asked, least, most := *kind.of(&f), *kind.of(&lowest), *kind.of(&highest)
		switch {
		case asked == 0 && most > least:
			notes = append(notes, fmt.Sprintf("%s: unknown, the runs had %s to %s", kind.name, kind.format(least),
				kind.format(most)))
		case asked > 0 && most == 0 && i != memoryFeature:
			notes = append(notes, fmt.Sprintf("%s %s: not taken into account, no run says what it had", kind.name,
				kind.format(asked)))
		case asked > 0 && most > 0 && (asked < least || asked > most):
			measured := kind.format(least)
			if least < most {
				measured += " to " + kind.format(most)
			}
			notes = append(notes, fmt.Sprintf("%s %s: outside of what was measured, %s", kind.name, kind.format(asked),
				measured))
		}
	}
	if v.joined > 0 {
		notes = append(notes, fmt.Sprintf("runs %d: had more phases, which were joined to the %d of the other runs",
			v.joined, v.phases))
	}
	if v.without > 0 {
		notes = append(notes, fmt.Sprintf("runs %d: left out, because their input is unknown", v.without))
	}
	if len(v.runs) == 1 {
		notes = append(notes, "runs 1: the error is unknown")
	}
	if v.unknown != 0 {
		notes = append(notes, fmt.Sprintf("%v: never measured", v.unknown))
	}
	return notes
}

// featureKinds are the features, in the order of columns.
var featureKinds = [...]struct {
	name   string
	of     func(*Features) *resource.Amount
	most   resource.Amount
	format func(resource.Amount) string
}{
	{"cores", func(f *Features) *resource.Amount { return &f.Cores }, resource.MostCPU, resource.FormatCPU},
	{"input", func(f *Features) *resource.Amount { return &f.Input }, resource.MostMemory, resource.Memory.Format},
	{"memory", func(f *Features) *resource.Amount { return &f.Memory }, resource.MostMemory, resource.Memory.Format},
}

const (
	coresFeature = iota
	inputFeature
	memoryFeature
	features
)

// target is one number of a variant that is predicted.
type target struct {
	phase    int // from 1; 0 is the whole run
	duration bool
	kind     resource.Kind // if it is no duration

	runs   []*numbered // that have the number, the oldest first
	values []float64   // of these runs: seconds, or amounts
	weight []float64   // of these runs
	// floor is the least value that an error is divided by: smaller values matter less.
	floor  float64
	spread float64
	// models are what predicts the number, the best first; the last one always can.
	models []model
}

func (t *target) name() string {
	if t.duration {
		return "duration"
	}
	return t.kind.String()
}

// predict returns the number for features f, not negative, and where it comes from.
func (t *target) predict(f Features) (value float64, from cluster.Provenance) {
	for i := range t.models {
		m := &t.models[i]
		value = m.at(t, f, -1)
		if sane := !math.IsNaN(value) && !math.IsInf(value, 0) && value >= 0 && !(t.duration && value == 0); sane ||
			i == len(t.models)-1 {
			samples := len(t.runs)
			if m.fuzzy != nil {
				samples = len(m.fuzzy.samples)
			}
			return value, cluster.Provenance{Model: m.name, Samples: samples, Error: m.missed}
		}
	}
	return 0, cluster.Provenance{}
}

// scaled returns the value of a run as if it had had input bytes: the run time is in proportion to them, demands and
// peaks are as they were.
func (t *target) scaled(run int, input resource.Amount) float64 {
	if had := t.runs[run].Input; t.duration && had > 0 && input > 0 {
		return t.values[run] * (float64(input) / float64(had))
	}
	return t.values[run]
}

// median returns the weighted median of the values, scaled to input, without run skip (-1: with all).
func (t *target) median(input resource.Amount, skip int) float64 {
	type weighted struct{ value, weight float64 }
	var all []weighted
	total := 0.0
	for i := range t.runs {
		if i != skip {
			all = append(all, weighted{t.scaled(i, input), t.weight[i]})
			total += t.weight[i]
		}
	}
	slices.SortStableFunc(all, func(a, b weighted) int { return cmp.Compare(a.value, b.value) })
	below := 0.0
	for i, w := range all {
		below += w.weight
		switch {
		case i+1 < len(all) && math.Abs(below-total/2) <= total*evenShare:
			return (w.value + all[i+1].value) / 2
		case below >= total/2:
			return w.value
		}
	}
	return math.NaN()
}

// evenShare is the difference of weights up to which the two values in the middle of an even number count equally.
const evenShare = 0.05

// measureSpread sets t.spread.
func (t *target) measureSpread() {
	input := t.runs[len(t.runs)-1].Input
	least, most := math.Inf(1), 0.0
	for i := range t.runs {
		v := t.scaled(i, input)
		least, most = min(least, v), max(most, v)
	}
	if m := max(t.median(input, -1), t.floor); m > 0 {
		t.spread = (most - least) / m
	}
}
