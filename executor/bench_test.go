package executor_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/executor"
)

// BenchmarkReassignment measures, for one executor in a process of its own, the time from when a task of another application than before is
// ready, with 1 MB of arguments, to the first line of the task; and beside it the same for an executor that is started for it.
func BenchmarkReassignment(b *testing.B) {
	s := serve(b)
	arguments := make([]byte, 1<<20)
	var apps [2]struct {
		lease   executor.Lease
		growths int64
	}
	for i := range apps {
		lease, err := s.pool.Enrol(b.Context(), executor.Enrolment{Key: fmt.Sprintf("application-%08d", i)})
		if err != nil {
			b.Fatal(err)
		}
		apps[i].lease = lease
	}
	// first returns the time until the first line of the next task of an application.
	first := func(i int) time.Duration {
		a := &apps[i]
		a.growths++
		stage := executor.StageGrowth{Sizes: []int{len(arguments)}}
		if a.growths == 1 {
			stage.Function = "now"
		}
		ready := time.Now()
		if _, err := s.pool.Grow(b.Context(), a.lease.Application, executor.Growth{Lease: a.lease.Lease, Number: a.growths, Stages: []executor.StageGrowth{stage}}, arguments); err != nil {
			b.Fatal(err)
		}
		for {
			out, payloads, err := s.pool.Collect(b.Context(), a.lease.Application, executor.Collect{Lease: a.lease.Lease, After: a.growths - 1})
			if err != nil {
				b.Fatal(err)
			}
			if len(out.Results) > 0 {
				return time.Duration(int64(binary.BigEndian.Uint64(payloads[0])) - ready.UnixNano())
			}
		}
	}
	const colds = 20
	var cold, warm []time.Duration
	number := 0
	for range colds {
		cmd := s.executor(number)
		cold = append(cold, first(0))
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if _, err := s.pool.Left(b.Context(), number); err != nil {
			b.Fatal(err)
		}
		number++
	}
	cmd := s.executor(number)
	first(0)
	cpu := usedCPU(b, cmd.Process.Pid)
	for i := 0; b.Loop(); i++ {
		warm = append(warm, first(1-i%2))
	}
	used := usedCPU(b, cmd.Process.Pid) - cpu
	at := func(all []time.Duration, q float64) float64 {
		slices.Sort(all)
		return float64(all[int(q*float64(len(all)-1))].Microseconds()) / 1000
	}
	b.ReportMetric(at(warm, 0.5), "warm-p50-ms")
	b.ReportMetric(at(warm, 0.75), "warm-p75-ms")
	b.ReportMetric(at(warm, 0.99), "warm-p99-ms")
	b.ReportMetric(at(cold, 0.5), "cold-p50-ms")
	b.ReportMetric(used.Seconds()*1000/float64(len(warm)), "cpu-ms/op")
}

// usedCPU is the CPU time of this process and of another one.
func usedCPU(b *testing.B, pid int) time.Duration {
	b.Helper()
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		b.Fatal(err)
	}
	return time.Duration(own.Utime.Nano()+own.Stime.Nano()) + processCPU(b, pid)
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
