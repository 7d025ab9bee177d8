package policy

import (
	"fmt"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy/contract"
	"github.com/bellows-rm/bellows/core/policy/queue"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// static gives every task an over-provisioned container: either its peak memory, even if it could run with less (the
// baseline of ECS and Pufferfish, and what users of YARN request), or a size that is the same for all containers of the
// cluster (Pufferfish section 5: 4 to 64 GB).
type static struct {
	queue.FirstFit
	memory  resource.Amount // of every container, bytes; 0 is each task's peak
	refuses bool            // tasks that need more than the container size
}

func newStatic(s *contract.Settings) Policy {
	p := &static{}
	p.Queue.Key, p.Queue.Grant = fairKey, p.size
	order := s.Declare("order", "fair",
		"which job is served first: fair, the job with the least memory per weight, or fifo, the job submitted "+
			"first, which blocks all jobs behind it")
	if order.OneOf("fair", "fifo") == "fifo" {
		p.Blocks, p.Queue.Key = true, queue.FirstSubmitted
	}
	memory := s.Declare("memory", "peak",
		"memory of a container: peak, the most that its task needs, or one size for all containers, such as 8GiB; "+
			"memory that a task does not need is unused")
	if memory.Text != "peak" {
		p.memory = memory.Memory()
	}
	p.refuses = s.Declare("too-large", "refuse",
		"tasks that need more than static.memory: refuse does not start them, run starts them with static.memory, "+
			"and they page, spill or fail").OneOf("refuse", "run") == "refuse"
	return p
}

func (*static) Name() string { return "static" }

func (s *static) Traits() Traits {
	return Traits{Resizes: s.memory > 0 && !s.refuses, Admit: s.admit, Why: s.why, DropCaches: s.Queue.Drop}
}

func (s *static) Decide(_ timeline.Time, p *book.Plan) { s.Serve(p) }

// why says that a container is too small for a task, or that no node has room for the container. It does not answer for
// jobs behind a blocking first job.
func (s *static) why(_ timeline.Time, c *book.Snapshot, j *book.JobState, stage int) (cluster.Reason, bool) {
	need, why, ok := s.size(j, stage)
	switch {
	case !ok:
		return why, true
	case s.Blocks && len(s.Queue.Jobs) > 0 && s.Queue.Jobs[0].Job != j:
		return cluster.Reason{}, false
	}
	return c.NoRoom(need)
}

// admit rejects jobs with tasks that need more than a container has, and all jobs if no node fits a container.
func (s *static) admit(c *book.Snapshot, j *cluster.Job) error {
	for i := range j.Stages {
		stage := &j.Stages[i]
		if s.memory == 0 || stage.Coordinator {
			continue
		}
		if need := stage.Ideal[resource.Memory]; s.refuses && need > s.memory {
			return fmt.Errorf("job %q stage %d memory %s: must be at most static.memory, %s",
				j.Name, i, resource.FormatMemory(need), resource.FormatMemory(s.memory))
		}
		if most := c.Largest()[resource.Memory]; s.memory > most {
			return fmt.Errorf("setting static.memory=%s: must be at most what a node has, %s",
				resource.FormatMemory(s.memory), resource.FormatMemory(most))
		}
	}
	return nil
}

// size is the container of a task. A coordinator is granted what it needs.
func (s *static) size(j *book.JobState, stage int) (resource.Vector, cluster.Reason, bool) {
	need := j.Stages[stage].Ideal
	memory := need[resource.Memory]
	switch {
	case s.memory == 0 || j.Stages[stage].Coordinator:
		return queue.IdealContainer(j, stage)
	case s.refuses && memory > s.memory:
		return need, cluster.BecauseContainerTooSmall(memory, s.memory), false
	}
	return need.With(resource.Memory, s.memory), cluster.BecauseFitsContainer(s.memory, memory), true
}
