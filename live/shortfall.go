package live

import (
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
)

// outgrew lets the next attempts of the tasks of a stage reserve more than the run that has ended for want of memory,
// where what is reserved is learned. The engine knows of it before it knows of the end, so that no attempt begins
// with what was not enough.
func (d *Driver) outgrew(j *job, r *run) {
	if r.lacked()+r.madeRoom() == 0 || j.Request.Job.Reserve != cluster.ReserveLearned || j.state == nil ||
		j.state.Status.Ended() || j.State.Cancelled {
		return
	}
	revised := j.Request.Job.WithReservations(&j.Request.Job)
	if d.reserveMore(j, &revised) {
		d.reviseJob(j, &revised)
	}
}

// lacked returns what the run held, bytes, if it ended for want of memory and that was not enough; else 0.
func (r *run) lacked() resource.Amount {
	switch {
	case r.Outcome != cluster.OutOfMemory:
		return 0
	case r.Exit != nil && r.Exit.Held > 0:
		return r.Exit.Held
	}
	return r.Grant[resource.Memory]
}

// madeRoom returns what the run held, bytes, if it was ended to give its room to others, and that is known; else 0. The
// next run would come to need as much, and may start where it is free.
func (r *run) madeRoom() resource.Amount {
	if r.Outcome != cluster.Preempted || r.Exit == nil {
		return 0
	}
	return r.Exit.Held
}

// reserveMore makes what spec, another version of the job, reserves suffice for the next attempts of its tasks that
// ended for want of memory, or for others, up to their limits and to what can be had. The elements of spec.Stages are
// changed. It reports whether more is reserved than before.
func (d *Driver) reserveMore(j *job, spec *cluster.Job) (more bool) {
	short, held := map[int32]resource.Amount{}, map[int32]resource.Amount{} // by stage
	for id := range j.runs {
		r := j.newest(id)
		short[id.Stage], held[id.Stage] = max(short[id.Stage], r.lacked()), max(held[id.Stage], r.madeRoom())
	}
	for i := range spec.Stages {
		s, short, held := &spec.Stages[i], short[int32(i)], held[int32(i)]
		if short+held == 0 || s.Coordinator {
			continue
		}
		was, now := s.Ideal[resource.Memory], cluster.Reservation{}
		if s.Reserved != nil {
			now = *s.Reserved
		}
		now.Bytes = max(was, held)
		now = now.After(short, s.MaxMemory) // also if none lacked memory: it keeps to the limit
		s.Ideal[resource.Memory], s.Reserved = now.Bytes, &now
		d.bound(spec, i, was)
		more = more || s.Ideal[resource.Memory] > was
	}
	return more
}

// bound lowers what is reserved for the tasks of a stage to what can be had at all, where that is learned, but not
// below least: what no node has, or a quota forbids, is never free, and the job would wait for ever. The stage is
// changed.
func (d *Driver) bound(spec *cluster.Job, stage int, least resource.Amount) {
	s := &spec.Stages[stage]
	if s.Reserved == nil {
		return
	}
	if most, ok := d.canBeHad(spec, *s, resource.Memory, least, resource.MiB); ok {
		lower := s.Reserved.Within(most)
		s.Ideal[resource.Memory], s.Reserved = lower.Bytes, &lower
	}
}

// boundCPU is bound for CPU. What is reserved of memory does not count: see bound.
func (d *Driver) boundCPU(spec *cluster.Job, stage int) {
	s := &spec.Stages[stage]
	if s.ReservedCPU == nil {
		return
	}
	small := *s
	if s.Reserved != nil {
		small.Ideal[resource.Memory] = min(s.Ideal[resource.Memory], cluster.LeastRunMemory)
	}
	if most, ok := d.canBeHad(spec, small, resource.CPU, cluster.LeastRunCPU, 1); ok {
		s.Ideal[resource.CPU] = most
	}
}

// canBeHad returns the most of a resource that a task of a stage can ever get, to the unit, if that is less than the
// stage requests and at least least.
func (d *Driver) canBeHad(spec *cluster.Job, s cluster.Stage, kind resource.Kind,
	least, unit resource.Amount) (most resource.Amount, ok bool) {
	s.Parents = nil
	alone := *spec
	alone.Stages = []cluster.Stage{s}
	can := func(a resource.Amount) bool {
		alone.Stages[0].Ideal[kind] = a
		return policy.CheckRuns(d.config.Policy, d.engine.Snapshot(), &alone) == nil && d.gate.Rules().Never(&alone) == nil
	}
	cannot := s.Ideal[kind]
	if can(cannot) || !can(least) {
		return 0, false // what it lacks is something else
	}
	for cannot-least > unit {
		if middle := least + (cannot-least)/2; can(middle) {
			least = middle
		} else {
			cannot = middle
		}
	}
	return least, true
}

// boundAll bounds all stages of a job: what earlier runs teach is no reason to refuse a job.
func (d *Driver) boundAll(spec *cluster.Job) {
	for i := range spec.Stages {
		d.boundCPU(spec, i)
		d.bound(spec, i, cluster.LeastRunMemory)
	}
}

// boundOpen bounds what is reserved for tasks that wait, once there are other quotas or nodes.
func (d *Driver) boundOpen() {
	for _, id := range d.openJobs() {
		if j := d.jobs[id]; j.revisable() || j.resizable() {
			revised := j.Request.Job.WithReservations(&j.Request.Job)
			d.reviseJob(j, &revised)
		}
	}
}

// moreMemory says why an attempt that is to begin reserves more than the one before; empty if it does not.
func (j *job) moreMemory(task cluster.TaskID, reserves resource.Amount) string {
	before := j.newest(task)
	if before == nil || before.lacked() == 0 || reserves <= before.Grant[resource.Memory] {
		return ""
	}
	return cluster.MoreMemory(1+j.attempts(task), reserves, before.lacked())
}
