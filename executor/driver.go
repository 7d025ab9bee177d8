package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// driving is what an application knows that starts its own tasks. The mutex of the application guards it.
type driving struct {
	stages  []driven
	known   int                  // how many stages the daemon knows: the first ones
	changed map[int]bool         // of these, the ones of which it may not know everything
	ended   []int                // stages whose numbers are free
	held    map[int64]Attachment // that are assigned, were not given back, and have not ended
	back    []int64              // that were given back, and the daemon may not know it
}

// driven is what the daemon knows of a stage, and what it is to know.
type driven struct {
	demand, told int
	renewed      int // how often its number was given to another stage
	toldRenewed  int // of these, as far as the daemon knows
	telling      int // renewed, in the message that is under way
}

// begin forgets what an earlier lease made known. What is held is claimed with the first growth, and what is not is
// left by its executor.
func (d *driving) begin() {
	d.known, d.back = 0, nil
	clear(d.changed)
}

// newDriven adds a stage, or gives it the number of one that has ended and calls the same function. a.mu must be held.
func (a *Application) newDriven(s Stage) int {
	d := a.driving
	at := slices.IndexFunc(d.ended, func(n int) bool {
		return a.stages[n].Function == s.Function && a.stages[n].Path == s.Path
	})
	if at < 0 {
		a.stages, d.stages = append(a.stages, &stage{Stage: s}), append(d.stages, driven{})
		a.change()
		return len(a.stages) - 1
	}
	n := d.ended[at]
	d.ended = slices.Delete(d.ended, at, at+1)
	a.renew(n, s)
	return n
}

// renew gives the number of a stage to another one. a.mu must be held.
func (a *Application) renew(n int, s Stage) {
	a.stages[n].Stage = s
	a.driving.stages[n].renewed++
	a.driving.changes(n)
	a.change()
}

// changes notes whether the daemon knows everything of a stage, unless it knows nothing of it.
func (d *driving) changes(n int) {
	if s := &d.stages[n]; n < d.known && (s.told != s.demand || s.toldRenewed != s.renewed) {
		d.changed[n] = true
	} else {
		delete(d.changed, n)
	}
}

// Demand says how many tasks of a stage run or could run now, in an application that starts its own tasks: it could
// use an executor for each of them. The pool assigns executors, and asks for them, as the shares of all applications
// say: see Changes. It panics if there is no such stage, or the number is negative.
func (a *Application) Demand(stage, tasks int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.driving == nil || stage < 0 || stage >= len(a.stages) || tasks < 0 {
		panic(fmt.Sprintf("executor: a demand of %d for stage %d: the application has %d stages, and drives: %v", tasks,
			stage, len(a.stages), a.driving != nil))
	}
	a.driving.stages[stage].demand = tasks
	a.driving.changes(stage)
	a.change()
}

// EndStage says that all tasks of a stage have ended, in an application that starts its own tasks: it demands nothing,
// and its number may be that of the next stage which calls the same function. An application that goes on for long need
// not have many stages then. It panics if there is no such stage, or it has ended already.
func (a *Application) EndStage(stage int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	d := a.driving
	if d == nil || stage < 0 || stage >= len(a.stages) || slices.Contains(d.ended, stage) {
		panic(fmt.Sprintf("executor: the end of stage %d: the application has %d stages, drives: %v, and has not ended it",
			stage, len(a.stages), d != nil))
	}
	for n, s := range a.stages { // None is to come after the next one of that number.
		if left := without(s.After, func(parent int) bool { return parent == stage }); len(left) < len(s.After) {
			s.After = left
			a.renew(n, s.Stage)
		}
	}
	d.stages[stage].demand = 0
	d.ended = append(d.ended, stage)
	a.renew(stage, Stage{Function: a.stages[stage].Function, Path: a.stages[stage].Path})
}

// GiveBack gives executors back to the pool of an application that starts its own tasks: it has no task there, and
// starts none any more. An attachment that has ended already is ignored.
func (a *Application) GiveBack(attachments ...int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range attachments {
		if _, held := a.driving.held[n]; held {
			delete(a.driving.held, n)
			a.driving.back = append(a.driving.back, n)
		}
	}
	a.change()
}

// Held returns the executors that are attached to an application that starts its own tasks, by their numbers of
// attachments.
func (a *Application) Held() []Attachment {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.driving.sorted()
}

func (d *driving) sorted() []Attachment {
	return slices.SortedFunc(maps.Values(d.held), func(x, y Attachment) int {
		return cmp.Compare(x.Attachment, y.Attachment)
	})
}

// growth returns the next message of an application that starts its own tasks: see Application.growth. A daemon that
// knows that the application is closed wants to hear of no stage any more.
func (d *driving) growth(a *Application) (g Growth) {
	if g.GivesBack = slices.Clone(d.back); a.growths == 0 {
		g.Holds = d.sorted()
	}
	if g.Closed = a.closed; !a.whole {
		for _, n := range slices.Sorted(maps.Keys(d.changed)) {
			g.Stages = append(g.Stages, d.tell(a, n))
		}
		for n := d.known; n < len(a.stages); n++ {
			g.Stages = append(g.Stages, d.tell(a, n))
		}
	}
	if len(g.Stages)+len(g.GivesBack)+len(g.Holds) > 0 || g.Closed && !a.whole {
		g.Number = a.growths + 1
	}
	return g
}

// tell returns what the daemon is to know of a stage.
func (d *driving) tell(a *Application, n int) StageGrowth {
	s, of := a.stages[n], &d.stages[n]
	of.telling = of.renewed
	g := StageGrowth{Stage: n, After: s.After}
	if !a.closed {
		g.Demand = of.demand
	}
	switch {
	case n >= d.known:
		g.Function, g.Path = s.Function, s.Path
		if g.After = without(s.After, func(parent int) bool { return parent >= n }); len(g.After) < len(s.After) {
			of.telling-- // Stages that the daemon does not know yet come before it: it has to hear of them later.
		}
	case of.renewed != of.toldRenewed:
		g.Anew = true
	default:
		return StageGrowth{Stage: n, Demand: g.Demand}
	}
	g.Name, g.Tasks = s.Name, s.Tasks
	return g
}

// without returns a list without what matches. It does not change the list.
func without(list []int, matches func(int) bool) []int {
	if !slices.ContainsFunc(list, matches) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), matches)
}

// grew records what the daemon knows since it has received a growth.
func (d *driving) grew(g *Growth) {
	for i := range g.Stages {
		n := g.Stages[i].Stage
		s := &d.stages[n]
		s.told, s.toldRenewed = g.Stages[i].Demand, s.telling
		d.known = max(d.known, n+1)
		d.changes(n)
	}
	d.back = d.back[len(g.GivesBack):]
}

// Changes returns what has happened to executors of an application that starts its own tasks, in order and each
// exactly once, as soon as there is something:
//   - Assigned: the executor is attached. It calls the function of the stage with what the application has said to
//     attach with.
//   - AskedFor: the application is to give the executor back when the tasks that it has there have ended. Until then
//     it keeps it.
//   - Ended: the executor is not attached any more, although the application has not given it back. Tasks that it
//     had there run no more, or
//     their results must not be taken: the executor may be another application's now.
//
// After a restart of the daemon, attachments go on that both the application and the executor know; the others have
// ended. The error is io.EOF when the application was closed and has no executor any more, and a *CancelledError if
// it was cancelled.
func (a *Application) Changes(ctx context.Context) ([]Change, error) {
	if a.driving == nil {
		return nil, errors.New("the application submits its tasks: Collect has their results")
	}
	if err := a.collecting.take(ctx); err != nil {
		return nil, err
	}
	defer a.collecting.end()
	for {
		lease, out, _, err := a.hear(ctx)
		if err != nil {
			return nil, err
		}
		if changes := a.takeChanges(lease, out.Changes); len(changes) > 0 {
			return changes, nil
		}
		switch {
		case out.Ended && out.Why == "":
			a.fail(io.EOF)
		case out.Ended:
			a.fail(&CancelledError{out.Why})
		}
	}
}

// takeChanges returns the changes that are new to the application.
func (a *Application) takeChanges(lease Lease, changes []Change) (fresh []Change) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lease != lease {
		return nil
	}
	d := a.driving
	for _, c := range changes {
		if c.Number <= a.after {
			continue
		}
		a.after = c.Number
		_, held := d.held[c.Attachment.Attachment]
		if c.What == Assigned {
			d.held[c.Attachment.Attachment] = c.Attachment
		} else if c.What == Ended {
			delete(d.held, c.Attachment.Attachment)
		}
		if held != (c.What == Assigned) {
			fresh = append(fresh, c)
		}
	}
	return fresh
}
