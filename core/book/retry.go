package book

import (
	"cmp"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/heap"
	"github.com/bellows-rm/bellows/core/timeline"
)

// again is a task that is to run again from a time on.
type again struct {
	index int32
	at    timeline.Time
}

func (a again) compare(at timeline.Time) int { return cmp.Compare(a.at, at) }

// retries are the pauses of tasks between attempts, so that the engine lets each attempt begin in time.
type retries struct {
	ends  heap.Heap[timeline.Time, pausing] // of all pauses, and of some that have ended otherwise
	first timeline.Time                     // no attempt begins earlier
	woken timeline.Time                     // the newest Wake that was requested for an attempt
	jobs  uint64                            // how many jobs have begun to pause: see JobState.retries
	due   []*JobState                       // for retryDue
}

// pausing is a stage of a job with a task that pauses.
type pausing struct {
	job   cluster.JobID
	stage int32
}

// pauseAfter makes a task that has failed run again after its pause.
func (s *Snapshot) pauseAfter(j *JobState, stage int32, next again) {
	p := &j.Progress[stage]
	at, _ := slices.BinarySearchFunc(p.later, next.at+1, again.compare)
	p.later = slices.Insert(p.later, at, next)
	s.retries.add(j, next.at, stage)
}

// add notes that a task of a job pauses until a time.
func (r *retries) add(j *JobState, until timeline.Time, stage int32) {
	if len(r.ends) == 0 || until < r.first {
		r.first = until
	}
	if j.retries == 0 {
		r.jobs++
		j.retries = r.jobs
	}
	r.ends.Push(until, 0, pausing{j.ID, stage})
}

// wakes returns when a step is needed for the next attempt; ok is false if none is, or one was requested.
func (r *retries) wakes(now timeline.Time) (at timeline.Time, ok bool) {
	if len(r.ends) == 0 || r.first <= now || r.first == timeline.Never || r.woken > now && r.woken <= r.first {
		return 0, false
	}
	r.woken = r.first
	return r.first, true
}

// pausesUntil reports whether a task of a stage pauses until a time.
func (p *StageState) pausesUntil(at timeline.Time) bool {
	_, found := slices.BinarySearchFunc(p.later, at, again.compare)
	return found
}

// laterAt returns the position of a task among those that pause; negative if it does not.
func (p *StageState) laterAt(index int32) int {
	return slices.IndexFunc(p.later, func(a again) bool { return a.index == index })
}

// retryDue makes tasks whose pause is over pending. It takes O(log pauses) for each of these, not for each that pauses.
func (p *Plan) retryDue() {
	r := &p.retries
	if len(r.ends) == 0 || p.now < r.first {
		return
	}
	// 1. The jobs whose turn has come, in the order in which they have begun to pause.
	r.first, r.due = timeline.Never, r.due[:0]
	for len(r.ends) > 0 {
		at, of := r.ends[0].Key, r.ends[0].Value
		if j, here := p.byJob[of.job]; here && !j.Status.Ended() {
			if at > p.now && j.Progress[of.stage].pausesUntil(at) {
				r.first = at
				break
			}
			r.due = append(r.due, j)
		}
		r.ends.Pop()
	}
	slices.SortFunc(r.due, func(a, b *JobState) int { return cmp.Compare(a.retries, b.retries) })
	// 2. Their tasks.
	for _, j := range slices.Compact(r.due) {
		j.retryDue(p)
	}
	clear(r.due)
}

// retryDue makes the tasks of a job whose pause is over pending.
func (j *JobState) retryDue(p *Plan) {
	due, pauses := false, false
	for i := range j.Progress {
		s := &j.Progress[i]
		n := 0
		for ; n < len(s.later) && s.later[n].at <= p.now; n++ {
			j.resumeAttempts(int32(i), s.later[n].index)
			due = true
		}
		s.later = slices.Delete(s.later, 0, n)
		pauses = pauses || len(s.later) > 0
	}
	if due {
		j.Since = max(j.Since, p.now)
		j.Waiting = cluster.Reason{}
		p.reopened(j)
	}
	if !pauses {
		j.retries = 0
	}
}

// resumeAttempts makes a task whose pause between attempts is over pending, or held if its owner has paused it.
func (j *JobState) resumeAttempts(stage, index int32) {
	p := &j.Progress[stage]
	if j.paused.part(cluster.TaskID{Job: j.ID, Stage: stage, Index: index}) != nil {
		p.held = append(p.held, index)
		return
	}
	p.again(index)
	j.forQuota(p)
}

// forQuota withholds a task that has become pending: it gave up its part of the quota when it ended.
func (j *JobState) forQuota(s *StageState) {
	if j.standing != nil {
		s.Withheld++
	}
}

// wakeForRetry requests a step when the next attempt may begin, unless one was requested.
func (p *Plan) wakeForRetry() {
	if at, ok := p.retries.wakes(p.now); ok {
		p.Wake(at, cluster.Because(cluster.RetryDue))
	}
}

// whyRetry says what the next task of a stage whose tasks pause between attempts waits for.
func (j *JobState) whyRetry(stage int) (why cluster.Reason, ok bool) {
	p := &j.Progress[stage]
	next := p.later[0]
	if j.paused.part(cluster.TaskID{Job: j.ID, Stage: int32(stage), Index: next.index}) != nil {
		return cluster.Because(cluster.PausedByOwner), true
	}
	return cluster.BecauseRetryLater(p.attempts[next.index]+1, next.at), true
}

// Retry is a task that pauses between attempts.
type Retry struct {
	Task    cluster.TaskID
	At      timeline.Time // when its next attempt begins
	Attempt int           // the number of that attempt, at least 2
}

// Retries returns the tasks of j that pause between attempts, by stages, in each the first to go on first.
func (j *JobState) Retries() (all []Retry) {
	for i := j.passed; i < len(j.Progress) && !j.Status.Ended(); i++ {
		p := &j.Progress[i]
		for _, a := range p.later {
			all = append(all, Retry{cluster.TaskID{Job: j.ID, Stage: int32(i), Index: a.index}, a.at, p.attempts[a.index] + 1})
		}
	}
	return all
}
