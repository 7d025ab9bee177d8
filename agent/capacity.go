package agent

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/cgroup"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/swap"
)

// Capacity returns how much of this machine containers may use together. memory (bytes) and cpu (millicores) are what
// somebody asked for; 0 stands for the default: every CPU this process may run on, and all memory but a tenth, of which
// 512 MiB at least stay for the rest of the machine (half, on a machine that has less than 1 GiB). Asking for more than
// there is, or for less than nothing, is the caller's mistake.
func Capacity(memory, cpu resource.Amount) (resource.Vector, error) {
	cores, err := usableCPUs()
	if err != nil {
		return resource.Vector{}, err
	}
	total, err := machineMemory()
	if err != nil {
		return resource.Vector{}, err
	}
	return capacity(memory, cpu, total, cores)
}

// machineMemory is how much memory this machine has for this process, bytes.
func machineMemory() (resource.Amount, error) {
	total, _, err := swap.Machine{}.Memory()
	if err != nil {
		return 0, err
	}
	return min(total, ownLimit()), nil
}

// capacity is Capacity on a machine with the given memory and cores.
func capacity(memory, cpu, total, cores resource.Amount) (resource.Vector, error) {
	switch {
	case memory < 0 || memory > total:
		return resource.Vector{}, fmt.Errorf("memory %s: must be at most what this machine has, %s", resource.FormatMemory(memory), resource.FormatMemory(total))
	case cpu < 0 || cpu > cores:
		return resource.Vector{}, fmt.Errorf("cpus %s: must be at most what this machine has, %s", resource.FormatCPU(cpu), resource.FormatCPU(cores))
	}
	if memory == 0 {
		memory = max(total-max(total/10, 512*resource.MiB), total/2)
		memory -= memory % resource.MiB
	}
	if cpu == 0 {
		cpu = cores
	}
	return resource.Of(cpu, memory), nil
}

// mostThreads is how many threads a container may have, its processes counted by theirs: an eighth of what the machine can have
// at once, so that one which forks without end leaves others, and the supervisors, what they need. With the usual 32,768 that
// is 4,096. It is never less than 512, which a small program that keeps a thread per client needs.
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

func usableCPUs() (resource.Amount, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return 0, fmt.Errorf("find out how many CPUs there are: %w", err)
	}
	return resource.Amount(set.Count()) * resource.Core, nil
}

// ownLimit is the tightest memory bound on this process's own control group and those above it.
func ownLimit() resource.Amount {
	limit := resource.Amount(cgroup.NoLimit)
	host, err := cgroup.Discover("")
	if err != nil {
		return limit
	}
	h, ok := host.Serves(cgroup.Memory)
	if !ok {
		return limit
	}
	for dir := h.Own; strings.HasPrefix(dir, h.Mount); dir = filepath.Dir(dir) {
		for _, file := range []string{"memory.max", "memory.limit_in_bytes"} {
			text, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				continue
			}
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
				limit = min(limit, resource.Amount(n))
			}
		}
	}
	return limit
}
