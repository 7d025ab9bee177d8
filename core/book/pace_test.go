package book

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"pgregory.net/rapid"
)

// slowTask is how a task comes along, computed millisecond by millisecond.
type slowTask struct {
	phases []cluster.Phase
	grant  resource.Vector
	runs   float64 // at its usual pace, ms
	done   float64 // of that
	still  bool
	bound  resource.Vector
	until  int // ms
}

// inPhase returns the phase that the task is in, and when that phase ends, in ms of its run time.
func (s *slowTask) inPhase() (phase int, ends float64) {
	for i := range s.phases {
		if ends += float64(s.phases[i].Duration.Milliseconds()) * s.runs / float64(
			sumPhases(s.phases).Milliseconds()); s.done < ends-1e-6 {
			return i, ends
		}
	}
	return len(s.phases) - 1, s.runs
}

// pass lets a millisecond pass.
func (s *slowTask) pass(now int) {
	pace := 1.0
	if demand := s.grant[resource.Disk]; now < s.until {
		if len(s.phases) > 0 {
			i, _ := s.inPhase()
			demand = s.phases[i].Demand[resource.Disk]
		}
		if most := s.bound[resource.Disk]; most > 0 && demand > most {
			pace = float64(most) / float64(demand)
		}
	}
	if !s.still {
		s.done += pace
	}
}

// end is when the task ends if it goes on now, ms.
func (s slowTask) end(now int) int {
	for s.still = false; s.done < s.runs-1e-6; now++ {
		s.pass(now)
	}
	return now
}

// after is a time that many milliseconds after the launch.
func after(ms int) timeline.Time { return timeline.Seconds(100) + timeline.Time(ms)*1e6 }

// The end and the phase of a task that is throttled, stands still and is reported to be in other phases are those of
// a simulation in small steps, and an engine that takes the task over says the same.
func TestPaceOfTasks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		number := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(rt, what) }
		stage := cluster.Stage{Tasks: 1, Ideal: resource.Of(resource.Core, resource.GB).With(resource.Disk, 40*resource.MB),
			Duration: time.Duration(number("runs", 1, 30)) * 100 * time.Millisecond}
		for range number("phases", 0, 3) {
			stage.Phases = append(stage.Phases,
				cluster.Phase{Duration: time.Duration(number("phase", 1, 5)) * 50 * time.Millisecond,
					Demand: diskBound(resource.Amount(number("demand", 0, 4)) * 20 * resource.MB)})
		}
		s := newSnapshot()
		apply := func(at int, e cluster.Event) {
			rt.Helper()
			if err := s.apply(after(at), &e); err != nil {
				rt.Fatal(err)
			}
		}
		node := cluster.Event{Kind: cluster.NodeJoined, NewNode: &cluster.Node{Name: "n", Capacity: stage.Ideal.Scale(2)}}
		submitted := cluster.Event{Kind: cluster.JobSubmitted, NewJob: &cluster.Job{ID: 1, Stages: []cluster.Stage{stage}}}
		apply(0, node)
		apply(0, submitted)
		apply(0, cluster.Event{Kind: cluster.Synced})
		p := newPlan(0, s, 0)
		task := p.Start(s.Jobs[0], 0, s.Nodes[0], resource.GB, cluster.BecauseFits(resource.GB))
		apply(0, cluster.Event{Kind: cluster.DecisionDone, Task: task.ID})
		slow := slowTask{phases: stage.Phases, grant: stage.Ideal, runs: float64(stage.Duration.Milliseconds())}
		last := cluster.DecisionID(5)
		compare := func(now int, task *TaskState) {
			rt.Helper()
			end, ok := s.EstimatedEnd(task, after(now))
			if want := after(slow.end(now)); !ok || end < want-6e6 || end > want+6e6 {
				rt.Fatalf("at %dms it should end at %v (%v), want %v; %+v", now, end, ok, want, slow)
			}
			phase, ok := task.PhaseAt(after(now))
			slow := slow
			least, _ := slow.inPhase()
			slow.done += 6
			if most, _ := slow.inPhase(); ok != (len(stage.Phases) > 0) || ok && (int(phase) < least-1 || int(phase) > most) {
				rt.Fatalf("at %dms it is in phase %d (%v), want %d to %d; %+v", now, phase, ok, least, most, slow)
			}
		}
		for now, events := 0, number("events", 1, 8); events > 0; events-- {
			for range number("pause", 0, 300) {
				slow.pass(now)
				now++
			}
			compare(now, task)
			at := after(now)
			switch number("event", 0, 4) {
			case 0:
				if task.Suspended {
					apply(now, cluster.Event{Kind: cluster.TaskResumed, Task: task.ID})
				} else {
					apply(now, cluster.Event{Kind: cluster.TaskSuspended, Task: task.ID, By: cluster.HeldByMemory})
				}
				slow.still = task.Suspended
			case 1:
				if i := number("entered", 0, 2); i < len(stage.Phases) && int32(i) != task.Phase && !task.Suspended {
					apply(now, cluster.Event{Kind: cluster.TaskPhase, Task: task.ID, Phase: int32(i)})
					slow.done = slow.runs * (1 - float64(sumPhases(stage.Phases[i:]))/float64(sumPhases(stage.Phases)))
				}
			case 2, 3:
				bound, until := diskBound(resource.Amount(number("bound", 0, 3))*10*resource.MB), now+number("lasts", 1, 600)
				p := newPlan(at, s, last)
				p.Throttle(task, bound, after(until), cluster.BecauseNodePressure(resource.Disk, 1, 2))
				decisions, err := p.close(nil)
				if err != nil {
					rt.Fatal(err)
				}
				if last += cluster.DecisionID(len(decisions)); len(decisions) > 0 {
					slow.bound, slow.until = bound, until
					answer := cluster.DecisionDone
					if number("answer", 0, 3) == 0 {
						answer, slow.bound = cluster.DecisionFailed, resource.Vector{}
					}
					apply(now, cluster.Event{Kind: answer, Task: task.ID, Decision: last})
				}
			case 4:
				progress := task.Progress()
				adopted := cluster.Event{Kind: cluster.TaskAdopted, Task: task.ID, Grant: task.Grant, Launched: task.Launched,
					Found: &cluster.Condition{Progress: &progress}}
				if task.Throttled != nil {
					adopted.Found.Bound, adopted.Found.Until = task.Throttled.Most, task.Throttled.Until
				}
				s = newSnapshot()
				apply(now, node)
				apply(now, submitted)
				apply(now, adopted)
				apply(now, cluster.Event{Kind: cluster.Synced})
				stood := task.SuspendedFor
				if task = s.task(task.ID); task.SuspendedFor != stood || task.Suspended != slow.still {
					rt.Fatalf("taken over, it stood still for %v (%v), want %v (%v)", task.SuspendedFor, task.Suspended, stood,
						slow.still)
				}
			}
			compare(now, task)
		}
	})
}
