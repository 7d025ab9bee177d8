package policy

import (
	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy/contract"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// fifo starts tasks in the order in which their jobs were submitted. The first job that does not fit blocks all behind
// it.
type fifo struct{}

func newFIFO(*contract.Settings) Policy { return fifo{} }

func (fifo) Name() string   { return "fifo" }
func (fifo) Traits() Traits { return Traits{} }

func (fifo) Decide(_ timeline.Time, p *book.Plan) {
	for _, j := range p.Jobs {
		for {
			stage, ok := j.NextStage()
			if !ok {
				break
			}
			need := j.Stages[stage].Ideal
			n, ok := p.FirstFit(need)
			if !ok {
				p.WaitBehind(j)
				return
			}
			p.Start(j, stage, n, need[resource.Memory], cluster.BecauseFits(need[resource.Memory]))
		}
	}
}
