package cluster

import (
	"errors"
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// Phase is a span of a task with constant demand (Prophet section III.A calls it a stage of an executor).
type Phase struct {
	Name string `json:"name,omitempty" yaml:"name" form:"name"`
	// Duration is that of the phase when it gets all resources that it demands.
	Duration time.Duration `json:"duration_ns" yaml:"duration" least:"0"`
	// Demand is CPU, working set (the memory in use), and disk and network bandwidth.
	Demand resource.Vector `json:"demand,omitzero" yaml:",inline"`
}

// Beyond says, in a clause, that the phase demands more of a resource than the most that any node has; it is empty if
// the phase does not.
func (p *Phase) Beyond(k resource.Kind, most resource.Amount) string {
	if p.Demand[k] <= most {
		return ""
	}
	return fmt.Sprintf("demands %s, and no node has more than %s", k.FormatOf(p.Demand[k]), k.Format(most))
}

// MostPhases is the most phases of a forecast.
const MostPhases = 100

// Provenance says where a forecast comes from, for people. The zero value is a forecast that the user stated.
type Provenance struct {
	Model   string  `json:"model,omitempty" doc:"how the forecast was made, such as median"`
	Samples int     `json:"samples,omitempty" doc:"runs of the program that it was made from"`
	Error   float64 `json:"error,omitempty" doc:"mean relative error of forecasts of such runs: 0.1 is 10 %"`
}

// Peak returns, for each resource, the largest demand of a task at any time: over the phases of the forecast, or the
// ideal need if there is no forecast.
func (s *Stage) Peak() resource.Vector {
	if len(s.Phases) == 0 {
		return s.Ideal
	}
	var peak resource.Vector
	for i := range s.Phases {
		peak = peak.Max(s.Phases[i].Demand)
	}
	return peak
}

// CheckPhases returns an error that names the first field of phases, counted from 1, that is out of range.
func CheckPhases(phases []Phase) error {
	if w := checkPhases(phases); w != nil {
		return errors.New(w.Named(w.Field))
	}
	return nil
}

func checkPhases(phases []Phase) *WrongField {
	var total time.Duration
	for i := range phases {
		if w := phases[i].check(); w != nil {
			w.Field = fmt.Sprintf("phase %d %s", i+1, w.Field)
			return w
		}
		if total += phases[i].Duration; total > LongestTime {
			return wrong("phases", "", "must last %v at most together", LongestTime)
		}
	}
	return nil
}

func (p *Phase) check() *WrongField {
	if w := checkRange("duration", p.Duration, LongestTime, time.Duration.String); w != nil {
		return w
	}
	if p.Name != "" && !IsName(p.Name) {
		return wrong("name", clipName(p.Name),
			"must be at most %d bytes of printable characters, with no space at either end", LongestName)
	}
	for k, a := range p.Demand {
		kind := resource.Kind(k)
		if w := checkRange(kind.Field(), a, kind.Most(), kind.Format); w != nil {
			return w
		}
	}
	return nil
}

// GrantIn is what a task of a stage is granted in a phase of its forecast, if it is granted resources by phase: CPU
// and memory as the phase demands them, and the ideal amounts of all other resources. If the memory of its container
// cannot change while it runs, it is that of the largest phase; otherwise it is at most the stage's MaxMemory. A
// resource that no phase demands is not forecast: its amount is the ideal one, too.
func (j *Job) GrantIn(stage int, phase int32) resource.Vector {
	s := &j.Stages[stage]
	grant := s.Ideal
	if len(s.Phases) == 0 {
		return grant
	}
	grant[resource.CPU] = s.CPUIn(phase)
	if demand, ok := s.forecast(resource.Memory, phase); ok {
		grant[resource.Memory] = max(LeastRunMemory, demand, j.LeastByPhase(stage))
	}
	if s.MaxMemory > 0 {
		grant[resource.Memory] = min(grant[resource.Memory], max(s.MaxMemory, j.LeastByPhase(stage)))
	}
	return grant
}

// CPUIn is the CPU of GrantIn, for a stage with a forecast.
func (s *Stage) CPUIn(phase int32) resource.Amount {
	cpu := s.Ideal[resource.CPU]
	if demand, ok := s.forecast(resource.CPU, phase); ok {
		cpu = max(LeastRunCPU, demand)
	}
	if s.MaxCPU > 0 {
		cpu = min(cpu, s.MaxCPU)
	}
	return cpu
}

// forecast returns what a phase demands of a resource; ok is false if no phase demands any of it. The other phases are
// looked at only if this one demands nothing.
func (s *Stage) forecast(k resource.Kind, phase int32) (demand resource.Amount, ok bool) {
	demand = s.Phases[phase].Demand[k]
	return demand, demand > 0 || s.Peak()[k] > 0
}

// LargestGrant is the largest amount of each resource that a task of a stage is granted in any phase, if it is
// granted resources by phase.
func (j *Job) LargestGrant(stage int) (most resource.Vector) {
	most = j.GrantIn(stage, 0)
	for phase := range j.Stages[stage].Phases {
		most = most.Max(j.GrantIn(stage, int32(phase)))
	}
	return most
}

// LeastByPhase is the least memory that a task of a stage keeps in all phases: nothing, if the memory of its
// container can change while it runs, and otherwise what its largest phase demands.
func (j *Job) LeastByPhase(stage int) resource.Amount {
	s := &j.Stages[stage]
	if j.Resizable(stage) {
		return 0
	}
	if peak := s.Peak()[resource.Memory]; peak > 0 {
		return peak
	}
	return s.Ideal[resource.Memory]
}
