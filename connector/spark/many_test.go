//go:build spark

package spark_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Eight applications share two executors, each of which stays attached to all of them: none is detached in the middle
// of a query, and their queries find what a Spark of its own finds.
func TestLongSparkMany(t *testing.T) {
	m := begin(t)
	line := m.run(m.bellows, "pool", "create", "many", "--spark", "auto", "--memory", fmt.Sprintf("%dB", executorMemory),
		"--min", "2", "--max", "2")
	jar := jarOption.FindStringSubmatch(line)
	if jar == nil {
		t.Fatalf("no jar: %s", line)
	}
	folder := filepath.Join(m.dir, "tables")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	var drivers []*driver
	for n := range 8 {
		drivers = append(drivers, m.driver(fmt.Sprintf("many-%d", n), jar[1]))
	}
	numbers := []int{9, 18, 21}
	want, err := m.reference(drivers[0], folder, numbers, 2000)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	together(t, drivers, func(d *driver) error {
		if err := d.open("spark-bellows://many", nil); err != nil {
			return err
		}
		if err := d.ask("tables", map[string]any{"folder": folder}, nil); err != nil {
			return err
		}
		for i := range numbers {
			number := numbers[(i+slices.Index(drivers, d))%len(numbers)]
			var got table
			if err := d.ask("query", map[string]any{"number": number}, &got); err != nil {
				return err
			}
			if how := got.differs(want.queries[number], ordered[number]...); how != "" {
				return fmt.Errorf("%s: query %d: %s", d.name, number, how)
			}
		}
		return nil
	})
	s, err := m.status("many")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d queries of %d applications: %.0f s; executors changed hands %d times", len(numbers)*len(drivers),
		len(drivers), time.Since(began).Seconds(), s.Counters.Switched)
	if least := int64(len(numbers) * len(drivers)); s.Counters.Switched < least {
		t.Errorf("executors changed hands %d times, want at least %d", s.Counters.Switched, least)
	}
	if said := m.run(m.bellows, "logs", "--stderr", "pool/many"); strings.Contains(said, "is detached: there is no room") {
		t.Errorf("applications were detached %d times to make room", strings.Count(said, "is detached: there is no room"))
	}
	together(t, drivers, func(d *driver) error { return d.ask("close", nil, nil) })
	m.run(m.bellows, "pool", "rm", "many")
}
