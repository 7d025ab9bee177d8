package prediction

import (
	"math"
	"slices"
	"sort"
	"time"

	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
)

// doubles is what many methods do after an attempt failed, and what they do not learn from it.
type doubles struct{}

func (doubles) next(_ *task, had float64) float64 { return 2 * had }
func (doubles) failed(*task, float64)             {}

// requests reserves what the workflow asked for.
type requests struct{ doubles }

func (requests) first(t *task) float64 { return t.request }
func (requests) learn(*task)           {}

// small reserves little for every task.
type small struct{ doubles }

func (small) first(*task) float64 { return float64(startsWith) }
func (small) learn(*task)         {}

// startsWith is what a task starts with of which nothing is known and nothing is stated.
const startsWith = 64 * resource.MiB

// wittPercentile is the 95th percentile, between neighbours linearly, as numpy has it.
type wittPercentile struct {
	doubles
	peaks []float64 // in ascending order
}

func (m *wittPercentile) first(*task) float64 { return percentile(m.peaks, 0.95) }
func (m *wittPercentile) learn(t *task)       { m.peaks = insert(m.peaks, t.peak) }

func insert(sorted []float64, v float64) []float64 {
	return slices.Insert(sorted, sort.SearchFloat64s(sorted, v), v)
}

// percentile of values in ascending order; 0 without values.
func percentile(sorted []float64, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := share * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}

// wittLinear is least squares on the input plus the standard deviation of its relative errors.
type wittLinear struct {
	line
	errors    moments
	predicted map[*task]float64
	most      float64
}

func (m *wittLinear) first(t *task) float64 {
	if m.n == 0 {
		return 0
	}
	v := m.at(t.input)
	if m.predicted == nil {
		m.predicted = map[*task]float64{}
	}
	m.predicted[t] = v
	if v += v * m.errors.deviation(); v <= 0 {
		return m.most // the authors fail at once, and continue with this
	}
	return v
}

func (m *wittLinear) next(_ *task, had float64) float64 { return 2 * had }
func (m *wittLinear) failed(*task, float64)             {}

func (m *wittLinear) learn(t *task) {
	if v, ok := m.predicted[t]; ok {
		m.errors.add((t.peak - v) / t.peak)
		delete(m.predicted, t)
	}
	m.add(t.input, t.peak)
	m.most = max(m.most, t.peak)
}

// line is a line of least squares, of which points are added one by one (B. Welford, 1962).
type line struct {
	n, x, y, xx, xy float64 // number, means, and sums of products of deviations
}

func (l *line) add(x, y float64) {
	l.n++
	dx := x - l.x
	l.x += dx / l.n
	l.y += (y - l.y) / l.n
	l.xx += dx * (x - l.x)
	l.xy += dx * (y - l.y)
}

func (l *line) at(x float64) float64 {
	if !(l.xx > 1e-12*l.x*l.x) {
		return l.y
	}
	return l.y + l.xy/l.xx*(x-l.x)
}

// moments have a standard deviation.
type moments struct{ n, mean, squares float64 }

func (m *moments) add(v float64) {
	m.n++
	d := v - m.mean
	m.mean += d / m.n
	m.squares += d * (v - m.mean)
}

func (m *moments) deviation() float64 {
	if m.n == 0 {
		return 0
	}
	return math.Sqrt(m.squares / m.n)
}

// tovar reserves the peak a for which a·E(time) + largest·E(time of tasks above a) is least.
type tovar struct {
	tasks []*task // with the largest peak first
	time  float64
	best  float64 // 0 if it has to be found anew
}

func (m *tovar) first(*task) float64 {
	if len(m.tasks) == 0 || m.best > 0 {
		return m.best
	}
	least, above := math.Inf(1), 0.0
	for i, t := range m.tasks {
		if i > 0 && t.peak < m.tasks[i-1].peak || i == 0 {
			if cost := t.peak*m.time + m.tasks[0].peak*above; cost < least {
				least, m.best = cost, t.peak
			}
		}
		above += float64(t.lasts)
	}
	return m.best
}

func (m *tovar) next(_ *task, had float64) float64 {
	if len(m.tasks) > 0 && had < m.tasks[0].peak {
		return m.tasks[0].peak
	}
	return 128e9
}

func (m *tovar) failed(*task, float64) {}

func (m *tovar) learn(t *task) {
	at := sort.Search(len(m.tasks), func(i int) bool { return m.tasks[i].peak < t.peak })
	m.tasks = slices.Insert(m.tasks, at, t)
	m.time += float64(t.lasts)
	m.best = 0
}

// autopilot is a histogram that decays.
type autopilot struct {
	buckets map[int]float64
	begin   int64
	total   float64
}

const (
	autopilotBucket   = 1.05
	autopilotHalfLife = 48 * 3600 * 1000 // ms
	autopilotShare    = 0.98
	autopilotMargin   = 1.15
)

func (m *autopilot) first(*task) float64 {
	if m.buckets == nil {
		return 0
	}
	var all []int
	for b := range m.buckets {
		all = append(all, b)
	}
	slices.Sort(all)
	below := 0.0
	for _, b := range all {
		if below += m.buckets[b]; below >= autopilotShare*m.total*(1-1e-12) {
			return math.Pow(autopilotBucket, float64(b)) * autopilotMargin
		}
	}
	return math.Pow(autopilotBucket, float64(all[len(all)-1])) * autopilotMargin
}

func (m *autopilot) next(_ *task, had float64) float64 {
	return max(1.2*had, had+100*float64(resource.MiB))
}

func (m *autopilot) failed(*task, float64) {}

// learn weighs newer tasks more, instead of older ones less.
func (m *autopilot) learn(t *task) {
	if m.buckets == nil {
		m.buckets, m.begin = map[int]float64{}, t.start
	}
	w := math.Exp2(float64(t.start+t.lasts-m.begin) / autopilotHalfLife)
	m.buckets[int(math.Ceil(math.Log(t.peak)/math.Log(autopilotBucket)))] += w
	m.total += w
}

// bellows is the product's.
type bellows struct {
	history profile.History
	unknown float64 // what it starts with if it knows nothing; 0: the request
}

// bellowsApp is the application that a process is. Each process has a history of its own.
var bellowsApp = profile.App{Name: "process"}

func features(t *task) profile.Features { return profile.Features{Input: resource.Amount(t.input)} }

func (m *bellows) first(t *task) float64 {
	r, ok := m.history.Reserve(bellowsApp, features(t), resource.Amount(t.request))
	if !ok {
		return m.unknown
	}
	return float64(r.Bytes)
}

func (m *bellows) next(t *task, had float64) float64 {
	r, _ := m.history.Reserve(bellowsApp, features(t), resource.Amount(t.request))
	return float64(r.After(resource.Amount(had), resource.Amount(t.request)).Bytes)
}

func (m *bellows) failed(t *task, had float64) {
	if err := m.history.ObserveShortfall(bellowsApp, profile.Shortfall{Features: features(t),
		Held: max(1, resource.Amount(had))}); err != nil {
		panic(err)
	}
}

func (m *bellows) learn(t *task) {
	if _, err := m.history.Observe(bellowsApp, profile.Run{Features: features(t),
		Duration: time.Duration(t.lasts) * time.Millisecond, Peak: resource.Vector{resource.Memory: resource.Amount(t.peak)},
		Unknown: resource.AllKinds &^ resource.KindsOf(resource.Memory)}); err != nil {
		panic(err)
	}
}
