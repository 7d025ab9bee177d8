//go:build spark

package spark_test

import (
	"fmt"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/connector/spark"
)

const (
	storageShare = 0.9 // spark.memory.fraction of applications that cache
	rowBytes     = 264 // of rows that are cached
)

// cachedRows returns how many rows nearly fill the memory that Spark has for cached data in one executor.
func cachedRows(t *testing.T) int {
	t.Helper()
	heap, err := spark.Heap(executorMemory)
	if err != nil {
		t.Fatal(err)
	}
	return int(0.85 * storageShare * float64(heap-300<<20) / rowBytes)
}

// cached lets applications nearly fill the memory of one JVM one after the other, each with cached data. The drivers of
// those that are not served do not answer. The JVM stays, and all of them count the same rows again.
func (m *machine) cached(drivers []*driver, want []any) {
	t := m.t
	t.Helper()
	m.run(m.bellows, "pool", "create", "one", "--spark", "auto", "--memory", fmt.Sprintf("%dB", executorMemory),
		"--min", "1", "--max", "1")
	rows := cachedRows(t)
	check := func(d *driver, do string, arguments map[string]any) {
		t.Helper()
		var got []any
		if err := d.ask(do, arguments, &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %s: got %v, want %v", d.name, do, got, want)
		}
	}
	for _, d := range drivers {
		if err := d.open("spark-bellows://one", map[string]any{"spark.memory.fraction": storageShare,
			"spark.sql.inMemoryColumnarStorage.compressed": false,
			"spark.sql.inMemoryColumnarStorage.batchSize":  1000}); err != nil {
			t.Fatal(err)
		}
		check(d, "count", map[string]any{"rows": rows, "keep": true})
		var kept int
		if err := d.ask("kept", nil, &kept); err != nil {
			t.Fatal(err)
		}
		if kept < rows*rowBytes*8/10 {
			t.Errorf("%s keeps %d bytes in memory, of %d", d.name, kept, rows*rowBytes)
		}
		for { // until it has given the executor back
			if s, err := m.status("one"); err != nil {
				t.Fatal(err)
			} else if s.Busy == 0 {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		if err := syscall.Kill(d.jvm, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range drivers {
		if err := syscall.Kill(d.jvm, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		check(d, "again", nil)
	}
	s, err := m.status("one")
	if err != nil {
		t.Fatal(err)
	}
	for _, member := range s.Members {
		if log := m.run(m.bellows, "logs", "--stderr", fmt.Sprint(member.Job)); strings.Contains(log, "JVM 1 has ended") {
			t.Errorf("the JVM has ended:\n%s", log)
		}
	}
	if len(s.Members) != 1 || s.Counters.Lost != 0 {
		t.Errorf("the pool has %d executors and has lost %d attachments", len(s.Members), s.Counters.Lost)
	}
	together(t, drivers, func(d *driver) error { return d.ask("close", nil, nil) })
}
