package live

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// Why a job waits: the engine knows the reasons that lie in the policy and in the room on nodes (core/book/waiting.go).
// This file adds what only the driver knows: jobs that are set aside, nodes that can start nothing, containers that
// have been stopped.

// whyWaits says in one clause why the next task of a job has not started, as of now; empty if no task waits.
func (d *Driver) whyWaits(j *job) string {
	switch {
	case j.State.Ended:
		return ""
	case j.isAside():
		return setAsideWords
	case d.health.broken != nil && len(j.alive()) == 0:
		return d.health.broken.Error()
	}
	state := d.engineJob(j)
	if state == nil || state.Status.Ended() {
		return ""
	}
	if words := d.retried(j.ID); words != "" {
		return words
	}
	stage, runnable := state.NextStage()
	if runnable {
		if words := d.pausedFor(d.least(state, stage)); words != "" {
			return words
		}
	}
	switch why, ok := d.engineWhy(state); {
	case ok:
		return why
	case runnable:
		return "waits for its turn"
	}
	return ""
}

// engineWhy puts into words what the engine knows. A policy that panics here has changed nothing, and the engine
// continues.
func (d *Driver) engineWhy(state *book.JobState) (words string, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			words, ok = fmt.Sprintf("unknown: policy %s failed to say why: %v", d.config.Policy.Name(), p), true
			d.log.Error("the policy failed to say why a job waits", "policy", d.config.Policy.Name(), "job", state.ID, "panic",
				p)
		}
	}()
	why, ok := d.engine.WhyWaits(d.now(), state)
	if all := state.Retries(); ok && why.Code == cluster.RetryLater && len(all) > 0 {
		return d.retryWords(state, all), true
	}
	return why.Words(clock), ok
}

// retryWords says when the next attempt of a task begins that has failed, and how it failed.
func (d *Driver) retryWords(state *book.JobState, all []book.Retry) string {
	next := slices.MinFunc(all, func(a, b book.Retry) int { return cmp.Compare(a.At, b.At) })
	attempt, failed := fmt.Sprintf("attempt %d", next.Attempt), "failed"
	if state.Job.Tasks() > 1 {
		attempt += " of task " + next.Task.String()
	}
	if j := d.jobs[state.ID]; j != nil {
		if r := j.newest(next.Task); r != nil {
			failed = cmp.Or(r.Detail, failed)
		}
	}
	return fmt.Sprintf("%s begins at %s, because attempt %d %s", attempt, clock(next.At), next.Attempt-1, failed)
}

// pausedFor says that every node which is large enough for a task is paused; empty if one is not.
func (d *Driver) pausedFor(need resource.Vector) (why string) {
	for _, n := range d.engine.Snapshot().Nodes {
		if !n.Holds(need) {
			continue
		}
		if d.pauses[n.ID] == nil {
			return ""
		}
		why = d.pausedWords(n.ID)
	}
	return why
}

// least returns the smallest resources with which a task of a stage can run.
func (d *Driver) least(state *book.JobState, stage int) resource.Vector {
	need := state.Stages[stage].Ideal
	if d.config.underSizes() && state.Stages[stage].Elastic() {
		need[resource.Memory] = state.Stages[stage].MinMemory
	}
	return need
}
