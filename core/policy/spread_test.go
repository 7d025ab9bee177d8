package policy_test

import (
	"testing"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// spread starts tasks in the order in which their jobs were submitted, each on the node with the fewest tasks.
type spread struct{}

func (spread) Name() string          { return "spread" }
func (spread) Traits() policy.Traits { return policy.Traits{} }

func (spread) Decide(_ timeline.Time, p *book.Plan) {
	for _, j := range p.Jobs {
		for stage, ok := j.NextStage(); ok; stage, ok = j.NextStage() {
			need := j.Stages[stage].Ideal
			n, room := p.Best(need, func(a, b *book.NodeState) bool { return len(a.Tasks) < len(b.Tasks) })
			if !room {
				p.WaitBehind(j)
				return
			}
			p.Start(j, stage, n, need[resource.Memory], cluster.BecauseFits(need[resource.Memory]))
		}
	}
}

func TestSpreadStartsWhatCanStart(t *testing.T) {
	conserves(t, func() policy.Policy { return spread{} })
}

// trapped is a spread that looks for room only on the nodes that have changed.
type trapped struct{ spread }

func (trapped) Decide(_ timeline.Time, p *book.Plan) {
	for _, j := range p.Jobs {
		for n := range p.Offered() {
			if stage, ok := j.NextStage(); ok && j.Stages[stage].Ideal.FitsIn(n.Free) {
				memory := j.Stages[stage].Ideal[resource.Memory]
				p.Start(j, stage, n, memory, cluster.BecauseFits(memory))
			}
		}
	}
}

// A node without a change since the last step has room all the same.
func TestAJobThatWaitsBesideRoomIsFound(t *testing.T) {
	const want = `
job 1 waits though node n1 has room: a task needs cpu=1 memory=5GB, cpu=4 memory=7GB are free, and the policy has no reason

  0s  node n1 has cpu=4 memory=7GB
  1s  job 1 is submitted, 3 tasks of cpu=1 memory=5GB
`
	if err := counterexample(func() policy.Policy { return trapped{} }); err == nil || "\n"+err.Error()+"\n" != want {
		t.Errorf("%v\nwant%s", err, want)
	}
}
