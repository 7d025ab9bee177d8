package mira

import (
	"fmt"
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

func keep(all *lab.Lab) (*lab.Findings, error) {
	l := all.Unseen()
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
	whole, half, text := true, true, "in the worst mix"
	for _, part := range []struct {
		name  string
		limit float64
		of    func(*miraTrial) float64
	}{{"missed", 0.009, func(t *miraTrial) float64 { return t.missed() }}, {"unused", 0.029, (*miraTrial).wasted}} {
		worst := func(setting int) float64 {
			return slices.Max(lab.Values(mixes, func(trials [][]miraTrial) float64 { return mean(trials[setting], part.of) }))
		}
		none, kept, next := worst(0), worst(poolKeeps), worst(len(keeps)-1)
		whole, half = whole && kept <= part.limit, half && kept <= max(none, next)/2
		text += fmt.Sprintf(", %s: %s with keep=%s, %s with none and %s with next", part.name, tenths(kept),
			keeps[poolKeeps], tenths(none), tenths(next))
	}
	faster, times := 0, ""
	for i, trials := range mixes {
		ends := func(t *miraTrial) float64 { return t.Whole }
		none, kept := mean(trials[0], ends), mean(trials[poolKeeps], ends)
		if kept <= 0.98*none {
			faster++
		}
		if i > 0 {
			times += ", "
		}
		times += fmt.Sprintf("%.0f instead of %.0f s", kept, none)
	}
	return []lab.Claim{Paper.Stated("mira/keep", "table-two").Judge(text, whole, half),
		Paper.Stated("mira/keep", "faster").Judge(times, faster == len(mixes), faster > 0)}
}
