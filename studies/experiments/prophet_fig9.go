package experiments

import (
	"fmt"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/studies/chart"
)

// prophetShared are the resources of Fig. 9 and 10.
var prophetShared = []resource.Kind{resource.Disk, resource.Network}

// areas compares what is demanded of disks or networks with their capacity, as shares of capacity × makespan.
type areas struct {
	Idle   float64 `json:"fa"`     // fragmentation area
	Over   float64 `json:"oa"`     // over-allocation area
	Beyond float64 `json:"beyond"` // share of the time with more demand than capacity
}

// demand is the mean utilisation, as Fig. 9 and 10 have it: demand over capacity.
func (a *areas) demand() float64 { return 1 - a.Idle + a.Over }

// prophetLoad is how the servers were used in a run, by resource.
type prophetLoad struct {
	Servers [][]areas   `json:"servers"` // by resource, then by server
	First   [][]float64 `json:"first"`   // by resource: utilisation of the first server over time, in steps of loadStep
}

// loadStep is the length of a step in the pictures.
const loadStep = 60.0

func areasOf(n *sim.NodeSeries, k resource.Kind, from, until float64) (a areas) {
	idle, over := n.Areas(k, timeline.Seconds(from), timeline.Seconds(until))
	whole := float64(n.Steps[0].Capacity[k]) * (until - from)
	return areas{Idle: idle.UnitSeconds() / whole, Over: over.UnitSeconds() / whole}
}

// beyond returns the share of the time until the end with more demand than capacity.
func beyond(n *sim.NodeSeries, k resource.Kind, end timeline.Time) float64 {
	all := 0.0
	for i, s := range n.Steps {
		until := end
		if i+1 < len(n.Steps) {
			until = min(until, n.Steps[i+1].At)
		}
		if s.Demand[k] > s.Capacity[k] {
			all += until.Sub(s.At).Seconds()
		}
	}
	return all / timeline.Time(end).Sub(0).Seconds()
}

func prophetLoadOf(r *sim.Result) (load prophetLoad) {
	end := r.Makespan.Seconds()
	for _, k := range prophetShared {
		var servers []areas
		for i := range r.Nodes {
			a := areasOf(&r.Nodes[i], k, 0, end)
			a.Beyond = beyond(&r.Nodes[i], k, timeline.Time(r.Makespan))
			servers = append(servers, a)
		}
		var first []float64
		for from := 0.0; from < end; from += loadStep {
			a := areasOf(&r.Nodes[0], k, from, min(end, from+loadStep))
			first = append(first, a.demand())
		}
		load.Servers, load.First = append(load.Servers, servers), append(load.First, first)
	}
	return load
}

// of returns a number of each server.
func (l *prophetLoad) of(kind int, number func(*areas) float64) (all []float64) {
	for i := range l.Servers[kind] {
		all = append(all, number(&l.Servers[kind][i]))
	}
	return all
}

func prophetFigure9(l *lab) (*Findings, error) {
	all := prophetSchedulers()
	t, err := eachRun(l, "schedulers", len(all), func(point, run int) (prophetLoad, error) {
		config := prophetUsual.cluster()
		config.Series = sim.SeriesOptions{Nodes: true}
		r, err := all[point].replayProphet(config, prophetUsual.workload(l, run, nil))
		if err != nil {
			return prophetLoad{}, err
		}
		return prophetLoadOf(r), nil
	})
	if err != nil {
		return nil, err
	}
	f := &Findings{Claims: fig9and10Claims(all, t)}
	for kind, k := range prophetShared {
		f.Tables = append(f.Tables, utilisationTable(k, kind, all, t))
		f.Pictures = append(f.Pictures, loadPicture(k, kind, all, t))
	}
	data := newTable("areas", "scheduler", "run", "resource", "server", "fa", "oa", "beyond")
	for i, c := range all {
		for run := range t[i] {
			for kind, k := range prophetShared {
				for server, a := range t[i][run].Servers[kind] {
					data.put(c.Label, run, k.String(), server+1, a.Idle, a.Over, a.Beyond)
				}
			}
		}
	}
	f.Data = []Table{data}
	return f, nil
}

// meanLoad returns a number of each run: the mean over the servers.
func meanLoad(t []prophetLoad, kind int, number func(*areas) float64) []float64 {
	return values(t, func(l prophetLoad) float64 { return mean(l.of(kind, number)) })
}

var (
	idleArea   = func(a *areas) float64 { return a.Idle }
	overArea   = func(a *areas) float64 { return a.Over }
	beyondTime = func(a *areas) float64 { return a.Beyond }
	demanded   = (*areas).demand
)

func utilisationTable(k resource.Kind, kind int, all []contender, t [][]prophetLoad) Table {
	table := newTable(fmt.Sprintf(
		"Utilisation of %ss, as shares of their capacity until the makespan (mean over the servers; median of the "+
			"workloads, and range)", k), "scheduler", "demand over capacity", "FA", "OA",
		"OA of the servers with the least and the most", "time with more demand than capacity",
		"demand over that under Tetris, "+inPairs)
	tetris := meanLoad(t[place("Tetris", all)], kind, demanded)
	for i, c := range all {
		share := func(number func(*areas) float64) string {
			return acrossTraces(scaled(meanLoad(t[i], kind, number), 100), 0) + " %"
		}
		least, most := extremes(pooled(t[i], func(l prophetLoad) []float64 { return l.of(kind, overArea) }))
		table.add(c.Label, share(demanded), share(idleArea), share(overArea), percent(least)+" to "+percent(most),
			share(beyondTime), paired(meanLoad(t[i], kind, demanded), tetris))
	}
	return table
}

// loadPicture shows the first server in the first workload under every scheduler.
func loadPicture(k resource.Kind, kind int, all []contender, t [][]prophetLoad) Picture {
	p := &chart.Tracks{Title: fmt.Sprintf("Utilisation of the %s of one server", k), X: "time, s",
		Subtitle: fmt.Sprintf("simulated; demand over capacity, mean of %.0f s each", loadStep)}
	top := 1.5
	for i := range all {
		_, most := extremes(t[i][0].First[kind])
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
	return Picture{k.String(),
		fmt.Sprintf("Demand over capacity of the %s of one server over time, by scheduler (simulated)", k), p}
}

func extremes(all []float64) (least, most float64) {
	return quantile(all, 0), quantile(all, 1)
}

func fig9and10Claims(all []contender, t [][]prophetLoad) []Claim {
	of := func(name string, kind int, number func(*areas) float64) float64 {
		return median(meanLoad(t[place(name, all)], kind, number))
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
	return []Claim{
		stated("prophet/fig9-10", "over-allocated").judge(
			fmt.Sprintf("CS %s of the time (disk) and %s (network), DRF %s and %s", percent(csDisk), percent(csNetwork),
				percent(drfDisk), percent(drfNetwork)),
			min(csDisk, csNetwork, drfDisk, drfNetwork) >= 0.1, min(max(csDisk, csNetwork), max(drfDisk, drfNetwork)) >= 0.1),
		stated("prophet/fig9-10", "little").judge(
			fmt.Sprintf("OA of disk and network: CS %s and %s, Tetris %s and %s, Prophet %s and %s of their capacity",
				percent(baseDisk), percent(baseNetwork), percent(tetrisDisk), percent(tetrisNetwork), percent(ownDisk),
				percent(ownNetwork)),
			little(tetrisDisk, tetrisNetwork, 0.25) && little(ownDisk, ownNetwork, 0.25),
			little(tetrisDisk, tetrisNetwork, 0.25) || little(ownDisk, ownNetwork, 0.25)),
		stated("prophet/fig9-10", "higher").judge(fmt.Sprintf("%sx of disks, %sx of networks", decimals(gainDisk, 2),
			decimals(gainNetwork, 2)), min(gainDisk, gainNetwork) >= 1.3, min(gainDisk, gainNetwork) > 1),
	}
}
