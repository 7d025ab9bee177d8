// Package counts counts what a driver does. Whoever does something counts it, and whoever asks reads the counters:
// there is nothing to publish.
package counts

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
)

// Values are what a driver has counted since it began.
type Values struct {
	Steps  Histogram // of the engine: how long each step took
	Writes Histogram // to the store: how long each took that succeeded or failed
	// WriteFailures is how often the events and decisions of a piece of work could not be recorded. Hangs is how often
	// the engine stopped answering.
	WriteFailures, Hangs int64
	Events               []int64 // by cluster.EventKind
	Decisions            []int64 // by cluster.DecisionKind
	Open                 []int64 // jobs that have not ended now, by cluster.JobStatus
	Jobs                 []int64 // that have ended, by cluster.JobStatus
	Runs                 []int64 // of tasks that have ended, by cluster.Outcome
	Holds                []Holds
	// Past is of the runs of tasks that have ended and were measured.
	Past api.SlackOf
	// RefusedOfUsers and RefusedOfQueues are submissions that a quota of a user, or of a queue, refused, by
	// cluster.QuotaKind.
	RefusedOfUsers, RefusedOfQueues []int64
	// Swapped is the memory of the containers that is in swap now, in bytes.
	Swapped int64
}

// Holds are the times for which one holder has kept tasks from running. A task that has several holders counts for
// each.
type Holds struct {
	By    cluster.Holders // one holder
	Begun int64           // how often it began to hold a task
	Tasks int64           // that it holds now
	Time  time.Duration   // for which it has held tasks, added up
}

// Histogram is how many of some durations were at most as long as a bound.
type Histogram struct {
	// of durations up to each of HistogramBounds, and more than the one before; the last is for longer durations
	Counts []int64
	Sum    time.Duration
}

// HistogramBounds are the bounds of every Histogram: a step takes microseconds, a write to a slow disk seconds.
var HistogramBounds = [...]time.Duration{
	10 * time.Microsecond, 25 * time.Microsecond, 50 * time.Microsecond, 100 * time.Microsecond, 250 * time.Microsecond,
	500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
	50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, time.Second, 10 * time.Second,
}

// histogram is a Histogram in the making. One goroutine adds to it while others read it.
type histogram struct {
	counts [len(HistogramBounds) + 1]atomic.Int64
	sum    atomic.Int64
}

func (h *histogram) add(d time.Duration) {
	i := 0
	for i < len(HistogramBounds) && d > HistogramBounds[i] {
		i++
	}
	h.counts[i].Add(1)
	h.sum.Add(int64(d))
}

func (h *histogram) read() Histogram {
	return Histogram{Counts: numbers(h.counts[:]), Sum: time.Duration(h.sum.Load())}
}

// numbers reads counters.
func numbers(counters []atomic.Int64) []int64 {
	all := make([]int64, len(counters))
	for i := range counters {
		all[i] = counters[i].Load()
	}
	return all
}

// Counters are the counters of a driver. One goroutine adds to them, but for Submission; any may read.
type Counters struct {
	steps, writes histogram
	failures      atomic.Int64
	events        [cluster.NumEventKinds]atomic.Int64
	decisions     [cluster.NumDecisionKinds]atomic.Int64
	jobs          [cluster.NumJobStatuses]atomic.Int64
	runs          [cluster.NumOutcomes]atomic.Int64
	holds         holds
	past          struct {
		mu sync.Mutex
		api.SlackOf
	}
	// refused are submissions that a quota of a user, or of a queue, refused.
	refused [2][cluster.NumQuotaKinds]atomic.Int64
}

// Submission counts a submission that failed, if a quota refused it.
func (c *Counters) Submission(err error) {
	party, kind := cluster.Party{}, cluster.NumQuotaKinds
	if over, ok := errors.AsType[*cluster.Excess](err); ok {
		party, kind = over.Party, over.Kind
	} else if never, ok := errors.AsType[*cluster.NeverFits](err); ok {
		party, kind = never.Party, never.Kind
	} else {
		return
	}
	of := 0
	if party.Queue {
		of = 1
	}
	c.refused[of][kind].Add(1)
}

// Event counts an event of the engine.
func (c *Counters) Event(now timeline.Time, e *cluster.Event) {
	c.events[e.Kind].Add(1)
	id := cluster.ContainerID{Task: e.Task, Run: e.Run}
	switch e.Kind {
	case cluster.TaskSuspended:
		c.holds.set(id, e.By, now)
	case cluster.TaskResumed, cluster.TaskEnded, cluster.DecisionFailed:
		c.holds.set(id, 0, now)
	case cluster.TaskAdopted:
		if p := e.Condition().Progress; p != nil && p.SuspendedBy != 0 {
			c.holds.find(id, p.SuspendedBy, now)
		}
	}
}

// Step counts a step of the engine, Write a write to the store, by how long it took.
func (c *Counters) Step(took time.Duration) { c.steps.add(took) }

// Write is described with Step.
func (c *Counters) Write(took time.Duration) { c.writes.add(took) }

// Failure counts a piece of work that could not be recorded.
func (c *Counters) Failure() { c.failures.Add(1) }

// Decision counts a decision of the policy.
func (c *Counters) Decision(k cluster.DecisionKind) { c.decisions[k].Add(1) }

// JobEnded counts a job that has ended, RunEnded a run of a task.
func (c *Counters) JobEnded(s cluster.JobStatus) { c.jobs[s].Add(1) }

// RunEnded is described with JobEnded.
func (c *Counters) RunEnded(o cluster.Outcome) { c.runs[o].Add(1) }

// Past counts the memory of a run of a task that has ended, as api.Slack does.
func (c *Counters) Past(asked, reserved, used int64) {
	c.past.mu.Lock()
	defer c.past.mu.Unlock()
	c.past.Add(asked, reserved, used)
}

// PastSlack returns what Past has counted.
func (c *Counters) PastSlack() api.SlackOf {
	c.past.mu.Lock()
	defer c.past.mu.Unlock()
	return c.past.SlackOf
}

// Read returns what is counted here: all but Hangs, Open and Swapped.
func (c *Counters) Read(now timeline.Time) Values {
	return Values{Steps: c.steps.read(), Writes: c.writes.read(), WriteFailures: c.failures.Load(),
		Events: numbers(c.events[:]), Decisions: numbers(c.decisions[:]), Jobs: numbers(c.jobs[:]),
		Runs: numbers(c.runs[:]), Holds: c.holds.read(now),
		Past: c.PastSlack(), RefusedOfUsers: numbers(c.refused[0][:]),
		RefusedOfQueues: numbers(c.refused[1][:])}
}

// eachHolder has the holders one by one.
var eachHolder = [...]cluster.Holders{cluster.HeldByMemory, cluster.HeldByOwner, cluster.HeldByLeveling}

// holds counts for each holder.
type holds struct {
	mu    sync.Mutex
	tasks map[cluster.ContainerID]hold // that are held
	begun [len(eachHolder)]int64
	time  [len(eachHolder)]time.Duration // until a task last had other holders
}

// hold says who holds a task since when.
type hold struct {
	by    cluster.Holders
	since timeline.Time
}

// set says who holds a task from now on; 0 lets it go on.
func (h *holds) set(id cluster.ContainerID, by cluster.Holders, now timeline.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was, held := h.tasks[id]
	if !held && by == 0 {
		return
	}
	for i, holder := range eachHolder {
		if was.by&holder != 0 {
			h.time[i] += now.Sub(was.since)
		} else if by&holder != 0 {
			h.begun[i]++
		}
	}
	h.put(id, hold{by, now})
}

// find says who holds a task of an earlier Driver.
func (h *holds) find(id cluster.ContainerID, by cluster.Holders, now timeline.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.put(id, hold{by, now})
}

func (h *holds) put(id cluster.ContainerID, is hold) {
	if is.by == 0 {
		delete(h.tasks, id)
		return
	}
	if h.tasks == nil {
		h.tasks = map[cluster.ContainerID]hold{}
	}
	h.tasks[id] = is
}

func (h *holds) read(now timeline.Time) []Holds {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]Holds, len(eachHolder))
	for i, holder := range eachHolder {
		all[i] = Holds{By: holder, Begun: h.begun[i], Time: h.time[i]}
	}
	for _, is := range h.tasks {
		for i, holder := range eachHolder {
			if is.by&holder != 0 {
				all[i].Tasks++
				all[i].Time += now.Sub(is.since)
			}
		}
	}
	return all
}
