package profile

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
)

// PhaseModel predicts how long each phase of a task takes, from what is known of the task before it starts: the
// self-adaptive fuzzy model with several inputs and outputs of ECS (section III.C), whose equations are not in the
// paper. This is the usual form of such a model (T. Takagi, M. Sugeno, 1985):
//
//	inputs u    logarithms of the features, each from 0 to 1 over the samples
//	rules r     places in the inputs, the centres of subtractive clusters (S. L. Chiu, 1994)
//	weights     how near u is to each rule: Gaussian, with the sum 1
//	outputs     logarithms of durations: the weighted mean of linear functions of u, one per rule and phase
//
// The functions follow each new sample by recursive least squares with a forgetting factor. Rules are found anew after
// mostPhaseSamples samples, and when errors have doubled.
//
// It bends where a program does, such as at the input from which on it spills, and needs many samples for that: from
// FewestPhaseSamples on it predicts, and it is worse than a line before (see decision 43). History predicts durations
// by it where it errs less than its other models (ByFuzzy). The same calls in the same order give the same
// predictions. It belongs to one goroutine. The zero PhaseModel is empty and ready for use.
type PhaseModel struct {
	samples []phaseSample // the latest ones, the oldest first
	since   int           // samples since the rules were found
	columns []int         // which features are inputs
	low     []float64     // logarithm of the least of each input
	width   []float64     // of the range of each input
	rules   [][]float64   // centres; nil until there are enough samples
	// theta has a row for each rule and 1 and each input, with a column for each phase; spread is the matrix P of the
	// same number of rows.
	theta, spread [][]float64
	usual, recent float64 // mean absolute errors of logarithms: of the samples in the fit, of the latest samples
}

// phaseSample is one run.
type phaseSample struct {
	features Features
	logs     []float64 // of seconds, per phase
}

const (
	// FewestPhaseSamples is the number of samples from which on a PhaseModel predicts.
	FewestPhaseSamples = 60
	// mostPhaseSamples is how many samples are kept, and after how many the rules are found anew.
	mostPhaseSamples = 200
	// mostRules bounds the rules; there are ten samples at least for each.
	mostRules, samplesPerRule = 6, 10
	// nearness is the radius of a cluster (r_a), in ranges of the inputs. Clusters are kept apart by 1.5 times that.
	nearness, apart = 0.6, 1.5
	// acceptPotential and rejectPotential are Chiu's, as shares of the first cluster's potential.
	acceptPotential, rejectPotential = 0.5, 0.15
	// forgetting is the factor by which the weight of samples falls with each new one; firstSpread is the diagonal of P
	// at first, above which nothing is forgotten: where samples do not differ P would grow for ever.
	forgetting, firstSpread = 0.98, 100
	// newErrors is the weight of a sample in the mean of recent errors; leastError is what an error of logarithms always
	// may be.
	newErrors, leastError = 0.05, 0.01
	// leastPhase stands for phases that are shorter.
	leastPhase = time.Millisecond
)

// Observe adds a run with the durations of its phases. A run must have as many phases as the runs before it, at least
// one, and each must be at least 0 and at most cluster.LongestTime; otherwise the error says so, and the run does not
// count.
func (m *PhaseModel) Observe(f Features, phases []time.Duration) error {
	if len(phases) == 0 || len(m.samples) > 0 && len(phases) != len(m.samples[0].logs) {
		want := "at least 1"
		if len(m.samples) > 0 {
			want = fmt.Sprint(len(m.samples[0].logs), ", as in runs before")
		}
		return fmt.Errorf("%d phases: must be %s", len(phases), want)
	}
	s := phaseSample{features: f}
	for i, d := range phases {
		if d < 0 || d > cluster.LongestTime {
			return fmt.Errorf("phase %d duration %v: must be 0s to %v", i+1, d, cluster.LongestTime)
		}
		s.logs = append(s.logs, logSeconds(d))
	}
	m.add(s)
	return nil
}

// logSeconds is how a sample has a duration.
func logSeconds(d time.Duration) float64 { return math.Log(max(d, leastPhase).Seconds()) }

// phaseModelOf returns the model that has observed samples, the oldest first. It also predicts with fewer than
// FewestPhaseSamples, so that its errors at samples that were left out can be measured; there must be samplesPerRule
// at least.
func phaseModelOf(samples []phaseSample) *PhaseModel {
	first := min(len(samples), FewestPhaseSamples)
	m := &PhaseModel{samples: slices.Clone(samples[:first])}
	m.learn()
	for _, s := range samples[first:] {
		m.add(s)
	}
	return m
}

// add is Observe of a sample.
func (m *PhaseModel) add(s phaseSample) {
	m.samples = append(m.samples, s)
	if len(m.samples) > mostPhaseSamples {
		m.samples = slices.Delete(m.samples, 0, 1)
	}
	m.since++
	switch u, ok := m.inputs(&s.features); {
	case m.rules == nil && len(m.samples) < FewestPhaseSamples:
	case m.rules == nil || !ok || m.since >= mostPhaseSamples:
		m.learn()
	default:
		m.recent += newErrors * (m.follow(u, s.logs, forgetting) - m.recent)
		if m.recent > 2*m.usual && m.since >= FewestPhaseSamples/2 {
			// Something changed: what was before says little of what comes.
			m.samples = slices.Delete(m.samples, 0, max(0, len(m.samples)-FewestPhaseSamples))
			m.learn()
		}
	}
}

// Predict returns the durations of the phases of a run with features f. ok is false if there are fewer than
// FewestPhaseSamples samples, a feature that matters is unknown, or one is farther outside of what was measured than
// the measured range is wide, as a ratio.
func (m *PhaseModel) Predict(f Features) (phases []time.Duration, ok bool) {
	u, known := m.inputs(&f)
	if m.rules == nil || !known {
		return nil, false
	}
	for _, v := range u {
		if v < -1 || v > 2 {
			return nil, false
		}
	}
	x := m.regressors(u)
	for i := range m.samples[0].logs {
		seconds := math.Exp(m.output(x, i))
		if math.IsNaN(seconds) {
			return nil, false
		}
		d := cluster.LongestTime
		if seconds < d.Seconds() {
			d = max(leastPhase, time.Duration(seconds*float64(time.Second)))
		}
		phases = append(phases, d)
	}
	return phases, true
}

// inputs returns u of features. ok is false if an input is unknown.
func (m *PhaseModel) inputs(f *Features) (u []float64, ok bool) {
	for i, c := range m.columns {
		a := *featureKinds[c].of(f)
		if a <= 0 {
			return nil, false
		}
		u = append(u, (math.Log(float64(a))-m.low[i])/m.width[i])
	}
	return u, true
}

// learn finds inputs and rules in the kept samples, and fits the functions to them.
func (m *PhaseModel) learn() {
	m.choose()
	m.cluster()
	rows := len(m.rules) * (1 + len(m.columns))
	m.theta, m.spread = make([][]float64, rows), make([][]float64, rows)
	for i := range rows {
		m.theta[i], m.spread[i] = make([]float64, len(m.samples[0].logs)), make([]float64, rows)
		m.spread[i][i] = firstSpread
	}
	m.since, m.usual = 0, 0
	for _, s := range m.samples {
		u, _ := m.inputs(&s.features)
		m.follow(u, s.logs, 1)
	}
	for _, s := range m.samples {
		u, _ := m.inputs(&s.features)
		x := m.regressors(u)
		for i, y := range s.logs {
			m.usual += math.Abs(y-m.output(x, i)) / float64(len(s.logs)*len(m.samples))
		}
	}
	m.usual = max(leastError, m.usual)
	m.recent = m.usual
}

// choose makes inputs of the features that all samples have and that differ.
func (m *PhaseModel) choose() {
	m.columns, m.low, m.width = nil, nil, nil
	for c, kind := range featureKinds {
		low, high := math.Inf(1), math.Inf(-1)
		for i := range m.samples {
			a := math.Log(float64(max(0, *kind.of(&m.samples[i].features)))) // of 0, -Inf
			low, high = min(low, a), max(high, a)
		}
		if high-low > 1e-6 && !math.IsInf(low, -1) {
			m.columns, m.low, m.width = append(m.columns, c), append(m.low, low), append(m.width, high-low)
		}
	}
}

// cluster finds rules by subtractive clustering of inputs and the mean output: the sample with the most others near
// it is the first centre; it takes away from its neighbours, and the next one is sought, until what is left is
// little.
func (m *PhaseModel) cluster() {
	points := m.points()
	potential := make([]float64, len(points))
	for i := range points {
		for k := range points {
			potential[i] += math.Exp(-4 * distance(points[i], points[k]) / (nearness * nearness))
		}
	}
	m.rules = nil
	first := slices.Max(potential)
	for most := min(mostRules, len(points)/samplesPerRule); len(m.rules) < most; {
		best := 0
		for i, p := range potential {
			if p > potential[best] {
				best = i
			}
		}
		p, centre := potential[best], points[best]
		if p < rejectPotential*first {
			break
		}
		u := centre[:len(m.columns)]
		nearest := math.Inf(1)
		for _, r := range m.rules {
			nearest = min(nearest, math.Sqrt(distance(u, r)))
		}
		if p < acceptPotential*first && nearest/nearness+p/first < 1 || nearest < nearness/4 {
			potential[best] = 0 // too near to what there is
			continue
		}
		m.rules = append(m.rules, u)
		for i := range potential {
			potential[i] -= p * math.Exp(-4*distance(points[i], centre)/(apart*apart*nearness*nearness))
		}
	}
}

// points returns the inputs of each sample and its mean output, from 0 to 1 over the samples.
func (m *PhaseModel) points() (points [][]float64) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, s := range m.samples {
		u, _ := m.inputs(&s.features)
		mean := 0.0
		for _, y := range s.logs {
			mean += y / float64(len(s.logs))
		}
		low, high = min(low, mean), max(high, mean)
		points = append(points, append(u, mean))
	}
	for _, p := range points {
		y := &p[len(p)-1]
		if *y -= low; high > low {
			*y /= high - low
		}
	}
	return points
}

// distance returns the square of the distance of two points.
func distance(a, b []float64) (sum float64) {
	for i := range a {
		sum += (a[i] - b[i]) * (a[i] - b[i])
	}
	return sum
}

// regressors returns for each rule its weight times 1 and times each input.
func (m *PhaseModel) regressors(u []float64) (x []float64) {
	nearest := math.Inf(1)
	for _, r := range m.rules {
		nearest = min(nearest, distance(u, r))
	}
	var weights []float64
	total := 0.0
	for _, r := range m.rules { // less what is nearest, so that not all weights are 0 far away
		w := math.Exp(-4 * (distance(u, r) - nearest) / (nearness * nearness))
		weights, total = append(weights, w), total+w
	}
	for _, w := range weights {
		x = append(x, w/total)
		for _, v := range u {
			x = append(x, w/total*v)
		}
	}
	return x
}

// output returns the logarithm of the seconds of phase i.
func (m *PhaseModel) output(x []float64, i int) (y float64) {
	for k, v := range x {
		y += v * m.theta[k][i]
	}
	return y
}

// follow moves the functions towards a sample by recursive least squares, with a factor for older samples, and
// returns the mean absolute error before.
func (m *PhaseModel) follow(u, logs []float64, factor float64) (missed float64) {
	x := m.regressors(u)
	gain, size := make([]float64, len(x)), 0.0
	for i := range x {
		for k, v := range x {
			gain[i] += m.spread[i][k] * v
		}
		if m.spread[i][i] > firstSpread {
			factor = 1
		}
		size += x[i] * gain[i]
	}
	for i, y := range logs {
		off := y - m.output(x, i)
		missed += math.Abs(off) / float64(len(logs))
		for k := range x {
			m.theta[k][i] += gain[k] / (factor + size) * off
		}
	}
	for i := range x {
		for k := range x {
			m.spread[i][k] = (m.spread[i][k] - gain[i]*gain[k]/(factor+size)) / factor
		}
	}
	return missed
}
