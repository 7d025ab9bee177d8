package cluster

import (
	"fmt"

	"github.com/bellows-rm/bellows/core/resource"
)

// ReservedCPU is the evidence for a reservation of CPU that was not stated: see profile.History.ReserveCPU.
type ReservedCPU struct {
	// Runs ended well, and their use of CPU was measured. Of AtLeast of them it is a lower bound: see profile.Run.AtLeast.
	Runs    int `json:"runs" doc:"runs of the program that ended well, and whose use of CPU was measured"`
	AtLeast int `json:"at_least,omitempty" doc:"of these, how many would have used more, had they got more"`
	// Most is the largest use of one of them in the mean while it ran, millicores.
	Most resource.Amount `json:"most_millicores,omitempty" doc:"largest use of CPU of one of these runs, in the mean while it ran"`
}

// String returns the evidence in words: "6 runs, 0.08 cores at most".
func (r *ReservedCPU) String() string {
	if r.Runs == 0 {
		return "no run is known"
	}
	text := fmt.Sprintf("%d runs, %s at most", r.Runs, resource.CPU.Format(r.Most))
	if r.Runs == 1 {
		text = "1 run, " + resource.CPU.Format(r.Most)
	}
	if r.AtLeast > 0 {
		text += fmt.Sprintf(", of %d of them a lower bound", r.AtLeast)
	}
	return text
}

// ReservedCPUWords says how much CPU is reserved for a task of s and why: "reserves 50m cores: 6 runs, 30m cores at
// most". It is empty if what is reserved is as stated.
func (s *Stage) ReservedCPUWords() string {
	if s.ReservedCPU == nil {
		return ""
	}
	return fmt.Sprintf("reserves %s: %s", resource.CPU.Format(s.Ideal[resource.CPU]), s.ReservedCPU)
}

// CPUUnknown reports whether neither the submitter nor a run says how much CPU a task of s uses, and it may use what
// others leave: then Ideal[CPU] is no need, but what a usual program gets.
func (s *Stage) CPUUnknown() bool {
	return s.ReservedCPU != nil && s.ReservedCPU.Runs == 0 && s.MaxCPU > s.Ideal[resource.CPU]
}
