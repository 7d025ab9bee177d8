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
			e.Job.Waiting = d.whyWaits(j)
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
		e.Why = whyEnded(&e.Job)
	}
	if words := d.unread(id); here && words != "" {
		e.Why += " But " + words + "."
	}
	e.Remedies = remedies(&e.Job, &spec, e.Forecasts)
	return e, nil
}

// inTurn is look for one caller at a time, who waits until the loop has had its part of the time since the callers
// before.
func (d *Driver) inTurn(ctx context.Context, f func()) error {
	done, err := d.readers.turn(ctx)
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

func whyEnded(j *api.Job) string {
	text := fmt.Sprintf("The job has ended: %s.", j.Status)
	if j.Detail != "" {
		text = fmt.Sprintf("The job has ended: %s, because of %s.", j.Status, j.Detail)
	}
	return text
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
		if waits || standing(t, d.flexReading(t, readings)) != cluster.ContainerRunning &&
			t.StillBy != cluster.HeldByLeveling {
			return timeline.Never, false // It is unknown for how long.
		}
		return snapshot.EstimatedEnd(t, t.GoesOnAt(now))
	}
	latest, known, still := now, true, standstill{}
	var seen []*book.NodeState
	tasks := slices.Clone(state.Tasks)
	slices.SortFunc(tasks, func(a, b *book.TaskState) int { return a.ID.Compare(b.ID) })
	for _, t := range tasks {
		end, ok := ends(t)
		latest, known = max(latest, end), known && ok
		out := d.explainTask(j, t, end, ok)
		out.Usage = d.flexReading(t, readings)
		how := standing(t, out.Usage)
		if still.count(t, how); how != cluster.ContainerRunning && t.StillBy != cluster.HeldByLeveling {
			out.Holders = holders(t, func(t *book.TaskState) *cluster.Reading { return d.flexReading(t, readings) })
		}
		e.Tasks = append(e.Tasks, out)
		if !slices.Contains(seen, t.Node) {
			seen = append(seen, t.Node)
			if l := levelingOf(t.Node); l != nil {
				e.Levelings = append(e.Levelings, *l)
			}
		}
	}
	stage, ready := state.NextStage()
	retried := d.retried(j.ID)
	pending := state.Pending() > 0 || len(state.Retries()) > 0 || retried != ""
	switch {
	case still.endless():
	case state.Estimate.EndKnown && still.leveled == 0: // The policy does not count on an end of leveling.
		e.EstimatedEnd = instant(max(now, state.Estimate.End))
	case known && !pending && len(state.Tasks) > 0:
		e.EstimatedEnd = instant(latest)
	}
	switch {
	case e.Job.Paused != nil && !state.Status.Ended():
		e.Why = fmt.Sprintf(
			"The job is paused by %s since %s: none of its tasks starts, and its programs are stopped, until `bellows "+
				"resume %d`.", e.Job.Paused.By, clock(j.paused(cluster.TaskID{}).Since), j.ID)
		e.EstimatedEnd = time.Time{}
	case state.Status.Ended():
		e.Why = fmt.Sprintf("The job is being ended: %s.", state.Status)
	case !pending && still == standstill{} &&
		!slices.ContainsFunc(tasks, func(t *book.TaskState) bool { return t.Running }):
		e.Why = startingWords(len(tasks))
	case !pending:
		e.Why = still.why(len(tasks))
	default:
		e.Why = "The next task of the job has not started: " + e.Job.Waiting + "." // Waiting is from whyWaits
		e.Why += d.missedDeadline(j, state, now)
		if !ready {
			break
		}
		need := d.least(state, stage)
		if at, ok := earliestRoom(snapshot, state, stage, need, now, ends); ok {
			e.EarliestStart = instant(at)
		} else {
			e.EstimatedEnd = time.Time{} // No end without a start.
		}
		e.Why += keptCores(snapshot, need) + leftMemory(snapshot, need)
		blockers, lacks := d.blockers(j, need)
		e.Blockers = blockers
		e.Why += blockersWords(blockers, lacks)
	}
}

// startingWords describes a job whose last tasks have been ordered to start and do not run yet.
func startingWords(tasks int) string {
	if tasks == 1 {
		return "The last task of the job is being started."
	}
	return "The remaining tasks of the job are being started."
}

func (d *Driver) explainTask(j *job, t *book.TaskState, end timeline.Time, known bool) api.TaskExplanation {
	stage := t.Stage()
	out := api.TaskExplanation{Task: t.ID, Grant: grantOf(t.Grant), InPhase: board.InPhase(t, d.now()),
		IdealBytes: int64(stage.Ideal[resource.Memory]), Slowdown: stage.Elasticity.Slowdown(stage.Ideal[resource.Memory],
			t.Grant[resource.Memory])}
	if t.ByPhase {
		out.Slowdown = 1
	}
	out.Sized = sizedOf(t, j.newest(t.ID))
	if r := j.newest(t.ID); r != nil {
		out.Why, out.Throttle = r.Why, throttleOf(r, d.now())
		if limit := j.Request.Job.Stages[t.ID.Stage].Timeout; limit > 0 && r.Started > 0 {
			out.Limited = instant(r.Started.Add(limit))
		}
	}
	out.Shifts, out.MemoryWait = shiftsOf(t, d.now()), memoryWaitOf(t, d.now())
	if known {
		out.EstimatedEnd = instant(end)
	}
	return out
}

// ends returns when a task is expected to end; ok is false if that is unknown.
type ends func(*book.TaskState) (at timeline.Time, ok bool)

// earliestRoom returns when the next task of a stage has room if nothing else is started, or all remaining tasks if
// they start together. Each has the given need. ok is false if that depends on tasks whose ends are unknown.
//
// Tasks that start together are spread over the nodes as policy prophet does it: to different nodes if there are as
// many as tasks of the stage, or else evenly.
func earliestRoom(s *book.Snapshot, j *book.JobState, stage int, need resource.Vector, now timeline.Time,
	ends ends) (at timeline.Time, ok bool) {
	tasks, nodes := 1, 0
	for _, n := range s.Nodes {
		if n.Holds(need) {
			nodes++
		}
	}
	together := j.Stages[stage].Together
	if together {
		tasks = j.Progress[stage].Pending
	}
	each := (tasks + nodes - 1) / max(1, nodes)
	var outlook book.Outlook
	var places []timeline.Time // when each place for a task becomes free
	for _, n := range s.Nodes {
		if n.Paused || !n.Holds(need) {
			continue
		}
		from, known := now, true
		if together && j.Stages[stage].Tasks <= nodes {
			from, known = freeOf(n, j.ID, stage, now, ends)
		}
		outlook.Look(n, ends)
		for k := 1; k <= each && known; k++ {
			var t timeline.Time
			if t, known = outlook.RoomFor(k, need, from); known {
				places = append(places, t)
			}
		}
	}
	if len(places) < tasks {
		return timeline.Never, false
	}
	slices.Sort(places)
	return places[tasks-1], true
}

// freeOf returns when no task of a stage runs on n any more.
func freeOf(n *book.NodeState, job cluster.JobID, stage int, now timeline.Time, ends ends) (at timeline.Time,
	known bool) {
	at, known = now, true
	for _, t := range n.Tasks {
		if t.ID.Job == job && int(t.ID.Stage) == stage {
			end, ok := ends(t)
			at, known = max(at, end), known && ok
		}
	}
	return at, known
}
