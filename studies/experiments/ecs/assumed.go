package ecs

import (
	"fmt"
	"slices"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// variant is the usual assumptions with one that differs.
type variant struct {
	name string
	assumed
	node func(*sim.Config) // nil: as usual
}

func variants() []variant {
	all := []variant{{"as usual", usual, nil}}
	vary := func(name string, change func(*assumed)) {
		v := variant{name, usual, nil}
		change(&v.assumed)
		all = append(all, v)
	}
	all = append(all, variant{"nodes start any number of containers per report", usual,
		func(c *sim.Config) { c.StartsPerHeartbeat = 0 }},
		variant{"a stop takes 5 s", usual, func(c *sim.Config) { c.HoldDelay = 5e9 }})
	vary("static containers of 2 cores", func(a *assumed) { a.native[resource.CPU] = 2 * resource.Core })
	vary("tasks take a third of the time", func(a *assumed) { a.mapTime, a.reduceTime = a.mapTime/3, a.reduceTime/3 })
	vary("tasks take three times as long", func(a *assumed) { a.mapTime, a.reduceTime = 3*a.mapTime, 3*a.reduceTime })
	vary("240 reduces: one wave", func(a *assumed) { a.reduces = 240 })
	vary("all tasks alike", func(a *assumed) { a.skew = 0 })
	vary("tasks differ by 50 %", func(a *assumed) { a.skew = 0.5 })
	return all
}

// swept are the benchmarks of the sweep, one of each kind, and rivals its schedulers: the products are the last.
var (
	swept  = []string{"wordcount", "k-means", "pagerank"}
	rivals = slices.Concat([]lab.Contender{capacity, prism, own}, products)
)

func ecsSweep(l *lab.Lab) (*lab.Findings, error) {
	variants := variants()
	if l.Quick {
		variants = variants[1:4]
		for i := range variants {
			variants[i].maps, variants[i].reduces = 75, 44
		}
	}
	t, err := lab.EachRun(l, "assumptions", len(variants)*len(swept)*len(rivals),
		func(point, run int) (ecsTrial, error) {
			v := &variants[point/len(swept)/len(rivals)]
			config := clusters[0].cluster()
			if v.node != nil {
				v.node(&config)
			}
			b := benchmarkOf(swept[point/len(rivals)%len(swept)])
			return replayECS(rivals[point%len(rivals)], config, v.alone(b, l.RunSeed(run)))
		})
	if err != nil {
		return nil, err
	}
	table := lab.NewTable("Times over those under Capacity (means of the runs)", "assumption", "benchmark",
		"job under Capacity", "PRISM: job", "mean task", "ECS: job", "mean task", "job, ECS over PRISM",
		"containers, ECS over Capacity")
	for _, c := range products {
		table.Heads = append(table.Heads, c.Label+": job")
	}
	data := lab.NewTable("trials", "assumption", "benchmark", "scheduler", "run", "completion_s", "map_s", "reduce_s",
		"containers")
	// by variant: of wordcount, of wordcount, and by how much that exceeds what k-means saves
	var ecsSaves, overPRISM, lead []float64
	var acted []bool // by variant: ECS has stopped a task of wordcount
	for i, v := range variants {
		var saved []float64
		for k, b := range swept {
			of := func(scheduler int, number func(*ecsTrial) float64) float64 {
				var all []float64
				for _, one := range t[(i*len(swept)+k)*len(rivals)+scheduler] {
					all = append(all, number(&one))
				}
				return lab.Mean(all)
			}
			over := func(scheduler int, number func(*ecsTrial) float64) float64 {
				return of(scheduler, number) / of(0, number)
			}
			tasks := func(scheduler int) float64 { return (over(scheduler, mapTask) + over(scheduler, reduceTask)) / 2 }
			row := []string{v.name, b, lab.Decimals(of(0, completes), 0) + " s", lab.Decimals(over(1, completes), 2),
				lab.Decimals(tasks(1), 2), lab.Decimals(over(2, completes), 2), lab.Decimals(tasks(2), 2),
				lab.Decimals(of(2, completes)/of(1, completes), 2), lab.Decimals(over(2, containers), 2) + "x"}
			for c := 3; c < len(rivals); c++ {
				row = append(row, lab.Decimals(over(c, completes), 2))
			}
			table.Add(row...)
			saved = append(saved, 1-over(2, completes))
			if k == 0 {
				overPRISM, acted = append(overPRISM, 1-of(2, completes)/of(1, completes)), append(acted, of(2, ecsStops) > 0)
			}
			for c := range rivals {
				for run, one := range t[(i*len(swept)+k)*len(rivals)+c] {
					data.Put(v.name, b, rivals[c].Label, run, one.Completion, one.Map, one.Reduce, one.Containers)
				}
			}
		}
		ecsSaves, lead = append(ecsSaves, saved[0]), append(lead, saved[0]-saved[1])
	}
	return &lab.Findings{Tables: []lab.Table{table}, Data: []lab.Table{data}, Claims: assumedClaims(ecsSaves, overPRISM,
		lead, acted)}, nil
}

// assumedClaims judges, by assumption, what wordcount saves under ECS over Capacity and over PRISM, and how much
// more than k-means does over Capacity. What it saves over PRISM is judged with the assumptions by which leveling
// acted.
func assumedClaims(saves, overPRISM, lead []float64, acted []bool) []lab.Claim {
	const fig = "ecs/assumed"
	ranged := func(all []float64, paper float64) (text string, gains []gained) {
		least, most := lab.Extremes(all)
		return lab.Percent(least) + " to " + lab.Percent(most), []gained{{paper, least}, {paper, most}}
	}
	stock, stockGains := ranged(saves, 0.29)
	prism, _ := ranged(overPRISM, 0.17)
	var prismGains []gained
	for i, gain := range overPRISM {
		if acted[i] {
			prismGains = append(prismGains, gained{0.17, gain})
		}
	}
	least, most := lab.Extremes(lead)
	return []lab.Claim{
		judgeGains(Paper.Stated(fig, "stock"), stock, stockGains...),
		judgeActed(Paper.Stated(fig, "prism"), len(prismGains) > 0, prism, prismGains...),
		Paper.Stated(fig, "cpu").Judge(fmt.Sprintf("wordcount saves %s to %s more", points(least), points(most)), least > 0,
			most > 0),
	}
}
