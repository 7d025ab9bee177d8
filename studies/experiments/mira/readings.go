package mira

import (
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// readingSystems are readings of Mira, and YARN with the settings of Table I and with the defaults of its
// preemption.
func readingSystems() []system {
	yarn, unset := yarn(time.Second, true), yarn(time.Second, true)
	unset.name, unset.spark.preemption = "Spark+YARN, 1 s, defaults of preemption", yarnDefaults
	mira := func(name string, settings map[string]string) system {
		s := own
		s.name, s.settings = "Mira, "+name, settings
		return s
	}
	return []system{yarn, unset, mira("as the text says", map[string]string{"mira.rule": "paper"}),
		mira("as the authors' code does", map[string]string{"mira.keep": "next"}), mira("as in bellows", nil)}
}

func readings(l *lab.Lab) (*lab.Findings, error) {
	queries, err := queries(l, size)
	if err != nil {
		return nil, err
	}
	if l.Quick {
		queries = queries[:3]
	}
	systems := readingSystems()
	trials, err := contest(l, "queries", systems, queries)
	if err != nil {
		return nil, err
	}
	steps := lab.NewTable("Steps of Mira in which executors were divided anew (the filters of section III.C)", "reading",
		"share of the steps")
	for i, s := range systems {
		if s.spark == nil {
			steps.Add(s.name, lab.Percent(mean(trials[i], func(t *miraTrial) float64 { return t.Divided })))
		}
	}
	return &lab.Findings{Tables: []lab.Table{tableTwo("Queries beside the background (Table II): means of the runs",
		systems,
		trials), holds(systems, trials), steps}, Claims: readingClaims(trials)}, nil
}

// readingClaims judges the claims by trials of readingSystems.
func readingClaims(trials [][]miraTrial) []lab.Claim {
	const experiment = "mira/readings"
	wholes, rates := means(trials, func(t *miraTrial) float64 { return t.Whole }), means(trials, (*miraTrial).rate)
	missed, wasted := means(trials, func(t *miraTrial) float64 { return t.missed() }),
		means(trials, (*miraTrial).wasted)
	fronts, delays := means(trials, (*miraTrial).front), means(trials, (*miraTrial).delay)
	const yarn, unset, text, code = 0, 1, 2, 3
	gain := wholes[unset] / wholes[yarn]
	claims := []lab.Claim{Paper.Stated(experiment, "defaults").Because(lab.Decimals(wholes[unset], 0),
		lab.Decimals(wholes[yarn], 0)).Judge(lab.Decimals(gain, 2)+"×", gain >= 1.1, gain > 1)}
	for _, reading := range []struct {
		id string
		at int
	}{{"text", text}, {"code", code}} {
		i := reading.at
		row := Paper.Stated(experiment, reading.id+"-table")
		if i == text {
			lasted := lab.Pooled(trials[i], func(t miraTrial) []float64 { return t.Lasted })
			row = row.Because(lab.Decimals(1000*lab.Quantile(lasted, 1), 0))
		}
		claims = append(claims,
			row.Judge(fmt.Sprintf("%s missed and %s unused with Mira, %s and %s with Spark+YARN", tenths(missed[i]),
				tenths(wasted[i]), tenths(missed[yarn]), tenths(wasted[yarn])), missed[i] <= 0.009 && wasted[i] <= 0.029,
				missed[i] < missed[yarn]/2 && wasted[i] < wasted[yarn]),
			Paper.Stated(experiment, reading.id+"-delay").Judge(lab.Decimals(delays[i],
				0)+" ES with Mira, "+lab.Decimals(delays[yarn], 0)+
				" ES with Spark+YARN", delays[yarn]/delays[i] >= 914.0/131, delays[i] < delays[yarn]),
			Paper.Stated(experiment, reading.id+"-throughput").Because(lab.Decimals(fronts[i], 0), lab.Decimals(fronts[yarn], 0),
				tenths(wasted[i])).
				Judge(lab.Decimals(rates[i], 1)+" tasks/s with Mira, "+lab.Decimals(rates[yarn], 1)+" with Spark+YARN",
					rates[i] >= rates[yarn]*91/87, rates[i] >= 0.95*rates[yarn]))
	}
	return claims
}
