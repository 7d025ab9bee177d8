package scenarios

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"pgregory.net/rapid"
)

// TestRandomQueues runs random scenarios under the policies with queues.
func TestRandomQueues(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := draw(rt)
		s.checkOne(rt, func(c choice) bool { return c.name == "capacity" || c.name == "drf" })
	})
}

// auditedQueue is a queue as its setting describes it. Shares are relative to the parent.
type auditedQueue struct {
	name              string
	weight, min, most float64
}

// queues parses the setting of the policy; the root is not included.
func (a *auditor) queues() (queues []auditedQueue) {
	for _, item := range strings.Split(a.flag("queues"), ",") {
		name, value, ok := strings.Cut(item, "=")
		if !ok {
			continue
		}
		q := auditedQueue{name: name, most: 1}
		low, high, both := strings.Cut(value, "..")
		q.weight, _ = strconv.ParseFloat(low, 64)
		q.min = percentOf(low)
		if both {
			q.most = percentOf(high)
		}
		queues = append(queues, q)
	}
	return queues
}

func percentOf(text string) float64 {
	v, _ := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	return v / 100
}

// queueOf is the path of the queue of a job.
func queueOf(j *auditedJob) string { return cmp.Or(j.Queue, "default") }

// within reports whether queue is top or is below it; "" is the root.
func within(queue, top string) bool {
	return top == "" || queue == top || strings.HasPrefix(queue, top+".")
}

func parentOf(queue string) string { return queue[:max(0, strings.LastIndexByte(queue, '.'))] }

// held adds up what the jobs in and below a queue use.
func (a *auditor) held(top string) (v resource.Vector) {
	for _, j := range a.jobs {
		if within(queueOf(j), top) {
			v = v.Add(j.held())
		}
	}
	return v
}

func (j *auditedJob) held() (v resource.Vector) {
	for _, t := range j.tasks {
		if t.state == booked || t.state == running {
			v = v.Add(t.holds.Sub(t.lentMemory()))
		}
	}
	return v
}

// capacity is the sum over all nodes; 0 of what is unknown on one of them.
func (a *auditor) capacity() (v resource.Vector) {
	var unknown resource.Kinds
	for _, n := range a.nodes {
		v, unknown = v.Add(n.Capacity), unknown|n.Unknown
	}
	return unknown.In(v, 0)
}

// shares returns the guaranteed and the maximum share of the cluster of a queue.
func (a *auditor) shares(name string) (guaranteed, most float64) {
	guaranteed, most = 1, 1
	for _, q := range a.queues() {
		if within(name, q.name) {
			guaranteed, most = guaranteed*q.min, most*q.most
		}
	}
	return guaranteed, most
}

// counts are the resources in which shares are measured.
func (a *auditor) counts() []resource.Kind {
	if a.c.name == "capacity" && a.flag("calculator") == "memory" {
		return []resource.Kind{resource.Memory}
	}
	return resource.KindsWhere(func(resource.Kind) bool { return true })
}

// dominant is the largest share of the cluster's resources in v.
func (a *auditor) dominant(v resource.Vector) float64 {
	whole, share := a.capacity(), 0.0
	for _, k := range a.counts() {
		if whole[k] > 0 && (!k.IsRate() || a.c.name == "drf") {
			share = max(share, float64(v[k])/float64(whole[k]))
		}
	}
	return share
}

// aboveMost reports whether the queue of j, or an ancestor, would exceed its maximum with need more.
func (a *auditor) aboveMost(j *auditedJob, need resource.Vector) bool {
	whole := a.capacity()
	for name := queueOf(j); name != ""; name = parentOf(name) {
		_, most := a.shares(name)
		would := a.held(name).Add(need)
		for _, k := range a.counts() {
			// The shares are products of fractions: what is whole except for rounding errors counts as whole.
			if !k.IsRate() && float64(would[k]) > math.Floor(float64(whole[k])*most+1e-3) {
				return true
			}
		}
	}
	return false
}

// somewhere reports whether some node has need free.
func (a *auditor) somewhere(need resource.Vector) bool {
	for _, n := range a.nodes {
		if _, kept := a.kept[n.ID]; !kept && need.FitsIn(a.free(n)) {
			return true
		}
	}
	return false
}

// waiters returns the jobs below a queue that have a task to start, in the order in which a leaf serves them.
func (a *auditor) waiters(top string) (jobs []*auditedJob) {
	for _, j := range a.jobs {
		if _, ok := j.next(); ok && within(queueOf(j), top) {
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, func(x, y *auditedJob) int {
		first := 0
		switch {
		case a.c.name == "drf":
			first = cmp.Compare(a.dominant(x.held())/weightOf(x), a.dominant(y.held())/weightOf(y))
		case a.flag("ordering") == "fair":
			first = cmp.Compare(x.consumption(), y.consumption())
		}
		return cmp.Or(first, cmp.Compare(x.Submitted, y.Submitted), cmp.Compare(x.ID, y.ID))
	})
	return jobs
}

func weightOf(j *auditedJob) float64 {
	if j.Weight > 0 {
		return j.Weight
	}
	return 1
}

// startable returns the job of a leaf that a policy with queues starts next; nil if there is none. A job that would
// take its queue above its maximum blocks the jobs behind it.
func (a *auditor) startable(leaf string) *auditedJob {
	for _, j := range a.waiters(leaf) {
		stage, _ := j.next()
		need := j.Stages[stage].Ideal
		if a.c.name == "capacity" && a.aboveMost(j, need) {
			return nil
		}
		if a.somewhere(need) {
			return j
		}
	}
	return nil
}

// leavesOf returns the leaves in and below a queue.
func (a *auditor) leavesOf(top string) (leaves []string) {
	queues := a.queues()
	if len(queues) == 0 {
		return []string{""}
	}
	for _, q := range queues {
		if within(q.name, top) && !slices.ContainsFunc(queues, func(r auditedQueue) bool {
			return parentOf(r.name) == q.name
		}) {
			leaves = append(leaves, q.name)
		}
	}
	return leaves
}

func (a *auditor) anyStartable(top string) bool {
	return slices.ContainsFunc(a.leavesOf(top), func(leaf string) bool { return a.startable(leaf) != nil })
}

// servesQueues checks that j is the next job to serve, and that its start takes no queue above its maximum. It may on
// a node that was kept for j: meanwhile the cluster may have become smaller, or tasks of the queue may have taken
// back what they lent.
func (a *auditor) servesQueues(d *cluster.Decision, j *auditedJob, kept bool) {
	if a.c.name == "capacity" && !(kept && len(a.s.departures)+len(a.s.pauses)+len(a.s.suspensions) > 0) &&
		a.aboveMost(j, d.Grant) {
		a.fail("task %s takes queue %s above what it may hold", d.Task, queueOf(j))
	}
	if a.s.heartbeat > 0 || a.flag("reservations") == "true" || a.flag("user-limits") == "true" {
		return
	}
	leaf := queueOf(j)
	if len(a.queues()) == 0 {
		leaf = ""
	}
	if first := a.startable(leaf); first != j && !(first != nil && a.c.name == "drf" && a.equal(first, j)) {
		a.fail("task %s is started, but it is the turn of job %v of queue %s", d.Task, first, leaf)
	}
	for name := leaf; name != ""; name = parentOf(name) {
		for _, q := range a.queues() {
			if q.name != name && parentOf(q.name) == parentOf(name) && a.anyStartable(q.name) &&
				a.turn(q.name) < a.turn(name)-1e-9 {
				a.fail("task %s of queue %s is started, but it is the turn of queue %s: %g is less than %g", d.Task, name, q.name,
					a.turn(q.name), a.turn(name))
			}
		}
	}
}

func (a *auditor) equal(x, y *auditedJob) bool {
	return math.Abs(a.dominant(x.held())/weightOf(x)-a.dominant(y.held())/weightOf(y)) < 1e-12
}

// turn is the key by which queues are ordered.
func (a *auditor) turn(name string) float64 {
	if a.c.name == "drf" {
		h := hierarchy{a, a.saturated()}
		share, _ := h.queue(name)
		for _, q := range a.queues() {
			if q.name == name {
				return h.dominant(share) / q.weight
			}
		}
	}
	guaranteed, _ := a.shares(name)
	if guaranteed == 0 {
		return math.Inf(1)
	}
	return a.dominant(a.held(name)) / guaranteed
}

// hierarchy computes shares as H-DRF does, from the jobs up.
type hierarchy struct {
	*auditor
	saturated [resource.NumKinds]bool
}

type vector [resource.NumKinds]float64

// dominant is the largest share; without saturated resources, except in the naive hierarchy.
func (h hierarchy) dominant(v vector) float64 {
	share := 0.0
	for k := range v {
		if !h.saturated[k] || h.flag("hierarchy") == "naive" {
			share = max(share, v[k])
		}
	}
	return share
}

// child is a queue or a job below a queue.
type child struct {
	share    vector
	dominant float64
	weight   float64
	blocked  bool
}

// queue returns the share of a queue, and whether nothing in it can start.
func (h hierarchy) queue(name string) (vector, bool) {
	var children []child
	for _, q := range h.queues() {
		if parentOf(q.name) == name {
			share, blocked := h.queue(q.name)
			children = append(children, child{share: share, dominant: h.dominant(share), weight: q.weight, blocked: blocked})
		}
	}
	for _, j := range h.jobs {
		if queueOf(j) != name {
			continue
		}
		c := child{weight: weightOf(j), blocked: true, dominant: h.auditor.dominant(j.held())}
		held, whole := j.held(), h.capacity()
		for k := range held {
			if whole[k] > 0 {
				c.share[k] = float64(held[k]) / float64(whole[k])
			}
		}
		if stage, ok := j.next(); ok {
			c.blocked = !h.somewhere(j.Stages[stage].Ideal)
		}
		children = append(children, c)
	}
	least := math.Inf(1)
	blocked := true
	for _, c := range children {
		blocked = blocked && c.blocked
		if !c.blocked && c.dominant > 0 {
			least = min(least, c.dominant/c.weight)
		}
	}
	var sum vector
	for _, c := range children {
		scale := 1.0
		if !c.blocked && c.dominant > 0 && h.flag("hierarchy") != "naive" {
			scale = least * c.weight / c.dominant
		}
		for k := range sum {
			sum[k] += scale * c.share[k]
		}
	}
	return sum, blocked
}

// saturated reports which resources no node has enough of for the jobs that need the resource most.
func (a *auditor) saturated() (saturated [resource.NumKinds]bool) {
	whole := a.capacity()
	for k := range saturated {
		mostly, least := resource.Amount(math.MaxInt64), resource.Amount(math.MaxInt64)
		for _, j := range a.waiters("") {
			stage, _ := j.next()
			need := j.Stages[stage].Ideal
			if need[k] > 0 {
				least = min(least, need[k])
				if whole[k] > 0 && float64(need[k])/float64(whole[k]) == a.dominant(need) {
					mostly = min(mostly, need[k])
				}
			}
		}
		if mostly == math.MaxInt64 {
			mostly = least
		}
		if mostly == math.MaxInt64 {
			mostly = 1
		}
		saturated[k] = true
		if resource.Kind(k) >= resource.Disk {
			saturated[k] = whole[k]-a.held("")[k] < mostly
			continue
		}
		for _, n := range a.nodes {
			saturated[k] = saturated[k] && a.free(n)[k] < mostly
		}
	}
	return saturated
}

// conservingQueues checks that no leaf with a task to start waits although room for it is free.
func (a *auditor) conservingQueues() {
	if a.flag("user-limits") == "true" {
		return
	}
	for _, leaf := range a.leavesOf("") {
		if j := a.startable(leaf); j != nil {
			a.fail("a task of job %s of queue %s waits for nothing", j.Name, leaf)
		}
	}
}

// queueHolds reports whether the queue of a job is large enough for a task of each of its stages beside all
// coordinators.
func (a *auditor) queueHolds(j *plannedJob) bool {
	if a.c.name != "capacity" {
		return true
	}
	if a.s.coordinates > 0 || a.s.heartbeat > 0 && a.flag("preemption") == "true" {
		// Coordinators alone may use all that their user may use. And where nodes take work by heartbeats, tasks that
		// were preempted for others can be the first to start there again, as in YARN.
		return false
	}
	_, most := a.shares(cmp.Or(j.Queue, "default"))
	for i := range j.Stages {
		need := j.Stages[i].Ideal.Add(a.s.coordinator.Scale(int64(len(a.s.jobs))))
		for _, k := range a.counts() {
			if !k.IsRate() && float64(need[k]) > most*float64(a.capacity()[k]) {
				return false
			}
		}
	}
	return true
}
