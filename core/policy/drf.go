package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy/contract"
	"github.com/bellows-rm/bellows/core/policy/queue"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// drf is Dominant Resource Fairness (Ghodsi et al., NSDI 2011, Algorithm 1): the job with the least dominant share over
// its weight is served first; jobs whose tasks do not fit are skipped. With queues it is H-DRF, the dynamic algorithm
// of Bhattacharya et al. (SoCC 2013): each queue serves its child with the least dominant share first. The share of a
// queue adds up its children: children that are not blocked are scaled down to the least share among them, blocked ones
// count as they are, and saturated resources do not count. docs/decisions/0009-queues.md says how the papers were read.
type drf struct {
	tree  queue.Tree[drfQueue, drfJob]
	naive bool // a queue's use is the plain sum of its children's

	// All fields below are computed from the snapshot.
	needs  map[resource.Vector]*drfNeed
	whole  resource.Vector // the capacity of the cluster from which shares were computed
	misses misses          // in the decision in progress
}

// drfQueue is what is kept with a queue.
type drfQueue struct {
	weight   float64     // among its siblings
	groups   []*drfGroup // of a leaf, sorted by need
	drfShare             // for the choice in progress
}

// weighted is the share over the weight.
func (q *drfQueue) weighted() float64 { return q.share / q.weight }

// drfJob is what is kept with a job.
type drfJob struct {
	group *drfGroup // nil unless it can start a task
}

type drfMember = queue.Member[drfQueue, drfJob]

// drfGroup is the jobs of one leaf whose next tasks need the same: either all of them fit or none does.
type drfGroup struct {
	need *drfNeed
	jobs fairQueue // by dominant share over weight
	used resource.Vector
	// unit adds up the use of the jobs, each scaled to a dominant share equal to its weight; meaningful if added.
	unit  queue.Parts
	added bool
}

// drfNeed is the need of the next tasks of some jobs.
type drfNeed struct {
	amount resource.Vector
	groups int
	node   *book.NodeState // a node that fits it; nil if none does
	known  bool            // node is up to date
}

// drfShare is the use of a queue in the sense of H-DRF.
type drfShare struct {
	parts   queue.Parts
	share   float64 // the largest part
	blocked bool    // nothing in the queue or below it can start
}

func newDRF(s *contract.Settings) Policy {
	d := &drf{}
	queues := s.Declare("queues", "",
		"queues with their weights, such as prod=3,prod.etl=1,prod.web=2,adhoc=1; jobs name a leaf, and jobs "+
			"without a queue are in the leaf default; without queues all jobs are equal, whatever queue they name")
	if err := d.tree.Parse(queues.Text, readWeight); err != nil {
		queues.Reject(err)
	}
	d.naive = s.Declare("hierarchy", "h-drf",
		"how a queue's share is computed: h-drf, or naive, the plain sum of what the queue holds, which can "+
			"starve jobs").OneOf("h-drf", "naive") == "naive"
	return d
}

func readWeight(q *drfQueue, text string) (err error) {
	q.weight, err = parseWeight(text)
	return err
}

// parseWeight reads the weight of a queue.
func parseWeight(text string) (float64, error) {
	w, err := strconv.ParseFloat(text, 64)
	if err != nil || !(w > 0 && w <= 1e6) {
		return 0, fmt.Errorf("weight %q: must be a number above 0, at most 1000000", text)
	}
	return w, nil
}

func (*drf) Name() string     { return "drf" }
func (d *drf) Traits() Traits { return Traits{Admit: d.admit, Why: d.why, DropCaches: d.dropCaches} }

func (d *drf) dropCaches() { d.tree.Members = nil }

// admit rejects jobs that name an unknown queue.
func (d *drf) admit(_ *book.Snapshot, j *cluster.Job) error { return d.tree.Check(j) }

// why says that a job names an unknown queue.
func (d *drf) why(_ timeline.Time, _ *book.Snapshot, j *book.JobState, _ int) (cluster.Reason, bool) {
	return cluster.Because(cluster.NoSuchQueue), d.tree.Home(j.Job) == nil
}

func (d *drf) Decide(_ timeline.Time, p *book.Plan) {
	d.follow(p)
	d.misses.forget()
	for _, need := range d.needs {
		need.known = false
	}
	for d.tree.Root.Runnable > 0 {
		j := d.choose(p)
		if j == nil {
			break
		}
		d.start(p, j)
	}
}

// follow updates the queues from the changes of the snapshot. A change of the cluster changes all shares.
func (d *drf) follow(p *book.Plan) {
	if d.tree.Members == nil || d.whole != p.Capacity {
		d.dropCaches()
		d.whole, d.needs = p.Capacity, map[resource.Vector]*drfNeed{}
		for _, q := range d.tree.All {
			q.Own.groups = nil
		}
	}
	for _, j := range d.tree.Changed(p) {
		d.tree.Update(j, d.file)
	}
}

func (d *drf) file(m *drfMember) {
	d.regroup(m)
	m.Count()
}

// regroup moves a job to the group of its next task. m.counted is the job's part of its group's use.
func (d *drf) regroup(m *drfMember) {
	stage, runnable := m.Job.NextStage()
	if old := m.Own.group; old != nil && (!runnable || old.need.amount != m.Job.Stages[stage].Ideal) {
		old.jobs.Remove(m.Job)
		old.used, old.added = old.used.Sub(m.Counted), false
		m.Own.group = nil
		if len(old.jobs.Jobs) == 0 {
			d.dropGroup(m.Leaf, old)
		}
	}
	if !runnable {
		return
	}
	had := m.Counted
	if m.Own.group == nil {
		m.Own.group, had = d.groupOf(m.Leaf, m.Job.Stages[stage].Ideal), resource.Vector{}
	}
	g := m.Own.group
	g.jobs.set(m.Job, queue.DominantShare(m.Job, d.whole), true)
	g.used, g.added = g.used.Add(m.Job.Used.Sub(had)), false
}

// groupOf returns the group of a leaf for a need; it creates a missing group.
func (d *drf) groupOf(leaf *queue.Queue[drfQueue], amount resource.Vector) *drfGroup {
	groups := leaf.Own.groups
	at, found := slices.BinarySearchFunc(groups, amount, byNeed)
	if found {
		return groups[at]
	}
	need := d.needs[amount]
	if need == nil {
		need = &drfNeed{amount: amount}
		d.needs[amount] = need
	}
	need.groups++
	g := &drfGroup{need: need}
	leaf.Own.groups = slices.Insert(groups, at, g)
	return g
}

func (d *drf) dropGroup(leaf *queue.Queue[drfQueue], g *drfGroup) {
	at, _ := slices.BinarySearchFunc(leaf.Own.groups, g.need.amount, byNeed)
	leaf.Own.groups = slices.Delete(leaf.Own.groups, at, at+1)
	if g.need.groups--; g.need.groups == 0 {
		delete(d.needs, g.need.amount)
	}
}

func byNeed(g *drfGroup, amount resource.Vector) int {
	return slices.Compare(g.need.amount[:], amount[:])
}

// choose returns the job to serve next; nil if no task fits.
func (d *drf) choose(p *book.Plan) *book.JobState {
	q := d.tree.Root
	if !q.Leaf() {
		d.workOut(p)
	}
	for !q.Leaf() {
		var next *queue.Queue[drfQueue]
		for _, child := range q.Children {
			if !child.Own.blocked && (next == nil || child.Own.weighted() < next.Own.weighted()) {
				next = child
			}
		}
		if next == nil {
			return nil
		}
		q = next
	}
	return d.first(p, q)
}

// first returns the job of a leaf with the least share among those whose task fits.
func (d *drf) first(p *book.Plan, leaf *queue.Queue[drfQueue]) *book.JobState {
	var least *queued
	for _, g := range leaf.Own.groups {
		if e := &g.jobs.Jobs[0]; (least == nil || e.Compare(*least) < 0) && d.fits(p, g.need) {
			least = e
		}
	}
	if least == nil {
		return nil
	}
	return least.Job
}

// fits reports whether a need fits on some node.
func (d *drf) fits(p *book.Plan, need *drfNeed) bool {
	if !need.known {
		need.known = true
		need.node, _ = d.misses.firstFit(p, need.amount)
	}
	return need.node != nil
}

// start starts the next task of a job.
func (d *drf) start(p *book.Plan, j *book.JobState) {
	need := d.tree.Members[j].Own.group.need
	n := need.node
	stage, _ := j.NextStage()
	memory := need.amount[resource.Memory]
	p.Start(j, stage, n, memory, cluster.BecauseFits(memory))
	d.tree.Update(j, d.file)
	for _, other := range d.needs {
		if other.node == n {
			other.known = false
		}
	}
}

// workOut computes the shares of all queues, children first (H-DRF, Algorithm 2).
func (d *drf) workOut(p *book.Plan) {
	saturated := d.saturated(p)
	for _, q := range slices.Backward(d.tree.All) {
		s := &q.Own.drfShare
		if q.Leaf() {
			*s = d.leafShare(p, q)
		} else {
			*s = d.sumShare(q)
		}
		counted := s.parts
		for k := range counted {
			if saturated[k] && !d.naive {
				counted[k] = 0
			}
		}
		s.share = counted.Largest()
	}
}

// leafShare adds up the jobs of a leaf.
func (d *drf) leafShare(p *book.Plan, leaf *queue.Queue[drfQueue]) drfShare {
	s := drfShare{blocked: true}
	least, blocked, unit := 0.0, leaf.Used, queue.Parts{}
	for _, g := range leaf.Own.groups {
		if !d.fits(p, g.need) {
			continue
		}
		s.blocked = false
		if d.naive {
			continue
		}
		d.add(g)
		blocked, unit = blocked.Sub(g.used), unit.Plus(g.unit, 1)
		if i := g.firstHolder(); i < len(g.jobs.Jobs) && (least == 0 || g.jobs.Jobs[i].Key < least) {
			least = g.jobs.Jobs[i].Key
		}
	}
	s.parts = queue.PartsOf(blocked, d.whole).Plus(unit, least)
	return s
}

// firstHolder is the index of the first job that uses anything.
func (g *drfGroup) firstHolder() int {
	at, _ := slices.BinarySearchFunc(g.jobs.Jobs, 0.0, func(e queued, _ float64) int {
		if e.Key > 0 {
			return 1
		}
		return -1
	})
	return at
}

// add computes g.unit.
func (d *drf) add(g *drfGroup) {
	if g.added {
		return
	}
	g.unit, g.added = queue.Parts{}, true
	for _, e := range g.jobs.Jobs[g.firstHolder():] {
		g.unit = g.unit.Plus(queue.PartsOf(e.Job.Used, d.whole), 1/e.Key)
	}
}

// sumShare adds up the children of q.
func (d *drf) sumShare(q *queue.Queue[drfQueue]) drfShare {
	s := drfShare{blocked: true}
	least := 0.0
	for _, child := range q.Children {
		c := &child.Own
		s.blocked = s.blocked && c.blocked
		if weighted := c.weighted(); !c.blocked && weighted > 0 && (least == 0 || weighted < least) {
			least = weighted
		}
	}
	for _, child := range q.Children {
		c := &child.Own
		factor := 1.0
		if !d.naive && !c.blocked && c.share > 0 {
			factor = least * c.weight / c.share
		}
		s.parts = s.parts.Plus(c.parts, factor)
	}
	return s
}

// saturated reports for each resource whether its free amount is below the smallest request of the jobs that need it
// most, or, if there are no such jobs, below the smallest request of all jobs. The free amount of a resource that
// every node states is that of one node that is not reserved; the free amount of other resources is that of the
// cluster, where an unknown amount is never saturated.
func (d *drf) saturated(p *book.Plan) (saturated [resource.NumKinds]bool) {
	var mostly, least resource.Vector // the least amounts
	for _, need := range d.needs {
		asks := queue.PartsOf(need.amount, d.whole)
		largest := asks.Largest()
		for k, v := range need.amount {
			if v > 0 && (least[k] == 0 || v < least[k]) {
				least[k] = v
			}
			if v > 0 && asks[k] == largest && (mostly[k] == 0 || v < mostly[k]) {
				mostly[k] = v
			}
		}
	}
	for k := range least {
		kind, amount := resource.Kind(k), cmp.Or(mostly[k], least[k], 1)
		if kind.Stated() {
			_, some := p.FirstOpen(resource.Vector{}.With(kind, amount), 0)
			saturated[k] = !some
		} else {
			saturated[k] = !p.Unknown.Has(kind) && d.whole[k]-d.tree.Root.Used[k] < amount
		}
	}
	return saturated
}
