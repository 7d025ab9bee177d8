package sim

import (
	"syscall"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/policy"
)

// BenchmarkU100 is the YARN-ME authors' scale: 100 jobs of 14,970 tasks on 100 nodes, from their trace. cpu-ms is the
// processor time of one run, garbage collection included, to be set beside that of their simulator.
func BenchmarkU100(b *testing.B) {
	for _, c := range []struct{ name, policy, timeline, penalty string }{
		{"fair", "fair", "", ""},
		{"yarn-me/sum/1.5x", "yarn-me", "sum", "sawtooth:1.5"},
		{"yarn-me/sum/3x", "yarn-me", "sum", "sawtooth:3"},
		{"yarn-me/resimulate/1.5x", "yarn-me", "resimulate", "sawtooth:1.5"},
		{"yarn-me/resimulate/3x", "yarn-me", "resimulate", "sawtooth:3"},
	} {
		b.Run(c.name, func(b *testing.B) {
			needFixtures(b)
			w := readDSS(b, "u100-s12345.trace", c.penalty)
			settings := map[string]string{}
			if c.timeline != "" {
				settings["yarn-me.timeline"] = c.timeline
			}
			r := dssRun{nodes: 100, perBeat: 1}
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

// processorTime is what this process has used so far, of all cores.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
