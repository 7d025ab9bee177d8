package ecs

import (
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/leveling"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// phased grants each task the CPU that its phase demands, at most its ideal need. Bandwidths are its ideal need
// throughout. So is memory, unless it is granted by phase, too.
type phased struct {
	off     bool // grant the ideal need
	memory  bool // tasks whose memory can be paged out are granted the memory that their phase demands
	weighs  bool // a grant of CPU is a weight, and not a quota
	ahead   lookAhead
	short   shortTasks
	started []*book.NodeState // on which a task was started in this decision
}

// applies reports whether tasks of a stage are granted what each phase demands.
func (d *phased) applies(j *cluster.Job, stage int) bool {
	s := &j.Stages[stage]
	if d.off || s.Coordinator || s.ForecastLength() == 0 {
		return false
	}
	peak := s.Peak()
	return peak[resource.CPU] > 0 && peak[resource.Memory] <= s.Ideal[resource.Memory]
}

// cpuIn returns what a task of a stage is granted in a phase.
func cpuIn(j *cluster.Job, stage int, phase int32) resource.Amount {
	s := &j.Stages[stage]
	return min(s.CPUIn(phase), s.Ideal[resource.CPU])
}

// The least change of a weight for another phase that was learned, as a share of what is granted, 1/leastStep, and
// absolutely: a program that needs 1 core needs 0.97 of one in its next phase, and the order would bring it nothing.
const leastStep, leastChange = renewedStep, resource.Core / 20

// cpuOf returns what t is granted in a phase: what it has, if what the phase demands is noise of what was learned. A
// quota follows what is demanded, because a task could not use more.
func (d *phased) cpuOf(t *book.TaskState, phase int32) resource.Amount {
	is := t.WantedGrant()[resource.CPU]
	cpu := min(cpuIn(t.Job.Job, int(t.ID.Stage), phase), t.Node.Capacity[resource.CPU])
	if d.weighs && t.Stage().Told.Samples > 0 && max(is-cpu, cpu-is) < max(is/leastStep, leastChange) {
		return is
	}
	return cpu
}

// memoryByPhase reports whether tasks of a stage are granted the memory that each phase demands. A reservation that is
// learned is that of the whole run, or renewed apart: see renewAll.
func (d *phased) memoryByPhase(j *cluster.Job, stage int) bool {
	return d.memory && j.Reserve == cluster.ReserveStated && pagesOut(j, stage)
}

// memoryIn returns the memory that a task of a stage is granted in a phase: what it demands, at most the ideal need,
// if memory is granted by phase, and else the ideal need.
func (d *phased) memoryIn(j *cluster.Job, stage int, phase int32) resource.Amount {
	ideal := j.Stages[stage].Ideal[resource.Memory]
	if !d.memoryByPhase(j, stage) {
		return ideal
	}
	return min(ideal, j.GrantIn(stage, phase)[resource.Memory])
}

// mostMemory returns the memory that a task of a stage is granted in its largest phase.
func (d *phased) mostMemory(j *cluster.Job, stage int) (most resource.Amount) {
	if !d.applies(j, stage) {
		return j.Stages[stage].Ideal[resource.Memory]
	}
	for i := range j.Stages[stage].Phases {
		if j.Stages[stage].Phases[i].Duration > 0 {
			most = max(most, d.memoryIn(j, stage, int32(i)))
		}
	}
	return most
}

// mostCPU returns what a task of a stage is granted in its largest phase.
func mostCPU(j *cluster.Job, stage int) (most resource.Amount) {
	for i := range j.Stages[stage].Phases {
		if j.Stages[stage].Phases[i].Duration > 0 {
			most = max(most, cpuIn(j, stage, int32(i)))
		}
	}
	return most
}

// lasting returns the given phase if it lasts for some time, or else the next or the last one that does.
func lasting(phases []cluster.Phase, phase int32) int32 {
	for i := int(phase); i < len(phases); i++ {
		if phases[i].Duration > 0 {
			return int32(i)
		}
	}
	for phase > 0 && phases[phase].Duration == 0 {
		phase--
	}
	return phase
}

// grant is what the next task of a stage is granted when it starts.
func (d *phased) grant(j *book.JobState, stage int) (need resource.Vector, why cluster.Reason, ok bool) {
	need = j.Stages[stage].Ideal
	memory := need[resource.Memory]
	if !d.applies(j.Job, stage) {
		return need, cluster.BecauseFits(memory), true
	}
	most := mostCPU(j.Job, stage)
	if d.short.is(j.Job, stage) {
		return need.With(resource.CPU, most), cluster.BecauseFitsShort(memory, most), true
	}
	phase := lasting(j.Stages[stage].Phases, 0)
	first := cpuIn(j.Job, stage, phase)
	memory = d.memoryIn(j.Job, stage, phase)
	return need.With(resource.CPU, first).With(resource.Memory, memory),
		cluster.BecauseFitsFirstPhase(memory, first, most), true
}

// begin starts a task with its grant.
func (d *phased) begin(p *book.Plan, j *book.JobState, stage int, n *book.NodeState, need resource.Vector,
	why cluster.Reason) {
	d.start(p, j, stage, n, need, why.Code == cluster.FitsFirstPhase, why)
}

// start is begin with any reason.
func (d *phased) start(p *book.Plan, j *book.JobState, stage int, n *book.NodeState, need resource.Vector, byPhase bool,
	why cluster.Reason) {
	if byPhase {
		p.StartPhased(j, stage, n, need, why)
	} else {
		p.StartWith(j, stage, n, need, why)
	}
	d.started = append(d.started, n)
}

// why says that no node has room for what the next task is granted.
func (d *phased) why(_ timeline.Time, s *book.Snapshot, j *book.JobState, stage int) (cluster.Reason, bool) {
	need, _, _ := d.grant(j, stage)
	return s.NoRoom(need)
}

// resize resizes the tasks of n that are in a phase in which they are granted another amount, and no more memory, and
// reports whether there was one.
func (d *phased) resize(now timeline.Time, p *book.Plan, n *book.NodeState) (resized bool) {
	for _, t := range n.Tasks {
		phase, grant, ok := d.wants(now, t)
		if ok && !t.Suspended && grant[resource.Memory] <= t.WantedGrant()[resource.Memory] &&
			d.regrant(now, p, t, phase, grant) {
			resized = true
		}
	}
	return resized
}

// wants returns the phase that t is in and what it is granted there, with the memory of the phase that it is prepared
// for. ok is false if t is not granted resources by phase, or does not run.
func (d *phased) wants(now timeline.Time, t *book.TaskState) (phase int32, grant resource.Vector, ok bool) {
	if !t.ByPhase || !t.Running || t.Killing {
		return 0, resource.Vector{}, false
	}
	if phase, ok = t.PhaseAt(now); !ok {
		return 0, resource.Vector{}, false
	}
	phase = lasting(t.Stage().Phases, phase)
	stage := int(t.ID.Stage)
	grant = t.WantedGrant().With(resource.CPU, d.cpuOf(t, phase))
	if d.memory && t.Job.Reserve == cluster.ReserveStated {
		grant[resource.Memory] = d.memoryIn(t.Job.Job, stage, d.preparedFor(now, t, phase))
	}
	return phase, grant, true
}

// regrant resizes t for a phase unless it has that grant.
func (d *phased) regrant(now timeline.Time, p *book.Plan, t *book.TaskState, phase int32,
	grant resource.Vector) (resized bool) {
	if grant == t.WantedGrant() || failed(now, t, phase) {
		return false
	}
	p.Resize(t, grant, d.because(now, t, phase, grant))
	return true
}

// watchStarted notes that the nodes have changed on which tasks were started in this decision.
func (d *phased) watchStarted(w *watch) {
	for _, n := range d.started {
		w.change(n)
	}
	d.started = d.started[:0]
	w.sort()
}

// failed reports whether the last order to resize a task failed, in the phase that it is in: it is not repeated
// before the next phase.
func failed(now timeline.Time, t *book.TaskState, phase int32) bool {
	return t.Resized != nil && t.Resized.Failed && t.Resized.Since >= t.EnteredAt(now, phase)
}

// next returns the earliest time after now at which a task of n should enter a phase in which it is granted another
// amount; Never if there is none.
func (d *phased) next(now timeline.Time, s *book.Snapshot, n *book.NodeState) timeline.Time {
	at := timeline.Never
	for _, t := range n.Tasks {
		if !t.ByPhase || t.Suspended {
			continue
		}
		if end, known := s.EstimatedEnd(t, timeline.Earliest); known {
			at = min(at, d.nextGrant(t, end, now))
		}
	}
	return at
}

// nextGrant is next for one task that should end at the given time.
func (d *phased) nextGrant(t *book.TaskState, end, now timeline.Time) timeline.Time {
	stage, phases := int(t.ID.Stage), t.Stage().Phases
	stretch := float64(t.Duration) / float64(t.Stage().ForecastLength())
	next, later := timeline.Never, resource.Of(-1, 0)
	for i, phase := range slices.Backward(phases) {
		if phase.Duration == 0 {
			continue
		}
		if grant := resource.Of(d.cpuOf(t, int32(i)), d.memoryIn(t.Job.Job, stage, int32(i))); grant != later {
			if later[resource.CPU] >= 0 {
				next = end
			}
			later = grant
		}
		if end = end.Add(-time.Duration(float64(phase.Duration) * stretch)); end <= now {
			break
		}
	}
	return next
}

// shortTasks knows which tasks are short: of the run times of all stages of all jobs, in two clusters, theirs is in the
// lower one (section IV: task management).
type shortTasks struct {
	on      bool
	known   bool
	longest time.Duration
	times   []time.Duration
}

func (s *shortTasks) is(j *cluster.Job, stage int) bool {
	return s.on && j.Stages[stage].RunTime() <= s.longest
}

// follow computes what is short if jobs have come, left or changed, and reports whether other tasks are short than
// before.
func (s *shortTasks) follow(p *book.Plan) bool {
	if !s.on || s.known && !slices.ContainsFunc(p.Changes.Jobs, func(j *book.JobState) bool {
		return j.NeverStarted() || j.Retired()
	}) && !p.Changes.Arrived {
		return false
	}
	s.known = true
	s.times = s.times[:0]
	for _, j := range p.Jobs {
		for i := range j.Stages {
			if d := j.Stages[i].RunTime(); d > 0 && !j.Stages[i].Coordinator {
				s.times = append(s.times, d)
			}
		}
	}
	before := s.longest
	s.longest = leveling.Short(s.times)
	return s.longest != before
}
