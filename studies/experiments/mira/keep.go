package mira

import (
	"slices"

	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// keeps are the settings mira.keep that are compared, with the one that pools of `bellows pool create` have;
// poolKeeps is its index.
var keeps = []string{"none", "500ms", "2s", "8s", "next"}

const poolKeeps = 2

// keepSizes are the sizes of the queries, of which size is that of the other experiments.
var keepSizes = []string{"2g", size, "50g"}

func keep(l *lab.Lab) (*lab.Findings, error) {
	var systems []system
	for _, keep := range keeps {
		s := own
		s.name, s.settings = "keep="+keep, map[string]string{"mira.keep": keep}
		systems = append(systems, s)
	}
	var tables []lab.Table
	var mixes [][][]miraTrial
	contest := func(name string, mix []workload.Job) error {
		trials, err := contest(l, name, systems, mix)
		tables, mixes = append(tables, tableTwo(name+" beside the background (Table II): means of the runs", systems,
			trials)), append(mixes, trials)
		return err
	}
	for _, size := range keepSizes {
		queries, err := queries(l, size)
		if err != nil {
			return nil, err
		}
		if l.Quick {
			queries = queries[:3]
		}
		if err := contest("Queries of "+size, queries); err != nil {
			return nil, err
		}
	}
	dags, err := daGs(l, 5*drawn)
	if err != nil {
		return nil, err
	}
	if l.Quick {
		dags = dags[:2]
	}
	if err := contest("Alibaba's DAGs", dags); err != nil {
		return nil, err
	}
	return &lab.Findings{Tables: tables, Claims: keepClaims(mixes)}, nil
}

// keepClaims judges the claims by trials of each mix and setting.
func keepClaims(mixes [][][]miraTrial) []lab.Claim {
	claim := func(id string, limit float64, of func(*miraTrial) float64) lab.Claim {
		worst := func(setting int) float64 {
			return slices.Max(lab.Values(mixes, func(trials [][]miraTrial) float64 { return mean(trials[setting], of) }))
		}
		none, kept, next := worst(0), worst(poolKeeps), worst(len(keeps)-1)
		return Paper.Stated("mira/keep", id).Judge("in the worst mix "+tenths(kept)+" with keep="+keeps[poolKeeps]+", "+
			tenths(none)+" with none and "+tenths(next)+" with next", kept <= limit, kept <= max(none, next)/2)
	}
	return []lab.Claim{claim("missed", 0.009, func(t *miraTrial) float64 { return t.missed() }),
		claim("wasted", 0.029, (*miraTrial).wasted)}
}
