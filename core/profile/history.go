package profile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// App names what recurs: a stage of an application of an owner. Runs of one App are runs of one program on other
// data, or on more cores.
type App struct {
	Owner string `json:"owner,omitempty"`
	Name  string `json:"name"`
	// Stage is the name of the stage; empty for an application of one stage.
	Stage string `json:"stage,omitempty"`
}

func (a App) compare(b App) int {
	return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Stage, b.Stage))
}

// Features are what is known of a run before it starts. 0 is unknown.
type Features struct {
	Cores  resource.Amount `json:"cpu_millicores,omitempty"` // requested
	Input  resource.Amount `json:"input_bytes,omitempty"`    // that the task reads
	Memory resource.Amount `json:"memory_bytes,omitempty"`   // granted
}

// Run is what was measured of one run of a task that ended well.
type Run struct {
	Features
	Ended timeline.Time `json:"ended_ns,omitempty"`
	// Phases are those of the task, in order, as Segment finds them. No phases: only the whole was measured.
	Phases []cluster.Phase `json:"phases,omitempty"`
	// Duration is that of the whole run; 0 is the sum of all phases.
	Duration time.Duration `json:"duration_ns,omitempty"`
	// Peak is the largest demand at any time, at least that of each phase.
	Peak resource.Vector `json:"peak,omitzero"`
	// CPU is what it used in the mean while it ran, millicores; 0 is to be taken from the phases.
	CPU resource.Amount `json:"mean_cpu_millicores,omitempty"`
	// Unknown has the kinds that were not measured: their demands and peak are 0.
	Unknown resource.Kinds `json:"unknown,omitempty"`
	// AtLeast has the kinds of which the run would have used more, had it got more: it was throttled, squeezed or
	// suspended. What was measured of them is a lower bound: it counts where it is above what other runs say.
	AtLeast resource.Kinds `json:"at_least,omitempty"`
	// Notes say, in a sentence each, what of the run is not sound or was not measured; History.Observe adds its own. The
	// first mostNotes are kept.
	Notes []string `json:"notes,omitempty"`
}

// mostNotes is how many notes of a run are kept.
const mostNotes = 10

// What History keeps and learns from.
const (
	// MostRuns is how many runs of an App are kept. Of one run more, the oldest of the features that have the most runs
	// is left out: repeats become fewer before rare features are forgotten. How long it and its phases lasted is kept of
	// the latest mostOlder runs that are left out.
	MostRuns  = 40
	mostOlder = mostPhaseSamples - MostRuns
	// MostLearned is how many phases of a run are kept. The neighbours that are most alike are joined.
	MostLearned = 16
	// HalfLife is the number of runs after which a run weighs half as much as the latest run of its App.
	HalfLife = 20
)

// History is what past runs say about future ones. It is a pure value: the same calls in the same order give the same
// estimates. It belongs to one goroutine. The zero History is empty and ready for use.
type History struct {
	// Rows are the names of the rows that may predict from five runs on, ByFuzzy from FewestPhaseSamples on; nil allows
	// all. The median is always allowed: a row predicts a number only if its error there is smaller. Rows must not
	// change after the first call.
	Rows []string
	// Quantile is in place of ReservedQuantile; 0 is none. It must not change after the first call.
	Quantile float64
	apps     map[App]*past
}

// past is the runs of one App.
type past struct {
	runs  []numbered // as observed
	older []outline  // of runs that are left out, the oldest first
	// short are the shortfalls whose need no run has told since, the oldest first.
	short []Shortfall
	seen  int // how many runs were observed
	// learned are the variants of the runs, nil until an estimate needs them, by whether the features have an input.
	learned [2][]*variant
	// sizing is the same for reservations.
	sizing [2]*sizing
	// asked are the estimates that were made from them: thousands of jobs that wait have few different features.
	asked map[Features]Estimate
}

// mostAsked is how many estimates of an App are kept.
const mostAsked = 1000

// numbered is a run with its number among all runs of its App that were observed.
type numbered struct {
	Run
	Number int `json:"number"`
}

// Observe adds a run. notes say, in a sentence each, what of the run is not sound and was left out; the rest is used.
// err says why nothing of the run can be used. r is copied.
func (h *History) Observe(app App, r Run) (notes []string, err error) {
	number := 0
	if p := h.apps[app]; p != nil {
		number = p.seen
	}
	return h.observe(app, r, number)
}

// observe adds a run with its number, which is above all others.
func (h *History) observe(app App, r Run, number int) (notes []string, err error) {
	r, notes, err = sound(r)
	if err != nil {
		return notes, err
	}
	r.Notes = slices.Concat(r.Notes, notes)
	r.Notes = r.Notes[:min(len(r.Notes), mostNotes)]
	h.past(app).add(numbered{r, number})
	return notes, nil
}

// past returns the runs of app, none if it is new.
func (h *History) past(app App) *past {
	if h.apps == nil {
		h.apps = map[App]*past{}
	}
	p := h.apps[app]
	if p == nil {
		p = &past{}
		h.apps[app] = p
	}
	return p
}

func (p *past) add(r numbered) {
	p.runs = append(p.runs, r)
	p.seen = r.Number + 1
	p.learned, p.asked, p.sizing = [2][]*variant{}, nil, [2]*sizing{}
	p.short = slices.DeleteFunc(p.short, func(s Shortfall) bool { return r.tells(&s) })
	if len(p.runs) > MostRuns {
		p.thin()
	}
}

// thin drops the oldest run of the features that have the most runs; among features with equally many, the oldest run.
func (p *past) thin() {
	same := map[Features]int{}
	for i := range p.runs {
		same[p.runs[i].Features]++
	}
	drop := 0
	for i := range p.runs {
		if same[p.runs[i].Features] > same[p.runs[drop].Features] {
			drop = i
		}
	}
	if r := &p.runs[drop]; len(r.Phases) > 0 {
		p.keep(outlineOf(r))
	}
	p.runs = slices.Delete(p.runs, drop, drop+1)
}

// Apps returns what has runs, in order of owner, name and stage.
func (h *History) Apps() []App {
	return slices.DeleteFunc(h.Known(), func(app App) bool { return len(h.apps[app].runs) == 0 })
}

// Known returns what has runs or shortfalls, in order of owner, name and stage.
func (h *History) Known() []App {
	var all []App
	for app := range h.apps {
		all = append(all, app)
	}
	slices.SortFunc(all, App.compare)
	return all
}

// Runs returns the kept runs of an App, the oldest first, and how many were observed. The caller must not change them.
func (h *History) Runs(app App) (kept []Run, observed int) {
	p := h.apps[app]
	if p == nil {
		return nil, 0
	}
	for i := range p.runs {
		kept = append(kept, p.runs[i].Run)
	}
	return kept, p.seen
}

// Forget drops all runs of an App and returns how many were kept.
func (h *History) Forget(app App) int {
	p := h.apps[app]
	if p == nil {
		return 0
	}
	delete(h.apps, app)
	return len(p.runs)
}

// errNothingMeasured is returned for a run without a duration and without phases that have one.
var errNothingMeasured = errors.New("run: has neither a duration nor a phase with one")

// sound returns what of r can be used. It shares no memory with r.
func sound(r Run) (_ Run, notes []string, err error) {
	note := func(format string, operands ...any) { notes = append(notes, fmt.Sprintf(format, operands...)) }
	for _, kind := range featureKinds {
		if a := kind.of(&r.Features); *a < 0 || *a > kind.most {
			note("%s %d: must be 0 to %d, taken as unknown", kind.name, *a, kind.most)
			*a = 0
		}
	}
	r.Phases = soundPhases(r.Phases, note)
	r.Unknown |= unsoundKinds(&r, note)
	if r.CPU < 0 || r.CPU > resource.MostCPU {
		note("mean_cpu_millicores %d: must be 0 to %d, taken from the phases", r.CPU, resource.MostCPU)
		r.CPU = 0
	}
	for i := range r.Phases {
		r.Phases[i].Demand = r.Unknown.In(r.Phases[i].Demand, 0)
		r.Peak = r.Peak.Max(r.Phases[i].Demand)
	}
	r.Peak = r.Unknown.In(r.Peak, 0)
	r.AtLeast &= resource.AllKinds &^ r.Unknown
	total := sum(r.Phases)
	switch {
	case total > cluster.LongestTime:
		return Run{}, notes, fmt.Errorf("run: phases last %v, must be at most %v together", total, cluster.LongestTime)
	case r.Duration < 0 || r.Duration > cluster.LongestTime:
		note("duration %v: must be above 0s and at most %v, taken from the phases", r.Duration, cluster.LongestTime)
		r.Duration = total
	case r.Duration == 0:
		r.Duration = total
	case total > 0 && (total > 2*r.Duration || r.Duration > 2*total):
		note("phases last %v of a run of %v: they are left out", total, r.Duration)
		r.Phases = nil
	}
	if r.Duration == 0 {
		return Run{}, notes, errNothingMeasured
	}
	return r, notes, nil
}

// soundPhases returns a copy of the phases that have a duration, joined to at most MostLearned.
func soundPhases(phases []cluster.Phase, note func(string, ...any)) []cluster.Phase {
	var kept []cluster.Phase
	for i, p := range phases {
		if p.Duration <= 0 || p.Duration > cluster.LongestTime {
			note("phase %d duration %v: must be above 0s and at most %v, left out", i+1, p.Duration, cluster.LongestTime)
			continue
		}
		kept = append(kept, p)
	}
	if len(kept) > MostLearned {
		note("phases %d: at most %d are kept, the most alike are joined", len(kept), MostLearned)
		kept = joined(kept, MostLearned)
	}
	return kept
}

// unsoundKinds returns the kinds with an amount in r that is out of range.
func unsoundKinds(r *Run, note func(string, ...any)) (unsound resource.Kinds) {
	check := func(where string, v resource.Vector) {
		for k, a := range v {
			kind := resource.Kind(k)
			if (a < 0 || a > kind.Most()) && !(r.Unknown | unsound).Has(kind) {
				note("%s%s %d: must be 0 to %d, %s is taken as unknown", where, kind, a, kind.Most(), kind)
				unsound |= resource.KindsOf(kind)
			}
		}
	}
	for i := range r.Phases {
		check(fmt.Sprintf("phase %d ", i+1), r.Phases[i].Demand)
	}
	check("peak ", r.Peak)
	return unsound
}

// joined joins neighbours, the least different first, until at most most phases are left. A joined phase has
// the name of the longer one, and the larger demand of both: of memory always, of other kinds unless the smaller one
// suffices for demandQuantile of the time. It changes phases.
func joined(phases []cluster.Phase, most int) []cluster.Phase {
	var largest resource.Vector
	for i := range phases {
		largest = largest.Max(phases[i].Demand)
	}
	for len(phases) > most {
		at, least := 0, 0.0
		for i := range len(phases) - 1 {
			a, b := &phases[i], &phases[i+1]
			cost := 0.0
			for k := range a.Demand {
				if largest[k] > 0 {
					d := float64(a.Demand[k]-b.Demand[k]) / float64(largest[k])
					cost += d * d
				}
			}
			cost *= min(a.Duration, b.Duration).Seconds()
			if i == 0 || cost < least {
				at, least = i, cost
			}
		}
		phases[at] = together(phases[at], phases[at+1])
		phases = slices.Delete(phases, at+1, at+2)
	}
	return phases
}

// together returns two neighbours as one phase.
func together(a, b cluster.Phase) cluster.Phase {
	if b.Duration > a.Duration {
		a.Name = b.Name
	}
	total := (a.Duration + b.Duration).Seconds()
	for k := range a.Demand {
		low, high, highFor := a.Demand[k], b.Demand[k], b.Duration
		if low > high {
			low, high, highFor = high, low, a.Duration
		}
		a.Demand[k] = high
		if resource.Kind(k) != resource.Memory && highFor.Seconds() <= (1-demandQuantile)*total {
			a.Demand[k] = low
		}
	}
	a.Duration += b.Duration
	return a
}

// sum returns how long all phases last, saturated.
func sum(phases []cluster.Phase) (total time.Duration) {
	for i := range phases {
		if total += phases[i].Duration; total > cluster.LongestTime {
			return total
		}
	}
	return total
}
