//go:build spark

package spark_test

import (
	"fmt"
	"path/filepath"
)

// streams lets applications count a stream at once, which share executors, and then once more: the executors have
// served streams of applications that have ended.
func (m *machine) streams(drivers []*driver) {
	m.t.Helper()
	batches := 4
	if *long {
		batches = 100
	}
	for round := range 2 {
		together(m.t, drivers, func(d *driver) error {
			if err := d.open("spark-bellows://sp", nil); err != nil {
				return err
			}
			var counts [][2]int
			if err := d.ask("stream", map[string]any{"batches": batches,
				"folder": filepath.Join(m.dir, fmt.Sprintf("stream-%s-%d", d.name, round))}, &counts); err != nil {
				return err
			}
			all := 0
			for _, c := range counts {
				all += c[1]
			}
			for i, c := range counts {
				if c != [2]int{i, (all + 6 - i) / 7} {
					return fmt.Errorf("%s: of %d numbers, the counts by remainders of 7 are %v", d.name, all, counts)
				}
			}
			if all < batches*100 || len(counts) != 7 {
				return fmt.Errorf("%s: %d numbers, want at least %d: %v", d.name, all, batches*100, counts)
			}
			m.t.Logf("%s: %d numbers", d.name, all)
			return d.ask("close", nil, nil)
		})
	}
}
