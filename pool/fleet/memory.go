package fleet

import (
	"time"

	"github.com/bellows-rm/bellows/live/api"
)

// measureEvery is how often the memory of executors is measured in pools that replace those which have much.
const measureEvery = 10 * time.Second

// followMemory measures the memory of executors until the pools are closed. An executor knows the memory of its own
// process at best, and has others: workers of Python, or a virtual machine that it has begun.
func (p *Pools) followMemory() {
	for {
		for _, l := range p.toMeasure() {
			j, err := p.config.Jobs.Job(p.ctx, l.job, true)
			if err != nil {
				continue // It has ended, or is measured the next time.
			}
			p.mu.Lock()
			if l.memory = memoryOf(&j); !l.quiet {
				l.memory = 0
			}
			p.mu.Unlock()
			p.kick()
		}
		select {
		case <-time.After(measureEvery):
		case <-p.ctx.Done():
			return
		}
	}
}

// toMeasure returns the executors whose memory matters now: a task may need more for a while.
func (p *Pools) toMeasure() (all []*launched) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.pools {
		for _, l := range h.executors {
			if h.record.Spec.Recycle > 0 && l.quiet && l.ordered == "" {
				all = append(all, l)
			}
		}
	}
	return all
}

// memoryOf returns how much memory the processes of a job have, in RAM and in swap; 0 if that is unknown.
func memoryOf(j *api.Job) (bytes int64) {
	for i := range j.Tasks {
		u := j.Tasks[i].Usage
		if u == nil {
			continue
		}
		for _, part := range []*int64{u.Anonymous, u.Swap} {
			if part != nil {
				bytes += *part
			}
		}
	}
	return bytes
}
