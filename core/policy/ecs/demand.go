package ecs

import (
	"cmp"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// demands foresee how much CPU the tasks of a node demand when.
type demands struct {
	pieces []piece
	pauses []timespan
	steps  []timeline.Step
	spare  timeline.Timeline
	parents
}

// parents are the stages that a stage depends on, and when the last of their tasks should end. The tasks of a node that
// wait are of few stages.
type parents struct {
	of      *book.JobState
	version uint64 // of the job
	stage   int32
	now     timeline.Time
	ends    timeline.Time
}

// ready returns when the tasks of the stage of t that wait should go on, because the stages that it depends on should
// have ended; Never if that is unknown.
func (p *parents) ready(now timeline.Time, s *book.Snapshot, t *book.TaskState) timeline.Time {
	j, stage := t.Job, t.ID.Stage
	if p.of == j && p.version == j.Version && p.stage == stage && p.now == now {
		return p.ends
	}
	*p = parents{j, j.Version, stage, now, now}
	for _, u := range j.Tasks {
		if slices.Contains(j.Stages[stage].Parents, int(u.ID.Stage)) {
			end, known := earliestEnd(now, s, u)
			if !known {
				end = timeline.Never
			}
			p.ends = max(p.ends, end)
		}
	}
	for _, i := range j.Stages[stage].Parents { // those that failed run again
		if d := j.Stages[i].RunTime(); j.Progress[i].Pending > 0 {
			p.ends = max(p.ends, now.Add(d))
		}
	}
	return p.ends
}

// piece is a part of a task's work: CPU that it demands for some time.
type piece struct {
	lasts time.Duration
	cpu   resource.Amount
}

type timespan struct{ from, to timeline.Time }

// rest is what a task has left to do: the work from a time on, if it does not stop again.
type rest struct {
	from timeline.Time
	left time.Duration
	// after is the part of left that it cannot begin before other stages have ended; 0 if it waits for none.
	after time.Duration
}

// restOf returns what t has left to do when it runs next. ok is false if that is unknown. A task that leveling holds
// goes on when the hold ends, or at `released` if that is not Never. There is no time at which a task goes on that
// something else holds, or that waits for memory.
func restOf(now timeline.Time, s *book.Snapshot, t *book.TaskState, released timeline.Time) (r rest, ok bool) {
	end, known := s.EstimatedEnd(t, timeline.Earliest)
	if !known {
		return rest{}, false
	}
	held, leveled := t.HeldUntil()
	switch {
	case held.PageOut || !leveled && t.Suspended:
		return rest{from: timeline.Never, left: max(0, end.Sub(stoppedAt(t, held)))}, true
	case !leveled && t.Waits:
		after := t.AfterFirst()
		return rest{from: now, left: max(end.Sub(now), after), after: after}, true
	case !leveled:
		return rest{from: end.Add(-t.Duration), left: t.Duration}, true
	}
	r = rest{from: held.Until, left: max(0, end.Sub(stoppedAt(t, held)))}
	if released != timeline.Never {
		r.from = released
	}
	return r, true
}

// stoppedAt returns when t stopped, or was ordered to.
func stoppedAt(t *book.TaskState, held book.Held) timeline.Time {
	if t.Suspended {
		return t.SuspendedSince
	}
	return held.Since
}

// work sets d.pieces to what t does in the last part of its run, of the given length.
func (d *demands) work(t *book.TaskState, left time.Duration) {
	d.pieces = d.pieces[:0]
	if t.ByPhase {
		d.workByPhase(t.Job.Job, int(t.ID.Stage), t.Node, t.Duration, left)
	} else {
		d.pieces = append(d.pieces, piece{left, t.Grant[resource.CPU]})
	}
}

// workByPhase adds to d.pieces what a task does on a node in the last part of its run, which is as long as whole.
func (d *demands) workByPhase(j *cluster.Job, stage int, n *book.NodeState, whole, left time.Duration) {
	phases := j.Stages[stage].Phases
	stretch := float64(whole) / float64(j.Stages[stage].ForecastLength())
	done := whole - left
	for i := range phases {
		lasts := time.Duration(float64(phases[i].Duration) * stretch)
		if skip := min(done, lasts); skip > 0 {
			done, lasts = done-skip, lasts-skip
		}
		if i == len(phases)-1 || lasts > left {
			lasts = left
		}
		if left -= lasts; lasts > 0 {
			d.pieces = append(d.pieces, piece{lasts, min(cpuIn(j, stage, int32(i)), n.Capacity[resource.CPU])})
		}
	}
}

// pause sets d.pauses to the times, from now on, in which the newest solution stops t.
func (d *demands) pause(n *book.NodeState, t *book.TaskState, now timeline.Time) {
	d.pauses = d.pauses[:0]
	if n.Leveled == nil {
		return
	}
	for _, shift := range n.Leveled.Shifts {
		if shift.Task == t.ID && shift.From > now {
			d.pauses = append(d.pauses, timespan{shift.From, shift.To})
		}
	}
}

// wait adds to d.pauses that a task waits from a time on, until another.
func (d *demands) wait(from, to timeline.Time) {
	if from < to {
		d.pauses = append(d.pauses, timespan{from, to})
		slices.SortFunc(d.pauses, func(a, b timespan) int { return cmp.Compare(a.from, b.from) })
	}
}

// look sets d.spare to the cores of n that its tasks do not demand. released is a task that goes on now although it
// is held; nil is none.
func (d *demands) look(now timeline.Time, s *book.Snapshot, n *book.NodeState, released *book.TaskState) {
	d.steps = d.steps[:0]
	spare := n.Capacity[resource.CPU]
	for _, t := range n.Tasks {
		free := timeline.Never
		if t == released {
			free = now
		}
		r, known := restOf(now, s, t, free)
		if !known {
			spare -= t.Grant[resource.CPU]
			continue
		}
		d.work(t, r.left)
		d.pause(n, t, now)
		if r.after > 0 {
			d.wait(r.from.Add(r.left-r.after), d.ready(now, s, t))
		}
		d.follow(r.from)
	}
	// What tasks whose end is unknown leave of the node is there at all times.
	d.steps = append(d.steps, timeline.Step{At: timeline.Earliest, Value: resource.Vector{}.With(resource.CPU, spare)})
	d.sum()
}

// sum computes d.spare from d.steps.
func (d *demands) sum() { d.spare.Sum(resource.Vector{}, d.steps) }

// follow adds the steps of d.pieces, which begin at a time and stop in d.pauses.
func (d *demands) follow(at timeline.Time) {
	pauses := d.pauses
	for _, p := range d.pieces {
		for p.lasts > 0 && at < timeline.Never {
			for len(pauses) > 0 && pauses[0].to <= at {
				pauses = pauses[1:]
			}
			if len(pauses) > 0 && pauses[0].from <= at {
				at = pauses[0].to
				continue
			}
			lasts := p.lasts
			if len(pauses) > 0 {
				lasts = min(lasts, pauses[0].from.Sub(at))
			}
			cpu := resource.Vector{}.With(resource.CPU, p.cpu)
			d.steps = append(d.steps, timeline.Step{At: at, Value: resource.Vector{}.Sub(cpu)},
				timeline.Step{At: at.Add(lasts), Value: cpu})
			at, p.lasts = at.Add(lasts), p.lasts-lasts
		}
	}
}

// end returns when the last task of the last look ends.
func (d *demands) end() (last timeline.Time) {
	last = timeline.Earliest
	for i := range d.steps {
		last = max(last, d.steps[i].At)
	}
	return last
}

// over returns the first time from now on at which tasks demand more than the node has, by the last look; ok is false
// if they never do.
func (d *demands) over(now timeline.Time) (at timeline.Time, ok bool) {
	return d.spare.First(now, func(v resource.Vector) bool { return v[resource.CPU] < 0 })
}
