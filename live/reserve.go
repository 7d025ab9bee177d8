package live

import (
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// decideReserve decides whether what is reserved for the tasks of a job is learned, and begins with what is reserved
// while nothing is known. It is learned where the submitter left the decision to the daemon, unless the daemon is
// configured otherwise or a stage states sizes that belong together. filled are the stages whose memory is from runs of
// their application, and not stated.
func (d *Driver) decideReserve(s *Submission, j *cluster.Job, filled []int) {
	if j.Reserve != cluster.ReserveLearned && !(s.Undecided && !d.config.ReservesStated && j.MayLearn()) {
		return
	}
	for _, i := range filled {
		j.Stages[i].Ideal[resource.Memory] = 0
	}
	if s.Undecided {
		j.Class = cluster.Flex // if another is stated, that is refused
	}
	j.Learn()
}
