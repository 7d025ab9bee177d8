package executor_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/executor"
)

// BenchmarkReassignment measures, for one executor in a process of its own, the time from when a task of another
// application than before is ready, with 1 MB of arguments, to the first line of the task; and beside it the same for
// an executor that is started for it. The functions of Python import pandas if the interpreter has it; otherwise
// modules of the standard library, as the name of the benchmark says.
func BenchmarkReassignment(b *testing.B) {
	b.Run("go", func(b *testing.B) {
		s := serveWith(b, longLease) // longer than the cold starts
		benchReassignment(b, s, executor.Stage{Function: "now"}, s.executor)
	})
	b.Run("python", func(b *testing.B) {
		path := interpreter(b)
		imports := "pandas"
		if err := exec.Command(path, "-c", "import pandas").Run(); err != nil {
			imports = "asyncio, decimal, email.message, sqlite3, xml.dom.minidom"
		}
		b.Run("imports="+strings.ReplaceAll(imports, ", ", "+"), func(b *testing.B) {
			s := serveWith(b, longLease) // longer than the cold starts
			s.write("clock/clock.py", "import "+imports+
				"\nimport time\n\ndef now(arguments):\n    return time.time_ns().to_bytes(8, 'big')\n\nnow.bellows_raw = True\n")
			benchReassignment(b, s, executor.Stage{Function: "clock:now", Path: filepath.Join(s.dir, "clock")},
				func(number int) *exec.Cmd { return s.python(path, number) })
		})
	})
}

// benchReassignment measures executors that start starts. The function of the stage returns the time of its first
// line. Applications and executors speak to the pool over its socket.
func benchReassignment(b *testing.B, s *served, stage executor.Stage, start func(number int) *exec.Cmd) {
	arguments := make([]byte, 1<<20)
	var apps [2]*executor.Application
	for i := range apps {
		var err error
		if apps[i], err = executor.Enrol(b.Context(), executor.ApplicationConfig{Socket: s.socket, Pool: "p"}); err != nil {
			b.Fatal(err)
		}
		apps[i].NewStage(stage)
	}
	// first returns the time until the first line of the next task of an application.
	first := func(i int) time.Duration {
		ready := time.Now()
		if err := apps[i].Grow(b.Context(), 0, arguments); err != nil {
			b.Fatal(err)
		}
		outcomes, err := apps[i].Collect(b.Context())
		if err != nil || outcomes[0].Failed {
			b.Fatal(outcomes, err)
		}
		return time.Duration(int64(binary.BigEndian.Uint64(outcomes[0].Payload)) - ready.UnixNano())
	}
	const colds = 20
	var cold, warm []time.Duration
	number := 0
	for range colds {
		cmd := start(number)
		cold = append(cold, first(0))
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if _, err := s.pool.Left(b.Context(), number, executor.CauseLost, ""); err != nil {
			b.Fatal(err)
		}
		number++
	}
	cmd := start(number)
	first(0)
	first(1)
	before := usedCPU(b, cmd.Process.Pid)
	for i := 0; b.Loop(); i++ {
		warm = append(warm, first(i%2))
	}
	used := usedCPU(b, cmd.Process.Pid) - before
	at := func(all []time.Duration, q float64) float64 {
		slices.Sort(all)
		return float64(all[int(q*float64(len(all)-1))].Microseconds()) / 1000
	}
	b.ReportMetric(at(warm, 0.5), "warm-p50-ms")
	b.ReportMetric(at(warm, 0.75), "warm-p75-ms")
	b.ReportMetric(at(warm, 0.99), "warm-p99-ms")
	b.ReportMetric(at(cold, 0.5), "cold-p50-ms")
	b.ReportMetric(at(cold, 0.75), "cold-p75-ms")
	b.ReportMetric(used.Seconds()*1000/float64(len(warm)), "cpu-ms/op")
}

// usedCPU is the CPU time of this process, and of another one and its children.
func usedCPU(b *testing.B, pid int) time.Duration {
	b.Helper()
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		b.Fatal(err)
	}
	sum := time.Duration(own.Utime.Nano()+own.Stime.Nano()) + processCPU(b, pid)
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		b.Fatal(err)
	}
	for _, child := range strings.Fields(string(children)) {
		n, err := strconv.Atoi(child)
		if err != nil {
			b.Fatal(err)
		}
		sum += processCPU(b, n)
	}
	return sum
}

// processCPU is the CPU time of a process, as the scheduler counts it.
func processCPU(b *testing.B, pid int) time.Duration {
	b.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		b.Fatal(err)
	}
	var sum time.Duration
	for _, path := range tasks {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // The thread has ended.
		}
		var ran int64
		if _, err := fmt.Sscan(string(text), &ran); err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(ran)
	}
	return sum
}
