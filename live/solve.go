package live

import (
	"cmp"
	"fmt"

	"github.com/bellows-rm/bellows/core/cluster"
)

// ask has a question of the policy solved beside the loop. Of each node at most one question is open. A question that
// is open when the Driver ends is forgotten: the policy of the next one asks again.
func (d *Driver) ask(decision *cluster.Decision) {
	e := cluster.Event{Kind: cluster.Answered, Node: decision.Node, Decision: decision.ID}
	question := d.engine.Question(decision)
	d.log.Debug("solving a question about a node", "node", d.nodeName(e.Node), "decision", e.Decision, "reason",
		decision.Reason.Words(clock))
	go func() { // Close does not wait for it: its budget ends it.
		e.Answer = d.solve(question)
		select {
		case d.turns.Calls() <- func() { d.answered(e) }:
		case <-d.turns.Ended():
		}
	}()
}

// solve turns a panic into an answer without a schedule: a bug must not harm running jobs.
func (d *Driver) solve(q cluster.Question) (answer *cluster.Answer) {
	answer = new(cluster.Answer)
	defer func() {
		if p := recover(); p != nil {
			*answer = cluster.Answer{Failed: fmt.Sprintf("panic: %v", p)}
		}
	}()
	*answer = q.Solve(cmp.Or(d.config.SolverStates, cluster.SolverStates))
	return answer
}

// answered hands the answer to a question to the engine.
func (d *Driver) answered(e cluster.Event) {
	if e.Answer.Failed != "" {
		d.log.Warn("a question about a node has no answer", "node", d.nodeName(e.Node), "decision", e.Decision, "reason",
			e.Answer.Failed)
	}
	d.step(e)
}
