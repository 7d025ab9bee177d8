package agent

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/cgroup"
	"github.com/bellows-rm/bellows/node/keeper"
)

// tail reports the median and the 99th percentile.
func (s spread) tail(b *testing.B, name string) {
	b.ReportMetric(s.at(0.5), name+"-ms-p50")
	b.ReportMetric(s.at(0.99), name+"-ms-p99")
	b.Logf("%s: p50 %.3g ms, p99 %.3g ms, from %.3g to %.3g of %d; load %s", name, s.at(0.5), s.at(0.99), s.at(0),
		s.at(1), len(s), load())
}

// quietAndLoaded runs a benchmark with nothing else, and with twice as many busy programs as the machine has cores.
func quietAndLoaded(b *testing.B, do func(*testing.B)) {
	b.Run("quiet", do)
	b.Run("loaded", func(b *testing.B) {
		for range 2 * runtime.NumCPU() {
			p := exec.Command(os.Args[0], "hold", "1", "1000")
			if err := p.Start(); err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = p.Process.Kill(); _ = p.Wait() })
		}
		do(b)
	})
}

// busyContainer starts a REGULAR container whose program works in its memory without a pause, on a machine of 2 GiB.
func busyContainer(b *testing.B) (*Agent, *container) {
	a := benchAgent(b, 2*resource.GiB)
	o := benchOrder(a, 64*resource.MiB, os.Args[0], "hold", "16", "1000")
	a.Apply(enveloped([]cluster.Order{o}))
	wait(b, a, cluster.DecisionDone)
	b.Cleanup(func() {
		a.Apply(kill(o.Container))
		wait(b, a, cluster.TaskEnded)
	})
	return a, a.container(o.Container)
}

// BenchmarkResize raises the CPU and the memory of a container whose program is busy, 200 times each: the time that
// the kernel takes for the limits, and the time of the whole order, with its record and the memory manager's consent.
func BenchmarkResize(b *testing.B) {
	quietAndLoaded(b, func(b *testing.B) {
		a, c := busyContainer(b)
		if _, ok := c.group.Has(cgroup.CPU); !ok {
			b.Skip("needs a controller of the CPU")
		}
		order := func(cpu, mib resource.Amount) time.Duration {
			b.Helper()
			grant := resource.Of(cpu, mib*resource.MiB)
			o := cluster.Size{Grant: grant, Envelope: cluster.Envelope{Min: grant[resource.Memory], Max: grant[resource.Memory],
				Rank: c.spec.Envelope.Rank}}
			began := time.Now()
			if err := a.keeper.Resize(c.kept, o); err != nil {
				b.Fatal(err)
			}
			return time.Since(began)
		}
		limits := func(do func() error) time.Duration {
			b.Helper()
			began := time.Now()
			if err := do(); err != nil {
				b.Fatal(err)
			}
			return time.Since(began)
		}
		var kernelCPU, kernelMemory, wholeCPU, wholeMemory spread
		for range b.N {
			for i := range resource.Amount(200) {
				kernelCPU = append(kernelCPU, ms(limits(func() error {
					return (&keeper.Rest{Grant: resource.Of(600+i, 0)}).CarryOut(b.Context(), c.group)
				})))
				kernelMemory = append(kernelMemory,
					ms(limits(func() error { return keeper.SetMemory(b.Context(), c.group, (100+i)*resource.MiB) })))
				order(500, 64)
				wholeCPU = append(wholeCPU, ms(order(600+i, 64)))
				wholeMemory = append(wholeMemory, ms(order(600+i, 128)))
			}
		}
		kernelCPU.tail(b, "cpu-limits")
		kernelMemory.tail(b, "memory-limit")
		wholeCPU.tail(b, "cpu-order")
		wholeMemory.tail(b, "memory-order")
	})
}

// BenchmarkHold freezes a container whose program is busy, and thaws it, 200 times: from the request until the kernel
// says so.
func BenchmarkHold(b *testing.B) {
	quietAndLoaded(b, func(b *testing.B) {
		_, c := busyContainer(b)
		if _, ok := c.group.Has(cgroup.Freezer); !ok {
			b.Skip("needs a freezer")
		}
		var freeze, thaw spread
		for range b.N {
			for range 200 {
				began := time.Now()
				if err := c.kept.Stop(b.Context(), keeper.ByMemory); err != nil {
					b.Fatal(err)
				}
				freeze = append(freeze, ms(time.Since(began)))
				if _, done := c.group.Frozen(); !done {
					b.Fatal("it is not frozen")
				}
				began = time.Now()
				if err := c.kept.Release(b.Context(), keeper.ByMemory); err != nil {
					b.Fatal(err)
				}
				thaw = append(thaw, ms(time.Since(began)))
				time.Sleep(2 * time.Millisecond) // so that the program runs
			}
		}
		freeze.tail(b, "freeze")
		thaw.tail(b, "thaw")
	})
}
