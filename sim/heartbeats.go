package sim

import (
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// heartbeats is a cluster that works as YARN does, as the YARN-ME authors' simulator models it:
//
//   - A node reports ended tasks, and takes new work, with its heartbeats. Heartbeats are left out while nothing
//     happens.
//   - A job's coordinator requests tasks, and is notified of grants, with heartbeats of its own: a task granted before
//     one heartbeat is launched by the next, and ended tasks are counted likewise.
//   - The coordinator itself is granted like a task. It ends when all other tasks have been counted, and the job
//     ends one
//     coordinator heartbeat later.
type heartbeats struct {
	*run
	reporters []reporter // by node
	// quotas says that an end, or a change of limits, on one node can let a task start on any other node.
	quotas bool
	// after are launches and ends that a coordinator's heartbeat causes; they happen right after the heartbeat.
	after []item
}

// reporter is a node in what it has to report with its heartbeats.
type reporter struct {
	gone      bool
	phase     timeline.Time // of its heartbeats
	scheduled bool          // the next heartbeat is on the agenda
	ended     []*task       // to be reported with the next heartbeat
	reports   []report      // likewise
	booked    int           // started, not launched
	started   int           // by the heartbeat in progress
}

// master is the coordinator's side of a job.
type master struct {
	phase     timeline.Time // of its heartbeats
	scheduled bool          // the next heartbeat is on the agenda
	polls     timeline.Time // time of the next poll for its own grant
	launched  bool
	dead      bool    // it ended before its job did, and the end has not been reported yet
	last      bool    // its next heartbeat ends the job
	granted   []*task // since its last heartbeat
	acquired  []*task // to be launched by its next heartbeat
	released  int     // reported as ended since its last heartbeat
	counted   int     // to be counted as ended by its next heartbeat
	running   int     // granted and not counted as ended, itself included
	self      *task
}

// gone notes that the end of the coordinator was reported, and that another is to come.
func (m *master) gone() {
	m.self, m.launched, m.last, m.dead = nil, false, false, false
	m.running--
}

// collect takes the grants since the last heartbeat, and counts what was reported as ended since then.
func (m *master) collect() {
	m.running -= m.counted
	m.acquired, m.granted = m.granted, m.acquired[:0]
	m.counted, m.released = m.released, 0
}

// pollDelay is the interval at which a coordinator polls for its own grant.
const pollDelay = time.Second

func newHeartbeats(r *run) *heartbeats {
	return &heartbeats{run: r, reporters: make([]reporter, len(r.config.Nodes)), quotas: r.policy.Traits().Quotas}
}

// begin spreads the first heartbeats over one second.
func (h *heartbeats) begin() {
	for i := range h.reporters {
		at := timeline.Milliseconds(int64(math.Round(float64(i) * 1000 / float64(len(h.reporters)))))
		h.reporters[i].phase = at % timeline.Time(h.config.Heartbeat)
		h.reporters[i].scheduled = true
		h.agenda.push(at, nodeHeartbeat, int32(i))
	}
}

// next returns the first time after now on the grid of the given interval and phase.
func (h *heartbeats) next(every time.Duration, phase timeline.Time) timeline.Time {
	e := timeline.Time(every)
	at := h.now/e*e + phase
	if at <= h.now {
		at += e
	}
	return at
}

// wakeNode ensures that the node's next heartbeat is on the agenda.
func (h *heartbeats) wakeNode(n cluster.NodeID) {
	if node := &h.reporters[n]; !node.scheduled && !node.gone {
		node.scheduled = true
		h.agenda.push(h.next(h.config.Heartbeat, node.phase), nodeHeartbeat, int32(n))
	}
}

func (h *heartbeats) wakeAllNodes() {
	for n := range h.reporters {
		h.wakeNode(cluster.NodeID(n))
	}
}

func (h *heartbeats) wakeMaster(j *job) {
	if m := &j.master; !m.scheduled && h.config.CoordinatorHeartbeat > 0 {
		m.scheduled = true
		h.agenda.push(h.next(h.config.CoordinatorHeartbeat, m.phase), jobHeartbeat, j.index)
	}
}

func (h *heartbeats) arrive(j *job) {
	h.stepOne(cluster.Event{Kind: cluster.JobSubmitted, NewJob: h.submission(j)})
	if h.config.CoordinatorHeartbeat > 0 {
		j.master.phase = h.now.Add(pollDelay) % timeline.Time(h.config.CoordinatorHeartbeat)
		h.poll(j)
	}
	h.wakeAllNodes()
}

// poll schedules a coordinator's next poll for its own grant.
func (h *heartbeats) poll(j *job) {
	j.master.scheduled, j.master.polls = true, h.now.Add(pollDelay)
	h.agenda.push(j.master.polls, jobPoll, j.index)
}

func (h *heartbeats) handle(i item) {
	switch i.what {
	case nodeHeartbeat:
		h.beat(cluster.NodeID(i.who))
	case jobPoll, jobHeartbeat:
		h.masterBeat(h.jobs[i.who])
		for n := 0; n < len(h.after); n++ {
			h.run.handle(h.after[n])
		}
		h.after = h.after[:0]
	case launched:
		if t := h.tasks.get(i.who); !t.ended() && h.mayLaunch(t) {
			h.reporters[t.node].booked--
			h.launch(t)
			if t.result.Coordinator { // its job can be served from now on
				h.wakeAllNodes()
			}
		}
	case jobEnded:
		h.endJob(h.jobs[i.who])
	}
}

// beat is one heartbeat of a node.
func (h *heartbeats) beat(id cluster.NodeID) {
	n := &h.reporters[id]
	n.scheduled = false
	if n.gone {
		return
	}
	events := h.events[:0]
	ended, inVain := n.ended, false
	for i := range n.reports {
		events = append(events, n.reports[i].event)
	}
	n.reports = n.reports[:0]
	for _, t := range ended {
		events = append(events, cluster.Event{Kind: cluster.TaskEnded, Task: t.id, Node: id, Outcome: t.result.Outcome})
		inVain = inVain || t.result.Outcome != cluster.Succeeded || t.job.failing != ""
		h.release(t)
	}
	n.ended, n.started = n.ended[:0], 0
	grew := h.keepers != nil && h.keepers[id].held != h.keepers[id].reported
	if grew {
		events = append(events, h.held(id))
	}
	h.events = append(events, cluster.Event{Kind: cluster.Heartbeat, Node: id})
	h.step(h.events)
	if h.waiting > 0 && (n.started > 0 || n.booked > 0) {
		h.wakeNode(id)
	}
	// With memory managers, a task that starts or grows here can make another node the best choice.
	changed := len(ended) > 0 || grew || h.keepers != nil && n.started > 0
	if h.quotas && h.waiting > 0 && changed || slices.ContainsFunc(ended, h.opensBarrier) {
		h.wakeAllNodes()
	}
	if h.forgets() {
		for _, t := range ended { // Nothing starts before the end of this heartbeat, and takes their memory.
			if t.result.Outcome == cluster.Succeeded {
				h.tasks.forget(t)
			}
		}
	}
	if inVain {
		h.afterLosses(ended)
	}
}

// afterLosses applies the engine's judgement of tasks that have been reported as ended.
func (h *heartbeats) afterLosses(ended []*task) {
	var orphans []*master
	for _, t := range ended {
		if (t.result.Outcome != cluster.Succeeded || t.job.failing != "") && h.err == nil {
			h.afterLoss(t, t.result.Outcome)
		}
		if t.result.Coordinator && t.result.Outcome != cluster.Succeeded {
			orphans = append(orphans, &t.job.master)
		}
	}
	// after the loop, since giveBackGrants appends to the nodes' lists of ended tasks, which the loop reads
	for _, m := range orphans {
		h.giveBackGrants(m)
	}
	h.wakeAllNodes()
}

// release notes the end of a task for the job's coordinator, which learns of it with its next heartbeat. If the task is
// the coordinator itself, and its job goes on, the job waits for another coordinator.
func (h *heartbeats) release(t *task) {
	m := &t.job.master
	switch {
	case h.config.CoordinatorHeartbeat == 0:
	case !t.result.Coordinator:
		h.wakeMaster(t.job)
		m.released++
	case t.result.Outcome != cluster.Succeeded:
		m.gone()
		h.wakeMaster(t.job)
	}
}

// giveBackGrants ends the tasks that a coordinator was granted and has not launched: no other coordinator can launch
// them.
func (h *heartbeats) giveBackGrants(m *master) {
	for _, granted := range [][]*task{m.granted, m.acquired} {
		for _, t := range granted {
			if !t.ended() {
				h.end(t, cluster.Lost)
			}
		}
	}
	m.granted, m.acquired = nil, nil
}

func (h *heartbeats) left(id cluster.NodeID) { h.reporters[id].gone, h.reporters[id].ended = true, nil }

func (h *heartbeats) lost(t *task) {
	h.release(t)
	if t.result.Coordinator {
		h.giveBackGrants(&t.job.master)
	}
}

func (h *heartbeats) joined(id cluster.NodeID) {
	h.reporters = append(h.reporters, reporter{phase: h.now % timeline.Time(h.config.Heartbeat)})
	h.wakeNode(id)
}

func (h *heartbeats) freed() { h.wakeAllNodes() }

// opensBarrier reports whether the end of t, which has been reported, ends its stage, and other stages waited for that.
func (h *heartbeats) opensBarrier(t *task) bool {
	j, here := h.engine.Snapshot().Job(t.id.Job)
	if !here {
		return false
	}
	all := j.Progress[t.id.Stage].Ended == j.Stages[t.id.Stage].Tasks
	for i := range j.Stages {
		if s := &j.Stages[i]; slices.Contains(s.Parents, int(t.id.Stage)) && (all || s.StartShare > 0 && j.Ready(i)) {
			return true
		}
	}
	return false
}

func (h *heartbeats) started(t *task) {
	n := &h.reporters[t.node]
	n.started++
	n.booked++
	if h.config.CoordinatorHeartbeat == 0 {
		h.agenda.push(h.now.Add(h.config.LaunchDelay+h.order(t)), launched, t.index)
		return
	}
	m := &t.job.master
	m.running++
	if t.result.Coordinator {
		m.self = t
		h.agenda.push(max(h.now, m.polls), jobFound, t.job.index)
	} else {
		m.granted = append(m.granted, t)
	}
	h.wakeMaster(t.job)
}

func (h *heartbeats) limitsChanged(n cluster.NodeID) { h.wakeNode(n) }

func (h *heartbeats) gaveBack(n cluster.NodeID) { h.wakeNode(n) }

// soon enters a happening right after the heartbeat in progress.
func (h *heartbeats) soon(what happening, t *task) {
	h.after = append(h.after, item{at: h.now, what: what, who: t.index})
}

// launchSoon launches a task right after the heartbeat in progress, or after its startup delay.
func (h *heartbeats) launchSoon(t *task) {
	if delay := h.order(t); delay > 0 {
		h.agenda.push(h.now.Add(delay), launched, t.index)
		return
	}
	h.soon(launched, t)
}

// masterBeat is one heartbeat of a coordinator.
func (h *heartbeats) masterBeat(j *job) {
	m := &j.master
	m.scheduled = false
	if j.done || j.failing != "" || m.dead {
		return // there is no coordinator
	}
	if !m.launched {
		if m.self == nil {
			h.poll(j)
			return
		}
		m.launched = true
		h.wakeNode(m.self.node)
		h.launchSoon(m.self)
	}
	if m.last {
		h.agenda.push(h.now, jobEnded, j.index)
		return
	}
	for _, t := range m.acquired {
		if t.ended() {
			continue
		}
		h.wakeNode(t.node)
		h.launchSoon(t)
	}
	m.collect()
	if j.unstarted == 0 && m.running == 1 && len(m.acquired) == 0 {
		m.last = true
		h.soon(ended, m.self)
		h.wakeMaster(j)
	}
	if len(m.acquired) > 0 || m.counted > 0 {
		h.wakeMaster(j)
	}
}

func (h *heartbeats) finished(t *task) {
	if !t.launched {
		h.reporters[t.node].booked--
	}
	h.reporters[t.node].ended = append(h.reporters[t.node].ended, t)
	h.wakeNode(t.node)
	if h.config.CoordinatorHeartbeat == 0 && t.job.unended == 0 {
		h.endJob(t.job)
	}
}

func (h *heartbeats) reported(reports []report) {
	for i := range reports {
		id := reports[i].event.Node
		h.reporters[id].reports = append(h.reporters[id].reports, reports[i])
		h.wakeNode(id)
	}
}
