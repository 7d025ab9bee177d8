package experiments

import (
	"fmt"
	"strconv"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/studies/chart"
)

// prophetShown are the benchmarks of Fig. 1 and 2.
var prophetShown = []string{"KMeans", "SVM", "PageRank", "SVD++"}

// prophetAppOf returns a benchmark with its large input, alone on servers, in executors of five cores.
func prophetAppOf(name string) prophetApp {
	for _, a := range prophetUsual.apps() {
		if a.name == name && a.input == a.inputs[0] && a.cores == prophetCores[len(prophetCores)-1] {
			return a
		}
	}
	panic("experiments: there is no benchmark " + name)
}

func prophetFigure1(*lab) (*Findings, error) {
	table := newTable("An executor of five cores with the large input", "benchmark", "run time", "disk, peak",
		"disk, mean", "network, peak", "network, mean", "time below a tenth of its network peak")
	data := newTable("phases", "benchmark", "phase", "begins_s", "lasts_s", "cpu_cores", "disk_bytes_per_s",
		"network_bytes_per_s")
	disk := &chart.Plot{Title: "Disk bandwidth of one executor", Subtitle: "models", X: "time, s", Y: "MB/s"}
	network := &chart.Plot{Title: "Network bandwidth of one executor", Subtitle: "models", X: "time, s", Y: "MB/s"}
	peaks, idle := resource.Vector{}, map[string]float64{}
	for _, name := range prophetShown {
		a := prophetAppOf(name)
		u := usageOf(a.phases(exactly))
		peaks, idle[name] = peaks.Max(u.peak), u.lowNetwork
		table.add(name, decimals(u.lasts, 0)+" s", megabytes(u.peak[resource.Disk]), megabytes(u.mean[resource.Disk]),
			megabytes(u.peak[resource.Network]), megabytes(u.mean[resource.Network]), percent(u.lowNetwork))
		disk.Series = append(disk.Series, stepsOf(name, a.phases(exactly), resource.Disk))
		network.Series = append(network.Series, stepsOf(name, a.phases(exactly), resource.Network))
		begins := time.Duration(0)
		for _, p := range a.phases(exactly) {
			data.put(name, p.Name, begins.Seconds(), p.Duration.Seconds(), float64(p.Demand[resource.CPU])/1000,
				int64(p.Demand[resource.Disk]), int64(p.Demand[resource.Network]))
			begins += p.Duration
		}
	}
	real, err := recordedFindings()
	if err != nil {
		return nil, err
	}
	return &Findings{Tables: append([]Table{tableOne(), table}, real.Tables...), Data: []Table{data},
		Pictures: append([]Picture{{"disk", "Disk bandwidth of an executor over time (models)", disk},
			{"network", "Network bandwidth of an executor over time (models)", network}}, real.Pictures...),
		Claims: append(fig1Claims(peaks, idle["KMeans"], idle["SVM"]), real.Claims...)}, nil
}

// fig1Claims judges the largest rates of the models, and for which share of its time each of two hardly uses the
// network.
func fig1Claims(peaks resource.Vector, kmeans, svm float64) []Claim {
	disk, network := peaks[resource.Disk], peaks[resource.Network]
	return []Claim{
		stated("prophet/fig1", "peaks").madeSo(fmt.Sprintf("%s of disk, %s of network", megabytes(disk), megabytes(network)),
			within(float64(disk), 270e6, 330e6) && within(float64(network), 140e6, 180e6)),
		stated("prophet/fig1", "idle").madeSo(fmt.Sprintf("KMeans %s, SVM %s of the run time", percent(kmeans),
			percent(svm)), kmeans > 0.5 && svm > 0.5),
	}
}

// usage is what a task demands over its life.
type usage struct {
	lasts      float64 // seconds
	peak, mean resource.Vector
	lowNetwork float64 // share of the time with less than a tenth of the network's peak
}

func usageOf(phases []cluster.Phase) (u usage) {
	var sums [resource.NumKinds]float64
	for _, p := range phases {
		u.peak = u.peak.Max(p.Demand)
		u.lasts += p.Duration.Seconds()
		for k, a := range p.Demand {
			sums[k] += float64(a) * p.Duration.Seconds()
		}
	}
	for k := range sums {
		u.mean[k] = resource.Amount(sums[k] / u.lasts)
	}
	for _, p := range phases {
		if p.Demand[resource.Network] < u.peak[resource.Network]/10 {
			u.lowNetwork += p.Duration.Seconds() / u.lasts
		}
	}
	return u
}

// stepsOf draws the demand of one resource over time, in MB/s.
func stepsOf(name string, phases []cluster.Phase, k resource.Kind) chart.Series {
	s := chart.Series{Name: name, Step: true}
	begins, rate := 0.0, 0.0
	for _, p := range phases {
		rate = float64(p.Demand[k]) / 1e6
		s.X, s.Y = append(s.X, begins), append(s.Y, rate)
		begins += p.Duration.Seconds()
	}
	s.X, s.Y = append(s.X, begins), append(s.Y, rate)
	return s
}

// megabytes prints a rate such as 300 MB/s.
func megabytes(rate resource.Amount) string { return decimals(float64(rate)/1e6, 0) + " MB/s" }

// tableOne has the inputs of Table I, and the stages of the models.
func tableOne() Table {
	table := newTable("Inputs (Table I), which the models follow, and stages of the models", "benchmark", "large",
		"medium", "small", "stages")
	for i := range prophetBenchmarks {
		b := &prophetBenchmarks[i]
		row := []string{b.name}
		for _, input := range b.inputs {
			row = append(row, exact(input)+" GB")
		}
		table.add(append(row, strconv.Itoa(len(b.stages())))...)
	}
	return table
}
