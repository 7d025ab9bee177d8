package demo

import (
	"fmt"
	"os"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/sandbox/hungry"
)

// hungryProgram is a program whose memory use rises and falls.
type hungryProgram struct {
	name, about string
	// peak is the memory that a container needs for the largest job, least the memory with which a FLEX container
	// starts.
	peak, least resource.Amount
	// sizes are the sizes of its jobs, as shares of the largest.
	sizes []float64
	// command returns the command of a job of the given size, in a container with a maximum of most.
	command func(share float64, most resource.Amount) []string
}

// flexMix is the mix of the FLEX part.
type flexMix struct {
	node     resource.Vector
	swap     resource.Amount // free swap that the mix needs
	cpu      resource.Amount // of every container
	programs []hungryProgram
	every    time.Duration // between jobs
	attempts int           // per job, the first included
	// outOfMemory is the exit code of programs that detect themselves that they have too little memory; 0 means none.
	outOfMemory int
	// stream is the command of a short job with fixed memory, submitted at intervals until all other jobs have ended.
	stream      []string
	streamSize  resource.Amount
	streamEvery time.Duration
	// least is the minimum duration of the stream.
	least time.Duration
}

// contenders returns the contenders under which the mix runs.
func (m *flexMix) contenders() []contender {
	if len(m.jobs()) == 0 {
		return []contender{alone}
	}
	return allocations
}

// own returns the command of a hungry job that runs this program.
func own(kind string, size resource.Amount, reads int) []string {
	self, err := os.Executable()
	if err != nil {
		self = "/proc/self/exe"
	}
	return []string{self, hungry.Command, kind, fmt.Sprint(int64(size / resource.MiB)), fmt.Sprint(reads)}
}

// beside is the memory of our own programs besides their working set: the Go runtime, stacks, page tables.
const beside = 24 * resource.MiB

// ownMix returns the mix of programs that are part of bellows, for a node with the given memory. The largest working
// sets are half of the node; one of every three jobs of a program is that large, and the largest jobs of different
// programs do not come at the same time.
func ownMix(memory resource.Amount) *flexMix {
	m := &flexMix{
		node: resource.Of(2*resource.Core, memory), swap: 2 * memory, cpu: resource.Core * 3 / 10,
		attempts: 3,
		stream:   own("grow", memory/16, 100), streamSize: memory/16 + beside, streamEvery: 1500 * time.Millisecond,
	}
	const small = 0.3
	add := func(kind, about string, sixteenths resource.Amount, reads int, sizes ...float64) {
		largest := memory / 16 * sixteenths
		m.programs = append(m.programs, hungryProgram{name: kind, about: about, peak: largest + beside, least: memory / 10,
			sizes: sizes, command: func(share float64, _ resource.Amount) []string {
				return own(kind, resource.Amount(share*float64(largest)), int(share*float64(reads)))
			}})
	}
	add("grow", "a working set that grows", 8, 9000, 1, small, small)
	add("swell", "one that swells and shrinks twice", 7, 9000, small, 1, small)
	add("sort", "a sort of numbers in memory", 6, 0, small, small, 1)
	return m
}

// nodeMemory returns how much of a machine's memory the FLEX part manages: a quarter, 384 to 640 MiB.
func nodeMemory(machine resource.Amount) resource.Amount {
	const unit = 64 * resource.MiB
	return min(640*resource.MiB, max(384*resource.MiB, machine/4/unit*unit))
}

// hungryJob is one job of a mix.
type hungryJob struct {
	program *hungryProgram
	share   float64
}

// jobs returns the jobs of all programs, one of each program in turn.
func (m *flexMix) jobs() []hungryJob {
	var all []hungryJob
	for i := 0; ; i++ {
		n := len(all)
		for p := range m.programs {
			if i < len(m.programs[p].sizes) {
				all = append(all, hungryJob{&m.programs[p], m.programs[p].sizes[i]})
			}
		}
		if len(all) == n {
			return all
		}
	}
}

// job returns the job to submit for j under a contender.
func (j *hungryJob) job(m *flexMix, a *contender) (cluster.Job, []string) {
	size := a.size(j.program.peak, j.program.least)
	most := size
	if a.class == cluster.Flex {
		most = m.node[resource.Memory]
	}
	stage := cluster.Stage{Name: j.program.name, Tasks: 1, Ideal: resource.Of(m.cpu, size)}
	if a.class == cluster.Flex {
		stage.MaxMemory = most
	}
	return cluster.Job{Name: j.program.name, Class: a.class, MaxAttempts: m.attempts, Stages: []cluster.Stage{stage}},
		j.program.command(j.share, most)
}
