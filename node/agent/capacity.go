package agent

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/cgroup"
	"github.com/bellows-rm/bellows/node/inherited"
	"github.com/bellows-rm/bellows/node/swap"
)

// Usable is what this process, and with it the containers, may use of its machine.
type Usable struct {
	Has resource.Vector // CPU and memory
	// Less says in a clause, for CPU and for memory, why that is less than what the machine has; empty if it is all.
	Less [resource.NumKinds]string
	// Machine is the memory of the machine, bytes.
	Machine resource.Amount
}

// FindUsable returns what this process may use: of CPU the least of its affinity and of the quotas of its control
// groups, and of memory what is not reserved as huge pages, at most the limits of its control groups.
func FindUsable() (Usable, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return Usable{}, fmt.Errorf("count the CPUs of this machine: %w", err)
	}
	return usableOf(swap.Machine{}, set.Count())
}

// usableOf is FindUsable on a machine, for a process with the given number of CPUs.
func usableOf(machine swap.Machine, cpus int) (u Usable, err error) {
	memory, err := machine.Memory()
	if err != nil {
		return u, err
	}
	u.Has, u.Machine = resource.Of(resource.Amount(cpus)*resource.Core, memory.Total), memory.Total+memory.HugePages
	if memory.HugePages > 0 {
		u.Less[resource.Memory] = fmt.Sprintf("%s of its %s is reserved as huge pages",
			resource.FormatMemory(memory.HugePages), resource.FormatMemory(u.Machine))
	}
	if all := inherited.Online(machine.Root); cpus < all {
		u.Less[resource.CPU] = fmt.Sprintf("this process may run on %d of its %d CPUs", cpus, all)
	}
	host, err := cgroup.Discover(machine.Root)
	if err != nil {
		return u, nil // Nothing bounds this process, and Open says why there can be no containers.
	}
	bytes, group := host.OwnMemory()
	u.lower(resource.Memory, resource.Amount(bytes), group)
	millicores, group := host.OwnCPU()
	u.lower(resource.CPU, resource.Amount(millicores), group)
	return u, nil
}

// lower takes the bound of a control group.
func (u *Usable) lower(k resource.Kind, bound resource.Amount, group string) {
	if bound < u.Has[k] {
		u.Has[k], u.Less[k] = bound, fmt.Sprintf("the control group %s may use no more", group)
	}
}

// has returns what of a kind may be used, in words.
func (u *Usable) has(k resource.Kind) string {
	has := k.Format(u.Has[k])
	if u.Less[k] != "" {
		return fmt.Sprintf("what may be used of this machine, %s: %s", has, u.Less[k])
	}
	return "what this machine has, " + has
}

// Capacity returns what the containers of this machine may use together. memory (bytes) and cpu (millicores) are the
// user's values; 0 stands for the default: all CPU that this process may use, and nine tenths of the memory, where
// at least 512 MiB stay for the rest of the machine (half, on a machine with less than 1 GiB). A value above what may
// be used, or below zero, is the caller's mistake.
func Capacity(memory, cpu resource.Amount) (resource.Vector, error) {
	u, err := FindUsable()
	if err != nil {
		return resource.Vector{}, err
	}
	return u.Capacity(memory, cpu)
}

// Capacity is the function Capacity where u may be used.
func (u *Usable) Capacity(memory, cpu resource.Amount) (resource.Vector, error) {
	total := u.Has[resource.Memory]
	switch {
	case memory < 0 || memory > total:
		return resource.Vector{}, fmt.Errorf("memory %s: must be at most %s", resource.FormatMemory(memory),
			u.has(resource.Memory))
	case cpu < 0 || cpu > u.Has[resource.CPU]:
		return resource.Vector{}, fmt.Errorf("cpus %s: must be at most %s", resource.FormatCPU(cpu), u.has(resource.CPU))
	}
	usual := u.Default()
	return resource.Of(cmp.Or(cpu, usual[resource.CPU]), cmp.Or(memory, usual[resource.Memory])), nil
}

// Default is what the containers may use together unless the user says otherwise.
func (u *Usable) Default() resource.Vector {
	total := u.Has[resource.Memory]
	memory := max(total-max(total/10, 512*resource.MiB), total/2)
	return resource.Of(u.Has[resource.CPU], memory-memory%resource.MiB)
}

// mostThreads returns how many threads a container may have, those of all its processes together: an eighth of the
// machine's limit, so that a container which forks without end leaves enough to other containers and to the
// supervisors. With the usual limit of 32,768 that is 4,096. It is at least 512, enough for a small program that keeps
// a thread per client.
func mostThreads() int64 {
	const share, least, usual = 8, 512, 32_768
	most := int64(math.MaxInt64)
	for _, file := range []string{"/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"} {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
			most = min(most, n)
		}
	}
	if most == math.MaxInt64 {
		most = usual
	}
	return max(least, most/share)
}
