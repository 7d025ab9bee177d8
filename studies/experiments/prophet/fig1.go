package prophet

import (
	"fmt"
	"strconv"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// shown are the benchmarks of Fig. 1 and 2.
var shown = []string{"KMeans", "SVM", "PageRank", "SVD++"}

// appOf returns a benchmark with its large input, alone on servers, in executors of five cores.
func appOf(name string) app {
	for _, a := range usual.apps() {
		if a.name == name && a.input == a.inputs[0] && a.cores == cores[len(cores)-1] {
			return a
		}
	}
	panic("experiments: there is no benchmark " + name)
}

func figure1(*lab.Lab) (*lab.Findings, error) {
	table := lab.NewTable("An executor of five cores with the large input", "benchmark", "run time", "disk, peak",
		"disk, mean", "network, peak", "network, mean", "time below a tenth of its network peak")
	data := lab.NewTable("phases", "benchmark", "phase", "begins_s", "lasts_s", "cpu_cores", "disk_bytes_per_s",
		"network_bytes_per_s")
	disk := &chart.Plot{Title: "Disk bandwidth of one executor", Subtitle: "models", X: "time, s", Y: "MB/s"}
	network := &chart.Plot{Title: "Network bandwidth of one executor", Subtitle: "models", X: "time, s", Y: "MB/s"}
	peaks, idle := resource.Vector{}, map[string]float64{}
	for _, name := range shown {
		a := appOf(name)
		u := lab.UsageOf(a.phases(exactly))
		peaks, idle[name] = peaks.Max(u.Peak), u.LowNetwork
		table.Add(name, lab.Decimals(u.Lasts, 0)+" s", lab.Megabytes(u.Peak[resource.Disk]),
			lab.Megabytes(u.Mean[resource.Disk]),
			lab.Megabytes(u.Peak[resource.Network]), lab.Megabytes(u.Mean[resource.Network]), lab.Percent(u.LowNetwork))
		disk.Series = append(disk.Series, lab.StepsOf(name, a.phases(exactly), resource.Disk))
		network.Series = append(network.Series, lab.StepsOf(name, a.phases(exactly), resource.Network))
		begins := time.Duration(0)
		for _, p := range a.phases(exactly) {
			data.Put(name, p.Name, begins.Seconds(), p.Duration.Seconds(), float64(p.Demand[resource.CPU])/1000,
				int64(p.Demand[resource.Disk]), int64(p.Demand[resource.Network]))
			begins += p.Duration
		}
	}
	real, err := recordedFindings()
	if err != nil {
		return nil, err
	}
	return &lab.Findings{Tables: append([]lab.Table{tableOne(), table}, real.Tables...), Data: []lab.Table{data},
		Pictures: append([]lab.Picture{{Name: "disk", Caption: "Disk bandwidth of an executor over time (models)",
			Picture: disk},
			{Name: "network", Caption: "Network bandwidth of an executor over time (models)", Picture: network}},
			real.Pictures...),
		Claims: append(fig1Claims(peaks, idle["KMeans"], idle["SVM"]), real.Claims...)}, nil
}

// fig1Claims judges the largest rates of the models, and for which share of its time each of two hardly uses the
// network.
func fig1Claims(peaks resource.Vector, kmeans, svm float64) []lab.Claim {
	disk, network := peaks[resource.Disk], peaks[resource.Network]
	return []lab.Claim{
		Paper.Stated("prophet/fig1", "peaks").MadeSo(fmt.Sprintf("%s of disk, %s of network", lab.Megabytes(disk),
			lab.Megabytes(network)),
			lab.Within(float64(disk), 270e6, 330e6) && lab.Within(float64(network), 140e6, 180e6)),
		Paper.Stated("prophet/fig1", "idle").MadeSo(fmt.Sprintf("KMeans %s, SVM %s of the run time", lab.Percent(kmeans),
			lab.Percent(svm)), kmeans > 0.5 && svm > 0.5),
	}
}

// tableOne has the inputs of Table I, and the stages of the models.
func tableOne() lab.Table {
	table := lab.NewTable("Inputs (Table I), which the models follow, and stages of the models", "benchmark", "large",
		"medium", "small", "stages")
	for i := range benchmarks {
		b := &benchmarks[i]
		row := []string{b.name}
		for _, input := range b.inputs {
			row = append(row, lab.Exact(input)+" GB")
		}
		table.Add(append(row, strconv.Itoa(len(b.stages())))...)
	}
	return table
}
