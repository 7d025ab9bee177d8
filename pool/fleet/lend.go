package fleet

import (
	"cmp"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
)

// lendsAfter is how long an executor must have run nothing before it lends its cores: one that is between two tasks
// does not lend.
const lendsAfter = time.Second

// lendsWhy is why an executor that lends uses less than it is granted.
const lendsWhy = "it lends its cores to what waits, until it has a task"

// lending is what changes about who lends cores.
type lending struct {
	lend, take []int         // numbers of executors
	again      time.Duration // after which time alone changes the answer; 0 is never
}

// lend decides which executors of a pool lend their cores: of those that have been idle for lendsAfter, the one idle
// for longest first, and as many as others lack cores. An executor lends until it has a task or is to end, so that
// cores do not go back and forth.
func lend(members []member, lends map[int]bool, each, lacking resource.Amount) (out lending) {
	var may []member
	for _, m := range members {
		switch {
		case lends[m.number] && m.stage != idle:
			out.take = append(out.take, m.number)
		case !lends[m.number] && m.stage == idle:
			may = append(may, m)
		}
	}
	slices.SortFunc(may, func(a, b member) int {
		return cmp.Or(cmp.Compare(b.since, a.since), cmp.Compare(b.number, a.number))
	})
	for _, m := range may {
		switch {
		case lacking <= 0 || each <= 0:
			return out
		case m.since < lendsAfter:
			out.again = lendsAfter - m.since
			return out
		}
		out.lend = append(out.lend, m.number)
		lacking -= each
	}
	return out
}

// lacking returns how many cores are missing for what waits on the machine, other than the executors of h.
func (p *Pools) lacking(h *held) resource.Amount {
	own := map[cluster.JobID]bool{}
	for _, l := range h.executors {
		own[l.job] = true
	}
	free, waits := p.config.Capacity[resource.CPU], resource.Amount(0)
	for id, u := range p.uses {
		free -= u.held[resource.CPU] - u.lent // negative if what was lent has been taken back
		if !own[id] {
			waits += min(u.waits[resource.CPU], p.config.Capacity[resource.CPU])
		}
	}
	if waits == 0 {
		return 0
	}
	return waits - free
}

// lendsCores reports whether a job lends its cores because it has nothing to do, as far as the driver has said.
func (p *Pools) lendsCores(id cluster.JobID) bool {
	j := p.jobs[id]
	return slices.ContainsFunc(j.Tasks, func(t api.Task) bool { return t.State != api.TaskEnded && t.Lends })
}

// lends decides which executors of one pool lend, adds the jobs to report to the driver, and returns when time alone
// changes the answer. The driver ignores what it already knows, so it may get the same report twice.
func (p *Pools) lends(h *held, members []member, lent, taken *[]cluster.JobID) time.Duration {
	now := map[int]bool{}
	for number, l := range h.executors {
		now[number] = p.lendsCores(l.job)
	}
	out := lend(members, now, needOf(&h.record.Spec)[resource.CPU], p.lacking(h))
	for _, number := range out.lend {
		*lent = append(*lent, h.executors[number].job)
	}
	for _, number := range out.take {
		*taken = append(*taken, h.executors[number].job)
	}
	return out.again
}

// tellLends tells the driver which executors lend from now on, or no longer do. If it fails, the next step tries it
// again.
func (p *Pools) tellLends(ids []cluster.JobID, lends bool) {
	if len(ids) == 0 {
		return
	}
	if err := p.config.Jobs.Lend(p.ctx, ids, lends); err != nil && p.ctx.Err() == nil {
		p.log.Debug("executors cannot lend their cores, or take them back", "executors", len(ids), "error", err)
	}
}
