package prophet

import (
	"fmt"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// shared are the resources of Fig. 9 and 10.
var shared = []resource.Kind{resource.Disk, resource.Network}

// load is how the servers were used in a run, by resource.
type load struct {
	Servers [][]lab.Areas `json:"servers"` // by resource, then by server
	First   [][]float64   `json:"first"`   // by resource: utilisation of the first server over time, in steps of loadStep
}

// loadStep is the length of a step in the pictures.
const loadStep = 60.0

func loadOf(r *sim.Result) (load load) {
	end := r.Makespan.Seconds()
	for _, k := range shared {
		var servers []lab.Areas
		for i := range r.Nodes {
			a := lab.AreasOf(&r.Nodes[i], k, 0, end)
			a.Beyond = lab.Beyond(&r.Nodes[i], k, timeline.Time(r.Makespan))
			servers = append(servers, a)
		}
		var first []float64
		for from := 0.0; from < end; from += loadStep {
			a := lab.AreasOf(&r.Nodes[0], k, from, min(end, from+loadStep))
			first = append(first, a.Demand())
		}
		load.Servers, load.First = append(load.Servers, servers), append(load.First, first)
	}
	return load
}

// of returns a number of each server.
func (l *load) of(kind int, number func(*lab.Areas) float64) (all []float64) {
	for i := range l.Servers[kind] {
		all = append(all, number(&l.Servers[kind][i]))
	}
	return all
}

func figure9(l *lab.Lab) (*lab.Findings, error) {
	all := schedulers()
	t, err := lab.EachRun(l, "schedulers", len(all), func(point, run int) (load, error) {
		config := usual.cluster()
		config.Series = sim.SeriesOptions{Nodes: true}
		r, err := replayProphet(all[point], config, usual.workload(l, run, nil))
		if err != nil {
			return load{}, err
		}
		return loadOf(r), nil
	})
	if err != nil {
		return nil, err
	}
	f := &lab.Findings{Claims: fig9and10Claims(all, t)}
	for kind, k := range shared {
		f.Tables = append(f.Tables, utilisationTable(k, kind, all, t))
		f.Pictures = append(f.Pictures, loadPicture(k, kind, all, t))
	}
	data := lab.NewTable("areas", "scheduler", "run", "resource", "server", "fa", "oa", "beyond")
	for i, c := range all {
		for run := range t[i] {
			for kind, k := range shared {
				for server, a := range t[i][run].Servers[kind] {
					data.Put(c.Label, run, k.String(), server+1, a.Idle, a.Over, a.Beyond)
				}
			}
		}
	}
	f.Data = []lab.Table{data}
	return f, nil
}

// meanLoad returns a number of each run: the mean over the servers.
func meanLoad(t []load, kind int, number func(*lab.Areas) float64) []float64 {
	return lab.Values(t, func(l load) float64 { return lab.Mean(l.of(kind, number)) })
}

var (
	idleArea   = func(a *lab.Areas) float64 { return a.Idle }
	overArea   = func(a *lab.Areas) float64 { return a.Over }
	beyondTime = func(a *lab.Areas) float64 { return a.Beyond }
	demanded   = (*lab.Areas).Demand
)

func utilisationTable(k resource.Kind, kind int, all []lab.Contender, t [][]load) lab.Table {
	table := lab.NewTable(fmt.Sprintf(
		"Utilisation of %ss, as shares of their capacity until the makespan (mean over the servers; median of the "+
			"workloads, and range)", k), "scheduler", "demand over capacity", "FA", "OA",
		"OA of the servers with the least and the most", "time with more demand than capacity",
		"demand over that under Tetris, "+lab.InPairs)
	tetris := meanLoad(t[lab.Place("Tetris", all)], kind, demanded)
	for i, c := range all {
		share := func(number func(*lab.Areas) float64) string {
			return lab.AcrossTraces(lab.Scaled(meanLoad(t[i], kind, number), 100), 0) + " %"
		}
		least, most := lab.Extremes(lab.Pooled(t[i], func(l load) []float64 { return l.of(kind, overArea) }))
		table.Add(c.Label, share(demanded), share(idleArea), share(overArea), lab.Percent(least)+" to "+lab.Percent(most),
			share(beyondTime), lab.Paired(meanLoad(t[i], kind, demanded), tetris))
	}
	return table
}

// loadPicture shows the first server in the first workload under every scheduler.
func loadPicture(k resource.Kind, kind int, all []lab.Contender, t [][]load) lab.Picture {
	p := &chart.Tracks{Title: fmt.Sprintf("Utilisation of the %s of one server", k), X: "time, s",
		Subtitle: fmt.Sprintf("simulated; demand over capacity, mean of %.0f s each", loadStep)}
	top := 1.5
	for i := range all {
		_, most := lab.Extremes(t[i][0].First[kind])
		top = max(top, most)
	}
	for i, c := range all {
		y := t[i][0].First[kind]
		x := make([]float64, len(y))
		for j := range x {
			x[j] = float64(j) * loadStep
		}
		p.To = max(p.To, float64(len(x))*loadStep)
		p.Rows = append(p.Rows, chart.Track{Name: c.Label, Top: top, High: 70, X: append(x, float64(len(x))*loadStep),
			Areas: []chart.Area{{Name: "demand", Y: append(y[:len(y):len(y)], 0), Color: 1}}})
	}
	for i := range p.Rows {
		p.Rows[i].Lines = []chart.Series{{Name: "capacity", X: []float64{0, p.To}, Y: []float64{1, 1}, Dashed: true,
			Color: 2}}
	}
	return lab.Picture{Name: k.String(),
		Caption: fmt.Sprintf("Demand over capacity of the %s of one server over time, by scheduler (simulated)", k),
		Picture: p}
}

func fig9and10Claims(all []lab.Contender, t [][]load) []lab.Claim {
	of := func(name string, kind int, number func(*lab.Areas) float64) float64 {
		return lab.Median(meanLoad(t[lab.Place(name, all)], kind, number))
	}
	const disk, network = 0, 1
	over := func(name string) (float64, float64) { return of(name, disk, overArea), of(name, network, overArea) }
	long := func(name string) (float64, float64) { return of(name, disk, beyondTime), of(name, network, beyondTime) }
	csDisk, csNetwork := long("CS")
	drfDisk, drfNetwork := long("DRF")
	baseDisk, baseNetwork := over("CS")
	tetrisDisk, tetrisNetwork := over("Tetris")
	ownDisk, ownNetwork := over("Prophet")
	little := func(disk, network, share float64) bool { return disk <= share*baseDisk && network <= share*baseNetwork }
	gainDisk, gainNetwork := of("Prophet", disk, demanded)/of("Tetris", disk, demanded),
		of("Prophet", network, demanded)/of("Tetris", network, demanded)
	return []lab.Claim{
		Paper.Stated("prophet/fig9-10", "over-allocated").Judge(
			fmt.Sprintf("CS %s of the time (disk) and %s (network), DRF %s and %s", lab.Percent(csDisk), lab.Percent(csNetwork),
				lab.Percent(drfDisk), lab.Percent(drfNetwork)),
			min(csDisk, csNetwork, drfDisk, drfNetwork) >= 0.1, min(max(csDisk, csNetwork), max(drfDisk, drfNetwork)) >= 0.1),
		Paper.Stated("prophet/fig9-10", "little").Judge(
			fmt.Sprintf("OA of disk and network: CS %s and %s, Tetris %s and %s, Prophet %s and %s of their capacity",
				lab.Percent(baseDisk), lab.Percent(baseNetwork), lab.Percent(tetrisDisk), lab.Percent(tetrisNetwork),
				lab.Percent(ownDisk),
				lab.Percent(ownNetwork)),
			little(tetrisDisk, tetrisNetwork, 0.25) && little(ownDisk, ownNetwork, 0.25),
			little(tetrisDisk, tetrisNetwork, 0.25) || little(ownDisk, ownNetwork, 0.25)),
		Paper.Stated("prophet/fig9-10", "higher").Judge(fmt.Sprintf("%sx of disks, %sx of networks", lab.Decimals(gainDisk,
			2),
			lab.Decimals(gainNetwork, 2)), min(gainDisk, gainNetwork) >= 1.3, min(gainDisk, gainNetwork) > 1),
	}
}
