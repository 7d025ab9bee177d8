package sim

import (
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/memory"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// Flex says how the memory of FLEX containers is managed (Pufferfish). A job of class FLEX starts its tasks with what they
// are granted, and each may grow to its stage's MaxMemory; how much it holds is the truth of its phases. Every node of a
// workload with such jobs has a memory manager, which all containers there must ask before they start.
type Flex struct {
	// Manager is the parameters of the memory managers; the zero value (PuffRatio 0) is memory.Default().
	Manager memory.Parameters
	// Look is how often a node looks at its containers (Pufferfish: 2 s), all at the same times, from 0 on; 0: what changes
	// is known at once. An order that is done, and a container that is to start, have the node look at once.
	Look time.Duration
}

// What the kernel takes, and how long what cannot start or pages is left alone.
const (
	// orderTime is what an order takes that moves no pages: a limit, a quota or the freezer is a write of 0.2 to 0.4 ms, and
	// programs that were busy stand still a few ms later (measured on Linux 6.18).
	orderTime = time.Millisecond
	// askAgain is how long a container that could not have its memory waits at least until it asks again. It does when
	// something has changed on its node, and before its claim to what comes free would end.
	askAgain = time.Second
	// pagingLook is how often a container that runs and swaps is looked at, whatever Flex.Look.
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

// ContainerMemory is what a container on a node with a memory manager may hold and holds, from At on.
type ContainerMemory struct {
	At        timeline.Time
	Node      cluster.NodeID
	Container cluster.ContainerID
	Class     cluster.Class
	// Limit is what it may hold, bytes. Of the WorkingSet of its present phase Resident is in memory, Swapped on the swap
	// device, and what is left its programs have not been given yet; of a REGULAR container they are 0. All are 0 once it has
	// ended.
	Limit, WorkingSet, Resident, Swapped resource.Amount
	Suspended                            bool // its programs stand still
}
