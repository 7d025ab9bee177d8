package ecs

import (
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Renewal of reservations. What is reserved of memory for a running task follows the most that the rest of its run
// needs: the most that its forecast still has, times what was reserved at its start for each byte of the forecast, so
// that the error of what runs taught counts as for a start. Never is less reserved than the task holds.
//
// Whoever comes to hold more again, or is expected to, gets back what was given back, if that is free; no more than is
// reserved for the start of such a task. What it grows beyond that is the business of the memory manager, and counted
// as what containers hold. Were it reserved, the manager could not take it back for others, and with swap or without
// more tasks would have to be ended.
//
// Where the node has swap, only what is needed soon after the start is reserved (Soon), and no more later: a program
// that reads its input for a minute and then needs its memory lets others use it meanwhile. If that memory is not free
// by then, the memory manager finds it, and pages others out. Were it reserved then, the manager would suspend those
// that use it, all at once.
//
// A forecast that lies does not make it oscillate: once more had to be reserved, nothing is given back any more. Each
// change is by a renewedStep, so that a task that starts with S and gets down to R has at most log(S/R)/log(8/7) +
// log(S/R)/log(9/8) changes, 12 for each time that its memory halves. Nearly all have one or two.
const (
	// renewedStep is the least change, as a share of what is reserved: 1/renewedStep. It suffices for what a task may
	// hold more than was reported.
	renewedStep = book.HoldingStep
	// renewedEvery is the shortest time between two changes, and between the launch and the first: as long as a memory
	// manager waits before it takes memory back from a container that was short.
	renewedEvery = 10 * time.Second
	// leastSlack is how late a task may be for its forecast at least, as a share of its run time, and mostSlack at most.
	// In between it is the mean error of the forecast.
	leastSlack, mostSlack = 0.1, 0.5
)

// soon is within which time of its start a task needs memory that is reserved at its start where the node has swap: as
// long as it takes until a reservation may change.
const soon = renewedEvery

// Soon returns the memory that a task of a stage needs soon after its start, if its reservation is learned and renewed,
// and that is noticeably less than it needs later: but no less than is reserved for a task of which nothing is known.
// It starts with that where NodeState.LeftLate has room for what it needs in all. One run suffices to tell it, since
// more is the business of the memory manager, as for a program of which nothing is known. ok is false if it starts with
// what it needs in all.
func (e *Leveler) Soon(j *book.JobState, stage int) (memory resource.Amount, ok bool) {
	s := &j.Stages[stage]
	r := s.Reserved
	if !e.Renews || j.Reserve != cluster.ReserveLearned || !j.Resizable(stage) || !e.phased.applies(j.Job, stage) ||
		r == nil || r.Runs == 0 || r.Short > 0 || r.Outside || r.AtLeast > 0 {
		return 0, false
	}
	// The error counts as for the whole run. What a phase has at most is not known, only its mean, and swap makes up for
	// it.
	ideal := s.Ideal[resource.Memory]
	margin := max(1, float64(ideal)/float64(max(1, r.Most)))
	memory = resource.Amount(min(margin*float64(book.MostFirst(s, soon, slackOf(s))), float64(ideal)))
	memory = max(memory, min(ideal, cluster.FirstReservation))
	return memory, memory <= ideal-ideal/renewedStep
}

// slackOf is how late or early a task of a stage may be for its forecast, as a share of its run time.
func slackOf(s *cluster.Stage) float64 { return min(max(s.Told.Error, leastSlack), mostSlack) }

// renewal is a change of a reservation.
type renewal struct {
	memory resource.Amount
	why    cluster.Reason
}

// renewAll renews the reservations of the tasks of n, and reports whether there was one. What they have more must be
// free.
func (e *Leveler) renewAll(now timeline.Time, p *book.Plan, n *book.NodeState) (some bool) {
	type change struct {
		*book.TaskState
		renewal
	}
	var changes []change
	for _, t := range n.Tasks {
		if r, _, ok := e.renewed(now, t); ok {
			changes = append(changes, change{t, r})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return a.ID.Compare(b.ID) })
	for i := range changes {
		if c := &changes[i]; c.fits(c.TaskState) {
			p.Resize(c.TaskState, c.WantedGrant().With(resource.Memory, c.memory), c.why)
			some = true
		}
	}
	return some
}

// fits reports whether the node of t has what r is more than is reserved.
func (r *renewal) fits(t *book.TaskState) bool {
	return r.memory-t.WantedGrant()[resource.Memory] <= max(0, t.Node.Spare()[resource.Memory])
}

// renewed returns what is to be reserved for t instead of what is; ok is false if that stays. If nothing but the time
// changes, it is the same until the given time, but for renewedEvery.
func (e *Leveler) renewed(now timeline.Time, t *book.TaskState) (r renewal, until timeline.Time, ok bool) {
	if !renewable(now, t) {
		return renewal{}, timeline.Never, false
	}
	s, is := t.Stage(), t.WantedGrant()[resource.Memory]
	needs, until, known := restNeeds(now, t)
	r.memory = max(needs, t.Held+t.Held/renewedStep, cluster.LeastRunMemory)
	if r.memory > is {
		r.memory = max(is, min(r.memory, e.most(t), t.Node.Room()[resource.Memory]))
	}
	if t.Held > is {
		r.why = cluster.BecauseHoldsMore(r.memory, t.Held)
	} else if known {
		r.why = cluster.BecauseRestNeeds(r.memory, needs, s.Reserved.Runs)
	}
	switch step := is / renewedStep; {
	case r.memory >= is+step:
		ok = t.Held > is || needs > is
	case r.memory <= is-step:
		ok = known && t.Held > 0 && !t.Raised
	}
	return r, until, ok && now >= mayRenew(t)
}

// most is the most that is reserved for a running task.
func (e *Leveler) most(t *book.TaskState) resource.Amount {
	if soon, ok := e.Soon(t.Job, int(t.ID.Stage)); ok && t.Node.Swap > 0 {
		return soon
	}
	return t.Stage().Ideal[resource.Memory]
}

// mayRenew is the earliest time at which the reservation of a running task may change.
func mayRenew(t *book.TaskState) timeline.Time { return max(t.Launched, t.Renewed).Add(renewedEvery) }

// renewable reports whether the reservation of a task may be renewed. It must be learned: what was stated, or told to
// a program that sizes itself by it, stays.
func renewable(now timeline.Time, t *book.TaskState) bool {
	_, throttled := t.Bounded(now)
	failed := t.Resized != nil && t.Resized.Failed // which would fail again
	return t.Running && !t.Killing && !t.Steers && !t.Suspended && !throttled && t.Out == 0 && !failed &&
		t.Job.Reserve == cluster.ReserveLearned && t.Job.Resizable(int(t.ID.Stage))
}

// restNeeds returns what the rest of the run of a task needs of memory, and when that becomes less, Never if it does
// not; ok is false if that is not known.
func restNeeds(now timeline.Time, t *book.TaskState) (memory resource.Amount, until timeline.Time, ok bool) {
	s := t.Stage()
	if s.Reserved == nil || !s.Reserved.Known() {
		return 0, timeline.Never, false
	}
	most, until, ok := t.MostLeft(now, slackOf(s))
	if !ok {
		return 0, timeline.Never, false
	}
	each := max(1, float64(s.Ideal[resource.Memory])/float64(s.Peak()[resource.Memory]))
	return resource.Amount(min(each*float64(most), float64(resource.MostMemory))), until, true
}

// nextRenewal returns the earliest time after now at which the reservation of a task of n is to be renewed if nothing
// else happens; Never if there is none.
func (e *Leveler) nextRenewal(now timeline.Time, n *book.NodeState) timeline.Time {
	at := timeline.Never
	for _, t := range n.Tasks {
		for next := max(now, mayRenew(t)); next < at; {
			r, until, ok := e.renewed(next, t)
			if ok && next > now && r.fits(t) {
				at = next
			}
			next = until
		}
	}
	return at
}
