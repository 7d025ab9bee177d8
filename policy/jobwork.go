package policy

import (
	"math"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// jobWork is what one job still asks for, worked out once for each version of the job.
type jobWork struct {
	job     *cluster.JobState
	version uint64
	node    resource.Vector // the largest node, which stands for all when tasks are cut to their part of a node
	queued  float64         // byte-seconds of tasks that have not started
	longest time.Duration   // of a queued task
	running timeline.Time   // the latest end of its running tasks, which may have passed
	known   bool            // every task has an estimate
}

// measure brings s.work up to date with the jobs of p: ended jobs leave, new ones come, those that changed are measured
// again. The order is nearly that of the last time, so that sorting costs little more than looking.
func (s *sum) measure(p *cluster.Plan) {
	left := s.work[:0]
	for _, w := range s.work {
		if !w.job.Retired() {
			left = append(left, w)
		}
	}
	clear(s.work[len(left):])
	s.work = left
	if len(s.work) < len(p.Jobs) {
		s.addNew(p)
	}
	largest := p.Largest()
	for i := range s.work {
		if w := &s.work[i]; w.version != w.job.Version || w.node != largest {
			*w = workOf(p, w.job, largest)
		}
		s.sift(i)
	}
}

// addNew enters the jobs that are not known yet. Their version is none that a job has.
func (s *sum) addNew(p *cluster.Plan) {
	known := make(map[*cluster.JobState]bool, len(s.work))
	for i := range s.work {
		known[s.work[i].job] = true
	}
	for _, j := range p.Jobs {
		if !known[j] {
			s.work = append(s.work, jobWork{job: j, version: math.MaxUint64})
		}
	}
}

// sift moves work[i] to its place among those before it.
func (s *sum) sift(i int) {
	if i == 0 || !s.work[i].less(&s.work[i-1]) {
		return
	}
	w := s.work[i]
	for ; i > 0 && w.less(&s.work[i-1]); i-- {
		s.work[i] = s.work[i-1]
	}
	s.work[i] = w
}

// less orders by what is queued; no two jobs are equal.
func (w *jobWork) less(v *jobWork) bool {
	return w.queued < v.queued || w.queued == v.queued && w.job.ID < v.job.ID
}

func workOf(p *cluster.Plan, j *cluster.JobState, node resource.Vector) jobWork {
	w := jobWork{job: j, version: j.Version, node: node, running: math.MinInt64, known: true}
	for _, t := range j.Tasks {
		if t.Stage().Coordinator {
			continue
		}
		end, ok := p.EstimatedEnd(t, math.MinInt64)
		w.known = w.known && ok
		w.running = max(w.running, end)
	}
	for i := range j.Stages {
		stage, pending := &j.Stages[i], j.Progress[i].Pending
		if pending == 0 || stage.Coordinator {
			continue
		}
		// What no node can hold with its ideal memory runs under-sized or never: its end says nothing about waiting.
		w.known = w.known && stage.Duration > 0 && stage.Ideal.FitsIn(node)
		w.longest = max(w.longest, stage.Duration)
		w.queued += float64(pending) * stage.Duration.Seconds() * partOfNode(stage.Ideal, node)
	}
	return w
}

// partOfNode returns how much of a node's memory one task takes when the node is full of its like, in bytes.
func partOfNode(need, node resource.Vector) float64 {
	fit := resource.Amount(1)
	if need[resource.Memory] > 0 {
		fit = node[resource.Memory] / need[resource.Memory]
	}
	if need[resource.CPU] > 0 {
		fit = min(fit, node[resource.CPU]/need[resource.CPU])
	}
	return float64(node[resource.Memory]) / float64(max(1, fit))
}
