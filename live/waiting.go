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
// why is the reason of the engine, if it is what the words are about.
func (d *Driver) whyWaits(j *job) (words string, why cluster.Reason) {
	switch {
	case j.State.Ended:
		return "", why
	case j.isAside():
		return setAsideWords, why
	case d.health.broken != nil && len(j.alive()) == 0:
		return d.health.broken.Error(), why
	}
	state := d.engineJob(j)
	if state == nil || state.Status.Ended() {
		return "", why
	}
	if words := d.retried(j.ID); words != "" {
		return words, why
	}
	stage, runnable := state.NextStage()
	if runnable {
		if words := d.pausedFor(d.least(state, stage)); words != "" {
			return words, why
		}
	}
	switch why, words, ok := d.engineWhy(state); {
	case ok:
		return words, why
	case runnable:
		return "waits for its turn", cluster.Reason{}
	}
	return "", cluster.Reason{}
}

// engineWhy puts into words what the engine knows. A policy that panics here has changed nothing, and the engine
// continues.
func (d *Driver) engineWhy(state *book.JobState) (why cluster.Reason, words string, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			words, ok = fmt.Sprintf("unknown: policy %s failed to say why: %v", d.config.Policy.Name(), p), true
			d.log.Error("the policy failed to say why a job waits", "policy", d.config.Policy.Name(), "job", state.ID, "panic",
				p)
		}
	}()
	why, ok = d.engine.WhyWaits(d.now(), state)
	if ok && (why.Code == cluster.NoRoom || why.Code == cluster.NotAvailable) {
		return why, why.Words(clock) + reservesWords(state), true
	}
	if all := state.Retries(); ok && why.Code == cluster.RetryLater && len(all) > 0 {
		return why, d.retryWords(state, all), true
	}
	return why, why.Words(clock), ok
}

// reservesWords says of a job that waits for memory why it needs the amount, and how far its next task may grow, where
// that is learned.
func reservesWords(state *book.JobState) string {
	stage, runnable := state.NextStage()
	if !runnable || state.Stages[stage].Reserved == nil {
		return ""
	}
	return "; it " + state.Stages[stage].ReservedWords()
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
