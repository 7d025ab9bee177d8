package pool_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/pool"
)

// stormDriver is an application of a storm that starts its own tasks: executors that are attached take them from it,
// without the pool. Its fields are used with the mutex of the storm.
type stormDriver struct {
	*storm
	key  string
	left []int       // tasks that wait
	runs map[int]int // tasks that run, and on which executor
	done []bool
	held map[int64]executor.Attachment // as far as the driver knows
	back []int64                       // that it gives back
	late map[int64]bool                // asked for
}

func (s *storm) newDriver(n int) *stormDriver {
	d := &stormDriver{storm: s, key: fmt.Sprintf("driver-%d-of-a-storm", n), runs: map[int]int{},
		done: make([]bool, 20+s.upTo(20)), held: map[int64]executor.Attachment{}, late: map[int64]bool{}}
	for i := range d.done {
		d.left = append(d.left, i)
	}
	return d
}

// take gives an executor a task of the driver; ok is false if the driver does not know the attachment, or wants it
// back.
func (d *stormDriver) take(attachment int64, number int) (task int, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if h, here := d.held[attachment]; !here || h.Executor != number {
		return 0, false
	}
	if d.late[attachment] || len(d.left) == 0 {
		delete(d.held, attachment)
		d.back = append(d.back, attachment)
		return 0, false
	}
	task, d.left = d.left[0], d.left[1:]
	d.runs[task] = number
	return task, true
}

// accept takes the result of a task, if the attachment on which it ran has not ended meanwhile.
func (d *stormDriver) accept(attachment int64, task int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, here := d.held[attachment]; !here {
		return // It runs again, or has.
	}
	if d.done[task] {
		d.t.Errorf("%s: task %d has two results", d.key, task)
	}
	d.done[task] = true
	delete(d.runs, task)
}

// lose puts back what ran on an executor whose attachment has ended. d.mu must be held.
func (d *stormDriver) lose(h executor.Attachment) {
	delete(d.held, h.Attachment)
	for _, task := range slices.Sorted(maps.Keys(d.runs)) {
		if d.runs[task] == h.Executor {
			delete(d.runs, task)
			d.left = append(d.left, task)
		}
	}
}

// drive runs the application until all its tasks have a result.
func (d *stormDriver) drive() {
	for d.ctx.Err() == nil {
		p := d.now()
		lease, err := p.Enrol(d.ctx, executor.Enrolment{Key: d.key, Drives: true, Attempts: 1000}, []byte(d.key))
		if err == nil && d.converse(p, lease) {
			return
		}
		d.pause(1e9)
	}
}

// converse tells the pool what is demanded, and hears what is assigned, until the application has ended or the pool
// does not answer any more.
func (d *stormDriver) converse(p *pool.Pool, lease executor.Lease) (ended bool) {
	after, growth := int64(0), int64(0)
	for p == d.now() {
		growth++
		g := executor.Growth{Lease: lease.Lease, Number: growth}
		part, coming, anew := d.upTo(3), d.upTo(4), d.chance(4)
		d.mu.Lock()
		back := slices.Clone(d.back)
		g.GivesBack = back
		demand := len(d.left) + len(d.runs)
		if growth == 1 {
			g.Holds = slices.SortedFunc(maps.Values(d.held), func(a, b executor.Attachment) int {
				return cmp.Compare(a.Attachment, b.Attachment)
			})
			g.Stages = []executor.StageGrowth{{Function: "f", Demand: demand},
				{Stage: 1, Function: "f", After: []int{0}, Tasks: coming}}
		} else if g.Closed = demand == 0; !g.Closed { // A part of it is of another stage, or that is about to start.
			second := executor.StageGrowth{Stage: 1, Demand: demand * part / 3, Tasks: coming, Anew: anew}
			if anew {
				second.After = []int{0}
			}
			g.Stages = []executor.StageGrowth{{Demand: demand - second.Demand}, second}
		}
		d.mu.Unlock()
		for range 1 + d.upTo(2) { // perhaps twice
			if _, err := p.Grow(d.ctx, lease.Application, g, nil); err != nil {
				return false
			}
		}
		d.mu.Lock()
		d.back = d.back[len(back):]
		d.mu.Unlock()
		out, _, err := p.Collect(d.ctx, lease.Application, executor.Collect{Lease: lease.Lease, After: after})
		if err != nil {
			return false
		}
		if d.chance(10) {
			continue // The answer is lost.
		}
		d.mu.Lock()
		for _, c := range out.Changes {
			if after = c.Number; c.What == executor.Assigned {
				for _, h := range d.held {
					if h.Executor == c.Executor && h.Attachment != c.Attachment.Attachment {
						d.t.Errorf("%s: executor %d is assigned twice", d.key, c.Executor)
					}
				}
				d.held[c.Attachment.Attachment] = c.Attachment
			} else if c.What == executor.AskedFor {
				d.late[c.Attachment.Attachment] = true
			} else if _, here := d.held[c.Attachment.Attachment]; here {
				d.lose(c.Attachment)
			}
			if c.Cause == "nonsense" || c.Failed && c.Cause == "" || c.What != executor.Ended && c.Cause != "" {
				d.t.Errorf("%s: attachment %d is %s: failed %v, cause %q", d.key, c.Attachment.Attachment, c.What, c.Failed,
					c.Cause)
			}
		}
		d.mu.Unlock()
		if out.Ended && out.Why != "" {
			d.t.Errorf("%s ended: %s", d.key, out.Why)
		}
		if out.Ended {
			return true
		}
	}
	return false
}

// attach serves a driver: it takes its tasks one by one, with short waits between two, until the driver or the pool
// wants it to leave. It reports whether the executor survives.
func (e *stormExecutor) attach(work executor.Work) bool {
	d := e.drivers[work.Task.Key]
	for range 1 + e.upTo(4) {
		task, ok := d.take(work.Work, e.number)
		if !ok {
			break
		}
		e.pause(3e9)
		if e.ctx.Err() != nil || e.chance(40) {
			return false
		}
		d.accept(work.Work, task)
	}
	return e.ctx.Err() == nil
}
