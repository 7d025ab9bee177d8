package policy

import (
	"math"
	"slices"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy/contract"
	"github.com/bellows-rm/bellows/core/policy/queue"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// tetris packs tasks onto nodes by their peak demands of all resources (Grandl et al., "Multi-Resource Packing for
// Cluster Schedulers", SIGCOMM 2014). When a node has room, the tasks that fit are ranked by their alignment with the
// node, which is the dot product of their demand and the free resources, both over the node's capacity, and by the
// remaining work of their job, less work first. Only jobs far below their fair share are considered, and the last tasks
// of a stage come first. Where a stage has a forecast, its peaks of disk and network are granted; all other policies
// are blind to forecasts, or do not reserve them.
//
// The paper's penalty for remote input does not apply, because input is neither local nor remote here. The full text of
// the paper was not available; docs/decisions/0006-baselines.md lists what is unclear and how it is interpreted here.
type tetris struct {
	fairness   float64 // f: only the share 1-f of the jobs that are furthest below their fair share is considered
	barrier    float64 // b: once this share of a stage has ended, the rest of the stage is preferred
	multiplier float64 // m: weight of remaining work

	nodes    []*book.NodeState // of the cluster, also those that left
	known    int               // how many there were when the jobs were filed
	capacity resource.Vector   // of the cluster then
	// queue has the jobs with a task to start that a node can hold, the furthest below its fair share first.
	queue queue.Ranked[*packedJob]
	// fresh are considered jobs whose tasks may fit on nodes that did not change.
	fresh   []*packedJob
	demands map[peaks]int32 // to an index in scores and peaks
	scores  []alignment
	peaks   []peaks
	holds   []bool // whether a node can hold the demand when nothing runs there
	live    int    // the number of demands when all jobs were filed
	offers  int    // counts offers, to recognise outdated scores
	fit     []candidate
	ranks   []rank // of the candidates
}

// packedJob is a job with what was computed for it.
type packedJob struct {
	job   *book.JobState
	share float64 // dominant share over weight
	// work is the job's outstanding work over the cluster's capacity, in seconds, summed over resources; NaN if
	// unknown.
	work       float64
	ready      []packedStage
	considered bool
}

// packedStage is a stage with a task to start.
type packedStage struct {
	stage     int32
	demand    int32 // index in scores and peaks
	preferred bool
}

// alignment is how well a demand suits the node that was offered last. Jobs with equal demands share it. Every offer
// reads the alignments of all considered jobs, which is most of what tetris does: they are small, and peaks are kept
// elsewhere.
type alignment struct {
	grant resource.Vector // on the node of the offer; without peaks it is the ideal need on every node
	offer int             // the offer for which it was computed
	score float64
	fits  bool
	peaks bool // whether the grant depends on the node
}

// candidate is a task that fits.
type candidate struct {
	job   *packedJob
	stage packedStage
}

// rank is what decides between tasks that fit.
type rank struct {
	score     float64 // how well the task suits the node, at least 0
	work      float64 // the remaining work of its job; NaN if unknown
	preferred bool
}

func newTetris(s *contract.Settings) Policy {
	return &tetris{
		fairness: s.Declare("fairness", "0.25",
			"f, from 0, the best packing, to 1, the fairest: only the share 1-f of the jobs is considered, those "+
				"furthest below their fair share, and at least one job").Share(),
		barrier: s.Declare("barrier", "0.9",
			"b: when this share of a stage's tasks has ended, its last tasks come first; with 1 they never do").Share(),
		multiplier: s.Declare("remaining-work", "1",
			"m: weight of a job's remaining work against the alignment of its tasks; 0 considers the alignment alone").Number(),
	}
}

func (*tetris) Name() string     { return "tetris" }
func (t *tetris) Traits() Traits { return Traits{Why: t.why, DropCaches: t.dropCaches} }

func (t *tetris) dropCaches() {
	t.queue.Drop()
	t.fresh, t.demands, t.scores, t.peaks, t.holds = nil, nil, nil, nil, nil
}

func (t *tetris) Decide(_ timeline.Time, p *book.Plan) {
	t.follow(p)
	for n := range p.Offers() {
		t.offer(p, n)
	}
	t.offerRoom(p)
	t.fresh = t.fresh[:0]
}

// follow updates the queue from the changes of the snapshot.
func (t *tetris) follow(p *book.Plan) {
	const gone = 1000 // demands that may be kept although no job has them any more
	t.nodes = p.Nodes
	if t.queue.Dropped() || t.capacity != p.Capacity || t.known != len(p.Nodes) || len(t.scores) > gone+2*t.live {
		t.dropCaches()
		t.capacity, t.known, t.demands = p.Capacity, len(p.Nodes), map[peaks]int32{}
		for _, j := range t.queue.Changed(p) {
			t.file(j)
		}
		t.live = len(t.scores)
		return
	}
	for _, j := range p.Changes.Jobs {
		t.file(j)
		if e, filed := t.queue.As(j); p.Changes.Demand && filed && e.With.considered {
			t.fresh = append(t.fresh, e.With)
		}
	}
}

// file recomputes j and moves it to its place. A job whose tasks only a node that left could hold has none: it would
// take the place of a job that can start, for as long as that node is gone.
func (t *tetris) file(j *book.JobState) {
	_, runnable := j.NextStage()
	filed, _ := t.queue.As(j)
	e := filed.With
	if e == nil && !runnable {
		return
	}
	if e == nil {
		e = &packedJob{job: j}
	}
	if runnable {
		t.measure(e)
	}
	if runnable && len(e.ready) > 0 {
		t.queue.File(queue.EntryOf(j, e.share, e))
	} else {
		t.queue.Remove(j)
	}
	t.reconsider(e)
}

// limit is the number of jobs that are considered.
func (t *tetris) limit() int {
	return min(len(t.queue.Jobs), considered(t.fairness, len(t.queue.Jobs)))
}

// considered returns how many of the given number of jobs the fairness knob lets compete.
func considered(fairness float64, jobs int) int {
	return max(1, int(math.Ceil((1-fairness)*float64(jobs)-1e-9)))
}

// reconsider updates which jobs are considered after e moved, came or left: apart from e, only jobs at the limit can
// change.
func (t *tetris) reconsider(e *packedJob) {
	limit := t.limit()
	look := func(e *packedJob, now bool) {
		if now && !e.considered {
			t.fresh = append(t.fresh, e)
		}
		e.considered = now
	}
	if limit > 0 {
		look(t.queue.Jobs[limit-1].With, true)
	}
	if limit < len(t.queue.Jobs) {
		look(t.queue.Jobs[limit].With, false)
	}
	filed, ok := t.queue.As(e.job)
	look(e, ok && limit > 0 && filed.Compare(t.queue.Jobs[limit-1]) <= 0)
}

// measure recomputes what is known of a job.
func (t *tetris) measure(e *packedJob) {
	j := e.job
	e.share = queue.DominantShare(j, t.capacity)
	e.work = packedWork(j, t.capacity)
	before := e.ready
	e.ready = e.ready[:0]
	for i := range j.Stages {
		if !j.Ready(i) {
			continue
		}
		need, demand := peaksOf(&j.Stages[i]), int32(0)
		// Most changes of a job leave the demands of its stages as they were: comparing is cheaper than looking up.
		if at := len(e.ready); at < len(before) && t.peaks[before[at].demand] == need {
			demand = before[at].demand
		} else {
			demand = t.demand(need)
		}
		if t.holds[demand] {
			e.ready = append(e.ready, packedStage{int32(i), demand, almostDone(j, i, t.barrier)})
		}
	}
}

// demand returns the index of a demand, which may be new.
func (t *tetris) demand(need peaks) int32 {
	at, known := t.demands[need]
	if !known {
		at = int32(len(t.scores))
		t.demands[need] = at
		t.scores = append(t.scores, alignment{grant: need.ideal, peaks: need.ideal != need.most})
		t.peaks = append(t.peaks, need)
		t.holds = append(t.holds, slices.ContainsFunc(t.nodes, func(n *book.NodeState) bool { return n.Holds(need.ideal) }))
	}
	return at
}

// almostDone reports whether the tasks of a stage that have not started come first: because few are left, or because no
// other task of the job can start before.
func almostDone(j *book.JobState, stage int, barrier float64) bool {
	s := &j.Stages[stage]
	return s.Coordinator || barrier < 1 && float64(j.Progress[stage].Ended) >= barrier*float64(s.Tasks)
}

// packedWork is the demand × run time of a job's tasks that have not started, over the cluster's capacity and summed
// over resources, in seconds. It is NaN if a run time is unknown. Coordinators do not count.
func packedWork(j *book.JobState, capacity resource.Vector) float64 {
	work := 0.0
	for i := range j.Stages {
		s, pending := &j.Stages[i], j.Progress[i].Pending
		if pending == 0 || s.Coordinator {
			continue
		}
		d := s.RunTime()
		if d <= 0 {
			return math.NaN()
		}
		need := peaksOf(s).most
		for k, c := range capacity {
			if c > 0 {
				work += float64(pending) * d.Seconds() * float64(need[k]) / float64(c)
			}
		}
	}
	return work
}

// align is the dot product of a demand and the free resources, both over the node's capacity.
func align(demand, free, capacity resource.Vector) float64 {
	score := 0.0
	for k, c := range capacity {
		if c > 0 {
			score += float64(demand[k]) / float64(c) * (float64(free[k]) / float64(c))
		}
	}
	return score
}

// offer starts the best task on n and reports whether any fits.
func (t *tetris) offer(p *book.Plan, n *book.NodeState) bool {
	t.gather(n)
	if len(t.fit) == 0 {
		return false
	}
	t.start(p, n, choose(t.ranks, t.multiplier))
	return true
}

// gather finds the tasks that fit on n.
func (t *tetris) gather(n *book.NodeState) {
	t.offers++
	t.fit, t.ranks = t.fit[:0], t.ranks[:0]
	for i := range t.queue.Jobs[:t.limit()] {
		e := t.queue.Jobs[i].With
		for _, s := range e.ready {
			a := &t.scores[s.demand]
			if a.offer != t.offers {
				if a.offer = t.offers; a.peaks {
					a.grant = t.peaks[s.demand].on(n)
				}
				if a.fits = a.grant.FitsIn(n.Free); a.fits {
					a.score = align(a.grant, n.Free, n.Capacity)
				}
			}
			if a.fits {
				t.fit = append(t.fit, candidate{e, s})
				t.ranks = append(t.ranks, rank{a.score, e.work, s.preferred})
			}
		}
	}
}

// choose returns the best of the candidates; there must be at least one. Preferred candidates come first. Among equally
// preferred candidates the greatest score less ε × remaining work wins, where ε is multiplier × the mean score over the
// mean remaining work of all candidates; ties go to the first. Unknown work counts as the largest known work.
func choose(fit []rank, multiplier float64) int {
	scores, work, most, known, preferred := 0.0, 0.0, 0.0, 0.0, false
	for i := range fit {
		scores += fit[i].score
		preferred = preferred || fit[i].preferred
		if w := fit[i].work; w == w {
			work, most, known = work+w, max(most, w), known+1
		}
	}
	epsilon := 0.0
	if work > 0 {
		epsilon = multiplier * (scores / float64(len(fit))) / (work / known)
	}
	best, score := -1, 0.0
	for i := range fit {
		w := fit[i].work
		if w != w {
			w = most
		}
		s := fit[i].score - epsilon*w
		if fit[i].preferred == preferred && (best < 0 || s > score) {
			best, score = i, s
		}
	}
	return best
}

// start starts the task that is the candidate with an index.
func (t *tetris) start(p *book.Plan, n *book.NodeState, at int) {
	c := t.fit[at]
	j, i := c.job.job, int(c.stage.stage)
	s, memory := &j.Stages[i], j.Stages[i].Ideal[resource.Memory]
	why := cluster.BecauseBestAligned(memory, int64(math.Round(1000*t.ranks[at].score)), len(t.fit))
	switch {
	case s.Coordinator:
		why = cluster.BecauseFits(memory)
	case c.stage.preferred:
		why = cluster.BecauseAlmostDone(memory, j.Progress[i].Ended, s.Tasks)
	}
	if grant := t.scores[c.stage.demand].grant; grant == s.Ideal {
		p.Start(j, i, n, memory, why)
	} else {
		p.StartWith(j, i, n, grant, why)
	}
	t.file(j)
}

// offerRoom offers nodes with room for a fresh job's tasks, until nothing fits anywhere. Jobs that become considered on
// the way are also fresh, and the search starts again at the first node: the result must not depend on which jobs were
// fresh unnecessarily.
func (t *tetris) offerRoom(p *book.Plan) {
	fresh := t.fresh
	t.fresh = nil
	for t.offerRoomTo(p, fresh) {
		fresh = append(fresh, t.fresh...)
		t.fresh = t.fresh[:0]
	}
	t.fresh = fresh
}

// offerRoomTo offers nodes with room for a task of the given jobs. It stops and returns true when further jobs become
// considered.
func (t *tetris) offerRoomTo(p *book.Plan, fresh []*packedJob) bool {
	for from := cluster.NodeID(0); ; {
		n, ok := p.NextRoom(leastReady(fresh), from)
		if !ok {
			return false
		}
		for t.offer(p, n) {
		}
		if len(t.fresh) > 0 {
			return true
		}
		from = n.ID + 1
	}
}

// leastReady is, per resource, the least with which one of the jobs could start a task.
func leastReady(jobs []*packedJob) resource.Vector {
	least := resource.TooMuch()
	for _, e := range jobs {
		if !e.considered {
			continue
		}
		for _, s := range e.ready {
			least = least.Min(e.job.Stages[s.stage].Ideal)
		}
	}
	return least
}

// why says that a job is not considered, or that no node with room for what its task needs has its peak free.
func (t *tetris) why(_ timeline.Time, s *book.Snapshot, j *book.JobState, stage int) (cluster.Reason, bool) {
	filed, _ := t.queue.As(j)
	e := filed.With
	if e != nil && !e.considered {
		return cluster.BecauseNearFairShare(t.limit(), len(t.queue.Jobs)), true
	}
	return lacksPeak(s, &j.Stages[stage])
}
