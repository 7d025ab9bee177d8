//go:build spark

package spark_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/internal/testswap"
)

// heapRows is for how many rows a query of heap.py takes some 1 GB of heap.
const heapRows = 14_000_000

// heap starts heap.py.
func (m *machine) heap(line, name, settings string, times int) *program {
	m.t.Helper()
	return m.start(line, name, fmt.Sprintf("%s testdata/heap.py %d %d", settings, heapRows, times))
}

// ends reads all results of heap.py, and checks them.
func (p *program) ends(times int) {
	p.t.Helper()
	p.until("seconds")
	for n := range times {
		if sum := p.got[fmt.Sprintf("sum_%d", n)]; sum != float64(heapRows*(heapRows-1)/2) {
			p.t.Errorf("%s: sum %d is %v", p.log, n, sum)
		}
	}
	if err := p.cmd.Wait(); err != nil {
		p.fatal(err.Error())
	}
}

// use is what an executor of a pool has, bytes.
type use struct {
	Anonymous int64 `json:"anonymous_bytes"`
	Swap      int64 `json:"swap_bytes"`
	Limit     int64 `json:"limit_bytes"`
}

// executorOf returns the job that the only executor of a pool is, and what it has.
func (m *machine) executorOf(pool string) (job int64, u use) {
	m.t.Helper()
	var detail struct {
		Members []struct {
			Job   int64
			State string
		}
	}
	if err := json.Unmarshal([]byte(m.run(m.bellows, "pool", "top", pool, "--once", "--json")), &detail); err != nil {
		m.t.Fatal(err)
	}
	for _, e := range detail.Members {
		if e.Job == 0 {
			continue
		}
		var shown struct {
			Tasks []struct{ Usage use }
		}
		text := m.run(m.bellows, "ps", fmt.Sprint(e.Job), "--json")
		if err := json.Unmarshal([]byte(text), &shown); err != nil || len(shown.Tasks) != 1 {
			m.t.Fatalf("%v: %s", err, text)
		}
		return e.Job, shown.Tasks[0].Usage
	}
	m.t.Fatalf("pool %s has no executor: %+v", pool, detail)
	return 0, u
}

// A query that dies for want of memory in a REGULAR executor runs in a FLEX one that begins smaller, and grows. Two
// that together want nearly twice the machine run beside each other, without a kill. An executor that is parked is
// paged out when another needs the memory, and its next application runs on the same JVM.
func TestLongSparkFlex(t *testing.T) {
	testswap.Lock(t)
	m := begin(t, "--memory", "2GiB", "--cpus", "2")
	t.Cleanup(func() {
		cmd := exec.Command(m.bellows, "swap", "remove", "--all", "--force")
		cmd.Env = m.env
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, said)
		}
	})
	m.run(m.bellows, "swap", "create", "--size", "6GiB")

	line := m.run(m.bellows, "pool", "create", "static", "--spark", "auto", "--memory", "834MiB", "--max", "1")
	dead := m.heap(line, "static", "--conf spark.task.maxFailures=1", 1)
	for dead.lines.Scan() {
	}
	said, _ := os.ReadFile(dead.log)
	if err := dead.cmd.Wait(); err == nil || !strings.Contains(string(said), "OutOfMemoryError") {
		t.Errorf("the query in a static container: %v\n%s", err, said)
	}
	m.run(m.bellows, "pool", "rm", "static")

	const times = 3
	pools := []string{"one", "two"}
	var lines []string
	var programs []*program
	for i, pool := range pools {
		lines = append(lines, m.run(m.bellows, "pool", "create", pool, "--spark", "auto", "--class", "flex",
			"--max-memory", "2GiB", "--min", "1", "--max", "1"))
		programs = append(programs, m.heap(lines[i], pool, "--conf spark.executor.memory=1500m", times))
	}
	for _, p := range programs {
		p.ends(times)
	}
	all := int64(0)
	for i, pool := range pools {
		job, u := m.executorOf(pool)
		all += u.Anonymous + u.Swap
		t.Logf("pool %s, job %d: %+v; %v s for all, %v s for the first job", pool, job, u, programs[i].got["seconds"],
			programs[i].got["first_seconds"])
		if said := m.run(m.bellows, "logs", "--stderr", "pool/"+pool); strings.Contains(said, "JVM 1 has ended") ||
			strings.Contains(said, "has killed") {
			t.Errorf("pool %s:\n%s", pool, said)
		}
	}
	if all < 3<<30 {
		t.Errorf("both executors have %d MiB together, want at least 3 GiB on a machine of 2", all>>20)
	}

	job, u := m.executorOf("one") // which is parked, and was paged out for the other
	if u.Swap < 500<<20 {
		t.Errorf("the executor that was parked first, job %d, has %+v", job, u)
	}
	var again []*program
	for _, name := range []string{"paged", "resident"} {
		p := m.heap(lines[0], name, "", 0)
		p.ends(0)
		again = append(again, p)
		if p.got["jvm"] != programs[0].got["jvm"] {
			t.Errorf("the JVM was %v and is %v", programs[0].got["jvm"], p.got["jvm"])
		}
	}
	_, after := m.executorOf("one")
	t.Logf("the first job took %v s in a JVM with %+v, then %v s; it has %+v", again[0].got["first_seconds"], u,
		again[1].got["first_seconds"], after)
	for _, pool := range pools {
		m.run(m.bellows, "pool", "rm", pool)
	}
}
