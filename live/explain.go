package live

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/board"
	"github.com/bellows-rm/bellows/live/view"
)

// Explain says why a job runs as it does or waits.
func (d *Driver) Explain(ctx context.Context, id cluster.JobID) (api.Explanation, error) {
	if err := d.awaitInventory(ctx); err != nil {
		return api.Explanation{}, err
	}
	var e api.Explanation
	var spec cluster.Job
	var owner cluster.Credentials
	here, largest := false, resource.Vector{}
	readings := d.readings()
	if err := d.inTurn(ctx, func() {
		var j *job
		largest = d.largest()
		if j, here = d.jobs[id]; here {
			e.Job = d.board.Newest().Jobs.Job(id).Whole(d.now())
			var why cluster.Reason
			e.Job.Waiting, why = d.whyWaits(j)
			e.Remedies = view.Awaits(why)
			putReadings(e.Job.Tasks, readings)
			spec, owner = j.Request.Job, j.Request.As
			d.explain(&e, j, readings)
		}
	}); err != nil {
		return api.Explanation{}, err
	}
	if !here {
		j, err := d.stored(ctx, id)
		if err != nil {
			return api.Explanation{}, err
		}
		e.Job, spec, owner = j.shownAs(nil).Whole(d.now()), j.Request.Job, j.Request.As
	}
	var err error
	if e.Forecasts, err = d.forecasts(ctx, owner, &spec, largest); err != nil {
		return api.Explanation{}, err
	}
	if e.Why == "" {
		e.Why = view.Ended(&e.Job)
	}
	if words := d.unread(id); here && words != "" {
		e.Why += " But " + words + "."
	}
	e.Remedies = append(e.Remedies, view.Remedies(&e.Job, &spec, e.Forecasts)...)
	return e, nil
}

// inTurn is look for one caller at a time, who waits until the loop has had its part of the time since the callers
// before.
func (d *Driver) inTurn(ctx context.Context, f func()) error {
	done, err := d.readers.Turn(ctx)
	if err != nil {
		return err
	}
	var held atomic.Int64 // f may end only after look
	defer func() { done(time.Duration(held.Load())) }()
	return d.look(ctx, func() {
		begun := time.Now()
		f()
		held.Store(int64(time.Since(begun)))
	})
}

// explain adds the facts that only the engine knows.
func (d *Driver) explain(e *api.Explanation, j *job, readings map[cluster.ContainerID]cluster.Reading) {
	for _, n := range j.notes {
		e.Decisions = append(e.Decisions, n.view())
	}
	state := d.engineJob(j)
	switch {
	case j.State.Ended:
		return
	case j.isAside():
		e.Why = "The job does not start: " + setAsideWords + "."
		return
	case state == nil:
		e.Why = "Nothing more is decided: " + fmt.Sprint(d.health.broken) + "."
		return
	}
	snapshot, now := d.engine.Snapshot(), d.now()
	ends := func(t *book.TaskState) (timeline.Time, bool) {
		_, waits := t.WaitsForMemory()
		if waits || view.Standing(t, d.flexReading(t, readings)) != cluster.ContainerRunning &&
			t.SuspendedBy != cluster.HeldByLeveling {
			return timeline.Never, false // It is unknown for how long.
		}
		return snapshot.EstimatedEnd(t, t.ResumesAt(now))
	}
	latest, known, still := now, true, view.Standstill{}
	var seen []*book.NodeState
	tasks := slices.Clone(state.Tasks)
	slices.SortFunc(tasks, func(a, b *book.TaskState) int { return a.ID.Compare(b.ID) })
	for _, t := range tasks {
		end, ok := ends(t)
		latest, known = max(latest, end), known && ok
		out := d.explainTask(j, t, end, ok)
		out.Usage = d.flexReading(t, readings)
		how := view.Standing(t, out.Usage)
		if still.Count(t, how); how != cluster.ContainerRunning && t.SuspendedBy != cluster.HeldByLeveling {
			out.Holders = holders(t, func(t *book.TaskState) *cluster.Reading { return d.flexReading(t, readings) })
		}
		e.Tasks = append(e.Tasks, out)
		if !slices.Contains(seen, t.Node) {
			seen = append(seen, t.Node)
			if l := view.Leveling(t.Node); l != nil {
				e.Levelings = append(e.Levelings, *l)
			}
		}
	}
	stage, ready := state.NextStage()
	retried := d.retried(j.ID)
	pending := state.Pending() > 0 || len(state.Retries()) > 0 || retried != ""
	switch {
	case still.Endless():
	case state.Estimate.EndKnown && !still.Leveled(): // The policy does not count on an end of leveling.
		e.EstimatedEnd = instant(max(now, state.Estimate.End))
	case known && !pending && len(state.Tasks) > 0:
		e.EstimatedEnd = instant(latest)
	}
	switch {
	case e.Job.Paused != nil && !state.Status.Ended():
		e.Why = fmt.Sprintf(
			"The job is paused by %s since %s: none of its tasks starts, and its programs are stopped, until `bellows "+
				"resume %d`.", e.Job.Paused.By, clock(j.paused(cluster.TaskID{}).Since), j.ID)
		e.EstimatedEnd, e.Remedies = time.Time{}, nil
	case state.Status.Ended():
		e.Why = fmt.Sprintf("The job is being ended: %s.", state.Status)
	case !pending && still == view.Standstill{} &&
		!slices.ContainsFunc(tasks, func(t *book.TaskState) bool { return t.Running }):
		e.Why = view.Starting(len(tasks))
	case !pending:
		e.Why = still.Why(len(tasks))
	default:
		e.Why = "The next task of the job has not started: " + e.Job.Waiting + "." // Waiting is from whyWaits
		e.Why += d.missedDeadline(j, state, now)
		if !ready {
			break
		}
		need := d.least(state, stage)
		if at, ok := view.EarliestRoom(snapshot, state, stage, need, now, ends); ok {
			e.EarliestStart = instant(at)
		} else {
			e.EstimatedEnd = time.Time{} // No end without a start.
		}
		e.Why += view.KeptCores(snapshot, need) + view.LeftMemory(snapshot, need)
		blockers, lacks := view.Blockers(snapshot, need, func(t *book.TaskState) api.Blocker { return d.blockerOf(j, t) })
		e.Blockers = blockers
		e.Why += view.BlockersWords(blockers, lacks)
	}
}

func (d *Driver) explainTask(j *job, t *book.TaskState, end timeline.Time, known bool) api.TaskExplanation {
	stage := t.Stage()
	out := api.TaskExplanation{Task: t.ID, Grant: view.Grant(t.Grant), InPhase: board.InPhase(t, d.now()),
		IdealBytes: int64(stage.Ideal[resource.Memory]), Slowdown: stage.Elasticity.Slowdown(stage.Ideal[resource.Memory],
			t.Grant[resource.Memory])}
	if t.ByPhase {
		out.Slowdown = 1
	}
	if t.Job.Reserve == cluster.ReserveLearned { // It may have been started with an earlier reservation.
		out.IdealBytes, out.Slowdown = int64(t.Grant[resource.Memory]), 1
	}
	out.Sized = sizedOf(t, j.newest(t.ID))
	if r := j.newest(t.ID); r != nil {
		out.Why, out.Throttle = r.Why, throttleOf(r, d.now())
		if limit := j.Request.Job.Stages[t.ID.Stage].Timeout; limit > 0 && r.Started > 0 {
			out.Limited = instant(r.Started.Add(limit))
		}
	}
	out.Shifts, out.MemoryWait = view.Shifts(t, d.now()), memoryWaitOf(t, d.now())
	if known {
		out.EstimatedEnd = instant(end)
	}
	return out
}

// flexReading returns the reading of the container of a task, with the state in which the memory manager keeps it;
// nil if the memory manager leaves it alone.
func (d *Driver) flexReading(t *book.TaskState, readings map[cluster.ContainerID]cluster.Reading) *cluster.Reading {
	j, ok := d.jobs[t.ID.Job]
	if !ok {
		return nil
	}
	run := j.newest(t.ID)
	if run == nil {
		return nil
	}
	if r, ok := readings[run.Container]; ok && r.State != 0 {
		return &r
	}
	return nil
}
