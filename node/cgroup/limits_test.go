package cgroup

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func versions(v Version) map[Controller]Version {
	out := map[Controller]Version{}
	for _, c := range Controllers() {
		out[c] = v
	}
	return out
}

func TestPlan(t *testing.T) {
	v1 := State{Version: versions(V1), MemoryBytes: Known[int64](100), MemoryAndSwapBytes: Known[int64](150),
		PeriodMicros: Known[int64](100_000)}
	v2 := State{Version: versions(V2)}
	for _, c := range []struct {
		name string
		have State
		want Limits
		plan string
	}{
		{"nothing", v1, Limits{}, ""},
		{"v1 memory grows beyond the sum", v1, Limits{MemoryBytes: At(200)},
			"memory.memsw.limit_in_bytes=250 memory.limit_in_bytes=200"},
		{"v1 memory grows below the sum", v1, Limits{MemoryBytes: At(120)},
			"memory.limit_in_bytes=120 memory.memsw.limit_in_bytes=170"},
		{"v1 memory shrinks", v1, Limits{MemoryBytes: At(50)}, "memory.limit_in_bytes=50 memory.memsw.limit_in_bytes=100"},
		{"v1 memory becomes unlimited", v1, Limits{MemoryBytes: Unlimited(), SwapBytes: Unlimited()},
			"memory.memsw.limit_in_bytes=-1 memory.limit_in_bytes=-1"},
		{"v1 swap alone", v1, Limits{SwapBytes: At(0)}, "memory.memsw.limit_in_bytes=100"},
		{"v1 memory as it is", v1, Limits{MemoryBytes: At(100)}, "memory.limit_in_bytes=100"},
		{"v1 without swap accounting", State{Version: versions(V1)}, Limits{MemoryBytes: At(7)}, "memory.limit_in_bytes=7"},
		{"v1 quota", v1, Limits{CPUMillicores: At(1500), CPUWeight: At(100)}, "cpu.shares=1024 cpu.cfs_quota_us=150000"},
		{"v1 small quota needs a longer period", v1, Limits{CPUMillicores: At(5)},
			"cpu.cfs_quota_us=-1 cpu.cfs_period_us=200000 cpu.cfs_quota_us=1000"},
		{"v1 no quota", v1, Limits{CPUMillicores: Unlimited()}, "cpu.cfs_quota_us=-1"},
		{"v2 memory", v2, Limits{MemoryBytes: At(100), SwapBytes: Unlimited()}, "memory.swap.max=max memory.max=100"},
		{"v2 high", v2, Limits{HighBytes: At(80)}, "memory.high=80"},
		{"v2 high below the bound", v2, Limits{MemoryBytes: At(100), HighBytes: At(80)}, "memory.high=80 memory.max=100"},
		{"v2 high is lifted", v2, Limits{HighBytes: Unlimited()}, "memory.high=max"},
		{"v2 quota", v2, Limits{CPUMillicores: At(10), CPUWeight: At(1)}, "cpu.weight=1 cpu.max=1000 100000"},
		{"v2 small quota", v2, Limits{CPUMillicores: At(1)}, "cpu.max=1000 1000000"},
		{"v2 no quota", v2, Limits{CPUMillicores: Unlimited()}, "cpu.max=max 100000"},
		{"v2 threads", v2, Limits{PIDsMax: At(0)}, "pids.max=0"},
		{"v1 disk", v1, Limits{Disk: DiskLimit{"254:0", At(1000)}},
			"blkio.throttle.read_bps_device=254:0 1000 blkio.throttle.write_bps_device=254:0 1000"},
		{"v1 disk without a bound", v1, Limits{Disk: DiskLimit{"254:0", Unlimited()}},
			"blkio.throttle.read_bps_device=254:0 1000000000000 blkio.throttle.write_bps_device=254:0 1000000000000"},
		{"v2 disk", v2, Limits{Disk: DiskLimit{"254:0", At(1000)}}, "io.max=254:0 rbps=1000 wbps=1000"},
		{"v2 disk without a bound", v2, Limits{Disk: DiskLimit{"254:0", Unlimited()}}, "io.max=254:0 rbps=max wbps=max"},
	} {
		writes, err := Plan(c.have, c.want)
		var got []string
		for _, w := range writes {
			got = append(got, w.File+"="+w.Content)
		}
		if err != nil || strings.Join(got, " ") != c.plan {
			t.Errorf("%s: %q (%v), want %q", c.name, got, err, c.plan)
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	v1, v2 := State{Version: versions(V1)}, State{Version: versions(V2)}
	for _, c := range []struct {
		have        State
		want        Limits
		says        string
		unsupported bool
	}{
		{v2, Limits{MemoryBytes: At(-1)}, "MemoryBytes -1: must be 0 or more", false},
		{v2, Limits{HighBytes: At(-1)}, "HighBytes -1: must be 0 or more", false},
		{v1, Limits{HighBytes: At(1)}, "HighBytes needs version 2", true},
		{State{}, Limits{HighBytes: At(1)}, "memory", true},
		{v2, Limits{CPUMillicores: At(0)}, "CPUMillicores 0: must be 1 or more", false},
		{v2, Limits{CPUWeight: At(10_001)}, "CPUWeight 10001: must be 1 to 10000", false},
		{v2, Limits{PIDsMax: At(-2)}, "PIDsMax -2: must be 0 or more", false},
		{v1, Limits{MemoryBytes: At(1), SwapBytes: At(0)}, "does not account swap", true},
		{State{Version: versions(V1), MemoryBytes: Known(NoLimit), MemoryAndSwapBytes: Known(NoLimit)},
			Limits{SwapBytes: At(5)}, "SwapBytes 5: must be set together with MemoryBytes", false},
		{State{}, Limits{MemoryBytes: At(1)}, "memory", true},
		{State{}, Limits{CPUWeight: At(1)}, "cpu", true},
		{State{}, Limits{PIDsMax: At(1)}, "pids", true},
		{v1, Limits{Disk: DiskLimit{"sda", At(1)}}, `Disk.Device "sda": must be MAJOR:MINOR`, false},
		{v1, Limits{Disk: DiskLimit{"254:0", At(0)}}, "Disk.Rate 0: must be 1 or more", false},
		{State{}, Limits{Disk: DiskLimit{"254:0", At(1)}}, "io", true},
	} {
		_, err := Plan(c.have, c.want)
		if err == nil || !strings.Contains(err.Error(), c.says) || errors.Is(err, ErrUnsupported) != c.unsupported {
			t.Errorf("%+v: error %v, want it to say %q, unsupported %t", c.want, err, c.says, c.unsupported)
		}
	}
}

// legacyKernel is the rule of version 1 in four lines: memory never above memory and swap together.
type legacyKernel struct{ memory, sum int64 }

func (k *legacyKernel) write(w Write) bool {
	n, _ := parseBound(w.Content).Get()
	if w.File == "memory.limit_in_bytes" && n <= k.sum {
		k.memory = n
		return true
	}
	if w.File == "memory.memsw.limit_in_bytes" && n >= k.memory {
		k.sum = n
		return true
	}
	return false
}

// Whatever the bounds were before, the kernel accepts every write of a plan, and the result is the wanted limits.
func TestPlanOrderSuitsTheKernel(t *testing.T) {
	bound := rapid.OneOf(rapid.Int64Range(0, 20), rapid.Just(NoLimit))
	rapid.Check(t, func(t *rapid.T) {
		k := legacyKernel{memory: bound.Draw(t, "memory")}
		k.sum = NoLimit
		if swap := bound.Draw(t, "swap"); k.memory != NoLimit && swap != NoLimit {
			k.sum = k.memory + swap
		}
		want := Limits{MemoryBytes: At(bound.Draw(t, "wanted memory"))}
		if rapid.Bool().Draw(t, "swap wanted") {
			want.SwapBytes = At(bound.Draw(t, "wanted swap"))
		}
		swapBefore := NoLimit
		if k.sum != NoLimit {
			swapBefore = k.sum - k.memory
		}
		have := State{Version: versions(V1), MemoryBytes: Known(k.memory), MemoryAndSwapBytes: Known(k.sum)}
		writes, err := Plan(have, want)
		memory, _ := want.MemoryBytes.Get()
		if swap, ok := want.SwapBytes.Get(); ok && memory == NoLimit && swap != NoLimit {
			if err == nil {
				t.Fatal("a swap bound without a memory bound was planned")
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range writes {
			if !k.write(w) {
				t.Fatalf("the kernel, at %+v, refuses %+v of %+v", k, w, writes)
			}
		}
		swap := swapBefore
		if s, ok := want.SwapBytes.Get(); ok {
			swap = s
		}
		sum := NoLimit
		if memory != NoLimit && swap != NoLimit {
			sum = memory + swap
		}
		if k.memory != memory || k.sum != sum {
			t.Fatalf("the kernel is at %+v, want memory %d and sum %d", k, memory, sum)
		}
	})
}

// Whatever the bound, the kernel's ranges are kept, and the ratio is the wanted one unless that is below the smallest
// possible ratio.
func TestQuotaMicros(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.Int64Range(1, 1_000_000).Draw(t, "millicores")
		quota, period := quotaMicros(m)
		if quota < quotaMicrosMin || period < periodMicrosDefault || period > microsPerSecond {
			t.Fatalf("%d millicores: quota %d in %d", m, quota, period)
		}
		// A longer period is rounded down to whole microseconds.
		if quota*1000 < m*period || quota*1000 > m*(period+1) {
			t.Fatalf("%d millicores became a quota of %d in %d", m, quota, period)
		}
	})
}
