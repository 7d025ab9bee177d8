//go:build spark

package spark_test

import (
	"fmt"
	"os"
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

// apart lets an application run two jobs at once on two executors. Each runs on one of them, but for its first tasks,
// which may begin before the other is there, and its last ones.
func (m *machine) apart(d *driver) {
	t, tasks := m.t, 16
	t.Helper()
	folder := filepath.Join(m.dir, "apart")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := d.open("spark-bellows://sp", nil); err != nil {
		t.Fatal(err)
	}
	var ran [][]int
	if err := d.ask("beside", map[string]any{"folder": folder, "tasks": tasks}, &ran); err != nil {
		t.Fatal(err)
	}
	var own [2]int // the JVM in which most tasks of a job ran
	for i, jvms := range ran {
		count := map[int]int{}
		for _, jvm := range jvms {
			if count[jvm]++; count[jvm] > count[own[i]] {
				own[i] = jvm
			}
		}
		if count[own[i]] < tasks-5 {
			t.Errorf("of %d tasks of job %d, %d ran in one JVM: %v", tasks, i, count[own[i]], jvms)
		}
	}
	if own[0] == own[1] {
		t.Errorf("both jobs ran in JVM %d: %v", own[0], ran)
	}
	if err := d.ask("close", nil, nil); err != nil {
		t.Fatal(err)
	}
}
