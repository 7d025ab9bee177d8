package profile

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// Trial is the result of one kind of model while Fit chose.
type Trial struct {
	Kind Kind `json:"kind" doc:"kind of model"`
	// Refused says why the kind could not be fitted to these samples; "" if it was.
	Refused string `json:"refused,omitempty" doc:"why it could not be fitted; omitted if it was"`
	// Missed is the mean, Worst the largest absolute error at the sizes left out one at a time, as shares of the
	// measured run time; meaningful only if LeftOut, the number of these sizes, is above 0.
	Missed  float64 `json:"missed" doc:"mean absolute error at the sizes left out, a share of the measured run time; says nothing if left_out is 0"`
	Worst   float64 `json:"worst" doc:"the largest of these errors"`
	LeftOut int     `json:"left_out" doc:"sizes that were left out, one at a time"`
}

// Report says how Fit came to its choice.
type Report struct {
	Chosen  Kind    `json:"chosen" doc:"the chosen kind"`
	Samples int     `json:"samples" doc:"sizes that it was fitted to"`
	Trials  []Trial `json:"trials" doc:"one per kind, simplest first"`
	// Noise is the uncertainty that the repeats leave, as a share of run time: a kind with more parameters must be
	// better than a simpler one by more than Noise.
	Noise float64 `json:"noise" doc:"what the repeats leave uncertain, a share of run time: a kind with more parameters must be better than a simpler one by more"`
}

// Fit returns the model that best predicts samples that it was not fitted to: it fits each kind again with one size
// left out, and fits the kind with the smallest mean error to all samples. If the repeats cannot tell two kinds apart,
// it takes the simpler kind, unless the spilled bytes, which other work does not disturb, show the teeth of a saw. It
// refuses a kind that contradicts one of its own samples (Sample.Contradicts), since that kind would smooth a cliff
// away.
//
// It needs at least two sizes, the largest of them well-sized. With two sizes no size can be left out, and it takes the
// simplest kind, a step; a caller that knows the shape calls FitKind. It does not keep samples.
func Fit(samples []Sample, program Program) (Model, Report, error) {
	s, err := checked(samples, program)
	if err != nil {
		return Model{}, Report{}, err
	}
	if len(s) < 2 {
		return Model{}, Report{}, fmt.Errorf("samples %d: must be at least 2 sizes, one under-sized and one well-sized",
			len(s))
	}
	report := Report{Samples: len(s), Noise: noise(s)}
	var best *Trial
	var chosen Model
	for _, kind := range kinds {
		m, trial := try(kind, s, program)
		report.Trials = append(report.Trials, trial)
		undecided := report.Noise
		if kind == SawTooth && trial.Refused == "" && m.spillsLikeIt(s) {
			undecided = 0
		}
		if trial.Refused == "" && (best == nil || trial.Missed < min(best.Missed*(1-tieShare), best.Missed-undecided)) {
			best, chosen = &trial, m
		}
	}
	if best == nil {
		return Model{}, report, errors.New("samples: no kind of model fits: " + report.refusals())
	}
	report.Chosen = best.Kind
	return chosen, report, nil
}

// tieShare is the share by which a kind with more parameters must reduce the error to be preferred.
const tieShare = 0.05

// noise is a quarter of the mean spread of the repeats: about the distance of the fastest of a few runs from the
// fastest of many.
func noise(s []Sample) float64 {
	total, known := 0.0, 0
	for _, x := range s {
		if spread, ok := x.Spread(); ok {
			total += spread
			known++
		}
	}
	if known == 0 {
		return 0
	}
	return total / float64(known) / 4
}

// spillsLikeIt reports whether the saw-tooth m explains the spilled bytes of the under-sized runs much better than a
// constant does: with less than a quarter of its squared error.
func (m *Model) spillsLikeIt(s []Sample) bool {
	const teeth = 3 // fewer sizes show no shape
	w, known := firstWellSized(s)
	if !known || w < teeth {
		return false
	}
	flat, saw := make([]float64, w), make([]float64, w)
	for i, x := range s[:w] {
		flat[i], saw[i] = 1, float64(SpilledWhole(m.Input, m.Buffer.At(x.Memory)))
	}
	_, flatSquares := fitExpansion(s[:w], flat)
	_, sawSquares := fitExpansion(s[:w], saw)
	return 4*sawSquares < flatSquares
}

// FitKind fits one kind, for a caller that knows the shape. The paper's two-run model is SawTooth with one under-sized
// run, one well-sized run and program.Input. See Fit.
func FitKind(kind Kind, samples []Sample, program Program) (Model, error) {
	s, err := checked(samples, program)
	if err != nil {
		return Model{}, err
	}
	return fitKind(kind, s, program)
}

func checked(samples []Sample, program Program) ([]Sample, error) {
	if err := program.Check(); err != nil {
		return nil, err
	}
	return sorted(samples)
}

// fitKind fits kind to s, which is checked and in ascending order.
func fitKind(kind Kind, s []Sample, program Program) (Model, error) {
	var m Model
	var err error
	switch kind {
	case Step:
		m, err = fitStep(s)
	case SawTooth:
		m, err = fitSawTooth(s, program)
	case Monotone:
		m, err = fitPoints(s, nonIncreasing(s))
	case Interpolated:
		m, err = fitPoints(s, durations(s))
	default:
		err = fmt.Errorf("kind %d: must be one of step, sawtooth, monotone, interpolated", kind)
	}
	if err != nil {
		return Model{}, err
	}
	m.Version, m.Kind = formatVersion, kind
	m.MinMemory = min(s[0].Memory, m.IdealMemory)
	m.DiskRate = diskRate(s)
	return m, m.Check()
}

// try fits kind to all of s, and to s without each size that can be left out.
func try(kind Kind, s []Sample, program Program) (Model, Trial) {
	t := Trial{Kind: kind}
	m, err := fitKind(kind, s, program)
	if err != nil {
		t.Refused = err.Error()
		return Model{}, t
	}
	if i := slices.IndexFunc(s, m.contradicted); i >= 0 {
		t.Refused = fmt.Sprintf("it says %v at %s, where %v was measured", seconds(m.Duration(s[i].Memory)),
			resource.FormatMemory(s[i].Memory), seconds(s[i].Duration))
		return Model{}, t
	}
	var total float64
	for i := range s {
		rest := slices.Delete(slices.Clone(s), i, i+1)
		if len(splits(rest)) == 0 || isIdeal(s, i) {
			continue // no sample remains for its side
		}
		without, err := fitKind(kind, rest, program)
		if err != nil {
			t.Refused = fmt.Sprintf("without %s: %v", resource.FormatMemory(s[i].Memory), err)
			return Model{}, t
		}
		missed := math.Abs(relative(without.Duration(s[i].Memory), s[i].Duration))
		total += missed
		t.Worst = max(t.Worst, missed)
		t.LeftOut++
	}
	if t.LeftOut > 0 {
		t.Missed = total / float64(t.LeftOut)
	}
	return m, t
}

// contradicted reports whether the sample s contradicts m.
func (m *Model) contradicted(s Sample) bool { return s.Contradicts(m.Duration(s.Memory)) }

// seconds rounds a run time for a message.
func seconds(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Millisecond)
}

// isIdeal reports whether a model learns the ideal from s[i]: the smallest well-sized size, or the largest of all.
// Without it a model does not know where additional memory stops helping, which is no fault of the model's shape.
func isIdeal(s []Sample, i int) bool {
	w, ok := firstWellSized(s)
	return i == len(s)-1 || (ok && i == w)
}

// relative returns the difference of predicted and measured as a share of measured; positive means too long.
func relative(predicted, measured time.Duration) float64 {
	return float64(predicted-measured) / float64(measured)
}

// splits returns the possible numbers of under-sized sizes at the start of s, each at least 1 and less than len(s): one
// if the spilled bytes determine it, all if they do not, none if every size or no size is under-sized.
func splits(s []Sample) []int {
	if w, ok := firstWellSized(s); ok {
		if w == 0 || w == len(s) {
			return nil
		}
		return []int{w}
	}
	var all []int
	for w := 1; w < len(s); w++ {
		all = append(all, w)
	}
	return all
}

// errOneSided is returned by the fits that need both under-sized and well-sized runs.
var errOneSided = errors.New(
	"needs at least one under-sized and one well-sized run; measure a larger or a smaller size")

// diskRate returns the largest rate at which an under-sized run of s wrote and read back its spilled bytes, bytes per
// second; 0 if unknown.
func diskRate(s []Sample) resource.Amount {
	most := 0.0
	for _, x := range s {
		if x.SpilledKnown {
			most = max(most, 2*float64(x.Spilled)/x.Duration.Seconds())
		}
	}
	if most >= math.MaxInt64 {
		return math.MaxInt64
	}
	return resource.Amount(most)
}

// Explain gives the reason for the choice of the model in one sentence.
func (r Report) Explain() string {
	var chosen string
	var others []string
	leftOut := 0
	for _, t := range r.Trials {
		switch {
		case t.Kind == r.Chosen:
			leftOut = t.LeftOut
			chosen = fmt.Sprintf(
				"%s: with each of %d sizes left out in turn it missed by %.1f %% on average and %.1f %% at worst", t.Kind,
				t.LeftOut, 100*t.Missed, 100*t.Worst)
		case t.Refused != "":
			others = append(others, fmt.Sprintf("%s cannot be fitted (%s)", t.Kind, t.Refused))
		default:
			others = append(others, fmt.Sprintf("%s by %.1f %%", t.Kind, 100*t.Missed))
		}
	}
	if leftOut == 0 {
		return fmt.Sprintf("%s: %d sizes are too few to compare kinds by leaving one out, and it is the simplest that fits",
			r.Chosen, r.Samples)
	}
	return chosen + "; " + strings.Join(others, ", ")
}

func (r Report) refusals() string {
	var all []string
	for _, t := range r.Trials {
		all = append(all, fmt.Sprintf("%s %s", t.Kind, t.Refused))
	}
	return strings.Join(all, "; ")
}
