package cgroup

import (
	"fmt"
	"math"
	"strconv"
)

// Limit is one wanted bound. The zero Limit keeps the kernel's value.
type Limit struct {
	wanted bool
	value  int64 // NoLimit lifts the bound.
}

// NoLimit is the value of a bound that never takes effect, in limits and in readings.
const NoLimit int64 = math.MaxInt64

// At returns a bound of n, in the unit of the field it is assigned to. n >= 0.
func At(n int64) Limit { return Limit{wanted: true, value: n} }

// Unlimited returns a limit that lifts the bound.
func Unlimited() Limit { return At(NoLimit) }

// WeightOf is the CPUWeight of a group that is to have some CPU time: for each core the weight that the kernel gives
// a process.
func WeightOf(millicores int64) Limit {
	const perCore, least, most = 100, 1, 10_000
	return At(min(most, max(least, millicores*perCore/1000)))
}

// Get returns the wanted bound; ok is false if the kernel's value is to be kept.
func (l Limit) Get() (value int64, ok bool) { return l.value, l.wanted }

// Limits is what a group may use. A field that is not set keeps the kernel's value.
type Limits struct {
	// MemoryBytes bounds anonymous memory and page cache together (memory.max, memory.limit_in_bytes).
	MemoryBytes Limit
	// HighBytes is the usage from which on the kernel reclaims and slows processes down, but kills none (memory.high).
	// Version 2 only. Where nothing can be reclaimed, as without swap, processes come to stand still above it.
	HighBytes Limit
	// SwapBytes bounds swap alone, in both versions. Version 1 bounds the sum of memory and swap; if only MemoryBytes
	// changes, the sum is adjusted so that the bound on swap stays the same.
	SwapBytes Limit
	// CPUMillicores bounds CPU time per unit of time: 1000 is one whole core. At least 1.
	CPUMillicores Limit
	// CPUWeight is the share under contention, 1 to 10000, 100 by default, in both versions. Version 1 counts in steps
	// of 1/1024. Therefore a weight is rounded to a multiple of 100/1024, and is at least 2 of these steps.
	CPUWeight Limit
	// PIDsMax bounds the number of threads.
	PIDsMax Limit
	// Disk bounds reads from a device and writes to it.
	Disk DiskLimit
}

// DiskLimit bounds transfers from and to a whole disk. Version 1 does not bound buffered writes, because the kernel
// writes them on its own account; version 2 does where it counts the memory of the group, too.
type DiskLimit struct {
	// Device is major:minor.
	Device string
	// Rate is in bytes per second, at least 1, for reads and for writes each.
	Rate Limit
}

// The range of CFS quotas and periods that the kernel accepts, and the period that groups have unless it is too short.
const (
	microsPerSecond     = 1_000_000
	quotaMicrosMin      = 1_000
	periodMicrosDefault = 100_000
)

// State is the part of a group's current state that Plan needs. A missing value counts as unlimited.
type State struct {
	// Version of the hierarchy of each controller that the group has.
	Version map[Controller]Version
	// MemoryBytes and MemoryAndSwapBytes are the current bounds. Version 1 refuses a memory bound above the bound of
	// the sum, so the order of writes depends on both.
	MemoryBytes        Maybe[int64]
	MemoryAndSwapBytes Maybe[int64]
	// PeriodMicros is the current length of the CPU period, microseconds. Version 1 only.
	PeriodMicros Maybe[int64]
}

// Write is one write to a file of a controller.
type Write struct {
	Controller Controller
	File       string
	Content    string
}

// Plan returns the writes that lead from have to want, in the order in which the kernel accepts them. It reads and
// writes nothing. The error is ErrUnsupported if want needs a controller that the group does not have, and another
// error if want is invalid.
func Plan(have State, want Limits) ([]Write, error) {
	var writes []Write
	for _, step := range []func(State, Limits) ([]Write, error){
		planCPU, planPIDs, planMemory, planDisk,
	} {
		more, err := step(have, want)
		if err != nil {
			return nil, err
		}
		writes = append(writes, more...)
	}
	return writes, nil
}

func planMemory(have State, want Limits) ([]Write, error) {
	for _, f := range []struct {
		name  string
		limit Limit
	}{{"MemoryBytes", want.MemoryBytes}, {"HighBytes", want.HighBytes}, {"SwapBytes", want.SwapBytes}} {
		if f.limit.wanted && f.limit.value < 0 {
			return nil, fmt.Errorf("%s %d: must be 0 or more", f.name, f.limit.value)
		}
	}
	if !want.MemoryBytes.wanted && !want.HighBytes.wanted && !want.SwapBytes.wanted {
		return nil, nil
	}
	switch have.Version[Memory] {
	case V1:
		if want.HighBytes.wanted {
			return nil, unsupported(Memory, "HighBytes needs version 2")
		}
		return planMemoryV1(have, want)
	case V2:
		return planMemoryV2(want), nil
	}
	return nil, unsupported(Memory, "memory limits")
}

func planMemoryV2(want Limits) []Write {
	var writes []Write
	add := func(file string, l Limit) {
		if l.wanted {
			writes = append(writes, Write{Memory, file, orMax(l.value)})
		}
	}
	add("memory.swap.max", want.SwapBytes)
	add("memory.high", want.HighBytes) // before the bound at which the kernel kills
	add("memory.max", want.MemoryBytes)
	return writes
}

// planMemoryV1 keeps memory <= memory+swap at every moment: it raises the sum before memory, and lowers it after
// memory.
func planMemoryV1(have State, want Limits) ([]Write, error) {
	memoryNow := have.MemoryBytes.Or(NoLimit)
	sumNow, counted := have.MemoryAndSwapBytes.Get()
	if v, ok := want.SwapBytes.Get(); ok && v != NoLimit && !counted {
		return nil, unsupported(Memory, memsw+" (the kernel does not account swap)")
	}
	memory := memoryNow
	if v, ok := want.MemoryBytes.Get(); ok {
		memory = v
	}
	swap := NoLimit
	if counted && sumNow != NoLimit {
		swap = max(sumNow-memoryNow, 0)
	}
	if v, ok := want.SwapBytes.Get(); ok {
		swap = v
	}
	if memory == NoLimit && swap != NoLimit && want.SwapBytes.wanted {
		return nil, fmt.Errorf(
			"SwapBytes %d: must be set together with MemoryBytes, because version 1 bounds only the sum of memory and swap",
			swap)
	}
	sum := NoLimit
	if memory <= NoLimit-swap {
		sum = memory + swap
	}
	var writes []Write
	if want.MemoryBytes.wanted {
		writes = append(writes, Write{Memory, memoryV1, orMinusOne(memory)})
	}
	if counted && sum != sumNow {
		w := Write{Memory, memsw, orMinusOne(sum)}
		if memory > sumNow {
			return append([]Write{w}, writes...), nil
		}
		writes = append(writes, w)
	}
	return writes, nil
}

func planCPU(have State, want Limits) ([]Write, error) {
	m, limited := want.CPUMillicores.Get()
	weight, weighted := want.CPUWeight.Get()
	if !limited && !weighted {
		return nil, nil
	}
	if limited && m < 1 {
		return nil, fmt.Errorf("CPUMillicores %d: must be 1 or more", m)
	}
	if weighted && (weight < 1 || weight > 10_000) {
		return nil, fmt.Errorf("CPUWeight %d: must be 1 to 10000", weight)
	}
	v := have.Version[CPU]
	if v == 0 {
		return nil, unsupported(CPU, "CPU limits")
	}
	var writes []Write
	if weighted && v == V1 {
		writes = append(writes, Write{CPU, "cpu.shares", strconv.FormatInt(max(weight*1024/100, 2), 10)})
	} else if weighted {
		writes = append(writes, Write{CPU, "cpu.weight", strconv.FormatInt(weight, 10)})
	}
	if !limited {
		return writes, nil
	}
	quota, period := quotaMicros(m)
	if v == V2 {
		return append(writes, Write{CPU, "cpu.max", fmt.Sprintf("%s %d", orMax(quota), period)}), nil
	}
	if now, ok := have.PeriodMicros.Get(); !ok || now != period {
		// The old quota in a new period could exceed the parent's, which the kernel refuses.
		writes = append(writes, Write{CPU, "cpu.cfs_quota_us", "-1"},
			Write{CPU, "cpu.cfs_period_us", strconv.FormatInt(period, 10)})
	}
	return append(writes, Write{CPU, "cpu.cfs_quota_us", orMinusOne(quota)}), nil
}

// quotaMicros converts millicores to CPU microseconds per period. The kernel accepts no quota below a millisecond, so
// small bounds get a longer period: 5 millicores are 1 ms in 200 ms.
func quotaMicros(millicores int64) (quota, period int64) {
	period = periodMicrosDefault
	if millicores > NoLimit/period {
		return NoLimit, period
	}
	if quota = millicores * period / 1000; quota < quotaMicrosMin {
		quota = quotaMicrosMin
		period = min(quotaMicrosMin*1000/millicores, microsPerSecond)
	}
	return quota, period
}

func planPIDs(have State, want Limits) ([]Write, error) {
	n, ok := want.PIDsMax.Get()
	if !ok {
		return nil, nil
	}
	if n < 0 {
		return nil, fmt.Errorf("PIDsMax %d: must be 0 or more", n)
	}
	if have.Version[PIDs] == 0 {
		return nil, unsupported(PIDs, "process limits")
	}
	return []Write{{PIDs, "pids.max", orMax(n)}}, nil
}

func planDisk(have State, want Limits) ([]Write, error) {
	rate, ok := want.Disk.Rate.Get()
	if !ok {
		return nil, nil
	}
	device := want.Disk.Device
	if !isDevice(device) {
		return nil, fmt.Errorf("Disk.Device %q: must be MAJOR:MINOR", device)
	}
	if rate < 1 {
		return nil, fmt.Errorf("Disk.Rate %d: must be 1 or more", rate)
	}
	switch have.Version[IO] {
	case V1:
		if rate == NoLimit {
			rate = noRate // Without a rule, the kernel may no longer count what the group transfers.
		}
		content := fmt.Sprintf("%s %d", device, rate)
		return []Write{{IO, "blkio.throttle.read_bps_device", content}, {IO, "blkio.throttle.write_bps_device", content}}, nil
	case V2:
		return []Write{{IO, "io.max", fmt.Sprintf("%s rbps=%s wbps=%s", device, orMax(rate), orMax(rate))}}, nil
	}
	return nil, unsupported(IO, "disk limits")
}

func orMax(n int64) string {
	if n == NoLimit {
		return "max"
	}
	return strconv.FormatInt(n, 10)
}

func orMinusOne(n int64) string {
	if n == NoLimit {
		return "-1"
	}
	return strconv.FormatInt(n, 10)
}
