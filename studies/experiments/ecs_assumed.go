package experiments

import (
	"fmt"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/sim"
)

// ecsVariant is the usual assumptions with one that differs.
type ecsVariant struct {
	name string
	ecsAssumed
	node func(*sim.Config) // nil: as usual
}

func ecsVariants() []ecsVariant {
	all := []ecsVariant{{"as usual", ecsUsual, nil}}
	vary := func(name string, change func(*ecsAssumed)) {
		v := ecsVariant{name, ecsUsual, nil}
		change(&v.ecsAssumed)
		all = append(all, v)
	}
	all = append(all, ecsVariant{"nodes start any number of containers per report", ecsUsual,
		func(c *sim.Config) { c.StartsPerHeartbeat = 0 }},
		ecsVariant{"a stop takes 5 s", ecsUsual, func(c *sim.Config) { c.HoldDelay = 5e9 }})
	vary("static containers of 2 cores", func(a *ecsAssumed) { a.native[resource.CPU] = 2 * resource.Core })
	vary("tasks take a third of the time", func(a *ecsAssumed) { a.mapTime, a.reduceTime = a.mapTime/3, a.reduceTime/3 })
	vary("tasks take three times as long", func(a *ecsAssumed) { a.mapTime, a.reduceTime = 3*a.mapTime, 3*a.reduceTime })
	vary("240 reduces: one wave", func(a *ecsAssumed) { a.reduces = 240 })
	vary("all tasks alike", func(a *ecsAssumed) { a.skew = 0 })
	vary("tasks differ by 50 %", func(a *ecsAssumed) { a.skew = 0.5 })
	return all
}

// ecsSwept are the benchmarks of the sweep, one of each kind, and ecsRivals its schedulers.
var (
	ecsSwept  = []string{"wordcount", "k-means", "pagerank"}
	ecsRivals = []contender{ecsCapacity, ecsPRISM, ecsOwn}
)

func ecsSweep(l *lab) (*Findings, error) {
	variants := ecsVariants()
	if l.quick {
		variants = variants[1:4]
		for i := range variants {
			variants[i].maps, variants[i].reduces = 75, 44
		}
	}
	t, err := eachRun(l, "assumptions", len(variants)*len(ecsSwept)*len(ecsRivals),
		func(point, run int) (ecsTrial, error) {
			v := &variants[point/len(ecsSwept)/len(ecsRivals)]
			config := ecsClusters[0].cluster()
			if v.node != nil {
				v.node(&config)
			}
			b := ecsBenchmarkOf(ecsSwept[point/len(ecsRivals)%len(ecsSwept)])
			return ecsRivals[point%len(ecsRivals)].replayECS(config, v.alone(b, l.seed(run)))
		})
	if err != nil {
		return nil, err
	}
	table := newTable("Times over those under Capacity (means of the runs)", "assumption", "benchmark",
		"job under Capacity", "PRISM: job", "mean task", "ECS: job", "mean task", "job, ECS over PRISM",
		"containers, ECS over Capacity")
	data := newTable("trials", "assumption", "benchmark", "scheduler", "run", "completion_s", "map_s", "reduce_s",
		"containers")
	// by variant: of wordcount, of wordcount, and by how much that exceeds what k-means saves
	var ecsSaves, overPRISM, lead []float64
	for i, v := range variants {
		var saved []float64
		for k, b := range ecsSwept {
			of := func(scheduler int, number func(*ecsTrial) float64) float64 {
				var all []float64
				for _, one := range t[(i*len(ecsSwept)+k)*len(ecsRivals)+scheduler] {
					all = append(all, number(&one))
				}
				return mean(all)
			}
			over := func(scheduler int, number func(*ecsTrial) float64) float64 {
				return of(scheduler, number) / of(0, number)
			}
			tasks := func(scheduler int) float64 { return (over(scheduler, mapTask) + over(scheduler, reduceTask)) / 2 }
			table.add(v.name, b, decimals(of(0, completes), 0)+" s", decimals(over(1, completes), 2), decimals(tasks(1), 2),
				decimals(over(2, completes), 2), decimals(tasks(2), 2), decimals(of(2, completes)/of(1, completes), 2),
				decimals(over(2, containers), 2)+"x")
			saved = append(saved, 1-over(2, completes))
			if k == 0 {
				overPRISM = append(overPRISM, 1-of(2, completes)/of(1, completes))
			}
			for c := range ecsRivals {
				for run, one := range t[(i*len(ecsSwept)+k)*len(ecsRivals)+c] {
					data.put(v.name, b, ecsRivals[c].Label, run, one.Completion, one.Map, one.Reduce, one.Containers)
				}
			}
		}
		ecsSaves, lead = append(ecsSaves, saved[0]), append(lead, saved[0]-saved[1])
	}
	return &Findings{Tables: []Table{table}, Data: []Table{data}, Claims: ecsAssumedClaims(ecsSaves, overPRISM, lead)}, nil
}

// ecsAssumedClaims judges, by assumption, what wordcount saves under ECS over Capacity and over PRISM, and how much
// more than k-means does over Capacity.
func ecsAssumedClaims(saves, overPRISM, lead []float64) []Claim {
	const fig = "ecs/assumed"
	ranged := func(all []float64, paper float64) (text string, gains []gained) {
		least, most := extremes(all)
		return percent(least) + " to " + percent(most), []gained{{paper, least}, {paper, most}}
	}
	stock, stockGains := ranged(saves, 0.29)
	prism, prismGains := ranged(overPRISM, 0.17)
	least, most := extremes(lead)
	return []Claim{
		stated(fig, "stock").close(stock, stockGains...),
		stated(fig, "prism").close(prism, prismGains...),
		stated(fig, "cpu").judge(fmt.Sprintf("wordcount saves %s to %s more", points(least), points(most)), least > 0,
			most > 0),
	}
}
