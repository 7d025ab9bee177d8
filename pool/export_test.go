package pool

import "context"

// Nodes returns how many nodes the engine knows, with those that have left.
func (p *Pool) Nodes(ctx context.Context) (n int) {
	_ = p.do(ctx, func() error { n = len(p.loop.Engine().Snapshot().Nodes); return nil })
	return n
}

// Held returns how many bytes are in the room.
func (r *Room) Held() int64 { return r.held.Load() }

// Throttled returns how many tasks the engine believes to be bounded.
func (p *Pool) Throttled(ctx context.Context) (n int) {
	_ = p.do(ctx, func() error {
		for _, j := range p.loop.Engine().Snapshot().Jobs {
			for _, t := range j.Tasks {
				if t.Throttled != nil {
					n++
				}
			}
		}
		return nil
	})
	return n
}
