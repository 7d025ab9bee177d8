// Package follow finds, by what a running task has used, what its programs do not report: in which phase of its
// forecast the task is, what memory it holds, and whether it leaves its cores to others.
package follow

import (
	"math"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/core/usage"
	"github.com/bellows-rm/bellows/live/learn"
)

// Every is the time between two looks, and so the time until a policy is notified.
const Every = 3 * time.Second

// The engine is notified of a phase, and decides again, if the remaining time of a task is off by more than offShare of
// its run time and by more than offLeast. If the task is in another phase, half of that is enough.
const (
	offShare = 0.1
	offLeast = 5 * time.Second
)

// A task of which nothing is known, and for which no CPU was stated, holds the core of a usual program. It lends what
// it did not use of that core of late, but for headroom, so that programs which wait for the network do not each hold a
// core in their first run either. Programs keep their weight: if all have something to do again, they share the cores.
// Where programs share all cores, what they hold adds up to more than the cores, so that no other one starts.
const (
	headroom = 0.25 // of what it used
	// What it holds is in steps of 1/leavesSteps of what it was granted, and none if it is less than leastSteps. A change
	// by leastSteps is news.
	leavesSteps, leastSteps = 16, 2
	// perCore is how many tasks a core may have for more to be lent. With more, a program that uses little may just not
	// get more. Where fewer share the cores, each that has something to do gets more than what counts as none.
	perCore = 12
	// lookBack is how long it must have used no more: less than Every, so that the second look after its start counts.
	lookBack = 2 * time.Second
)

// Task is a task that is followed, and what was found of it.
type Task struct {
	// Container is that of its run; its owner sets it.
	Container cluster.ContainerID
	// Found says that its use shows where it is.
	Found bool
	// Held is what it holds if that is news, else 0; bytes.
	Held resource.Amount
	// Turned says that it is news how much CPU its programs leave, which Leaves says, as in book.TaskState.
	Turned bool
	Leaves resource.Amount

	phases []cluster.Phase
	phase  int
	into   time.Duration // of its forecast
	// granted and told are the memory that it is granted and that it held when that was last reported, 0 unless its
	// reservation is renewed; bytes
	granted, told resource.Amount
	cores         resource.Amount // that it was granted and may lend; 0: none
	most          resource.Amount // that it may lend now
}

// Of returns what is to be followed of a running task; ok is false if that is nothing. ahead says that the policy looks
// ahead, and renews that it renews what is reserved.
func Of(t *book.TaskState, now timeline.Time, ahead, renews bool) (f Task, ok bool) {
	if ahead && Phases(t, now) {
		f.phases = t.Stage().Phases
	}
	if renews && t.Running && t.Job.Reserve == cluster.ReserveLearned {
		f.granted, f.told = t.WantedGrant()[resource.Memory], t.Held
	}
	if by := t.Stage().ReservedCPU; renews && t.Running && !t.Suspended && by != nil && by.Runs == 0 {
		f.cores, f.Leaves = t.WantedGrant()[resource.CPU], t.Leaves
		if f.most = book.Everything; !roomy(t.Node) {
			f.most = t.Leaves
		}
	}
	return f, len(f.phases) > 0 || f.granted > 0 || f.cores > 0
}

// roomy reports whether a node has enough left for another program. Where memory is short, a container that begins with
// little cannot grow at once.
func roomy(n *book.NodeState) bool {
	return n.Available() >= n.Capacity[resource.Memory]/4 &&
		resource.Amount(len(n.Tasks))*resource.Core <= perCore*n.Capacity[resource.CPU]
}

// Phases reports whether a task runs and has a forecast of several phases. A stopped task enters no phase, also if it
// stands before one that needs more memory: what it used was looked at shortly before it stopped. The speed of a
// throttled task is known.
func Phases(t *book.TaskState, now timeline.Time) bool {
	_, throttled := t.Bounded(now)
	return t.Running && !t.Suspended && !t.Killing && !throttled && len(t.Stage().Phases) > 1
}

// See finds where a task is, what it holds and whether its programs wait by its use so far, and reports whether
// something is news.
func (f *Task) See(u usage.Usage) (news bool) {
	if len(f.phases) > 1 {
		f.phase, f.into, f.Found = profile.Follow(f.phases, learn.Stretches(u))
	}
	if held, ok := u.Held(); ok && f.granted > 0 && book.NoticeHeld(held, f.told, f.granted) {
		f.Held = held
	}
	if used, ok := lately(u); ok && f.cores > 0 {
		leaves := min(f.leavesOf(used), f.most)
		change := min(leaves, f.cores) - min(f.Leaves, f.cores)
		if f.Turned = max(change, -change) >= f.cores*leastSteps/leavesSteps; f.Turned {
			f.Leaves = leaves
		}
	}
	return f.Found || f.Held > 0 || f.Turned
}

// leavesOf is how much of its cores a task leaves that uses some.
func (f *Task) leavesOf(used resource.Amount) resource.Amount {
	steps := math.Round(float64(used) * (1 + headroom) / float64(f.cores) * leavesSteps)
	if steps < leastSteps {
		return book.Everything
	}
	return max(0, f.cores-resource.Amount(steps*float64(f.cores)/leavesSteps))
}

// lately is the CPU that programs used within lookBack, millicores; ok is false if that is unknown, or says
// nothing: they stood still, or what they had in swap may have kept them from more.
func lately(u usage.Usage) (used resource.Amount, ok bool) {
	time, busy := time.Duration(0), 0.0
	for i := len(u.Spans) - 1; i >= 0 && time < lookBack; i-- {
		s := &u.Spans[i]
		rate, known := s.Rate(usage.CPU)
		if !known || s.Gap || s.Suspended > 0 || s.Used[usage.Swap] > 0 {
			return 0, false
		}
		time, busy = time+s.Length, busy+float64(rate)*s.Length.Seconds()
	}
	return resource.Amount(busy / max(time, 1).Seconds()), time >= lookBack
}

// Phase returns the phase in which the task was found, and since when it is in it, if that differs enough from where
// its run time puts it.
func (f *Task) Phase(t *book.TaskState, now timeline.Time) (phase int32, since timeline.Time, differs bool) {
	if !f.Found || !Phases(t, now) {
		return 0, 0, false
	}
	phase = int32(f.phase)
	seems, ok := t.PhaseAt(now)
	end, known := t.UsualEnd(now)
	if !ok || !known {
		return 0, 0, false
	}
	var total, after time.Duration
	for i := range f.phases {
		if total += f.phases[i].Duration; i > f.phase {
			after += f.phases[i].Duration
		}
	}
	stretch := float64(t.Duration) / float64(total)
	scaled := func(d time.Duration) time.Duration { return time.Duration(float64(d) * stretch) }
	lasts, into := scaled(f.phases[f.phase].Duration), scaled(f.into)
	seemsLeft, most := end.Sub(now)-scaled(after), max(offLeast, time.Duration(offShare*float64(t.Duration)))
	off, stays := (seemsLeft - (lasts - into)).Abs(), f.into == f.phases[f.phase].Duration
	switch told := t.Phase == phase && t.PhaseSince != t.Launched; {
	case stays && told && (phase != seems || seemsLeft <= Every):
	case stays && told && phase == seems:
		return 0, 0, false
	case phase != seems && off > most/2, off > most:
	default:
		return 0, 0, false
	}
	// The phase is longer than forecast, and its end is unknown: it lasts at least until the task seems to leave it.
	if stays {
		into = max(0, lasts-most-Every)
	}
	return phase, max(t.Launched, now.Add(-into)), true
}
