package lab

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"go.yaml.in/yaml/v3"
)

// Paper has the texts of the experiments of a paper.
type Paper struct{ declared func() []Experiment }

// NewPaper returns the texts of a file, which is read when the first of them is needed.
func NewPaper(file string, text []byte) Paper {
	return Paper{sync.OnceValue(func() []Experiment {
		var paper struct {
			Shared      []string // texts of several experiments
			Experiments []Experiment
		}
		d := yaml.NewDecoder(bytes.NewReader(text))
		d.KnownFields(true)
		if err := d.Decode(&paper); err != nil {
			panic(fmt.Sprintf("experiments: %s: %v", file, err))
		}
		return paper.Experiments
	})}
}

// Experiments returns the experiments in the order of the file, each with its run.
func (p Paper) Experiments(runs map[string]Run) []Experiment {
	all := slices.Clone(p.declared())
	for i := range all {
		all[i].Do = runs[all[i].Name]
	}
	return all
}

// Stated returns a claim of the paper, to be judged. It panics if the file does not have it.
func (p Paper) Stated(experiment, id string) Claim {
	for _, e := range p.declared() {
		i := slices.IndexFunc(e.Claims, func(s Statement) bool { return s.ID == id })
		if e.Name == experiment && i >= 0 {
			return e.Claims[i].Claim
		}
	}
	panic(fmt.Sprintf("experiments: %s has no claim %q", experiment, id))
}
