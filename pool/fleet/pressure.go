package fleet

import (
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/pool"
)

// followPressure tells pools which of their executors overuse what is pressed, until the pools are closed.
func (p *Pools) followPressure() {
	for {
		pressure, err := p.config.Jobs.Pressure(p.ctx)
		if err != nil { // The driver has ended.
			return
		}
		for one, executors := range p.offending(offenders(&pressure)) {
			_ = one.Pressed(p.ctx, pressure.Gives, executors) // or it is gone, with its executors
		}
	}
}

// offending returns which executors of each pool are offenders.
func (p *Pools) offending(offend map[cluster.JobID]bool) map[*pool.Pool]map[int]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[*pool.Pool]map[int]bool{}
	for _, h := range p.pools {
		some := map[int]bool{}
		for number, l := range h.executors {
			some[number] = offend[l.job]
		}
		all[h.pool] = some
	}
	return all
}

// offenders returns the jobs whose tasks overuse what is pressed: at least half the average of the jobs that use it.
// It returns none while the policy of the machine bounds what programs use: the two together would leave capacity
// idle.
func offenders(p *live.Pressure) map[cluster.JobID]bool {
	offend := map[cluster.JobID]bool{}
	if p.Bounded {
		return offend
	}
	for k := range resource.NumKinds {
		sum, users := resource.Amount(0), resource.Amount(0)
		for _, uses := range p.Uses {
			if uses[k] > 0 {
				sum, users = sum+uses[k], users+1
			}
		}
		for id, uses := range p.Uses {
			if p.Gives[k] > 0 && uses[k] > 0 && 2*uses[k] >= sum/users {
				offend[id] = true
			}
		}
	}
	return offend
}
