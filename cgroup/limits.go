package cgroup

import (
	"fmt"
	"math"
	"strconv"
)

// Limit is one wanted bound. The zero Limit leaves the kernel's value as it is.
type Limit struct {
	wanted bool
	value  int64 // NoLimit lifts the bound.
}

// NoLimit is the value of a bound that does not bind, in limits and in readings.
const NoLimit int64 = math.MaxInt64

// At wants a bound of n, in the unit of the field it is given to. n >= 0.
func At(n int64) Limit { return Limit{wanted: true, value: n} }

// Unlimited wants no bound.
func Unlimited() Limit { return At(NoLimit) }

// Get returns the wanted bound; ok is false if the kernel's value is to stay.
func (l Limit) Get() (value int64, ok bool) { return l.value, l.wanted }

func (l Limit) String() string {
	switch {
	case !l.wanted:
		return "unchanged"
	case l.value == NoLimit:
		return "unlimited"
	}
	return strconv.FormatInt(l.value, 10)
}

// Limits is what a group may use. Fields left out keep the value they have.
type Limits struct {
	// MemoryBytes bounds anonymous memory and page cache together (memory.max, memory.limit_in_bytes).
	MemoryBytes Limit
	// SwapBytes bounds swap alone, beside memory, in both versions. Version 1 bounds the sum of memory and swap; the sum
	// is kept so that the swap part stays what it was when only MemoryBytes changes.
	SwapBytes Limit
	// CPUMillicores is CPU time per time: 1000 is one whole core. 1 at least.
	CPUMillicores Limit
	// CPUWeight is the share under contention, 1 to 10000, 100 by default, in both versions. Version 1 counts in steps of
	// 1/1024, so weights come out within one part in 1024/100 of what was wanted, and 2 at least.
	CPUWeight Limit
	// PIDsMax bounds the number of threads.
	PIDsMax Limit
}

// The range of CFS quotas and periods that the kernel takes, and the period that groups have unless it is too short.
const (
	microsPerSecond     = 1_000_000
	quotaMicrosMin      = 1_000
	periodMicrosDefault = 100_000
)

// State is what a group has now, as far as Plan must know it. A missing value is taken for unlimited.
type State struct {
	// Version of the hierarchy of each controller that the group has.
	Version map[Controller]Version
	// MemoryBytes and MemoryAndSwapBytes are the bounds now. Version 1 refuses a memory bound above the sum's bound, so
	// the order of writes depends on both.
	MemoryBytes        Maybe[int64]
	MemoryAndSwapBytes Maybe[int64]
	// PeriodMicros is the length of the CPU period now, in microseconds. Version 1 only.
	PeriodMicros Maybe[int64]
}

// Write is one file to be written: what is told to which controller.
type Write struct {
	Controller Controller
	File       string
	Content    string
}

// Plan returns the writes that lead from have to want, in the order in which the kernel takes them. It reads and writes
// nothing. It fails with an error that is ErrUnsupported if want needs what the group does not have, and with another if
// want makes no sense.
func Plan(have State, want Limits) ([]Write, error) {
	var writes []Write
	for _, step := range []func(State, Limits) ([]Write, error){
		planCPU, planPIDs, planMemory,
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
	}{{"MemoryBytes", want.MemoryBytes}, {"SwapBytes", want.SwapBytes}} {
		if f.limit.wanted && f.limit.value < 0 {
			return nil, fmt.Errorf("%s is %d, it must not be negative", f.name, f.limit.value)
		}
	}
	if !want.MemoryBytes.wanted && !want.SwapBytes.wanted {
		return nil, nil
	}
	switch have.Version[Memory] {
	case V1:
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
	add("memory.max", want.MemoryBytes)
	return writes
}

// The bounds of version 1 on memory, and on memory and swap together.
const (
	memoryV1 = "memory.limit_in_bytes"
	memsw    = "memory.memsw.limit_in_bytes"
)

// planMemoryV1 keeps memory <= memory+swap at every moment: the sum is raised before and lowered after memory.
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
		return nil, fmt.Errorf("SwapBytes is %d without a memory limit: version 1 bounds only memory and swap together, set MemoryBytes too", swap)
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
		return nil, fmt.Errorf("CPUMillicores is %d, it must be 1 or more", m)
	}
	if weighted && (weight < 1 || weight > 10_000) {
		return nil, fmt.Errorf("CPUWeight is %d, it must be 1 to 10000", weight)
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
		// The old quota in a new period could be more than the parent has, which the kernel refuses.
		writes = append(writes, Write{CPU, "cpu.cfs_quota_us", "-1"}, Write{CPU, "cpu.cfs_period_us", strconv.FormatInt(period, 10)})
	}
	return append(writes, Write{CPU, "cpu.cfs_quota_us", orMinusOne(quota)}), nil
}

// quotaMicros turns millicores into CPU microseconds per period. The kernel takes no quota below a millisecond, so small
// bounds get a longer period: 5 millicores are 1 ms in 200 ms.
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
		return nil, fmt.Errorf("PIDsMax is %d, it must not be negative", n)
	}
	if have.Version[PIDs] == 0 {
		return nil, unsupported(PIDs, "process limits")
	}
	return []Write{{PIDs, "pids.max", orMax(n)}}, nil
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
