package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/format/importer"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
)

// recorded imports the recorded workload of another system, or skips the benchmark.
func recorded(b *testing.B, f importer.Format, pattern string, o importer.Options) *importer.Result {
	b.Helper()
	paths, err := filepath.Glob(filepath.Join("../../../shared/data", pattern))
	if err != nil {
		b.Fatal(err)
	}
	if len(paths) == 0 {
		b.Skipf("needs ../shared/data/%s, a workload recorded by others", pattern)
	}
	file, err := os.Open(paths[0])
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	r, err := importer.Import(f, []importer.Source{{Name: paths[0], Data: file}}, o)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

var recordings = []struct {
	name, pattern string
	format        func() importer.Format
}{
	{"swim", "swim/FB-2009_samples_24_times_1hr_0.tsv.gz", func() importer.Format { return importer.DefaultSWIM() }},
	{"alibaba", "alibaba2018-dags/random6600.csv.gz", func() importer.Format { return importer.DefaultAlibaba() }},
}

// BenchmarkImport reads whole recordings: a day of Facebook's jobs, and a week of Alibaba's with 3.1 million instances.
func BenchmarkImport(b *testing.B) {
	for _, c := range recordings {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				recorded(b, c.format(), c.pattern, importer.Options{})
			}
		})
	}
}

// BenchmarkReplay simulates the recordings on the suggested clusters. yarn-me gets only the first half day of Alibaba's
// week.
func BenchmarkReplay(b *testing.B) {
	for _, c := range recordings {
		for _, name := range []string{"fair", "yarn-me"} {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				var o importer.Options
				if c.name == "alibaba" && name == "yarn-me" {
					o.To = 12 * time.Hour
				}
				r := recorded(b, c.format(), c.pattern, o)
				tasks := workload.Summarise(r.Workload).Tasks
				for b.Loop() {
					p, err := policy.New(name, nil)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := sim.Run(sim.Config{Nodes: sim.Uniform(r.Cluster.Nodes, r.Cluster.Node)}, r.Workload, p); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(tasks)*float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
			})
		}
	}
}
