package fleet

import (
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/pool"
)

// measureEvery is how often the memory of executors is measured in pools that replace those which have much, and in
// pools of class FLEX, where it can be in swap.
const measureEvery = 10 * time.Second

// followMemory measures the memory of executors until the pools are closed. An executor knows the memory of its own
// process at best, and has others: workers of Python, or a virtual machine that it has begun.
func (p *Pools) followMemory() {
	for {
		for _, m := range p.toMeasure() {
			j, err := p.config.Jobs.Job(p.ctx, m.job, true)
			if err != nil {
				continue // It has ended, or is measured the next time.
			}
			all, swapped := memoryOf(&j)
			if m.recycles {
				p.mu.Lock()
				if m.memory = all; !m.quiet {
					m.memory = 0
				}
				p.mu.Unlock()
				p.kick()
			}
			_ = m.pool.PagedOut(p.ctx, m.number, swapped, all) // or the pool is gone, with its executors
		}
		select {
		case <-time.After(measureEvery):
		case <-p.ctx.Done():
			return
		}
	}
}

// measured is an executor whose memory is measured.
type measured struct {
	*launched
	pool     *pool.Pool
	recycles bool // it is replaced when it has much
}

// toMeasure returns the executors whose memory matters now: a task may need more for a while.
func (p *Pools) toMeasure() (all []measured) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.pools {
		for _, l := range h.executors {
			spec := &h.record.Spec
			if (spec.Recycle > 0 || spec.Class == cluster.Flex) && l.quiet && l.ordered == "" {
				all = append(all, measured{l, h.pool, spec.Recycle > 0})
			}
		}
	}
	return all
}

// memoryOf returns how much memory the processes of a job have, in RAM and in swap, and how much of it is in swap,
// bytes; 0 if that is unknown.
func memoryOf(j *api.Job) (all, swapped int64) {
	for i := range j.Tasks {
		u := j.Tasks[i].Usage
		if u == nil {
			continue
		}
		if u.Anonymous != nil {
			all += *u.Anonymous
		}
		if u.Swap != nil {
			all, swapped = all+*u.Swap, swapped+*u.Swap
		}
	}
	return all, swapped
}

// begun is an executor that has got something to do after a rest.
type begun struct {
	ref    api.PoolRef
	number int
}

// mostBegun bounds those of which fetchBack has not heard. Others fault their memory in, which takes longer.
const mostBegun = 1024

// begins notes that an executor begins to work. It does not wait.
func (p *Pools) begins(ref api.PoolRef, number int) {
	select {
	case p.begun <- begun{ref, number}:
	default:
	}
}

// fetchBack has the memory of executors that begin to work fetched back from swap, until the pools are closed.
func (p *Pools) fetchBack() {
	for {
		select {
		case b := <-p.begun:
			if c, may := p.pagedOut(b); may && p.config.FetchBack != nil {
				p.config.FetchBack(c)
			}
		case <-p.ctx.Done():
			return
		}
	}
}

// pagedOut returns the container of an executor, and whether its memory may be in swap.
func (p *Pools) pagedOut(b begun) (c cluster.ContainerID, may bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.pools[b.ref]
	if h == nil || h.record.Spec.Class != cluster.Flex || h.executors[b.number] == nil {
		return c, false
	}
	for _, t := range p.jobs[h.executors[b.number].job].Tasks {
		if t.State == api.TaskRunning {
			return cluster.ContainerID{Task: t.Task, Run: t.Run}, true
		}
	}
	return c, false
}
