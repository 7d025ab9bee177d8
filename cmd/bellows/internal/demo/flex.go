package demo

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/door/sandbox"
	"github.com/bellows-rm/bellows/door/sandbox/hungry"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/node/agent"
)

// beside is the memory of a hungry program outside its working set: the Go runtime, stacks, page tables.
const beside = 24 * resource.MiB

// flex runs programs whose memory use rises and falls: in REGULAR containers of their peak, and in FLEX containers.
func (d *demonstration) flex(ctx context.Context, p *Part) error {
	p.About = "9 programs whose memory grows and shrinks; each checks all of its data"
	machine, err := agent.Capacity(0, 0)
	if err != nil {
		p.LeftOut = err.Error()
		return nil
	}
	const unit = 64 * resource.MiB
	memory := min(640*resource.MiB, max(384*resource.MiB, machine[resource.Memory]/4/unit*unit))
	p.Node = resource.Of(2*resource.Core, memory)
	if p.LeftOut = d.unsuitable(ctx, p.Node); p.LeftOut != "" || ctx.Err() != nil {
		return ctx.Err()
	}
	about, why, err := sandbox.OpenSwap(d.work, 2*memory)
	if p.LeftOut = why; err != nil || why != "" {
		return err
	}
	d.Say(about)
	fixed := under{about: "REGULAR containers", policy: "fair"}
	if p.Fixed, err = d.run(ctx, &fixed, p.Node, hungryJobs(memory, cluster.Regular)); err != nil {
		return err
	}
	shared := under{about: "FLEX containers", policy: "fair"}
	p.Shared, err = d.run(ctx, &shared, p.Node, hungryJobs(memory, cluster.Flex))
	return err
}

// hungryJobs returns three jobs of each kind of program, one of them large, for a node with the given memory. They are
// submitted at such short intervals that their peaks together are twice the node's memory. A REGULAR container has the
// peak of the largest job of its kind, a FLEX container starts with a tenth of the node.
func hungryJobs(memory resource.Amount, class cluster.Class) *workload.Workload {
	self, err := os.Executable()
	if err != nil {
		self = "/proc/self/exe"
	}
	const small, reads, every = 0.3, 9000, 300 * time.Millisecond
	w := &workload.Workload{}
	for _, round := range [][3]float64{{1, small, small}, {small, 1, small}, {small, small, 1}} {
		for i, kind := range []struct {
			name       string
			sixteenths resource.Amount // of the node's memory: the working set of the largest job
			reads      float64
		}{{"grow", 8, reads}, {"swell", 7, reads}, {"sort", 6, 0}} {
			peak := memory / 16 * kind.sixteenths
			share := round[i]
			stage := cluster.Stage{Name: kind.name, Tasks: 1, Ideal: resource.Of(resource.Core*3/10, peak+beside),
				Command: cluster.Command{Args: []string{self, hungry.Command, kind.name,
					fmt.Sprint(int64(share * float64(peak/resource.MiB))), fmt.Sprint(int(share * kind.reads))}}}
			if class == cluster.Flex {
				stage.Ideal[resource.Memory], stage.MaxMemory = memory/10, memory
			}
			w.Jobs = append(w.Jobs,
				workload.Job{After: -1, Job: cluster.Job{Name: kind.name, Class: class, MaxAttempts: 3,
					Stages: []cluster.Stage{stage}, Submitted: timeline.Time(time.Duration(len(w.Jobs)) * every)}})
		}
	}
	return w
}
