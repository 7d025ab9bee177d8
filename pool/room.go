package pool

import "sync/atomic"

// Room bounds the bytes of arguments and results that all applications of one owner have, in however many pools. It
// may be used by several pools at a time. A nil Room bounds nothing.
type Room struct {
	most int64
	held atomic.Int64
}

// NewRoom returns room for a number of bytes.
func NewRoom(most int64) *Room { return &Room{most: most} }

// full reports whether more bytes exceed it. A single one always has room.
func (r *Room) full(more int) bool {
	if r == nil {
		return false
	}
	held := r.held.Load()
	return held > 0 && held+int64(more) > r.most
}

func (r *Room) add(n int64) {
	if r != nil {
		r.held.Add(n)
	}
}

// hold records how many bytes more an application has; fewer are negative.
func (p *Pool) hold(a *application, n int64) {
	a.held += n
	p.config.OfOwner.add(n)
}

// release frees the arguments of a task of an application that was cancelled. If that has been forgotten, they are
// free.
func (p *Pool) release(a *application, t *task) {
	p.hold(a, -min(a.held, int64(len(t.arguments))))
	t.arguments = nil
}

// mostUnheard is how many attachments may have ended without their application having confirmed it. An executor whose
// function returns at once, because the application was killed, would otherwise be attached to it again and again
// until its lease ends.
const mostUnheard = 64

// crowded reports whether an application has to collect results before it gets more: its tasks wait. One that drives
// has to hear of the ends of attachments before executors are attached to it again.
func (p *Pool) crowded(a *application) bool {
	if d := a.driving; d != nil {
		return d.unheard >= mostUnheard && a.cancelled == ""
	}
	return len(a.results) > 0 && a.cancelled == "" && (a.held >= p.config.Room || p.config.OfOwner.full(0))
}
