package sim

import (
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Flex says how the memory of FLEX containers is managed (Pufferfish). A job of class FLEX starts its tasks with their
// grants, and each task may grow to its stage's MaxMemory; how much it uses is the truth of its phases. Every node of a
// workload with FLEX jobs has a memory manager, and every container on the node requests its memory from the manager
// before it starts.
type Flex struct {
	// Manager is the parameters of the memory managers; the zero value (PuffRatio 0) is memory.Default().
	Manager memory.Parameters
	// Look is the interval at which a node samples its containers (Pufferfish: 2 s), all at the same times, from 0 on;
	// 0: the manager sees changes at once. When an order is done or a container is to start, the node samples at once.
	Look time.Duration
}

// Times of the kernel's actions, and intervals at which waiting and paging containers are looked at again.
const (
	// orderTime is the duration of an order that moves no pages: a write of a limit, a quota or the freezer takes 0.2
	// to 0.4 ms, and busy programs stand still a few ms later (measured on Linux 6.18).
	orderTime = time.Millisecond
	// askAgain is how long a refused container waits at least until it requests its memory again. It does so when
	// something has changed on its node, and before its claim to memory that becomes free would end.
	askAgain = time.Second
	// pagingLook is the interval at which a container that runs and swaps is sampled if Flex.Look is 0.
	pagingLook = time.Second
	page       = 4096
)

func (f *Flex) check() error {
	if f.Look < 0 {
		return fmt.Errorf("flex look %v: must not be negative", f.Look)
	}
	p := f.parameters()
	if err := p.Check(); err != nil {
		return fmt.Errorf("flex: %w", err)
	}
	return nil
}

func (f *Flex) parameters() memory.Parameters {
	if f.Manager.PuffRatio == 0 {
		return memory.Default()
	}
	return f.Manager
}

// ContainerMemory is the limit and use of a container on a node with a memory manager, from At on.
type ContainerMemory struct {
	At        timeline.Time
	Node      cluster.NodeID
	Container cluster.ContainerID
	Class     cluster.Class
	// All amounts are in bytes. Of the WorkingSet of the present phase, Resident is in memory, Swapped is
	// on the swap device, and the rest has not been allocated yet; for a REGULAR container these three are 0. All four
	// are 0 once the container has ended.
	Limit, WorkingSet, Resident, Swapped resource.Amount
	Suspended                            bool // its programs are suspended
}
