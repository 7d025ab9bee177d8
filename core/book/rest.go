package book

import (
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// MostLeft returns the most memory, bytes, that the forecast of a running task has from now on, and when that becomes
// less, Never if it does not. A phase is over if a later one was reported, or once the task should have left it: with
// its run time until then, times slack, to spare. ok is false if it has no forecast of its memory, or its end is
// unknown.
func (t *TaskState) MostLeft(now timeline.Time, slack float64) (most resource.Amount, until timeline.Time, ok bool) {
	phases, usual := t.Stage().Phases, t.usualEnd(now)
	total := sumPhases(phases)
	if !t.Running || total == 0 || t.Duration == 0 || usual == timeline.Never {
		return 0, timeline.Never, false
	}
	stretch := float64(t.Duration) / float64(total)
	left, over := time.Duration(0), timeline.Never // of the phases behind, and when all of the run is over
	for i := len(phases) - 1; i >= int(t.Phase) && now < over; i-- {
		if demand := phases[i].Demand[resource.Memory]; demand > most && phases[i].Duration > 0 {
			most, until = demand, over
		}
		left += time.Duration(float64(phases[i].Duration) * stretch)
		over = usual.Add(-left).Add(time.Duration(slack * float64(max(0, t.Duration-left))))
	}
	return most, until, most > 0
}

// MostFirst returns the most memory, bytes, that the forecast of a stage has in phases that begin within a time of the
// start of a task. They may begin earlier than forecast by slack times their time.
func MostFirst(s *cluster.Stage, within time.Duration, slack float64) (most resource.Amount) {
	begins := time.Duration(0)
	for i := range s.Phases {
		if f := &s.Phases[i]; f.Duration > 0 && begins-time.Duration(slack*float64(begins)) <= within {
			most = max(most, f.Demand[resource.Memory])
		}
		begins += s.Phases[i].Duration
	}
	return most
}

// most is the most memory, bytes, that a task is expected to come to need: what was learned before it started if that
// is more than is reserved for it now, see Leveler.Soon of policy ecs.
func (t *TaskState) most() resource.Amount {
	most := max(t.WantedGrant()[resource.Memory], t.Held)
	if t.Job.Reserve == cluster.ReserveLearned && t.Job.Resizable(int(t.ID.Stage)) {
		most = max(most, t.Stage().Ideal[resource.Memory])
	}
	return most
}

// LeftLate is how much memory another task on n may come to need, bytes: the rest of memory and swap together, once the
// tasks there have come to need what was learned of them. At most lateShare of the swap is counted on, since what
// stands still needs it, too. late says that some task comes to need noticeably more than is reserved for it.
func (n *NodeState) LeftLate() (left resource.Amount, late bool) {
	left = n.Capacity[resource.Memory] + resource.Amount(lateShare*float64(n.Swap))
	for _, t := range n.Tasks {
		most, is := t.most(), t.WantedGrant()[resource.Memory]
		left, late = left-most, late || most > is+is/HoldingStep
	}
	return left, late
}

// lateShare is the share of swap that is counted on for memory that tasks come to need.
const lateShare = 0.5

// HoldingStep is the share of the memory that a task holds by which it must hold more to be reported, and by twice of
// which it must hold less: 1/HoldingStep. It is as much as a reservation is renewed by at least.
const HoldingStep = 8

// NoticeHeld reports whether it is news that a task which is granted some memory holds that much, all in bytes:
// noticeably more or less than was reported last, 0 for never, or for the first time more than it is granted.
func NoticeHeld(held, was, granted resource.Amount) bool {
	return held > was+was/HoldingStep || held > 0 && held < was-2*(was/HoldingStep) || held > granted && was <= granted
}

// holds records what memory a running task holds.
func (s *Snapshot) holds(id cluster.TaskID, held resource.Amount) error {
	t, err := s.running(id)
	switch {
	case err != nil:
		return err
	case held <= 0 || held > resource.MostMemory:
		return fmt.Errorf("task %s holds %d bytes: must be 1 to %d", id, held, resource.MostMemory)
	}
	t.Held = held
	s.Changes.Holds = append(s.Changes.Holds, t.Node.ID)
	return nil
}

// renew notes that the memory that is wanted of a task becomes another amount, if its reservation is learned.
func (t *TaskState) renew(now timeline.Time, memory resource.Amount, why cluster.Reason) {
	if is := t.WantedGrant()[resource.Memory]; memory != is && t.Job.Reserve == cluster.ReserveLearned {
		t.Renewed, t.RenewedWhy, t.Raised = now, why, t.Raised || memory > is
	}
}
