package agent

import (
	"fmt"
	"sync"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// remains is the memory that outlives the containers that have used it: files that they wrote to a file system in
// memory, such as /dev/shm, and segments that they shared. No container is charged for it any more, and nothing may
// be granted in its place.
type remains struct {
	mu    sync.Mutex
	bytes resource.Amount // as the engine knows it
	read  time.Time
}

const (
	// leastRemains is the least memory that counts. The kernel's counters of groups are off by up to some MiB.
	leastRemains = 16 * resource.MiB
	// remainsStep is the least change that is reported.
	remainsStep = resource.MiB
	// remainsInterval is how often remains are read again that were found: whoever removes them does not say so.
	remainsInterval = 5 * time.Second
)

// take reads what remains, and reports it if it has changed.
func (r *remains) take(leftover func() (bytes int64, ok bool), report func(resource.Amount)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read = time.Now()
	read, ok := leftover()
	if !ok {
		return
	}
	bytes := resource.Amount(read)
	if bytes < leastRemains {
		bytes = 0
	}
	if max(bytes-r.bytes, r.bytes-bytes) >= remainsStep {
		r.bytes = bytes
		report(bytes)
	}
}

// due reports whether what remained is to be read again.
func (r *remains) due() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes > 0 && time.Since(r.read) >= remainsInterval
}

// known is what remains, as the engine knows it.
func (r *remains) known() resource.Amount {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes
}

// takeRemains reads what remains, and reports it if it has changed.
func (a *Agent) takeRemains() {
	a.remains.take(a.groups.root.Leftover, func(bytes resource.Amount) {
		a.events.put(cluster.Event{Kind: cluster.NodeLeftover, Held: bytes})
	})
}

// lookAtRemains reads again what remained, in time.
func (a *Agent) lookAtRemains() {
	if a.remains.due() {
		a.takeRemains()
	}
}

// remaining returns how much memory outlives containers.
func (a *Agent) remaining() resource.Amount { return a.remains.known() }

// outlived says what memory of a container outlives it whose programs have all ended; empty if that is little.
func (c *container) outlived() string {
	if c.group == nil {
		return ""
	}
	left := resource.Amount(c.group.Shared())
	if left < leastRemains {
		return ""
	}
	return fmt.Sprintf("left %s in memory, in files such as those in /dev/shm or in segments that it shared: "+
		"nothing else gets that memory until they are removed", resource.FormatMemory(left))
}
