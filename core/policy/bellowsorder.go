package policy

import (
	"cmp"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy/contract"
	"github.com/bellows-rm/bellows/core/policy/queue"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// lineup is the order in which bellows serves jobs. Past its deadline a job that has not started comes first, and then
// the job that has waited longest, if it has lost patience. Of queues, the one with the least dominant share over its
// weight comes first, and in a queue the job with the least.
type lineup struct {
	tree     queue.Tree[line, struct{}]
	patience time.Duration // 0 is endless
	backfill bool          // whatever fits may start before jobs that do not

	// All fields below are computed from the snapshot.
	whole resource.Vector        // the capacity of the cluster from which shares were computed
	timed []*book.JobState       // those with a deadline that have not started
	late  []*book.JobState       // those of them that are past it and have a task to start, the most urgent first
	waits queue.Ranked[struct{}] // jobs with a task to start, the longest wait first
	since int64                  // the sum of the times since when these jobs wait, in milliseconds
	now   timeline.Time          // of this decision
}

// line is the jobs of a queue.
type line struct {
	weight float64
	jobs   queue.Fit // of a leaf
}

// declare makes a lineup. least is, per resource, the least with which a task of a job may start.
func (o *lineup) declare(s *contract.Settings, least func(*book.JobState) resource.Vector) {
	key := func(j *book.JobState) float64 { return queue.DominantShare(j, o.whole) }
	if s.Declare("order", "fair",
		"which job comes next. fair: that with the least dominant share over its weight; fifo: that submitted "+
			"first").OneOf("fair", "fifo") == "fifo" {
		key = queue.FirstSubmitted
	}
	queues := s.Declare("queues", "",
		"queues with their weights, such as prod=3,prod.etl=1,prod.web=2,adhoc=1; jobs name a leaf, and jobs without a "+
			"queue are in the leaf default; without queues all jobs are equal, whatever queue they name")
	if err := o.tree.Parse(queues.Text, readLineWeight); err != nil {
		queues.Reject(err)
	}
	for _, q := range o.tree.All {
		q.Own.jobs.Key = key
		q.Own.jobs.Grant = func(j *book.JobState, _ int) (resource.Vector, cluster.Reason, bool) {
			return least(j), cluster.Reason{}, true
		}
	}
	o.backfill = s.Declare("backfill", "early",
		"what a job that runs tasks may start in room that is too small for a job that comes before it and has no more "+
			"work left. early: what ends before that job could start there; any: whatever fits").OneOf("early", "any") == "any"
	o.patience = s.Declare("patience", "5m",
		"the job that has waited longest comes first when it has waited for so long, and three times as long as the other "+
			"waiting jobs on average: the next node that could hold its task is kept for it; 0s is never").OrNever()
}

func readLineWeight(l *line, text string) (err error) {
	l.weight, err = parseWeight(text)
	return err
}

func (o *lineup) admit(_ *book.Snapshot, j *cluster.Job) error { return o.tree.Check(j) }

func (o *lineup) drop() {
	o.tree.Members = nil
	for _, q := range o.tree.All {
		q.Own.jobs.Drop()
	}
	o.waits.Drop()
	o.since, o.timed = 0, o.timed[:0]
}

// follow updates the order from the changes of the snapshot.
func (o *lineup) follow(now timeline.Time, p *book.Plan) {
	if o.whole != p.Capacity {
		o.drop()
		o.whole = p.Capacity
	}
	for _, j := range o.tree.Changed(p) {
		o.update(j)
		if j.Deadline > 0 && !slices.Contains(o.timed, j) {
			o.timed = append(o.timed, j)
		}
	}
	o.timed = slices.DeleteFunc(o.timed, func(j *book.JobState) bool { return !j.NeverStarted() || j.Status.Ended() })
	o.now, o.late = now, o.late[:0]
	for _, j := range o.timed {
		if _, runnable := j.NextStage(); runnable && dueAt(j) <= now && o.tree.Home(j.Job) != nil {
			o.late = append(o.late, j)
		}
	}
	slices.SortFunc(o.late, func(a, b *book.JobState) int {
		return cmp.Or(cmp.Compare(dueAt(a), dueAt(b)), cmp.Compare(a.ID, b.ID))
	})
}

func dueAt(j *book.JobState) timeline.Time { return j.Submitted.Add(j.Deadline) }

// update puts j where it belongs, or removes it if it has nothing to start.
func (o *lineup) update(j *book.JobState) {
	o.tree.Update(j, func(m *queue.Member[line, struct{}]) {
		m.Leaf.Own.jobs.Update(j)
		m.Count()
		o.wait(j)
	})
	if at := slices.Index(o.late, j); at >= 0 && !j.NeverStarted() {
		o.late = slices.Delete(o.late, at, at+1)
	}
}

// wait notes since when j waits, if it does.
func (o *lineup) wait(j *book.JobState) {
	if before, waits := o.waits.As(j); waits {
		o.since -= int64(before.Key)
	}
	if _, runnable := j.NextStage(); !runnable {
		o.waits.Remove(j)
		return
	}
	since := int64(j.Since) / int64(time.Millisecond)
	o.since += since
	o.waits.File(queue.EntryOf(j, float64(since), struct{}{}))
}

// isLate reports whether j comes first because it is past its deadline.
func (o *lineup) isLate(j *book.JobState) bool { return slices.Contains(o.late, j) }

// impatient returns the job that comes first because it has lost patience; nil if none has.
func (o *lineup) impatient() *book.JobState {
	n := len(o.waits.Jobs)
	if n == 0 || o.patience == 0 || o.now.Sub(o.waits.Jobs[0].Job.Since) < o.patience {
		return nil
	}
	const several = 3 // Prophet's deadline, in mean waits
	now, longest := float64(int64(o.now)/int64(time.Millisecond)), o.waits.Jobs[0].Key
	if others := float64(n-1)*now - (float64(o.since) - longest); float64(n-1)*(now-longest) < several*others {
		return nil
	}
	return o.waits.Jobs[0].Job
}

// before returns the jobs that come before the order, the first first.
func (o *lineup) before() []*book.JobState {
	if j := o.impatient(); j != nil && !o.isLate(j) {
		return append(o.late[:len(o.late):len(o.late)], j)
	}
	return o.late
}

// urgent reports whether j comes before the order, and does not compete for a place.
func (o *lineup) urgent(j *book.JobState) bool { return o.isLate(j) || j == o.impatient() }

// each calls yield for the jobs of which a task may fit in free, the first in order first, until that returns false.
func (o *lineup) each(free resource.Vector, yield func(*book.JobState) bool) {
	before := o.before()
	for _, j := range before {
		leaf := o.tree.Home(j.Job)
		if e, filed := leaf.Own.jobs.As(j); filed && e.With.FitsIn(free) && !yield(j) {
			return
		}
	}
	o.walk(o.tree.Root, free, before, yield)
}

// walk is each for the jobs in and below a queue that did not come before. It returns false if yield did.
func (o *lineup) walk(q *queue.Queue[line], free resource.Vector, before []*book.JobState,
	yield func(*book.JobState) bool) bool {
	if q.Leaf() {
		jobs := &q.Own.jobs
		for e, ok := jobs.FitAfter(queue.FitEntry{}, free); ok; e, ok = jobs.FitAfter(e, free) {
			if !slices.Contains(before, e.Job) && !yield(e.Job) {
				return false
			}
		}
		return true
	}
	share := func(q *queue.Queue[line]) float64 { return queue.PartsOf(q.Used, o.whole).Largest() / q.Own.weight }
	children := slices.DeleteFunc(slices.Clone(q.Children), func(q *queue.Queue[line]) bool { return q.Runnable == 0 })
	slices.SortStableFunc(children, func(a, b *queue.Queue[line]) int { return cmp.Compare(share(a), share(b)) })
	for _, child := range children {
		if !o.walk(child, free, before, yield) {
			return false
		}
	}
	return true
}

// first returns the job that comes first, whether it fits or not; nil if there is none.
func (o *lineup) first() (first *book.JobState) {
	o.each(resource.TooMuch(), func(j *book.JobState) bool {
		first = j
		return false
	})
	return first
}

// keep keeps n for a job that comes before the order and has nothing to start there now.
func (b *bellows) keep(now timeline.Time, p *book.Plan, n *book.NodeState) bool {
	for _, j := range b.order.before() {
		if p.Running > 0 && b.lacks(now, p, n, j) {
			b.reserve(p, n, j)
			return true
		}
	}
	return false
}

// mostAhead is how many jobs, the first in order, a job may yield to.
const mostAhead = 16

// yields keeps n for a job that comes before j, has no more work left, and lacks room there, if it is known when n will
// have that room. Only a job that runs tasks yields: it took its room, and would take all that becomes free.
func (b *bellows) yields(now timeline.Time, p *book.Plan, n *book.NodeState, j *book.JobState) (kept bool) {
	if b.order.backfill || j.Used.IsZero() || p.Running == 0 || b.order.urgent(j) {
		return false
	}
	work, ahead := packedWork(j, p.Capacity), 0
	b.order.each(resource.TooMuch(), func(first *book.JobState) bool {
		if ahead++; first == j || ahead > mostAhead {
			return false
		}
		if !(work < packedWork(first, p.Capacity)) && b.lacks(now, p, n, first) {
			stage, _ := first.NextStage()
			if _, kept = b.gap.room(now, p, n, b.fits(now, p, first, stage)); kept {
				b.reserve(p, n, first)
			}
		}
		return !kept
	})
	return kept
}

// lacks reports whether a job for which no node is kept has nothing to start on n now, although n could hold its next
// task.
func (b *bellows) lacks(now timeline.Time, p *book.Plan, n *book.NodeState, j *book.JobState) bool {
	stage, _ := j.NextStage()
	if j.Reservations > 0 || !b.holds(p.Snapshot, n, &j.Stages[stage]) {
		return false
	}
	_, _, fits := b.suits(now, p, n, j, timeline.Never)
	return !fits
}

func (b *bellows) reserve(p *book.Plan, n *book.NodeState, j *book.JobState) {
	stage, _ := j.NextStage()
	p.Reserve(n, j, stage, cluster.BecauseReserved(j.Stages[stage].Ideal, n.Free))
}

// fits says whether the next task of a stage may start on a node.
func (b *bellows) fits(now timeline.Time, p *book.Plan, j *book.JobState, stage int) func(*book.NodeState) bool {
	return func(n *book.NodeState) bool {
		_, _, fits := b.size(now, p.Snapshot, n, j, stage)
		return fits
	}
}

// keptUntil returns when the job for which n is kept can use it; ok is false if that is unknown.
func (b *bellows) keptUntil(now timeline.Time, p *book.Plan, n *book.NodeState) (until timeline.Time, ok bool) {
	return b.gap.until(now, p, n, b.fits(now, p, n.ReservedFor, n.ReservedStage))
}
