package keeper

import (
	"sync"
	"time"
)

// patience says whether prefetching from swap is worth it. Faults bring back about a quarter of a gigabyte per second
// from a file. Prefetching at less than half of that rate, as from a busy disk or from compressed memory, only delays
// the programs. Then it is omitted for a while, twice as long each time.
type patience struct {
	mu    sync.Mutex
	until time.Time
	pause time.Duration
}

const (
	worthwhile     = 128 << 20 // bytes per second
	firstPause     = 10 * time.Second
	longestPause   = 10 * time.Minute
	prefetchMargin = 250 * time.Millisecond
)

// may reports whether to prefetch now.
func (p *patience) may(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !now.Before(p.until)
}

// within returns how long prefetching may take.
func (p *patience) within(bytes int64) time.Duration {
	return prefetchMargin + time.Duration(float64(bytes)/worthwhile*float64(time.Second))
}

// took learns from a prefetch that has ended.
func (p *patience) took(now time.Time, d time.Duration, bytes int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && d <= p.within(bytes) {
		p.pause = 0
		return
	}
	p.pause = min(max(2*p.pause, firstPause), longestPause)
	p.until = now.Add(p.pause)
}
