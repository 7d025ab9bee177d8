package sim

import (
	"encoding/json"
	"flag"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

var days = flag.String("days", "",
	"what BenchmarkDay compares, separated by commas: each is PROGRAM:WORKLOAD, a bellows program and a workload "+
		"file that it reads")

// BenchmarkDay runs `bellows simulate` under fair on 22 nodes, with several programs by turns so that other work on the
// machine concerns all of them. For each program it reports the median of the processor time per event, garbage
// collection and reading of the workload included, and the peak resident memory. studies/measured.md has results.
func BenchmarkDay(b *testing.B) {
	if *days == "" {
		b.Skip("needs programs and their workloads: -days PROGRAM:WORKLOAD,...")
	}
	runs := strings.Split(*days, ",")
	perEvent, peak := make([][]float64, len(runs)), make([]float64, len(runs))
	for b.Loop() {
		for i, run := range runs {
			program, workload, ok := strings.Cut(run, ":")
			if !ok {
				b.Fatalf("%q: must be PROGRAM:WORKLOAD", run)
			}
			cmd := exec.Command(program, "simulate", "--workload", workload, "--nodes", "22", "--node-cpus", "16",
				"--node-memory", "32GiB", "--policy", "fair", "--json")
			out, err := cmd.Output()
			if err != nil {
				b.Fatalf("%v: %v", cmd, err)
			}
			var doc struct {
				Results []struct {
					Simulation struct{ Events float64 }
				}
			}
			if err := json.Unmarshal(out, &doc); err != nil || len(doc.Results) != 1 {
				b.Fatalf("%v prints %d results: %v", cmd, len(doc.Results), err)
			}
			used := cmd.ProcessState.SysUsage().(*syscall.Rusage)
			cpu := float64(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime())
			perEvent[i] = append(perEvent[i], cpu/doc.Results[0].Simulation.Events)
			peak[i] = max(peak[i], float64(used.Maxrss)/1000)
		}
	}
	for i, run := range runs {
		program, _, _ := strings.Cut(run, ":")
		slices.Sort(perEvent[i])
		b.ReportMetric(perEvent[i][len(perEvent[i])/2], filepath.Base(program)+"-cpu-ns/event")
		b.ReportMetric(peak[i], filepath.Base(program)+"-peak-MB")
		b.Logf("%s: %.0f ns per event in the fastest run, %.0f in the slowest of %d", program, perEvent[i][0],
			perEvent[i][len(perEvent[i])-1], len(perEvent[i]))
	}
}
