package fleet

import (
	"math"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/share"
	"github.com/bellows-rm/bellows/live/api"
)

// party is an owner with what it has of the machine and what it waits for. Executors of pools are not in jobs and
// waits, but in pools.
type party struct {
	owner api.Owner
	held  resource.Vector // by all its tasks and executors
	jobs  resource.Vector // of held, by tasks of jobs that are no executors
	waits resource.Vector // what tasks of such jobs need that could start if there were room
	least resource.Vector // what one of the tasks or executors needs that wait for room; zero if none does
	pools []claim
}

// claim is what a pool of a party could use.
type claim struct {
	tasks  int // that run or could run
	wanted int // executors: as many as could run a task or are kept, without a limit by others
	held   int // executors whose jobs have started
	need   resource.Vector
}

// unit is what shares are counted in: millionths of the machine.
const unit = 1_000_000

// rounding is how far shares may be off because they are whole numbers.
const rounding = unit / 10_000

// divide returns the limits of the pools of each party: of its first party's first pool, and so on. The owners share
// the machine by weighted max-min fairness of their dominant shares (Ghodsi, "Dominant Resource Fairness"), all with
// the same weight: what an owner does not demand is left to the others. A pool is limited only while another owner
// waits and has less than its share.
//
// An executor that runs a task is spared if its owner would have less than its share without it, unless another owner
// is due a whole task; the last one is always spared. So two owners that share an odd number of executors do not take
// them from each other in turn. An idle executor is not spared.
func divide(capacity resource.Vector, parties []party) (all [][]limits) {
	entitled := entitle(capacity, parties)
	short := make([]bool, len(parties)) // those that wait, and have less than their share
	due := make([]bool, len(parties))   // of them, those whose next task is within their share
	shorts, dues := 0, 0
	for i := range parties {
		p := &parties[i]
		held := dominant(capacity, p.held)
		if short[i] = p.least != (resource.Vector{}) && held < entitled[i]-rounding; short[i] {
			shorts++
		}
		if due[i] = short[i] && held+dominant(capacity, p.least) <= entitled[i]+rounding; due[i] {
			dues++
		}
	}
	for i := range parties {
		l := parties[i].limits(capacity, entitled[i])
		for k := range l {
			switch {
			case shorts == 0 || shorts == 1 && short[i]:
				l[k] = unlimited
			case dues > 1 || dues == 1 && !due[i]:
				l[k].most = max(1, l[k].warm)
			}
		}
		all = append(all, l)
	}
	return all
}

// entitle returns the share of each party.
func entitle(capacity resource.Vector, parties []party) []int {
	claims := make([]share.Claim, len(parties))
	for i := range parties {
		p := &parties[i]
		demand := p.jobs.Add(p.waits)
		for _, c := range p.pools {
			demand = demand.Add(times(c.need, c.wanted))
		}
		claims[i] = share.Claim{Weight: 1, Demand: min(unit, dominant(capacity, demand)), Held: dominant(capacity, p.held)}
		claims[i].Min = dominant(capacity, p.one())
	}
	var fair share.Fair
	return fair.Divide(unit, claims, make([]int, len(claims)))
}

// one is what one task of p needs: each owner gets that much before others get more. It is zero if p neither has nor
// waits for a task.
func (p *party) one() resource.Vector {
	for _, c := range p.pools {
		if c.tasks > 0 && c.held > 0 {
			return c.need
		}
	}
	return p.least
}

// limits returns the limits of the pools of p, which is entitled to a share, while others wait.
func (p *party) limits(capacity resource.Vector, entitled int) []limits {
	out := make([]limits, len(p.pools))
	claims := make([]share.Claim, len(p.pools))
	for i, c := range p.pools {
		each := dominant(capacity, c.need)
		claims[i] = share.Claim{Weight: 1, Demand: min(unit, each*min(c.wanted, unit)),
			Held: min(unit, each*min(c.held, unit))}
	}
	var fair share.Fair
	room := fair.Divide(max(0, entitled-dominant(capacity, p.jobs)), claims, make([]int, len(claims)))
	for i, c := range p.pools {
		each := max(2*rounding, dominant(capacity, c.need))
		out[i] = limits{most: (room[i] - rounding + each - 1) / each, warm: (room[i] + rounding) / each, waited: true}
	}
	return out
}

// dominant returns the largest fraction of a capacity that v takes, in millionths, rounded up.
func dominant(capacity, v resource.Vector) int {
	most := 0.0
	for k := range v {
		if capacity[k] > 0 && (resource.Kind(k) == resource.CPU || resource.Kind(k) == resource.Memory) {
			most = max(most, float64(v[k])/float64(capacity[k]))
		}
	}
	return int(min(math.Ceil(most*unit), math.MaxInt32))
}

// times returns n times v, capped at the largest amount.
func times(v resource.Vector, n int) resource.Vector {
	for k := range v {
		if n > 0 && v[k] > math.MaxInt64/4/resource.Amount(n) {
			v[k] = math.MaxInt64 / 4
		} else {
			v[k] *= resource.Amount(n)
		}
	}
	return v
}
