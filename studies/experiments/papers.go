package experiments

import (
	"bytes"
	"embed"
	"fmt"
	"slices"
	"sync"

	"go.yaml.in/yaml/v3"
)

// papers has one file for each paper: its experiments in order, each with title, setup, and the paper's claims.
//
//go:embed yarn-me.yaml pufferfish.yaml prophet.yaml ecs.yaml mira.yaml
var papers embed.FS

// declared returns every experiment, in the order of the papers, without its run.
var declared = sync.OnceValue(func() (all []Experiment) {
	for _, file := range []string{"yarn-me.yaml", "pufferfish.yaml", "prophet.yaml", "ecs.yaml", "mira.yaml"} {
		text, err := papers.ReadFile(file)
		if err != nil {
			panic(err)
		}
		var paper struct {
			Shared      []string // texts of several experiments
			Experiments []Experiment
		}
		d := yaml.NewDecoder(bytes.NewReader(text))
		d.KnownFields(true)
		if err := d.Decode(&paper); err != nil {
			panic(fmt.Sprintf("experiments: %s: %v", file, err))
		}
		all = append(all, paper.Experiments...)
	}
	return all
})

// All returns every experiment, in the order of the papers.
func All() []Experiment {
	all := slices.Clone(declared())
	for i := range all {
		e := &all[i]
		for _, paper := range []map[string]run{yarnME, pufferfish, prophet, ecs, mira} {
			if run, ok := paper[e.Name]; ok {
				e.run = run
			}
		}
	}
	return all
}
