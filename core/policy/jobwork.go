package policy

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// jobWork is the outstanding work of one job, computed once for each version of the job.
type jobWork struct {
	job       *book.JobState
	version   uint64
	submitted timeline.Time
	queued    float64       // byte-seconds of tasks that have not started
	longest   time.Duration // of a queued task
	running   timeline.Time // the latest end of its running tasks, which may have passed
	still     time.Duration // from when they go on to their end: the longest of its tasks that stand still
	known     bool          // every task has an estimate
}

// measure updates s.work from the jobs of p: ended jobs are removed, new jobs added, changed jobs measured again. The
// order hardly changes between calls, so that sorting costs little more than a scan.
func (s *sum) measure(p *book.Plan) {
	s.removeRetired()
	before := len(s.work)
	if before < len(p.Jobs) {
		s.addNew(p)
	}
	sorts := len(s.work)-before > manyNew
	largest := p.Largest()
	anew := s.node != largest
	s.node = largest
	for i := range s.work {
		if w := &s.work[i]; anew || w.version != w.job.Version {
			*w = workOf(p, w.job, largest)
		}
		if !sorts {
			s.sift(i)
		}
	}
	if sorts {
		slices.SortFunc(s.work, func(v, w jobWork) int {
			return cmp.Or(cmp.Compare(v.queued, w.queued), cmp.Compare(v.job.ID, w.job.ID))
		})
	}
}

// manyNew is how many new jobs at a time are sorted in: moving them to their places one by one takes a time that
// grows with the square of their number, as after a restart with many waiting jobs.
const manyNew = 32

func (s *sum) removeRetired() {
	s.work = slices.DeleteFunc(s.work, func(w jobWork) bool {
		if w.job.Retired() {
			delete(s.known, w.job)
			return true
		}
		return false
	})
}

// addNew adds the unknown jobs, with a version that no job has. Most of them belong at the end.
func (s *sum) addNew(p *book.Plan) {
	if s.known == nil {
		s.known = map[*book.JobState]bool{}
	}
	for i := len(p.Jobs) - 1; len(s.work) < len(p.Jobs); i-- {
		if j := p.Jobs[i]; !s.known[j] {
			s.known[j] = true
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

// less orders by queued work; no two jobs are equal.
func (w *jobWork) less(v *jobWork) bool {
	return w.queued < v.queued || w.queued == v.queued && w.job.ID < v.job.ID
}

func workOf(p *book.Plan, j *book.JobState, node resource.Vector) jobWork {
	w := jobWork{job: j, version: j.Version, submitted: j.Submitted, running: math.MinInt64, known: true}
	for _, t := range j.Tasks {
		if t.Steers {
			continue
		}
		end, ok := p.EstimatedEnd(t, math.MinInt64)
		w.known = w.known && ok
		if w.running = max(w.running, end); t.Suspended && ok {
			w.still = max(w.still, end.Sub(t.SuspendedSince))
		}
	}
	for i := range j.Stages {
		stage, pending := &j.Stages[i], j.Progress[i].Pending
		if pending == 0 || stage.Coordinator {
			continue
		}
		// A task whose ideal memory fits on no node runs under-sized or never: its end says nothing about waiting.
		w.known = w.known && stage.Duration > 0 && stage.Ideal.FitsIn(node)
		w.longest = max(w.longest, stage.Duration)
		w.queued += float64(pending) * stage.Duration.Seconds() * partOfNode(stage.Ideal, node)
	}
	return w
}

// partOfNode returns the memory that one task takes of a node, in bytes, when the node is full of equal tasks.
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
