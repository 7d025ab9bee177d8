package server

import (
	"context"
	"sync"
)

// turns lets one request of each user at a time compete for a scarce resource, so that it does not matter how many
// requests a user has.
type turns struct {
	mu sync.Mutex
	of map[uint32]*turn
}

// turn is the turn of a user.
type turn struct {
	taken    chan struct{} // has an element while a request has it
	requests int           // that have it or wait for it
}

// take waits for the turn of a user. The caller calls done when the next request of the user may have it.
func (t *turns) take(ctx context.Context, uid uint32) (done func(), err error) {
	t.mu.Lock()
	own := t.of[uid]
	if own == nil {
		if t.of == nil {
			t.of = map[uint32]*turn{}
		}
		own = &turn{taken: make(chan struct{}, 1)}
		t.of[uid] = own
	}
	own.requests++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if own.requests--; own.requests == 0 {
			delete(t.of, uid)
		}
	}
	select {
	case own.taken <- struct{}{}:
		return func() { <-own.taken; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}

// places are a number of places, of which an ordinary user has at most half.
type places struct {
	most   int
	daemon uint32 // the daemon's user, who may have all, as root

	mu    sync.Mutex
	taken int
	of    map[uint32]int
}

func newPlaces(most int, daemon uint32) *places {
	return &places{most: most, daemon: daemon, of: map[uint32]int{}}
}

// share is how many places an ordinary user may have.
func (p *places) share() int { return max(1, p.most/2) }

// enter takes a place for a user. It returns how many places there are for the user if all of them are taken, or else
// 0.
func (p *places) enter(uid uint32) (full int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.taken >= p.most:
		return p.most
	case uid != 0 && uid != p.daemon && p.of[uid] >= p.share():
		return p.share()
	}
	p.taken++
	p.of[uid]++
	return 0
}

// leave frees a place of a user.
func (p *places) leave(uid uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.of[uid]--; p.of[uid] == 0 {
		delete(p.of, uid)
	}
}
