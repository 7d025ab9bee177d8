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

// Capacity returns what the containers of this machine may use together. memory (bytes) and cpu (millicores) are the
// user's values; 0 stands for the default: every CPU that this process may run on, and nine tenths of the memory, where
// at least 512 MiB stay for the rest of the machine (half, on a machine with less than 1 GiB). A value above what the
// machine has, or below zero, is the caller's mistake.
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

// machineMemory returns the memory of this machine that this process can use, bytes.
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

func usableCPUs() (resource.Amount, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return 0, fmt.Errorf("count the CPUs of this machine: %w", err)
	}
	return resource.Amount(set.Count()) * resource.Core, nil
}

// ownLimit returns the tightest memory bound on this process's own control group and the groups above it.
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
