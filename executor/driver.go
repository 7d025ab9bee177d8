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
	demands []int                // of the stages
	told    []int                // demands that the daemon knows: of the first stages
	held    map[int64]Attachment // that are assigned, were not given back, and have not ended
	back    []int64              // that were given back, and the daemon may not know it
}

// begin forgets what an earlier lease made known. What is held is claimed with the first growth, and what is not is
// left by its executor.
func (d *driving) begin() { d.told, d.back = nil, nil }

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
	for len(a.driving.demands) <= stage {
		a.driving.demands = append(a.driving.demands, 0)
	}
	a.driving.demands[stage] = tasks
	a.change()
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

// growth returns the next message of an application that starts its own tasks: see Application.growth.
func (d *driving) growth(a *Application) (g Growth) {
	if g.GivesBack = slices.Clone(d.back); a.growths == 0 {
		g.Holds = d.sorted()
	}
	for n, s := range a.stages {
		demand := 0
		if n < len(d.demands) && !a.closed {
			demand = d.demands[n]
		}
		switch {
		case n >= len(d.told):
			g.Stages = append(g.Stages, StageGrowth{Stage: n, Name: s.Name, After: s.After, Function: s.Function, Path: s.Path,
				Demand: demand, Tasks: s.Tasks})
		case d.told[n] != demand:
			g.Stages = append(g.Stages, StageGrowth{Stage: n, Demand: demand})
		}
	}
	g.Closed = a.closed
	if len(g.Stages)+len(g.GivesBack)+len(g.Holds) > 0 || g.Closed && !a.whole {
		g.Number = a.growths + 1
	}
	return g
}

// grew records what the daemon knows since it has received a growth.
func (d *driving) grew(g *Growth) {
	for i := range g.Stages {
		if n := g.Stages[i].Stage; n == len(d.told) {
			d.told = append(d.told, g.Stages[i].Demand)
		} else {
			d.told[n] = g.Stages[i].Demand
		}
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
