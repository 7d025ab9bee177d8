package demo

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/jobfile"
	"github.com/bellows-rm/bellows/profile"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/workload"
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
	return cluster.Profile{Ideal: p.IdealMemory, MinMemory: p.MinMemory, Duration: p.IdealDuration, Elasticity: p.Elasticity()}, true
}

// configuration is one way to allocate memory to the mix.
type configuration struct {
	name     string
	policy   string
	settings map[string]string
	// about describes a task's memory in a few words.
	about string
	// size returns the fixed memory of every task of a program; nil leaves ideal and minimum as they are.
	size func(m *profile.Model) resource.Amount
}

// configurations are all compared configurations, the elastic one last. A fixed size is the fair policy with another
// ideal.
var configurations = []configuration{
	{"fair ideal", "fair", nil, "every task gets its ideal memory", nil},
	{"fixed half", "fair", nil, "every task gets half its ideal memory", halfOf},
	{"fixed minimum", "fair", nil, "every task gets the least it runs with", func(m *profile.Model) resource.Amount { return m.MinMemory }},
	{"yarn-me", "yarn-me", map[string]string{"yarn-me.granularity": "4MiB"}, "ideal memory, or less where that ends no later than the job", nil},
}

// halfOf returns half the ideal memory, in whole MiB.
func halfOf(m *profile.Model) resource.Amount {
	return max(m.MinMemory, (m.IdealMemory/2+resource.MiB-1)/resource.MiB*resource.MiB)
}

// elastic is the configuration with which the others are compared.
var elastic = &configurations[len(configurations)-1]

// workload returns the mix as it is submitted under c.
func (c *configuration) workload(m models) (*workload.Workload, error) {
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
				fix(&j.Stages[s], &model, c.size(&model))
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
