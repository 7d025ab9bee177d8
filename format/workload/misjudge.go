package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// Deviation is an interval from which a relative error is drawn, uniformly: 0.15 is 15 % more. An end of 0 is excluded,
// the other end is included: {0, 0.15} is (0, 0.15], {-0.5, 0} is [-0.5, 0). The zero value is no error.
type Deviation struct{ Low, High float64 }

// Misjudgement is the deviation of estimates from the truth (YARN-ME section 6.2, Fig. 7, where the intervals are (0,
// 0.15], (0, 0.5] and their negatives).
type Misjudgement struct {
	// Duration is drawn for each task: its real run time is the estimate times one plus the error.
	Duration Deviation
	// Memory is drawn for each job: the memory its tasks really need to run unhindered is the estimate times one plus
	// the error.
	Memory Deviation
	// Penalty is drawn for each job: the largest slowdown that a policy sees is the real one times one plus the error,
	// at least 1; smaller slowdowns change in proportion. Unlike duration and memory, it changes the estimate: the paper's
	// scheduler "perceives elastic tasks as taking longer" with positive errors.
	Penalty Deviation
	// Demand is drawn for each job: the demands of phases that a policy sees are the real demands times one plus
	// the error, in all phases and resources alike; when phases begin stays right. It changes the estimate, too, and
	// concerns stages with a forecast only.
	Demand Deviation
}

// largestDeviation bounds errors from above; the bound from below is -1, because no amount is negative.
const largestDeviation = 10

// ParseMisjudgement reads "duration=0.15,memory=-0.5,penalty=0.5": each value is an end of an interval whose other end
// is 0, or both ends, "duration=-0.5:0.5". What is left out is estimated correctly; "none" is no error at all.
func ParseMisjudgement(text string) (Misjudgement, error) {
	var m Misjudgement
	if text == "" || text == "none" {
		return m, nil
	}
	seen := map[string]bool{}
	for _, part := range strings.Split(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		field, known := m.field(name)
		if !known || seen[name] {
			return m, fmt.Errorf(
				"misjudgement %q: must be none, or one each of duration=, memory=, penalty= and demand= with an error such "+
					"as 0.15 or -0.5:0.5", cluster.Clip(text))
		}
		seen[name] = true
		d, err := parseDeviation(value)
		if err != nil {
			return m, fmt.Errorf("misjudgement %s %q: %w", name, cluster.Clip(value), err)
		}
		*field = d
	}
	return m, nil
}

func (m *Misjudgement) field(name string) (*Deviation, bool) {
	switch name {
	case "duration":
		return &m.Duration, true
	case "memory":
		return &m.Memory, true
	case "penalty":
		return &m.Penalty, true
	case "demand":
		return &m.Demand, true
	}
	return nil, false
}

func parseDeviation(text string) (Deviation, error) {
	low, high, both := strings.Cut(text, ":")
	first, err := strconv.ParseFloat(low, 64)
	if err != nil {
		return Deviation{}, fmt.Errorf("must be a number, or two with a colon between them")
	}
	d := Deviation{min(first, 0), max(first, 0)}
	if both {
		second, err := strconv.ParseFloat(high, 64)
		if err != nil {
			return Deviation{}, fmt.Errorf("must be a number, or two with a colon between them")
		}
		d = Deviation{first, second}
	}
	return d, d.check()
}

func (d Deviation) check() error {
	if !(d.Low > -1 && d.Low <= d.High && d.High <= largestDeviation) {
		return fmt.Errorf("must be ascending, above -1 and at most %d", largestDeviation)
	}
	return nil
}

// String prints d as ParseMisjudgement reads it.
func (d Deviation) String() string {
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	switch {
	case d.Low == 0:
		return number(d.High)
	case d.High == 0:
		return number(d.Low)
	}
	return number(d.Low) + ":" + number(d.High)
}

// draw returns one plus an error.
func (d Deviation) draw(random *rand.Rand) float64 {
	u := random.Float64() // never 1
	if d.High == 0 {
		return 1 + d.Low*(1-u)
	}
	return 1 + d.High - u*(d.High-d.Low)
}

// Misjudge returns a copy of w with estimates that deviate from the truth. Errors are relative to the truth of w, or to
// its estimates where w has no truth. Coordinators do not change. Each of the four errors has its own stream of random
// numbers, so that no draw changes another draw; the same arguments give the same workload. w does not
// change.
func Misjudge(w *Workload, m Misjudgement, seed uint64) *Workload {
	off := &Workload{Jobs: slices.Clone(w.Jobs)}
	const durations, memories, penalties, demands = 1, 2, 3, 4 // streams of random numbers
	byTask := rand.New(rand.NewPCG(seed, durations))
	byMemory := rand.New(rand.NewPCG(seed, memories))
	byPenalty := rand.New(rand.NewPCG(seed, penalties))
	byDemand := rand.New(rand.NewPCG(seed, demands))
	for i := range off.Jobs {
		j := &off.Jobs[i]
		truth := make([]StageTruth, len(j.Stages))
		copy(truth, j.Truth)
		j.Truth, j.Stages = truth, slices.Clone(j.Stages)
		memory, penalty, demand := m.Memory.draw(byMemory), m.Penalty.draw(byPenalty), m.Demand.draw(byDemand)
		for k := range j.Stages {
			s, t := &j.Stages[k], &j.Truth[k]
			if s.Coordinator {
				continue
			}
			if m.Duration != (Deviation{}) {
				misjudgeDurations(j, k, m.Duration, byTask)
			}
			if m.Memory != (Deviation{}) {
				misjudgeMemory(s, t, memory)
			}
			if m.Penalty != (Deviation{}) {
				misjudgePenalty(s, t, penalty)
			}
			if m.Demand != (Deviation{}) {
				misjudgeDemand(s, t, demand)
			}
		}
	}
	return off
}

func misjudgeDurations(j *Job, stage int, d Deviation, random *rand.Rand) {
	t, tasks := &j.Truth[stage], j.Stages[stage].Tasks
	real := make([]time.Duration, tasks)
	var fresh, first []time.Duration
	for i := range real {
		factor := d.draw(random)
		if real[i] = j.Task(stage, i).Duration; real[i] > 0 {
			real[i] = misjudged(real[i], factor)
		}
		if len(t.Fresh) > 0 {
			fresh = append(fresh, misjudged(t.Fresh[i%len(t.Fresh)], factor))
		}
		if len(t.First) > 0 {
			first = append(first, misjudged(t.First[i%len(t.First)], factor))
		}
	}
	if !slices.Contains(real, 0) {
		t.Duration, t.Fresh, t.First = ForEach(real), fresh, first
	}
}

func misjudged(d time.Duration, factor float64) time.Duration {
	return max(time.Millisecond, time.Duration(scaled(int64(d), factor)).Truncate(time.Millisecond))
}

// misjudgeMemory multiplies every real need for memory by factor.
func misjudgeMemory(s *cluster.Stage, t *StageTruth, factor float64) {
	if !t.IdealMemory.Given() && s.Ideal[resource.Memory] > 0 {
		t.IdealMemory = ForAll(s.Ideal[resource.Memory])
	}
	t.MapMemory(func(a resource.Amount) resource.Amount { return resource.Amount(max(1, scaled(int64(a), factor))) })
}

// misjudgeDemand multiplies every demand of the forecast by factor. The truth keeps the previous forecast, and what
// followed from it, unless it has phases of its own. No demand becomes nothing.
func misjudgeDemand(s *cluster.Stage, t *StageTruth, factor float64) {
	if len(s.Phases) == 0 {
		return
	}
	if !t.Phases.Given() {
		t.keepEstimates(s)
	}
	s.Phases = slices.Clone(s.Phases)
	for i := range s.Phases {
		for k, a := range s.Phases[i].Demand {
			if a > 0 {
				s.Phases[i].Demand[k] = resource.Amount(max(1, scaled(int64(a), factor)))
			}
		}
	}
}

// keepEstimates makes the forecast of s the truth, with the run time and the memory that are true without it.
func (t *StageTruth) keepEstimates(s *cluster.Stage) {
	t.Phases = ForAll(s.Phases)
	if total, _ := SumPhases(s.Phases); !t.Duration.Given() && total != s.RunTime() {
		t.Duration = ForAll(s.RunTime())
	}
	if m := s.Ideal[resource.Memory]; !t.IdealMemory.Given() && m > 0 {
		t.IdealMemory = ForAll(m)
	}
}

// misjudgePenalty changes the estimate; the truth keeps the previous estimate, unless it has an elasticity of its own.
func misjudgePenalty(s *cluster.Stage, t *StageTruth, factor float64) {
	if s.Elasticity.Kind == cluster.NotElastic {
		return
	}
	if t.Elasticity == nil {
		real := s.Elasticity
		t.Elasticity = &real
	}
	s.Elasticity = exaggerate(s.Elasticity, factor)
}

// exaggerate returns e with its worst slowdown multiplied by factor, at least 1, and the excess over 1 of the other
// slowdowns scaled in proportion.
func exaggerate(e cluster.Elasticity, factor float64) cluster.Elasticity {
	worst := e.Worst()
	if worst <= 1 {
		return e
	}
	excess := (max(1, worst*factor) - 1) / (worst - 1)
	if e.Factor > 0 {
		e.Factor = 1 + (e.Factor-1)*excess
	}
	e.Points = slices.Clone(e.Points)
	for i, p := range e.Points {
		if p.Slowdown > 1 {
			e.Points[i].Slowdown = 1 + (p.Slowdown-1)*excess
		}
	}
	return e
}

// scaled multiplies without overflow.
func scaled(v int64, factor float64) int64 {
	if f := float64(v) * factor; f < math.MaxInt64 {
		return int64(f)
	}
	return math.MaxInt64
}
