package live

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// Explain says why a job runs as it does or waits.
func (d *Driver) Explain(ctx context.Context, id cluster.JobID) (Explanation, error) {
	if err := d.awaitInventory(ctx); err != nil {
		return Explanation{}, err
	}
	var e Explanation
	var spec cluster.Job
	here, largest := false, resource.Vector{}
	readings := d.readings()
	if err := d.do(ctx, func() {
		var j *job
		largest = d.largest()
		if j, here = d.jobs[id]; here {
			e.Job = d.view(j)
			spec = j.Request.Job
			d.explain(&e, j, readings)
		}
	}); err != nil {
		return Explanation{}, err
	}
	if !here {
		j, err := d.stored(ctx, id)
		if err != nil {
			return Explanation{}, err
		}
		e.Job, spec = j.view(), j.Request.Job
	}
	var err error
	if e.Forecasts, err = d.forecasts(ctx, e.Job.UID, &spec, largest); err != nil {
		return Explanation{}, err
	}
	if e.Why == "" {
		e.Why = whyEnded(&e.Job)
	}
	return e, nil
}

func whyEnded(j *Job) string {
	text := fmt.Sprintf("The job has ended: %s.", j.Status)
	if j.Detail != "" {
		text = fmt.Sprintf("The job has ended: %s, because of %s.", j.Status, j.Detail)
	}
	return text
}

// explain adds the facts that only the engine knows.
func (d *Driver) explain(e *Explanation, j *job, readings map[cluster.ContainerID]cluster.Reading) {
	for _, n := range j.notes {
		e.Decisions = append(e.Decisions, DecisionNote{At: instant(n.at), Kind: n.kind, Task: n.task, Why: n.reason.Words(clock)})
	}
	state := d.engineJob(j)
	switch {
	case j.State.Ended:
		return
	case j.isAside():
		e.Why = "The job does not start: " + setAsideWords + "."
		return
	case state == nil:
		e.Why = "Nothing more is decided: " + fmt.Sprint(d.broken) + "."
		return
	}
	snapshot, now := d.engine.Snapshot(), d.now()
	ends := func(t *cluster.TaskState) (timeline.Time, bool) {
		if standing(t, d.flexReading(t, readings)) != cluster.ContainerRunning {
			return timeline.Never, false // It is unknown for how long.
		}
		return snapshot.EstimatedEnd(t, now)
	}
	latest, known, still := now, true, standstill{}
	tasks := slices.Clone(state.Tasks)
	slices.SortFunc(tasks, func(a, b *cluster.TaskState) int { return compareTasks(a.ID, b.ID) })
	for _, t := range tasks {
		end, ok := ends(t)
		latest, known = max(latest, end), known && ok
		out := d.explainTask(j, t, end, ok)
		out.Usage = d.flexReading(t, readings)
		how := standing(t, out.Usage)
		if still.count(how); how != cluster.ContainerRunning {
			out.Holders = holders(t, func(t *cluster.TaskState) *cluster.Reading { return d.flexReading(t, readings) })
		}
		e.Tasks = append(e.Tasks, out)
	}
	stage, ready := state.NextStage()
	pending := state.Pending() > 0
	switch {
	case still != standstill{}:
	case state.Estimate.EndKnown:
		e.EstimatedEnd = instant(max(now, state.Estimate.End))
	case known && !pending && len(state.Tasks) > 0:
		e.EstimatedEnd = instant(latest)
	}
	switch {
	case state.Status.Ended():
		e.Why = fmt.Sprintf("The job is being ended: %s.", state.Status)
	case !pending && still == standstill{} && !slices.ContainsFunc(tasks, func(t *cluster.TaskState) bool { return t.Running }):
		e.Why = startingWords(len(tasks))
	case !pending:
		e.Why = still.why(len(tasks))
	default:
		e.Why = "The next task of the job has not started: " + e.Job.Waiting + "." // Waiting is from whyWaits
		if !ready {
			break
		}
		need := d.least(state, stage)
		if at, ok := earliestRoom(snapshot, need, now, ends); ok {
			e.EarliestStart = instant(at)
		} else {
			e.EstimatedEnd = time.Time{} // No end without a start.
		}
		e.Why += keptCores(snapshot, need)
	}
}

// startingWords says what a job does none of whose last tasks runs yet: their programs begin in moments.
func startingWords(tasks int) string {
	if tasks == 1 {
		return "The last task of the job is being started."
	}
	return "The remaining tasks of the job are being started."
}

func (d *Driver) explainTask(j *job, t *cluster.TaskState, end timeline.Time, known bool) TaskExplanation {
	stage := t.Stage()
	out := TaskExplanation{Task: t.ID, MemoryBytes: int64(t.Grant[resource.Memory]), IdealBytes: int64(stage.Ideal[resource.Memory]),
		Slowdown: stage.Elasticity.Slowdown(stage.Ideal[resource.Memory], t.Grant[resource.Memory])}
	if r := j.newest(t.ID); r != nil {
		out.Why, out.Throttle = r.Why, throttleOf(r, d.now())
		if limit := j.Request.Job.Stages[t.ID.Stage].Timeout; limit > 0 && r.Started > 0 {
			out.Limited = instant(r.Started.Add(limit))
		}
	}
	if phase, ok := t.PhaseAt(d.now()); ok {
		out.Phase, out.Phases = int(phase)+1, len(stage.Phases)
	}
	if known {
		out.EstimatedEnd = instant(end)
	}
	return out
}

// ends returns when a task is expected to end; ok is false if that is unknown.
type ends func(*cluster.TaskState) (at timeline.Time, ok bool)

// earliestRoom returns when some node will have need free if nothing else is started. ok is false if that depends on
// tasks whose ends are unknown.
func earliestRoom(s *cluster.Snapshot, need resource.Vector, now timeline.Time, ends ends) (at timeline.Time, ok bool) {
	var outlook cluster.Outlook
	at = timeline.Never
	for _, n := range s.Nodes {
		if n.Paused || !n.Holds(need) {
			continue
		}
		outlook.Look(n, ends)
		t, known := outlook.Room(now, need.FitsIn)
		if n.Full() {
			t, known = outlook.RoomAfterEnd(need.FitsIn)
		}
		if known {
			at, ok = min(at, t), true
		}
	}
	return at, ok
}
