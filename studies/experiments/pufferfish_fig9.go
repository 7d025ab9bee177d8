package experiments

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/studies/chart"
)

// pufferfishPolicies returns the policies of section 4.3.3, and ours.
func pufferfishPolicies() []contender {
	shortest := pufferfishOurs
	shortest.Label = "bellows SJF"
	shortest.flex.Manager.Order = memory.ShortestFirst
	return []contender{pufferfishAs("ejf"), pufferfishAs("ejf+s"), pufferfishAs("sjf"), pufferfishAs("kill"),
		pufferfishOurs, shortest}
}

func pufferfishFigure9(l *lab) (*Findings, error) {
	all := pufferfishPolicies()
	c, err := tracePart(l, pufferfishHours, all)
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
			s.Values, s.Low, s.High = append(s.Values, shown(median(values))),
				append(s.Low, shown(slices.Min(values))), append(s.High, shown(slices.Max(values)))
		}
	}
	bars.Series = []chart.BarSeries{middle, tail}
	denser, err := denserPolicies(l)
	if err != nil {
		return nil, err
	}
	return &Findings{
		Tables: []Table{normalTable("Normalised run time (median over the traces, and range)", all, c),
			suspendedTable(all, c), denser},
		Data: []Table{normalData(all, c)}, Claims: fig9Claims(all, c),
		Pictures: []Picture{{"policies",
			"Median and 90th percentile of normalised run times under various policies (simulated)", bars}},
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
func denserPolicies(l *lab) (Table, error) {
	table := newTable("90th percentile of the normalised run times if the same jobs are submitted within other "+
		"times (median over the traces, and range)", "submitted within")
	all := slices.DeleteFunc(pufferfishPolicies(), func(o contender) bool { return o.Label == "KILL" })
	for _, o := range all {
		table.Heads = append(table.Heads, o.Label)
	}
	for _, factor := range loads[:2] {
		within := time.Duration(factor * float64(pufferfishHours))
		c, err := tracePart(l, within, all)
		if err != nil {
			return table, err
		}
		row := []string{decimals(within.Hours(), 2) + " h"}
		for i := range all {
			row = append(row, acrossTraces(c.of(i, tailTime), 2))
		}
		table.add(row...)
	}
	return table, nil
}

func suspendedTable(all []contender, c contest) Table {
	table := newTable("What policies cost, hours of all containers together (median over the traces, and range)", "",
		"suspended", "in vain")
	for i, o := range all {
		table.add(o.Label, acrossTraces(scaled(c.of(i, func(t rivalTrial) float64 { return t.Suspended }), 1./3600), 0),
			acrossTraces(scaled(c.of(i, func(t rivalTrial) float64 { return t.Lost }), 1./3600), 0))
	}
	return table
}

func fig9Claims(all []contender, c contest) []Claim {
	ejf, tolerant, sjf, kill := place("EJF", all), place("EJF+S", all), place("SJF", all), place("KILL", all)
	tails := func(i int) float64 { return median(c.of(i, tailTime)) }
	faster := c.ratio(ejf, sjf, tailTime)
	better := c.ratio(ejf, tolerant, tailTime)
	worst, best := true, true
	for i, o := range all {
		if strings.HasPrefix(o.Label, "bellows") {
			continue
		}
		worst = worst && (i == kill || tails(i) < tails(kill) && median(c.of(i, medianTime)) < median(c.of(kill, medianTime)))
		best = best && (i == sjf || tails(i) > tails(sjf))
	}
	gain := 1 - 1/median(faster)
	some := 1 - 1/median(better)
	values := fmt.Sprintf("90th percentiles: EJF %.2f, EJF+S %.2f, SJF %.2f, KILL %.2f; bellows %.2f", tails(ejf),
		tails(tolerant), tails(sjf), tails(kill), tails(place("bellows", all)))
	return []Claim{
		stated("pufferfish/fig9", "sjf").judge(fmt.Sprintf("%s; SJF is %s faster than EJF", values, percent(gain)),
			best && gain >= 0.15, gain > 0),
		stated("pufferfish/fig9", "tolerance").
			judge(fmt.Sprintf("90th percentile %s faster (median over the traces)", percent(some)),
				some >= 0.05, some >= 0.01),
		stated("pufferfish/fig9", "kill").judge(values,
			worst, tails(kill) > max(tails(ejf), tails(tolerant), tails(sjf))),
	}
}
