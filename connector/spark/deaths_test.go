//go:build spark

package spark_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

var deaths = flag.Int("deaths", 50, "how many of JVMs, launchers, daemons and drivers are killed, each")

// processes returns the processes whose command lines have all of the words.
func (m *machine) processes(words ...string) (pids []int) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range lines {
		line, _ := os.ReadFile(name)
		if !slices.ContainsFunc(words, func(w string) bool { return !bytes.Contains(line, []byte(w)) }) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// jvms returns the JVMs of executors.
func (m *machine) jvms() []int { return m.processes("WarmExecutor", "-Djava.io.tmpdir="+m.dir+"/") }

// While two applications query, something of theirs is killed after each query or so: an executor's JVM, its launcher,
// the daemon, or a driver. A query may fail then. One that succeeds finds what a Spark of its own finds, and in the end
// all of them succeed.
func TestLongSparkDeaths(t *testing.T) {
	m := begin(t)
	_, jar := m.pool("sp", "--min", "2", "--max", "2")
	folder := filepath.Join(m.dir, "tables")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	numbers := []int{1, 9, 18, 21}
	var began atomic.Int32
	begins := func() *driver { return m.driver(fmt.Sprintf("driver-%d", began.Add(1)), jar) }
	drivers := []*driver{begins(), begins()}
	want, err := m.reference(drivers[0], folder, numbers, 2000)
	if err != nil {
		t.Fatal(err)
	}

	kinds := []string{"JVM", "launcher", "daemon", "driver"}
	var done atomic.Bool
	var right, wrong, failed, opened atomic.Int64
	var dead sync.Map                          // JVMs of drivers that were killed
	jvms := make([]atomic.Int64, len(drivers)) // of drivers that query; 0 while there is none
	stream := func(nth int, r *rand.Rand) {
		d := drivers[nth]
		for d != nil && !done.Load() {
			err := d.open("spark-bellows://sp", nil)
			if err == nil {
				err = d.ask("tables", map[string]any{"folder": folder}, nil)
			}
			opened.Add(1)
			for jvms[nth].Store(int64(d.jvm)); err == nil && !done.Load(); {
				number := numbers[r.IntN(len(numbers))]
				var rows table
				if err = d.ask("query", map[string]any{"number": number}, &rows); err != nil {
					continue
				}
				if how := rows.differs(want.queries[number], ordered[number]...); how != "" {
					wrong.Add(1)
					t.Errorf("%s: query %d: %s", d.name, number, how)
					continue
				}
				right.Add(1)
			}
			jvms[nth].Store(0)
			if err != nil {
				failed.Add(1)
				t.Logf("%.300s", err)
				if _, is := dead.Load(d.jvm); is {
					d = begins()
				}
			}
		}
		drivers[nth] = d
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var streams sync.WaitGroup
	for nth := range drivers {
		r := rand.New(rand.NewPCG(seed, uint64(nth)))
		streams.Go(func() { stream(nth, r) })
	}
	victims := func(kind string) (found []int) {
		switch kind {
		case "JVM":
			return m.jvms()
		case "launcher":
			return m.processes(m.bellows, "spark-executor")
		case "daemon":
			return m.processes(m.bellows, "--log")
		}
		for nth := range jvms {
			if pid := int(jvms[nth].Load()); pid != 0 {
				found = append(found, pid)
			}
		}
		return found
	}
	r := rand.New(rand.NewPCG(seed, uint64(len(drivers))))
	killed := map[string]int{}
	defer func() {
		fmt.Printf("REPORT: Spark: killed %d JVMs, %d launchers, %d daemons, %d drivers, of %d each; of the queries of %d "+
			"applications, %d right, %d failed, %d wrong; seed %d\n", killed["JVM"], killed["launcher"], killed["daemon"],
			killed["driver"], *deaths, opened.Load(), right.Load(), failed.Load(), wrong.Load(), seed)
	}()
	for n := 0; n < len(kinds)**deaths && !t.Failed(); n++ {
		before := right.Load()
		for end := time.Now().Add(time.Minute); right.Load() == before && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Duration(r.IntN(2000)) * time.Millisecond)
		kind := kinds[n%len(kinds)]
		for killed[kind] == n/len(kinds) && !t.Failed() { // Whatever is found may end before it is killed.
			time.Sleep(10 * time.Millisecond)
			found := victims(kind)
			if len(found) == 0 {
				continue
			}
			pid := found[r.IntN(len(found))]
			if kind == "driver" {
				dead.Store(pid, true)
			}
			if syscall.Kill(pid, syscall.SIGKILL) == nil {
				killed[kind]++
			}
		}
		if kind == "daemon" {
			time.Sleep(time.Duration(r.IntN(1000)) * time.Millisecond)
			m.run(m.bellows, "up", "--detach", "--memory", "3GiB")
		}
	}
	// Without deaths, all succeed.
	before := right.Load()
	for deadline := time.Now().Add(5 * time.Minute); right.Load() < before+10; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("only %d queries have succeeded since the last death", right.Load()-before)
			break
		}
	}
	done.Store(true)
	streams.Wait()
	if n, least := right.Load(), int64(len(kinds)**deaths/2); n < least {
		t.Errorf("only %d queries have succeeded, want %d", n, least)
	}
}
