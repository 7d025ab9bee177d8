package experiments

import "time"

// miraReadingSystems are readings of Mira, and YARN with the settings of Table I and with the defaults of its
// preemption.
func miraReadingSystems() []miraSystem {
	yarn, unset := miraYARN(time.Second, true), miraYARN(time.Second, true)
	unset.name, unset.spark.preemption = "Spark+YARN, 1 s, defaults of preemption", yarnDefaults
	mira := func(name string, settings map[string]string) miraSystem {
		s := miraOwn
		s.name, s.settings = "Mira, "+name, settings
		return s
	}
	return []miraSystem{yarn, unset, mira("as the text says", map[string]string{"mira.rule": "paper"}),
		mira("as the authors' code does", map[string]string{"mira.keep": "next"}), mira("as in bellows", nil)}
}

func miraReadings(l *lab) (*Findings, error) {
	queries, err := miraQueries(l, miraSize)
	if err != nil {
		return nil, err
	}
	if l.quick {
		queries = queries[:3]
	}
	systems := miraReadingSystems()
	trials, err := miraContest(l, "queries", systems, queries)
	if err != nil {
		return nil, err
	}
	steps := newTable("Steps of Mira in which executors were divided anew (the filters of section III.C)", "reading",
		"share of the steps")
	for i, s := range systems {
		if s.spark == nil {
			steps.add(s.name, percent(miraMean(trials[i], func(t *miraTrial) float64 { return t.Divided })))
		}
	}
	return &Findings{Tables: []Table{miraTableTwo("Queries beside the background (Table II): means of the runs", systems,
		trials), miraHolds(systems, trials), steps}, Claims: miraReadingClaims(trials)}, nil
}

// miraReadingClaims judges the claims by trials of miraReadingSystems.
func miraReadingClaims(trials [][]miraTrial) []Claim {
	const experiment = "mira/readings"
	wholes, rates := miraMeans(trials, func(t *miraTrial) float64 { return t.Whole }), miraMeans(trials, (*miraTrial).rate)
	missed, wasted := miraMeans(trials, func(t *miraTrial) float64 { return t.missed() }),
		miraMeans(trials, (*miraTrial).wasted)
	fronts, delays := miraMeans(trials, (*miraTrial).front), miraMeans(trials, (*miraTrial).delay)
	const yarn, unset, text, code = 0, 1, 2, 3
	gain := wholes[unset] / wholes[yarn]
	claims := []Claim{stated(experiment, "defaults").because(decimals(wholes[unset], 0),
		decimals(wholes[yarn], 0)).judge(decimals(gain, 2)+"×", gain >= 1.1, gain > 1)}
	for _, reading := range []struct {
		id string
		at int
	}{{"text", text}, {"code", code}} {
		i := reading.at
		lasted := pooled(trials[i], func(t miraTrial) []float64 { return t.Lasted })
		claims = append(claims,
			stated(experiment, reading.id+"-missed").because(decimals(1000*quantile(lasted, 1), 0)).
				judge(tenths(missed[i])+" with Mira, "+tenths(missed[yarn])+" with Spark+YARN", missed[i] <= 0.009,
					missed[i] < missed[yarn]/2),
			stated(experiment, reading.id+"-wasted").judge(tenths(wasted[i])+" with Mira, "+tenths(wasted[yarn])+
				" with Spark+YARN", wasted[i] <= 0.029, wasted[i] < wasted[yarn]),
			stated(experiment, reading.id+"-delay").judge(decimals(delays[i], 0)+" ES with Mira, "+decimals(delays[yarn], 0)+
				" ES with Spark+YARN", delays[yarn]/delays[i] >= 914.0/131, delays[i] < delays[yarn]),
			stated(experiment, reading.id+"-throughput").because(decimals(fronts[i], 0), decimals(fronts[yarn], 0),
				tenths(wasted[i])).
				judge(decimals(rates[i], 1)+" tasks/s with Mira, "+decimals(rates[yarn], 1)+" with Spark+YARN",
					rates[i] >= rates[yarn]*91/87, rates[i] >= 0.95*rates[yarn]))
	}
	return claims
}
