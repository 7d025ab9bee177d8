package mira

import (
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// measured are results of benchmarks on a real machine; their README explains the lines.
//
//go:embed measured/*.txt
var measured embed.FS

// measurement is what a benchmark measured of one size.
type measurement struct {
	name string             // without that of the benchmark, such as go/executors=8
	of   map[string]float64 // by metric
}

// readMeasured reads a file of measurements, and what it says about itself.
func readMeasured(name string) (about string, all []measurement, err error) {
	text, err := measured.ReadFile("measured/" + name + ".txt")
	if err != nil {
		return "", nil, err
	}
	for line := range strings.Lines(string(text)) {
		if says, ok := strings.CutPrefix(line, "# "); ok {
			about = strings.TrimSpace(says)
			continue
		}
		m, err := measurementOf(strings.Fields(line))
		if err != nil {
			return "", nil, fmt.Errorf("measured/%s.txt: %q: %w", name, line, err)
		}
		all = append(all, m)
	}
	return about, all, nil
}

// measurementOf reads BenchmarkNAME/SIZE-PROCESSORS ROUNDS {NUMBER METRIC}.
func measurementOf(cells []string) (m measurement, err error) {
	if len(cells)%2 != 0 || len(cells) < 4 {
		return m, fmt.Errorf("%d words: must be a name, the rounds, and numbers with metrics", len(cells))
	}
	_, m.name, _ = strings.Cut(cells[0], "/")
	m.name = m.name[:max(0, strings.LastIndex(m.name, "-"))]
	m.of = map[string]float64{}
	for pair := range slices.Chunk(cells[2:], 2) {
		if m.of[pair[1]], err = strconv.ParseFloat(pair[0], 64); err != nil {
			return m, err
		}
	}
	return m, nil
}

// miraReal is how long tasks of a real pool waited for their executors, in milliseconds, by number of tasks; and how
// long it took to divide executors anew, in microseconds, by executors and applications.
type miraReal struct{ acquisition, shares []measurement }

// miraMeasured reads the measurements of real pools, with tables of them.
func miraMeasured() (real miraReal, tables []lab.Table, err error) {
	about, all, err := readMeasured("acquisition")
	if err != nil {
		return real, nil, err
	}
	real.acquisition = all
	waits := lab.NewTable("Real: milliseconds from the time when N tasks are ready until their first lines, on one "+
		"machine, executors in Go ("+about+")", "N", "warm: first", "half", "three quarters", "last", "new: first", "half",
		"three quarters", "last")
	for _, m := range all {
		row := []string{strings.TrimPrefix(m.name, "go/executors=")}
		for _, metric := range []string{"warm-first-ms", "warm-p50-ms", "warm-p75-ms", "warm-last-ms", "cold-first-ms",
			"cold-p50-ms", "cold-p75-ms", "cold-last-ms"} {
			row = append(row, lab.Decimals(m.of[metric], 1))
		}
		waits.Add(row...)
	}
	if about, real.shares, err = readMeasured("shares"); err != nil {
		return real, nil, err
	}
	shares := lab.NewTable("Real: microseconds in which a step divides executors anew, and share of the steps that do ("+
		about+")", "pool", "p50", "p99", "share of the steps", "p50 of the others")
	for _, m := range real.shares {
		shares.Add(m.name, lab.Decimals(m.of["divided-p50-us"], 1), lab.Decimals(m.of["divided-p99-us"], 1),
			lab.Percent(m.of["divided-share"]), lab.Decimals(m.of["filtered-p50-us"], 1))
	}
	return real, []lab.Table{waits, shares}, nil
}

// metricOf returns a metric of a size; it panics if there is none.
func metricOf(all []measurement, size, metric string) float64 {
	i := slices.IndexFunc(all, func(m measurement) bool { return m.name == size })
	v, ok := all[max(i, 0)].of[metric]
	if i < 0 || !ok {
		panic(fmt.Sprintf("experiments: %s of %s was not measured", metric, size))
	}
	return v
}
