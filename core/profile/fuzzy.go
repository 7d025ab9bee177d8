package profile

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// outline is what is kept of a run that is left out, for ByFuzzy: a tenth of the bytes of the run.
type outline struct {
	number int
	Features
	milliseconds []int64 // of the whole run, and of each phase: at least one
}

func outlineOf(r *numbered) outline {
	o := outline{number: r.Number, Features: r.Features, milliseconds: []int64{inMilliseconds(r.Duration)}}
	for i := range r.Phases {
		o.milliseconds = append(o.milliseconds, inMilliseconds(r.Phases[i].Duration))
	}
	return o
}

// inMilliseconds rounds to what a PhaseModel tells apart.
func inMilliseconds(d time.Duration) int64 { return max(1, d.Round(leastPhase).Milliseconds()) }

// keep adds an outline, and drops the oldest one of one too many.
func (p *past) keep(o outline) {
	at, _ := slices.BinarySearchFunc(p.older, o.number, func(a outline, number int) int { return a.number - number })
	p.older = slices.Insert(p.older, at, o)
	if len(p.older) > mostOlder {
		p.older = slices.Delete(p.older, 0, 1)
	}
}

// MarshalJSON writes a list of integers: number, cores, input, memory, milliseconds of the run and of each phase.
func (o outline) MarshalJSON() ([]byte, error) {
	return json.Marshal(append([]int64{int64(o.number), int64(o.Cores), int64(o.Input), int64(o.Memory)},
		o.milliseconds...))
}

// readOutline reads what MarshalJSON wrote. below is what its number must be below.
func readOutline(list []int64, below int) (o outline, err error) {
	if len(list) < 6 || len(list) > 5+MostLearned {
		return o, fmt.Errorf("%d numbers: must be 6 to %d", len(list), 5+MostLearned)
	}
	o = outline{int(list[0]), Features{resource.Amount(list[1]), resource.Amount(list[2]), resource.Amount(list[3])},
		list[4:]}
	if o.number < 0 || o.number >= below {
		return o, fmt.Errorf("number %d: must be 0 to %d", o.number, below-1)
	}
	for _, kind := range featureKinds {
		if a := *kind.of(&o.Features); a < 0 || a > kind.most {
			return o, fmt.Errorf("%s %d: must be 0 to %d", kind.name, a, kind.most)
		}
	}
	for _, ms := range o.milliseconds {
		if most := cluster.LongestTime.Milliseconds(); ms < 1 || ms > most {
			return o, fmt.Errorf("%d ms: must be 1 to %d", ms, most)
		}
	}
	return o, nil
}

// samples returns what a PhaseModel learns from for v, one of variants: the runs with the phases of v, the oldest
// first. There are none if another variant has as many phases: an outline does not say to which of the two it
// belongs. See past.learn for input.
func (p *past) samples(v *variant, variants []*variant, input bool) (all []numberedSample) {
	for _, other := range variants {
		if v.phases == 0 || other != v && other.phases == v.phases {
			return nil
		}
	}
	for i := range p.older {
		if o := &p.older[i]; len(o.milliseconds) == 1+v.phases && (v.without == 0 || o.Input > 0) {
			s := numberedSample{o.number, phaseSample{features: o.Features}}
			for _, ms := range o.milliseconds {
				s.logs = append(s.logs, logSeconds(time.Duration(ms)*time.Millisecond))
			}
			all = append(all, s)
		}
	}
	for _, r := range v.runs {
		if len(r.Phases) == v.phases {
			s := numberedSample{r.Number, phaseSample{r.Features, []float64{logSeconds(r.Duration)}}}
			for i := range r.Phases {
				s.logs = append(s.logs, logSeconds(r.Phases[i].Duration))
			}
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b numberedSample) int { return a.number - b.number })
	if !input {
		for i := range all {
			all[i].features.Input = 0 // it cannot be asked for
		}
	}
	return all
}

type numberedSample struct {
	number int
	phaseSample
}

// fuzzyFolds is the number of groups of samples that are left out in turn. Each run left out alone, as for rows,
// would take 20 times as long.
const fuzzyFolds = 10

// tryFuzzy gives each duration of v the fuzzy model in the first place if its error at samples left out is the
// smallest.
func (v *variant) tryFuzzy(samples []numberedSample) {
	if len(samples) < FewestPhaseSamples {
		return
	}
	var all []phaseSample
	for _, s := range samples {
		all = append(all, s.phaseSample)
	}
	whole := phaseModelOf(all)
	if len(whole.columns) == 0 {
		return // Runs that do not differ have a median.
	}
	held := map[int]*PhaseModel{} // by number of the run, the model without it
	for fold := range fuzzyFolds {
		var rest []phaseSample
		for i := range all {
			if i%fuzzyFolds != fold {
				rest = append(rest, all[i])
			}
		}
		m := phaseModelOf(rest)
		for i := fold; i < len(all); i += fuzzyFolds {
			held[samples[i].number] = m
		}
	}
	for i := range v.targets {
		t := &v.targets[i]
		if !t.duration {
			continue
		}
		error, ok := missed(t, t.models[0].missed, func(run int) (float64, bool) {
			m := held[t.runs[run].Number]
			if m == nil { // a run without phases, of which it knows nothing
				m = whole
			}
			value := m.secondsOf(t.phase, &t.runs[run].Features)
			return value, !math.IsNaN(value)
		})
		if ok {
			t.models = slices.Insert(t.models, 0, model{name: ByFuzzy, missed: error, fuzzy: whole})
		}
	}
}

// secondsOf returns what m predicts for output i, NaN if it does not.
func (m *PhaseModel) secondsOf(i int, f *Features) float64 {
	all, ok := m.Predict(*f)
	if !ok {
		return math.NaN()
	}
	return all[i].Seconds()
}
