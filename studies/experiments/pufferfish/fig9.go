package pufferfish

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// policies returns the policies of section 4.3.3, and ours.
func policies() []lab.Contender {
	shortest := ours
	shortest.Label = "bellows SJF"
	shortest.Flex.Manager.Order = memory.ShortestFirst
	return []lab.Contender{as("ejf"), as("ejf+s"), as("sjf"), as("kill"),
		ours, shortest}
}

func figure9(l *lab.Lab) (*lab.Findings, error) {
	all := policies()
	c, err := tracePart(l, hours, all)
	if err != nil {
		return nil, err
	}
	bars := &chart.Bars{Title: "Normalised run time under various policies",
		Subtitle: "simulated; median and range of the traces", Y: "normalised run time"}
	middle, tail := chart.BarSeries{Name: "median"}, chart.BarSeries{Name: "90th percentile"}
	for i, o := range all {
		bars.Groups = append(bars.Groups, o.Label)
		for _, s := range []struct {
			*chart.BarSeries
			number func(rivalTrial) float64
		}{{&middle, medianTime}, {&tail, tailTime}} {
			values := c.of(i, s.number)
			s.Values, s.Low, s.High = append(s.Values, shown(lab.Median(values))),
				append(s.Low, shown(slices.Min(values))), append(s.High, shown(slices.Max(values)))
		}
	}
	bars.Series = []chart.BarSeries{middle, tail}
	denser, err := denserPolicies(l)
	if err != nil {
		return nil, err
	}
	return &lab.Findings{
		Tables: []lab.Table{normalTable("Normalised run time (median over the traces, and range)", all, c),
			suspendedTable(all, c), denser},
		Data: []lab.Table{normalData(all, c)}, Claims: fig9Claims(all, c),
		Pictures: []lab.Picture{{Name: "policies",
			Caption: "Median and 90th percentile of normalised run times under various policies (simulated)", Picture: bars}},
	}, nil
}

// shown returns a value for a picture, in which an infinite value is missing.
func shown(v float64) float64 {
	if math.IsInf(v, 0) {
		return math.NaN()
	}
	return v
}

// denserPolicies replays the trace within shorter periods. KILL is left out: when the cluster is full, containers are
// killed again and again, and no job ends.
func denserPolicies(l *lab.Lab) (lab.Table, error) {
	table := lab.NewTable("90th percentile of the normalised run times if the same jobs are submitted within other "+
		"times (median over the traces, and range)", "submitted within")
	all := slices.DeleteFunc(policies(), func(o lab.Contender) bool { return o.Label == "KILL" })
	for _, o := range all {
		table.Heads = append(table.Heads, o.Label)
	}
	for _, factor := range loads[:2] {
		within := time.Duration(factor * float64(hours))
		c, err := tracePart(l, within, all)
		if err != nil {
			return table, err
		}
		row := []string{lab.Decimals(within.Hours(), 2) + " h"}
		for i := range all {
			row = append(row, lab.AcrossTraces(c.of(i, tailTime), 2))
		}
		table.Add(row...)
	}
	return table, nil
}

func suspendedTable(all []lab.Contender, c contest) lab.Table {
	table := lab.NewTable("What policies cost, hours of all containers together (median over the traces, and range)", "",
		"suspended", "in vain")
	for i, o := range all {
		table.Add(o.Label, lab.AcrossTraces(lab.Scaled(c.of(i, func(t rivalTrial) float64 { return t.Suspended }), 1./3600),
			0),
			lab.AcrossTraces(lab.Scaled(c.of(i, func(t rivalTrial) float64 { return t.Lost }), 1./3600), 0))
	}
	return table
}

func fig9Claims(all []lab.Contender, c contest) []lab.Claim {
	ejf, tolerant, sjf, kill := lab.Place("EJF", all), lab.Place("EJF+S", all), lab.Place("SJF", all), lab.Place("KILL",
		all)
	tails := func(i int) float64 { return lab.Median(c.of(i, tailTime)) }
	faster := c.ratio(ejf, sjf, tailTime)
	better := c.ratio(ejf, tolerant, tailTime)
	worst, best := true, true
	for i, o := range all {
		if strings.HasPrefix(o.Label, "bellows") {
			continue
		}
		worst = worst && (i == kill || tails(i) < tails(kill) && lab.Median(c.of(i, medianTime)) < lab.Median(c.of(kill,
			medianTime)))
		best = best && (i == sjf || tails(i) > tails(sjf))
	}
	gain := 1 - 1/lab.Median(faster)
	some := 1 - 1/lab.Median(better)
	values := fmt.Sprintf("90th percentiles: EJF %.2f, EJF+S %.2f, SJF %.2f, KILL %.2f; bellows %.2f", tails(ejf),
		tails(tolerant), tails(sjf), tails(kill), tails(lab.Place("bellows", all)))
	return []lab.Claim{
		Paper.Stated("pufferfish/fig9", "sjf").Judge(fmt.Sprintf("%s; SJF is %s faster than EJF", values, lab.Percent(gain)),
			best && gain >= 0.15, gain > 0),
		Paper.Stated("pufferfish/fig9", "tolerance").
			Judge(fmt.Sprintf("90th percentile %s faster (median over the traces)", lab.Percent(some)),
				some >= 0.05, some >= 0.01),
		Paper.Stated("pufferfish/fig9", "kill").Judge(values,
			worst, tails(kill) > max(tails(ejf), tails(tolerant), tails(sjf))),
	}
}
