package bound

import (
	"fmt"
	"testing"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
)

// BenchmarkOf computes the bounds of a generated elastic workload, with and without the interval bound.
func BenchmarkOf(b *testing.B) {
	e, err := workload.ParsePenalty("sawtooth:1.5")
	if err != nil {
		b.Fatal(err)
	}
	for _, size := range []int{100, 3000} {
		o := workload.DefaultGenerateOptions(workload.Uniform)
		o.Jobs = size
		w, err := workload.Generate(workload.Uniform, o)
		if err != nil {
			b.Fatal(err)
		}
		w.SetPenalty(e, workload.DefaultMinShare, workload.DefaultGranularity)
		nodes := sim.Uniform(size, resource.Of(16*resource.Core, 10*resource.GB))
		for _, iterations := range []int{0, DefaultIterations} {
			b.Run(fmt.Sprintf("jobs=%d/iterations=%d", size, iterations), func(b *testing.B) {
				for b.Loop() {
					Of(w, nodes, true, Options{Iterations: iterations})
				}
			})
		}
	}
}
