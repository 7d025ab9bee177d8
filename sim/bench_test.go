package sim

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

// BenchmarkU100 is the YARN-ME authors' scale: 100 jobs of 14,970 tasks on 100 nodes, from their trace. cpu-ms is the
// processor time of one run, including garbage collection, for comparison with their simulator.
func BenchmarkU100(b *testing.B) {
	for _, c := range []struct {
		name, policy, timeline, penalty string
		pooled                          bool
	}{
		{"fair", "fair", "", "", false},
		{"srjf", "srjf", "", "", false},
		{"srjf/pooled", "srjf", "", "", true}, // the Meganode
		{"yarn-me/sum/1.5x", "yarn-me", "sum", "sawtooth:1.5", false},
		{"yarn-me/sum/3x", "yarn-me", "sum", "sawtooth:3", false},
		{"yarn-me/resimulate/1.5x", "yarn-me", "resimulate", "sawtooth:1.5", false},
		{"yarn-me/resimulate/3x", "yarn-me", "resimulate", "sawtooth:3", false},
	} {
		b.Run(c.name, func(b *testing.B) {
			needFixtures(b)
			w := readDSS(b, "u100-s12345.trace", c.penalty)
			settings := map[string]string{}
			if c.timeline != "" {
				settings["yarn-me.timeline"] = c.timeline
			}
			r := dssRun{nodes: 100, perBeat: 1, pooled: c.pooled}
			if c.policy == "srjf" {
				r.perBeat = 0
			}
			before := processorTime(b)
			runs := 0
			for b.Loop() {
				p, err := policy.New(c.policy, settings)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := Run(r.config(), w, p); err != nil {
					b.Fatal(err)
				}
				runs++
			}
			b.ReportMetric(float64(processorTime(b)-before)/float64(time.Millisecond)/float64(runs), "cpu-ms")
		})
	}
}

// BenchmarkScale scales cluster and workload together, with jobs drawn as in YARN-ME section 6.1 and a penalty of 3x.
// The cost of an event should stay flat: ns/event at 10,000 nodes within twice the value at 100. peak-MB is the peak
// resident memory of the process.
func BenchmarkScale(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as bellows simulate
	for _, name := range []string{"fair", "yarn-me"} {
		for _, n := range []int{100, 1000, 3000, 10000} {
			b.Run(fmt.Sprintf("%s/nodes=jobs=%d", name, n), func(b *testing.B) {
				w := scaledWorkload(b, n)
				c := Config{Nodes: Uniform(n, resource.Of(16*resource.Core, 10000*resource.MB)), Heartbeat: time.Second,
					StartsPerHeartbeat: 1, CoordinatorHeartbeat: time.Second}
				forgetPeakMemory(b)
				before := processorTime(b)
				events := int64(0)
				for b.Loop() {
					p, err := policy.New(name, map[string]string{name + ".reservations": "true"})
					if err != nil {
						b.Fatal(err)
					}
					r, err := Run(c, w, p)
					if err != nil {
						b.Fatal(err)
					}
					events += r.Events
				}
				cpu := processorTime(b) - before
				b.ReportMetric(float64(cpu)/float64(events), "cpu-ns/event")
				b.ReportMetric(cpu.Seconds()/float64(b.N), "cpu-s")
				b.ReportMetric(peakMemory(b), "peak-MB")
			})
		}
	}
}

// BenchmarkFlex runs FLEX jobs whose memory rises in steps, six per node, on the cluster of Pufferfish section 5.1 and
// on a larger one.
func BenchmarkFlex(b *testing.B) {
	for _, m := range []struct {
		name    string
		manager memory.Parameters
	}{{"default", memory.Default()}, {"paper", memory.Paper()}} {
		for _, name := range []string{"fair", "pufferfish"} {
			for _, size := range []struct{ nodes, jobs int }{{26, 178}, {1000, 6000}} {
				b.Run(fmt.Sprintf("%s/%s/nodes=%d/jobs=%d", m.name, name, size.nodes, size.jobs), func(b *testing.B) {
					c := Config{Nodes: Uniform(size.nodes, resource.Of(32*resource.Core, 120*resource.GB)),
						Flex:    Flex{Manager: m.manager, Look: m.manager.Interval},
						Machine: Machine{Swap: 1000 * resource.GB, SwapSpeed: SSDSwapSpeed, Paging: SSDPaging}}
					benchmarkFlex(b, c, name, risingWorkload(size.jobs))
				})
			}
		}
	}
}

func benchmarkFlex(b *testing.B, c Config, name string, w *workload.Workload) {
	before, events := processorTime(b), int64(0)
	for b.Loop() {
		p, err := policy.New(name, nil)
		if err != nil {
			b.Fatal(err)
		}
		r, err := Run(c, w, p)
		if err != nil {
			b.Fatal(err)
		}
		if left := r.Unfinished(); len(left) > 0 {
			b.Fatalf("%d jobs do not end: %s", len(left), left[0].Stuck)
		}
		events += r.Events
	}
	cpu := processorTime(b) - before
	b.ReportMetric(float64(events)/float64(b.N), "events")
	b.ReportMetric(float64(cpu)/float64(events), "cpu-ns/event")
	b.ReportMetric(cpu.Seconds()/float64(b.N), "cpu-s")
}

// risingWorkload has FLEX jobs of two minutes to an hour whose working sets rise from 4 GB to at most 61 GB, in 20
// steps; six jobs per node and hour.
func risingWorkload(jobs int) *workload.Workload {
	random := rand.New(rand.NewPCG(1, 2))
	w := &workload.Workload{}
	for i := range jobs {
		most := resource.Amount(8+random.IntN(54)) * resource.GB
		length := time.Duration(2+random.IntN(58)) * time.Minute
		var phases []cluster.Phase
		for step := range resource.Amount(20) {
			phases = append(phases,
				cluster.Phase{Duration: length / 20,
					Demand: resource.Of(4*resource.Core, 4*resource.GB+(most-4*resource.GB)*step/19)})
		}
		w.Jobs = append(w.Jobs,
			workload.Job{After: -1, Job: cluster.Job{ID: cluster.JobID(i + 1), Name: fmt.Sprint("job", i+1),
				Class: cluster.Flex, Submitted: timeline.Seconds(random.Float64() * 3600), MaxAttempts: 4,
				Stages: []cluster.Stage{{Tasks: 1, Ideal: resource.Of(4*resource.Core, 4*resource.GB), Duration: length}}},
				Truth: []workload.StageTruth{{Phases: workload.ForAll(phases)}}})
	}
	slices.SortFunc(w.Jobs, func(a, b workload.Job) int { return int(a.Submitted - b.Submitted) })
	return w
}

func scaledWorkload(b *testing.B, jobs int) *workload.Workload {
	o := workload.DefaultGenerateOptions(workload.Uniform)
	o.Jobs = jobs
	w, err := workload.Generate(workload.Uniform, o)
	if err != nil {
		b.Fatal(err)
	}
	w.SetPenalty(cluster.Elasticity{Kind: cluster.SawToothTable, Factor: 3}, 0.1, 100*resource.MB)
	return w
}

// forgetPeakMemory makes the kernel reset the peak.
func forgetPeakMemory(b *testing.B) {
	runtime.GC()
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		b.Logf("peak memory includes what ran before: %v", err)
	}
}

// peakMemory returns the peak resident memory of this process in MB.
func peakMemory(b *testing.B) float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	var kib float64
	if _, err := fmt.Sscan(after, &kib); err != nil {
		b.Fatal(err)
	}
	return kib * 1024 / 1e6
}

// processorTime is the processor time that this process has used so far, on all cores.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
