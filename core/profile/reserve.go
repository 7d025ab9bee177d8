package profile

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// How much memory is reserved for a run. See History.Reserve.
const (
	// ReservedQuantile is the share of the weight of past runs that a reservation suffices for. The newest of MostRuns
	// runs has 1/22 of the weight of them all. That is above the 1/25 that is left, so that a run that outgrew its
	// reservation raises the next one at once, and as long as it weighs as much.
	ReservedQuantile = 0.96
	// surprise is the error that is expected before any was measured: an eighth more than the only run is reserved, and
	// 1 % more than 24 runs without an error. It is small, because a reservation is no limit.
	surprise = 0.25
	// nearestRuns is how many runs of the nearest inputs ByNearest takes: one is noise, and many are the median.
	nearestRuns = 3
	// mostFolds is in how many parts the runs are predicted from the others, to measure errors.
	mostFolds = 5
	// mostShortfalls is how many shortfalls of an App are kept; the one that held least is dropped.
	mostShortfalls = 10
)

// The names of further models of a Reservation.
const (
	// ByQuantile is a quantile of the peaks of all runs, whatever their input.
	ByQuantile = "quantile"
	// ByNearest is the mean of the runs with the nearest inputs.
	ByNearest = "nearest"
)

// Shortfall says that a task ended for want of memory: it needs more than it held. Such an end is no Run, since neither
// its duration nor its phases are those of the program.
type Shortfall struct {
	Features
	Ended timeline.Time `json:"ended_ns,omitempty"`
	// Held is the memory that the task had in use when it ended, above 0.
	Held resource.Amount `json:"held_bytes"`
}

// ObserveShortfall adds an end for want of memory. It counts until a run of at least its input that began after it has
// ended well, which tells the need.
func (h *History) ObserveShortfall(app App, s Shortfall) error {
	if s.Held <= 0 || s.Held > resource.MostMemory {
		return fmt.Errorf("shortfall held_bytes %d: must be 1 to %d", s.Held, resource.MostMemory)
	}
	for _, kind := range featureKinds {
		if a := kind.of(&s.Features); *a < 0 || *a > kind.most {
			*a = 0
		}
	}
	p := h.past(app)
	if slices.ContainsFunc(p.runs, func(r numbered) bool { return r.Ended > 0 && s.Ended > 0 && r.tells(&s) }) {
		return nil
	}
	p.short = append(p.short, s)
	if len(p.short) > mostShortfalls {
		least := 0
		for i := range p.short {
			if p.short[i].Held < p.short[least].Held {
				least = i
			}
		}
		p.short = slices.Delete(p.short, least, least+1)
	}
	return nil
}

// Shortfalls returns the ends for want of memory of an App that count. The caller must not change them.
func (h *History) Shortfalls(app App) []Shortfall {
	if p := h.apps[app]; p != nil {
		return p.short
	}
	return nil
}

// tells reports whether r, which ended well, tells what s needed: it began later, as far as the times are known. One
// that ran beside it is another task, of which the need may differ.
func (r *Run) tells(s *Shortfall) bool {
	later := r.Ended == 0 || s.Ended == 0 || r.Ended.Add(-r.Duration) >= s.Ended
	return later && !(r.Unknown | r.AtLeast).Has(resource.Memory) && r.Input >= s.Input
}

// Reserve returns how much memory to reserve for a run of app with features f that may use up to limit (0: any
// amount). ok is false if nothing is known of its memory: start small, and let it grow.
//
// The reservation is what a model predicts, times a factor, plus a margin. The factor is the ReservedQuantile of
// peak/prediction over the past runs, each predicted without itself, so that it is larger the more the model errs. The
// margin is the mean relative error of the model, with few runs as if it were nearer to a quarter, and at most 1/(n+1)
// after n runs: the probability that the next of them is the largest of all. Of the models, the one that reserves least
// in the mean is used: ByQuantile, and from five runs with different inputs on ByNearest, and the regressions of
// Huber's loss on input and cores. They do not look at the memory that a run was granted, because it follows from what
// is reserved: they would predict themselves.
//
// Nothing less is reserved than the least peak of all runs. Beyond inputs that the regressions reach, as far outside of
// what was measured as that is wide, the prediction stays as it is there. Runs whose peak is a lower bound count where
// they say more than the others do, and so never lower a reservation, but through the runs that they displace.
//
// While the need of a task that ended for want of memory is not told, others get more than it held, by 1/(n+1), and
// with smaller inputs their share of that. The next attempt of the task itself gets at least twice what it held: see
// cluster.Reservation.After.
func (h *History) Reserve(app App, f Features, limit resource.Amount) (r cluster.Reservation, ok bool) {
	p := h.apps[app]
	if p == nil {
		return r, false
	}
	input := 0
	if f.Input > 0 {
		input = 1
	}
	if p.sizing[input] == nil {
		p.sizing[input] = p.learnSizing(f.Input > 0, h.quantile(), func(row string) bool {
			return h.Rows == nil || slices.Contains(h.Rows, row)
		})
	}
	r = p.sizing[input].reserve(f)
	for i := range p.short {
		s := &p.short[i]
		least := float64(s.Held) * (1 + 1/float64(p.sizing[input].exact()+1))
		if f.Input > 0 && f.Input < s.Input {
			least *= float64(f.Input) / float64(s.Input)
		}
		r.Short = max(r.Short, s.Held)
		r.Bytes = max(r.Bytes, asAmount(math.Ceil(least), resource.Memory))
	}
	return r.Within(limit), r.Bytes > 0
}

func (h *History) quantile() float64 {
	if h.Quantile > 0 && h.Quantile <= 1 {
		return h.Quantile
	}
	return ReservedQuantile
}

// sizing is what runs say of the peak of memory.
type sizing struct {
	target          // of the runs whose peak is exact; of all runs if there is none
	bounds   target // of the runs whose peak is a lower bound
	guessed  bool   // no peak is exact
	quantile float64
	models   []sizer // the best first; the last one always can
}

// sizer is a model of a sizing.
type sizer struct {
	model
	over   []float64 // peak/prediction of each run, predicted without it
	factor float64   // what is reserved for 1 byte predicted
}

// learnSizing fits the models; input is as for learn.
func (p *past) learnSizing(input bool, share float64, allowed func(row string) bool) *sizing {
	s := &sizing{quantile: share}
	s.floor = trifles[resource.Memory]
	known := 0
	for i := range p.runs {
		if r := &p.runs[i]; r.Input > 0 && !(r.Unknown | r.AtLeast).Has(resource.Memory) {
			known++
		}
	}
	for i := range p.runs {
		r := &p.runs[i]
		if r.Unknown.Has(resource.Memory) || input && known >= fewestRuns && r.Input == 0 {
			continue
		}
		t := &s.target
		if r.AtLeast.Has(resource.Memory) {
			t = &s.bounds
		}
		t.kind, t.runs, t.values = resource.Memory, append(t.runs, r), append(t.values, float64(r.Peak[resource.Memory]))
		t.weight = append(t.weight, p.weight(r))
	}
	if len(s.runs) == 0 {
		s.bounds.floor = s.floor
		s.target, s.bounds, s.guessed = s.bounds, target{}, true
	}
	if len(s.runs) > 0 {
		s.choose(input, allowed)
	}
	return s
}

// choose sets s.models: of the models, the one whose reservations are least in the mean of the runs, and ByQuantile.
// Runs of lower bounds have no say in which one it is, so that they cannot lower a reservation.
func (s *sizing) choose(input bool, allowed func(row string) bool) {
	n := len(s.runs)
	all := sizer{model: model{name: ByQuantile}, over: s.values}
	least := covering(all.over, s.weight, s.quantile)
	if n > 1 {
		all.missed, _ = missed(&s.target, math.Inf(1), func(i int) (float64, bool) { return s.median(0, i), true })
	}
	s.models = []sizer{all}
	if n >= fewestRuns && !s.guessed {
		s.compete(least, basisOf(s.runs, input), allowed)
	}
	for i := range s.models {
		s.cover(&s.models[i])
	}
}

// compete puts the model first that reserves less than least in the mean, and least of all. A regression that errs
// more than the median is not looked at, as for an estimate.
func (s *sizing) compete(least float64, b basis, allowed func(row string) bool) {
	n := len(s.runs)
	b[memoryFeature] = false
	consider := func(m model, held []float64) {
		if slices.ContainsFunc(held, func(v float64) bool { return !(v > 0) || math.IsInf(v, 0) }) {
			return
		}
		z := sizer{model: m, over: make([]float64, n)}
		for i := range z.over {
			z.over[i] = s.values[i] / held[i]
		}
		total, weight := 0.0, 0.0
		for i, v := range held {
			total += s.weight[i] * v
			weight += s.weight[i]
		}
		if mean := covering(z.over, s.weight, s.quantile) * total / weight; mean < least {
			least = mean
			s.models = []sizer{z, s.models[len(s.models)-1]}
		}
	}
	var l learner
	limit := s.models[0].missed
	held := make([]float64, n)
	for i := range rows {
		r := &rows[i]
		if r.name != ByHuberLog && r.name != ByHuberErnest || !allowed(r.name) {
			continue // Support vectors take much longer to fit, and a reservation is asked for after every run.
		}
		if m, ok := l.tryFolds(r, &s.target, b, held); ok && m.missed < limit {
			consider(m, held)
		}
	}
	if b[inputFeature] {
		m := model{name: ByNearest, basis: basis{inputFeature: true}}
		m.least, m.most = rangeOf(s.runs)
		m.missed, _ = missed(&s.target, math.Inf(1), func(i int) (float64, bool) {
			held[i] = s.nearest(s.runs[i].Input, i)
			return held[i], true
		})
		consider(m, held)
	}
}

// tryFolds is try with held, what is predicted for each run without its fold: every mostFolds-th run. With more runs
// than folds that takes a fraction of the time.
func (l *learner) tryFolds(r *row, t *target, b basis, held []float64) (m model, ok bool) {
	n := len(t.runs)
	m, x, y, unit, ok := l.fitted(r, t, b)
	if !ok {
		return model{}, false
	}
	folds := min(n, mostFolds)
	for fold := range folds {
		l.heldX, l.heldY, l.heldUnit, l.heldWeigh = l.heldX[:0], l.heldY[:0], l.heldUnit[:0], l.heldWeigh[:0]
		for i := range x {
			if i%folds != fold {
				l.heldX, l.heldY = append(l.heldX, x[i]), append(l.heldY, y[i])
				l.heldUnit, l.heldWeigh = append(l.heldUnit, unit[i]), append(l.heldWeigh, t.weight[i])
			}
		}
		others, ok := r.fit(l, l.heldX, l.heldY, l.heldWeigh, l.heldUnit)
		if !ok {
			return model{}, false
		}
		for i := fold; i < n; i += folds {
			held[i] = r.value(others, x[i])
		}
	}
	m.missed, ok = missed(t, math.Inf(1), func(i int) (float64, bool) { return held[i], true })
	return m, ok
}

// exact returns how many runs have a peak that is no lower bound.
func (s *sizing) exact() int {
	if s.guessed {
		return 0
	}
	return len(s.runs)
}

// margin is what is reserved beyond what would have sufficed so far, as a share: the mean error of z, as if it had been
// off by surprise in one run more, but not more than the probability that the next run is the largest. Lower bounds
// alone are doubled.
func (s *sizing) margin(z *sizer) float64 {
	if s.guessed {
		return cluster.ReservationGrowth - 1
	}
	return marginOf(len(s.runs), z.missed)
}

// marginOf is the margin after a number of runs with a mean error, which is 0 while there is only one.
func marginOf(runs int, missed float64) float64 {
	n := float64(runs)
	return min(1, surprise+n*missed) / (n + 1)
}

// cover sets the factor of z: the quantile of what the runs needed, and of what runs of lower bounds say beyond it.
func (s *sizing) cover(z *sizer) {
	z.factor = covering(z.over, s.weight, s.quantile)
	over, weight := slices.Clone(z.over), slices.Clone(s.weight)
	for i, r := range s.bounds.runs {
		if value, ok := s.at(z, r.Features); ok && s.bounds.values[i]/value > z.factor {
			over, weight = append(over, s.bounds.values[i]/value), append(weight, s.bounds.weight[i])
		}
	}
	z.factor = covering(over, weight, s.quantile)
}

// covering returns the smallest value that at least a share of the weight does not exceed.
func covering(values, weights []float64, share float64) float64 {
	order := make([]int, len(values))
	total := 0.0
	for i, w := range weights {
		order[i] = i
		total += w
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	below := 0.0
	for _, i := range order {
		if below += weights[i]; below >= share*total {
			return values[i]
		}
	}
	return values[order[len(order)-1]]
}

// nearest returns the mean peak of the runs whose inputs have the smallest ratios to input, without run skip (-1: with
// all). Of equally near ones it takes the newest.
func (s *sizing) nearest(input resource.Amount, skip int) float64 {
	type near struct {
		apart float64
		run   int
	}
	var best [nearestRuns]near
	n := 0
	for i := len(s.runs) - 1; i >= 0; i-- {
		if i == skip {
			continue
		}
		x := near{math.Abs(math.Log(float64(s.runs[i].Input) / float64(input))), i}
		at := n
		for at > 0 && x.apart < best[at-1].apart {
			if at < nearestRuns {
				best[at] = best[at-1]
			}
			at--
		}
		if at < nearestRuns {
			best[at] = x
			n = min(n+1, nearestRuns)
		}
	}
	sum := 0.0
	for _, x := range best[:n] {
		sum += s.values[x.run]
	}
	return sum / float64(n)
}

// at returns what z predicts for f; ok is false if f lacks a feature that z looks at, or if it is no amount.
func (s *sizing) at(z *sizer, f Features) (value float64, ok bool) {
	for i, kind := range featureKinds {
		if !z.basis[i] {
			continue
		}
		a, least, most := kind.of(&f), float64(*kind.of(&z.least)), float64(*kind.of(&z.most))
		if *a <= 0 {
			return 0, false
		}
		*a = min(max(*a, resource.Amount(math.Ceil(least*least/most))),
			resource.Amount(min(most*most/least, float64(kind.most))))
	}
	switch {
	case z.row != nil:
		value = z.row.value(z.line, z.row.columns(z.basis, &f))
	case z.name == ByNearest:
		value = s.nearest(f.Input, -1)
	default:
		value = 1
	}
	return value, value > 0 && !math.IsInf(value, 0)
}

// reserve returns the reservation for f, without a limit and without shortfalls; zero if there are no runs.
func (s *sizing) reserve(f Features) (r cluster.Reservation) {
	n := len(s.runs)
	if n == 0 {
		return r
	}
	r.Runs, r.AtLeast = n+len(s.bounds.runs), len(s.bounds.runs)
	if s.guessed {
		r.AtLeast = n
	}
	r.Most = asAmount(slices.Max(slices.Concat(s.values, s.bounds.values)), resource.Memory)
	for i := range s.models {
		z := &s.models[i]
		value, ok := s.at(z, f)
		if !ok {
			continue
		}
		r.Told = cluster.Provenance{Model: z.name, Samples: n, Error: z.missed}
		value = max(value*z.factor*(1+s.margin(z)), slices.Min(s.values), 1)
		r.Bytes = asAmount(math.Ceil(value), resource.Memory)
		break
	}
	least, most := rangeOf(s.runs)
	r.Outside = f.Input > 0 && most.Input > 0 && (f.Input < least.Input || f.Input > most.Input)
	return r
}
