package demo

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/studies/chart"
)

// RealResult is the result of larger programs in fixed containers and in FLEX containers.
type RealResult struct {
	Sizes []FlexResult  `json:"sizes"` // one for each number of jobs; with 0 jobs, of the short jobs alone
	Took  time.Duration `json:"took_ns"`
}

// Real runs larger programs, with each number of jobs in counts. Every run is kept in dir, and is not run again.
func Real(ctx context.Context, o Options, counts []int, dir string) (*RealResult, error) {
	res := &RealResult{}
	begun := time.Now()
	defer func() { res.Took = time.Since(begun) }()
	for _, n := range slices.Compact(slices.Sorted(slices.Values(counts))) {
		o.Say(countJobs(n))
		r, err := demonstrateFlex(ctx, o, func(ctx context.Context, dir string, _ resource.Amount) (*flexMix, []string,
			error) {
			return realMix(ctx, dir, n)
		}, &keptRuns{dir})
		if err != nil {
			return nil, err
		}
		res.Sizes = append(res.Sizes, *r)
		if r.Why != "" {
			break
		}
	}
	return res, nil
}

func countJobs(n int) string {
	if n == 1 {
		return "1 job"
	}
	return fmt.Sprintf("%d jobs", n)
}

// mixed returns the results with jobs.
func (r *RealResult) mixed() []FlexResult {
	return slices.DeleteFunc(slices.Clone(r.Sizes), func(s FlexResult) bool { return s.Jobs == 0 || s.Why != "" })
}

// largest returns the result with the most jobs; ok is false if there is none.
func (r *RealResult) largest() (of *FlexResult, ok bool) {
	all := r.mixed()
	if len(all) == 0 {
		return nil, false
	}
	most := slices.MaxFunc(all, func(a, b FlexResult) int { return cmp.Compare(a.Jobs, b.Jobs) })
	return &most, true
}

// Write prints the result, for people.
func (r *RealResult) Write(w io.Writer) error {
	var t text
	t.WriteString("\n")
	if last := &r.Sizes[len(r.Sizes)-1]; last.Why != "" {
		t.say("The larger programs were left out: %s.", last.Why)
	} else {
		t.real(r)
	}
	_, err := io.WriteString(w, t.String())
	return err
}

func (t *text) real(r *RealResult) {
	of := &r.Sizes[len(r.Sizes)-1] // with the most jobs
	t.say("Jobs of larger programs share %s and %s cores with a stream of short REGULAR jobs. Medians of %s, with "+
		"the least and the most.", resource.FormatMemory(of.Node[resource.Memory]),
		resource.FormatCPU(of.Node[resource.CPU]), allRounds(r.Sizes...))
	t.WriteString("\n")
	t.flexTables(r.Sizes, true)
	t.say(flexLegend+" CORES is how many the jobs kept busy.", of.Attempts)
	t.WriteString("\n")
	t.flexAbout(of)
	for _, s := range r.mixed() {
		t.WriteString("\n")
		t.say("With %s:", countJobs(s.Jobs))
		t.claims(flexClaims(&s))
	}
	var all []FlexSummary
	for i := range r.Sizes {
		all = append(all, r.Sizes[i].Summaries...)
	}
	t.flexOthers(all)
}

// Pictures returns the memory of each container over time with the most jobs, the makespans, and the latency of the
// short jobs; nothing without jobs.
func (r *RealResult) Pictures() []Picture {
	most, ok := r.largest()
	if !ok {
		return nil
	}
	return []Picture{{"memory", flexPicture(most)}, {"makespan", realMakespans(r)}, {"latency", realLatencies(r, most)}}
}

// allRounds says how many rounds ran; it is a range if rounds were left out.
func allRounds(of ...FlexResult) string {
	least, most := math.MaxInt, 0
	for _, r := range of {
		for _, s := range r.Summaries {
			least, most = min(least, s.Rounds), max(most, s.Rounds)
		}
	}
	if least == most {
		return rounds(most)
	}
	return fmt.Sprintf("%d to %s", least, rounds(most))
}

// realMakespans is the counterpart of Pufferfish's Figure 7.
func realMakespans(r *RealResult) *chart.Bars {
	all := r.mixed()
	b := &chart.Bars{Title: "Makespan of jobs whose memory comes and goes", Y: "s", Width: 760,
		Subtitle: fmt.Sprintf("real programs on %s; median, least and most of %s",
			resource.FormatMemory(all[0].Node[resource.Memory]), allRounds(all...))}
	for i := range allocations {
		series := chart.BarSeries{Name: allocations[i].Label}
		lost := 0.0
		for _, s := range all {
			of := &s.Summaries[i]
			series.Values = append(series.Values, of.Makespan.Median)
			series.Low, series.High = append(series.Low, of.Makespan.Least), append(series.High, of.Makespan.Most)
			lost = max(lost, float64(s.Jobs)-of.Finished.Least)
		}
		if lost > 0 {
			series.Name += fmt.Sprintf(" (up to %.0f jobs lost)", lost)
		}
		b.Series = append(b.Series, series)
	}
	for _, s := range all {
		b.Groups = append(b.Groups, countJobs(s.Jobs))
	}
	return b
}

// realLatencies is the counterpart of Pufferfish's Figures 6c and 10a.
func realLatencies(r *RealResult, most *FlexResult) *chart.Plot {
	p := &chart.Plot{Title: fmt.Sprintf("Latency of short REGULAR jobs beside %d others", most.Jobs), LogX: true,
		Width: 760, X: "s, from submission to end", Y: "share of the short jobs",
		Subtitle: "real programs; all of " + allRounds(*most)}
	add := func(name string, runs []*FlexRun) { p.Series = append(p.Series, chart.CDF(name, latencies(runs))) }
	for i := range allocations {
		add("beside "+allocations[i].Label, most.of(&allocations[i]))
	}
	for i := range r.Sizes {
		if r.Sizes[i].Jobs == 0 {
			add("alone", r.Sizes[i].of(&alone))
		}
	}
	return p
}
