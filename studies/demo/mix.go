package demo

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/jobfile"
	"github.com/bellows-rm/bellows/format/workload"
)

//go:embed mix.yaml
var mixFile string

// node is the part of the machine that the mix shares.
var node = resource.Of(2*resource.Core, 208*resource.MiB)

// program is a program of the mix, which has a profile.
type program struct {
	name    string
	input   input
	command cluster.Command
}

// programs returns every program that the mix names, once, in the order of the file.
func programs() ([]program, error) {
	w, err := jobfile.Read(strings.NewReader(mixFile), "mix.yaml", nil)
	if err != nil {
		return nil, err
	}
	var found []program
	for i := range w.Jobs {
		j := &w.Jobs[i]
		for s := range j.Stages {
			name := j.Stages[s].Profile
			if slices.ContainsFunc(found, func(p program) bool { return p.name == name }) {
				continue
			}
			p := program{name: name, command: j.Stages[s].Command}
			for _, f := range inputs {
				if strings.Contains(strings.Join(p.command.Args, " "), f.name) {
					p.input = f
				}
			}
			found = append(found, p)
		}
	}
	return found, nil
}

// models are profiles by name.
type models map[string]profile.Model

// lookUp implements jobfile.Profiles.
func (m models) lookUp(name string) (cluster.Profile, bool) {
	p, ok := m[name]
	if !ok {
		return cluster.Profile{}, false
	}
	return cluster.Profile{Ideal: p.IdealMemory, MinMemory: p.MinMemory, Duration: p.IdealDuration,
		Elasticity: p.Elasticity()}, true
}

// workload returns the mix as it is submitted under c.
func (c *contender) workload(m models) (*workload.Workload, error) {
	w, err := jobfile.Read(strings.NewReader(mixFile), "mix.yaml", nil)
	if err != nil {
		return nil, err
	}
	for i := range w.Jobs {
		j := &w.Jobs[i]
		for s := range j.Stages {
			name := j.Stages[s].Profile
			known, ok := m.lookUp(name)
			if !ok {
				return nil, fmt.Errorf("profile %q: must be among those measured", name)
			}
			known.Fill(&j.Stages[s])
			if c.size != nil {
				model := m[name]
				fix(&j.Stages[s], &model, c.size(model.IdealMemory, model.MinMemory))
			}
		}
	}
	return w, nil
}

// fix changes a stage so that all its tasks get the same memory.
func fix(s *cluster.Stage, m *profile.Model, memory resource.Amount) {
	s.Ideal[resource.Memory] = memory
	s.Duration = m.Duration(memory)
	s.MinMemory, s.Elasticity = 0, cluster.Elasticity{}
}
