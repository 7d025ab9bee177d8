//go:build spark

package spark_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Eight applications share two executors, each of which stays attached to all of them: none is detached in the middle
// of a query, and their queries find what a Spark of its own finds. Four of them take turns on one JVM then, and begin
// anew now and then, which leaves nothing behind.
func TestLongSparkMany(t *testing.T) {
	m := begin(t)
	_, jar := m.pool("many", "--memory", fmt.Sprintf("%dB", executorMemory), "--min", "2", "--max", "2")
	folder := filepath.Join(m.dir, "tables")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	var drivers []*driver
	for n := range 8 {
		drivers = append(drivers, m.driver(fmt.Sprintf("many-%d", n), jar))
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
			if err := d.query(number, want.queries[number]); err != nil {
				return err
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
	if least := int64(len(drivers) - 1); s.Counters.Switched < least {
		t.Errorf("executors changed hands %d times, want at least %d", s.Counters.Switched, least)
	}
	if said := m.run(m.bellows, "logs", "--stderr", "pool/many"); strings.Contains(said, "is detached: there is no room") {
		t.Errorf("applications were detached %d times to make room", strings.Count(said, "is detached: there is no room"))
	}
	together(t, drivers, func(d *driver) error { return d.ask("close", nil, nil) })
	m.run(m.bellows, "pool", "rm", "many")
	m.turns(drivers[:4])
}

// counts are what a process has that grows if something leaks, by what it is.
type counts map[string]int

// Most class loaders are of single methods or constructors that reflection calls often. The others are of pieces of
// code that Spark has generated, of which it keeps a hundred.
const loaders = "class loaders"

// least returns the least of each count: threads and connections end late.
func least(all []counts) counts {
	out := maps.Clone(all[0])
	for _, c := range all[1:] {
		for what, n := range c {
			out[what] = min(out[what], n)
		}
	}
	return out
}

// grown returns what has grown by more than a tenth, for people.
func (c counts) grown(before counts) (what []string) {
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if was := before[name]; c[name] > was+was/10 {
			what = append(what, fmt.Sprintf("%s: from %d to %d", name, was, c[name]))
		}
	}
	return what
}

// What grows is seen, and what swings is not.
func TestSparkCounts(t *testing.T) {
	before := least([]counts{{"threads": 100, loaders: 250}, {"threads": 40, loaders: 252}})
	for want, after := range map[string][]counts{
		"[]":                       {{"threads": 44, loaders: 275}, {"threads": 300, loaders: 250}},
		"[threads: from 40 to 45]": {{"threads": 45, loaders: 275}, {"threads": 45, loaders: 250}},
	} {
		if got := fmt.Sprint(least(after).grown(before)); got != want {
			t.Errorf("grown: %s, want %s", got, want)
		}
	}
}

// asynchronous is the name of threads, as far as the kernel keeps it, of which Spark starts one whenever it removes a
// block, until there are a hundred, and ends each after a minute.
const asynchronous = "block-manager-s"

// count counts what a JVM has, once its garbage is collected.
func (m *machine) count(pid int) counts {
	m.t.Helper()
	c := counts{}
	m.run("jcmd", fmt.Sprint(pid), "GC.run")
	said := m.run("jcmd", fmt.Sprint(pid), "VM.classloader_stats")
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		m.t.Fatal(err)
	}
	for what, pattern := range map[string]string{"KiB of memory": `VmRSS:\s+(\d+)`, loaders: `Total = (\d+)`} {
		found := regexp.MustCompile(pattern).FindStringSubmatch(said + string(status))
		if found == nil {
			m.t.Fatalf("no %s in\n%s%s", pattern, said, status)
		}
		c[what], _ = strconv.Atoi(found[1])
	}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	c["files"] = len(files)
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/comm", pid))
	for _, thread := range threads {
		if name, err := os.ReadFile(thread); err == nil && !strings.HasPrefix(string(name), asynchronous) {
			c["threads"]++
		}
	}
	return c
}

// turns lets applications take 1,300 turns on one JVM, one after the other. Now and then one of them ends, and another
// one begins. Once the JVM is warm, it has no more threads, files, class loaders and memory than before.
func (m *machine) turns(drivers []*driver) {
	t := m.t
	t.Helper()
	if _, err := exec.LookPath("jcmd"); err != nil {
		fmt.Println("LEFT OUT: there is no jcmd, which counts class loaders")
		t.Skip("LEFT OUT: there is no jcmd")
	}
	const warm, window, all, each, anew = 300, 200, 1300, 20, 50
	m.run(m.bellows, "pool", "create", "turns", "--spark", "auto", "--memory", fmt.Sprintf("%dB", executorMemory),
		"--min", "1", "--max", "1")
	open := func(d *driver) error { return d.open("spark-bellows://turns", nil) }
	together(t, drivers, open)
	var process int
	var before, after []counts
	for n := 1; n <= all; n++ {
		d := drivers[n%len(drivers)]
		if n%anew == 0 {
			if err := open(d); err != nil {
				t.Fatal(err)
			}
		}
		var jvm int
		if err := d.ask("jvm", nil, &jvm); err != nil {
			t.Fatal(err)
		}
		if process == 0 {
			process = jvm
		}
		switch {
		case jvm != process:
			t.Fatalf("turn %d is in JVM %d, the first one was in %d", n, jvm, process)
		case n%each != 0:
		case n > warm && n <= warm+window:
			before = append(before, m.count(jvm))
		case n > all-window:
			after = append(after, m.count(jvm))
		}
	}
	s, err := m.status("turns")
	if err != nil {
		t.Fatal(err)
	}
	first, last := least(before), least(after)
	t.Logf("executors changed hands %d times; at first %v, at last %v", s.Counters.Switched, first, last)
	if s.Counters.Switched < all-1 {
		t.Errorf("executors changed hands %d times, want %d", s.Counters.Switched, all-1)
	}
	if grown := last.grown(first); grown != nil {
		t.Errorf("the JVM has grown: %s", strings.Join(grown, ", "))
	}
	together(t, drivers, func(d *driver) error { return d.ask("close", nil, nil) })
	m.run(m.bellows, "pool", "rm", "turns")
}
