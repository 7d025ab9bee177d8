package firstuse

import (
	"fmt"
	"io"
	"math"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/sim/trial"
)

// sum is the sum of all peaks.
func (r *Result) sum() (sum resource.Amount) {
	for i := range r.Programs {
		sum += r.Programs[i].Peak
	}
	return sum
}

// processors is how long all processors of the node need for the processor time that the programs used alone, seconds.
func (r *Result) processors() (s float64) {
	for i := range r.Programs {
		s += r.Programs[i].CPU / float64(r.Cores)
	}
	return s
}

// short reports whether memory is short on the node.
func (r *Result) short() bool { return float64(r.sum()) >= shortFrom*float64(r.Node) }

// trial says in one clause why the measurement is a trial; empty if it is a result.
func (r *Result) trial() string {
	switch sum := r.sum(); {
	case r.Tenths < 10:
		return "the inputs have not their full size"
	case len(r.names()) > 0 && len(r.names()) <= len(Others()):
		return "not all contenders ran"
	case r.roundsOf() < enoughRounds:
		return fmt.Sprintf("there are fewer than %d rounds", enoughRounds)
	case sum < leastSum || sum > mostSum:
		return fmt.Sprintf("the peaks add up to %s: must be %s to %s", resource.FormatMemory(sum),
			resource.FormatMemory(leastSum), resource.FormatMemory(mostSum))
	}
	return ""
}

func (r *Result) roundsOf() (last int) {
	for i := range r.Runs {
		last = max(last, r.Runs[i].Round)
	}
	return last
}

// names returns the contenders, in the order of the first round.
func (r *Result) names() (all []string) {
	for i := range r.Runs {
		if r.Runs[i].Round == 1 {
			all = append(all, r.Runs[i].Contender)
		}
	}
	return all
}

// of returns the run of a contender in a round; nil if there is none.
func (r *Result) of(name string, round int) *Run {
	for i := range r.Runs {
		if c := &r.Runs[i]; c.Contender == name && c.Round == round {
			return c
		}
	}
	return nil
}

// lost counts the jobs that a contender lost in all rounds.
func (r *Result) lost(name string) (n int) {
	for i := range r.Runs {
		if r.Runs[i].Contender == name {
			n += r.Runs[i].lost()
		}
	}
	return n
}

// ratio estimates the time of bellows over that of another contender, from the second round on, round by round.
func (r *Result) ratio(other string) trial.Estimate {
	var ratios []float64
	for round := 2; round <= r.roundsOf(); round++ {
		if a, b := r.of(ours, round), r.of(other, round); a != nil && b != nil && b.Took > 0 {
			ratios = append(ratios, a.Took/b.Took)
		}
	}
	return trial.GeometricMean(ratios)
}

// least says which share of the time of another contender, from the second round on, the processors need alone; empty
// if that share is not known, or at most most.
func (r *Result) least(other string, most float64) string {
	var shares []float64
	for round := 2; round <= r.roundsOf(); round++ {
		if c := r.of(other, round); c != nil && c.Took > 0 && r.processors() > 0 {
			shares = append(shares, r.processors()/c.Took)
		}
	}
	if e := trial.GeometricMean(shares); e.Known() && e.Mean > most {
		return fmt.Sprintf(", of which the processors alone need %.2f", e.Mean)
	}
	return ""
}

// best returns the contender with which bellows compares worst, among those that lost no job; empty if there is none.
// The boxes are not among them.
func (r *Result) best() (name string, worst trial.Estimate) {
	worst.Mean = math.Inf(-1)
	for _, other := range r.names() {
		if other == ours || other == boxes || r.lost(other) > 0 {
			continue
		}
		if e := r.ratio(other); e.Known() && e.Mean > worst.Mean {
			name, worst = other, e
		}
	}
	return name, worst
}

// Verdict is whether a criterion is met.
type Verdict struct {
	Holds bool
	Text  string
}

// Verdicts judge by the criteria.
func (r *Result) Verdicts() (all []Verdict) {
	say := func(holds bool, format string, operands ...any) {
		all = append(all, Verdict{holds, fmt.Sprintf(format, operands...)})
	}
	lost := r.lost(ours)
	say(lost == 0, "every job ends right in every round: %d were lost", lost)
	if e := r.ratio(boxes); e.Known() {
		say(e.Mean <= ofBoxes, "from the second round on bellows takes %s of the time of boxes of the peak%s: at most %.2f",
			interval(e), r.least(boxes, ofBoxes), ofBoxes)
	}
	if name, e := r.best(); name != "" {
		most, where := anywhere, "where memory is not short"
		if r.short() {
			most, where = ofOthers, "where memory is short"
		}
		say(e.Mean <= most, "%s bellows takes %s of the time of the best other, %s%s: at most %.2f", where, interval(e), name,
			r.least(name, most), most)
	}
	return all
}

func interval(e trial.Estimate) string {
	if !e.Interval() {
		return fmt.Sprintf("%.2f", e.Mean)
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", e.Mean, e.Low, e.High)
}

// Write prints the result.
func (r *Result) Write(w io.Writer) error {
	if r.Why != "" {
		_, err := fmt.Fprintln(w, terminal.Fold("Nothing was measured: "+r.Why+".", terminal.Width, ""))
		return err
	}
	swap := "no swap"
	if r.Swap > 0 {
		swap = resource.FormatMemory(r.Swap) + " of swap"
	}
	text := fmt.Sprintf("%d programs (%s) whose peaks add up to %s on a node of %s with %d cores and %s.", len(r.Programs),
		r.Kind, resource.FormatMemory(r.sum()), resource.FormatMemory(r.Node), r.Cores, swap)
	text += fmt.Sprintf(" Alone they use processor time that takes all cores %.1f s.", r.processors())
	if why := r.trial(); why != "" {
		text += " This is a trial: " + why + "."
	}
	fmt.Fprintln(w, terminal.Fold(text, terminal.Width, ""))
	fmt.Fprintln(w)
	rounds := r.roundsOf()
	heads := []string{"CONTENDER", ">ROUND 1, s"}
	for round := 2; round <= rounds; round++ {
		heads = append(heads, fmt.Sprintf(">%d", round))
	}
	t := terminal.NewTable(append(heads, ">LOST", ">BELLOWS TAKES")...)
	t.Shrinks = 0
	for _, name := range r.names() {
		row := []string{name}
		for round := 1; round <= rounds; round++ {
			text := "-"
			if run := r.of(name, round); run != nil {
				text = fmt.Sprintf("%.1f", run.Took)
			}
			row = append(row, text)
		}
		takes := "-"
		if e := r.ratio(name); name != ours && e.Known() {
			takes = interval(e)
		}
		t.Add(append(row, fmt.Sprint(r.lost(name)), takes)...)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, v := range r.Verdicts() {
		word := "Holds"
		if !v.Holds {
			word = "Does not hold"
		}
		if _, err := fmt.Fprintln(w, terminal.Fold(word+": "+v.Text+".", terminal.Width, "")); err != nil {
			return err
		}
	}
	return nil
}
