package yarnme

import (
	"fmt"
	"testing"
)

// BenchmarkFig6c is one trace of Fig. 6c for one distribution and penalty: the Meganode and YARN-ME. min/20000 is how
// many minutes the paper's 20,000 traces would take on two cores at this rate.
func BenchmarkFig6c(b *testing.B) {
	const size, full, cores = 100, 20_000, 2
	for _, r := range tableTwo {
		for _, p := range penalties {
			b.Run(fmt.Sprintf("%v/%gx", r.dist, p), func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					seed := uint64(i%50 + 1)
					w, err := r.draw(seed).workload(size, seed)
					if err == nil {
						_, err = outcomeOf(meganode, paperCluster(size), w)
					}
					if err == nil {
						w, err = r.draw(seed).workload(size, seed)
					}
					if err == nil {
						err = elastic(w, p)
					}
					if err == nil {
						_, err = outcomeOf(yarnMESum, paperCluster(size), w)
					}
					if err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(b.Elapsed().Minutes()/float64(b.N)*full/cores, "min/20000")
			})
		}
	}
}
