package keeper

import (
	"sync"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// stood adds up how long a container has stood still because its stance says so, and has the bound on its disk and its
// share of the cores: a program teaches less than it needs while it is kept from running or from transferring.
type stood struct {
	mu    sync.Mutex
	still bool
	since time.Time       // when it stopped
	total time.Duration   // before
	bound int64           // bytes per second that the kernel lets it read, and the same for writes; 0 is no bound
	share resource.Amount // of CPU, granted
}

func stoodWith(grant resource.Vector) stood { return stood{share: grant[resource.CPU]} }

// note takes in the stance that a container has from now on. Without a freezer and a CPU controller, the container
// does not stand still.
func (s *stood) note(of *stance, g *cgroup.Group) {
	_, freezes := g.Has(cgroup.Freezer)
	_, slows := g.Has(cgroup.CPU)
	now, still := time.Now(), of.held() && (freezes || slows)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case still && !s.still:
		s.since = now
	case s.still && !still:
		s.total += now.Sub(s.since)
	}
	s.still, s.bound, s.share = still, 0, of.grant[resource.CPU]
	if rate, ok := of.disk.Rate.Get(); ok && rate < cgroup.NoLimit && of.disk.Device != "" {
		s.bound = rate
	}
}

// read returns how long the container has stood still until now, since this keeper has it, and the bound on its disk.
func (s *stood) read() (total time.Duration, bound int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	total = s.total
	if s.still {
		total += time.Since(s.since)
	}
	return total, s.bound
}

// granted returns the CPU that the container is granted now, millicores.
func (s *stood) granted() resource.Amount {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.share
}
