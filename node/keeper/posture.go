package keeper

import (
	"context"
	"sync"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// posture is the stance of a container, and what has come of it so far. One change is carried out at a time.
type posture struct {
	mu     sync.Mutex
	stance stance
	stood  stood
	// breathing says that a goroutine lets the container breathe while the engine holds it.
	breathing bool
}

func newPosture(s *Setup) *posture {
	return &posture{stance: stance{grant: s.Grant, mostCPU: s.Envelope.MostCPU}, stood: stoodWith(s.Grant)}
}

// now returns the stance, once the change under way is carried out.
func (p *posture) now() stance {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stance
}

// look calls f with the stance, which does not change meanwhile. If a change is under way, it does nothing.
func (p *posture) look(f func(s *stance)) {
	if !p.mu.TryLock() {
		return
	}
	defer p.mu.Unlock()
	f(&p.stance)
}

// adopt changes the stance to what the container is found in.
func (p *posture) adopt(how func(*stance)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	how(&p.stance)
}

// change changes the stance and carries it out. If that fails, the stance is what it was.
func (p *posture) change(ctx context.Context, g *cgroup.Group, how func(*stance)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.stance
	how(&p.stance)
	err := p.stance.carryOut(ctx, g, was)
	if err != nil {
		p.stance = was
	}
	p.stood.note(&p.stance, g)
	return err
}

// note takes in that the container stands as its stance says.
func (p *posture) note(g *cgroup.Group) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stood.note(&p.stance, g)
}

// breathe notes that a goroutine lets the container breathe from now on, unless one does.
func (p *posture) breathe() (begins bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	begins = !p.breathing
	p.breathing = true
	return begins
}

// rest reports whether the engine no longer holds the container, so that the goroutine for breaths ends.
func (p *posture) rest() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.breathing = p.stance.engine.By != 0
	return !p.breathing
}

// stoodStill and granted are those of stood, which do not wait for the change under way.
func (p *posture) stoodStill() (total time.Duration, bound int64) { return p.stood.read() }

func (p *posture) granted() resource.Amount { return p.stood.granted() }
