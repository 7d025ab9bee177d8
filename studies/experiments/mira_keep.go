package experiments

import (
	"slices"

	"github.com/bellows-rm/bellows/format/workload"
)

// miraKeeps are the settings mira.keep that are compared, with the one that pools of `bellows pool create` have;
// miraPoolKeeps is its index.
var miraKeeps = []string{"none", "500ms", "2s", "8s", "next"}

const miraPoolKeeps = 2

// miraKeepSizes are the sizes of the queries, of which miraSize is that of the other experiments.
var miraKeepSizes = []string{"2g", miraSize, "50g"}

func miraKeep(l *lab) (*Findings, error) {
	var systems []miraSystem
	for _, keep := range miraKeeps {
		s := miraOwn
		s.name, s.settings = "keep="+keep, map[string]string{"mira.keep": keep}
		systems = append(systems, s)
	}
	var tables []Table
	var mixes [][][]miraTrial
	contest := func(name string, mix []workload.Job) error {
		trials, err := miraContest(l, name, systems, mix)
		tables, mixes = append(tables, miraTableTwo(name+" beside the background (Table II): means of the runs", systems,
			trials)), append(mixes, trials)
		return err
	}
	for _, size := range miraKeepSizes {
		queries, err := miraQueries(l, size)
		if err != nil {
			return nil, err
		}
		if l.quick {
			queries = queries[:3]
		}
		if err := contest("Queries of "+size, queries); err != nil {
			return nil, err
		}
	}
	dags, err := miraDAGs(l, 5*miraDrawn)
	if err != nil {
		return nil, err
	}
	if l.quick {
		dags = dags[:2]
	}
	if err := contest("Alibaba's DAGs", dags); err != nil {
		return nil, err
	}
	return &Findings{Tables: tables, Claims: miraKeepClaims(mixes)}, nil
}

// miraKeepClaims judges the claims by trials of each mix and setting.
func miraKeepClaims(mixes [][][]miraTrial) []Claim {
	claim := func(id string, limit float64, of func(*miraTrial) float64) Claim {
		worst := func(setting int) float64 {
			return slices.Max(values(mixes, func(trials [][]miraTrial) float64 { return miraMean(trials[setting], of) }))
		}
		none, kept, next := worst(0), worst(miraPoolKeeps), worst(len(miraKeeps)-1)
		return stated("mira/keep", id).judge("in the worst mix "+tenths(kept)+" with keep="+miraKeeps[miraPoolKeeps]+", "+
			tenths(none)+" with none and "+tenths(next)+" with next", kept <= limit, kept <= max(none, next)/2)
	}
	return []Claim{claim("missed", 0.009, func(t *miraTrial) float64 { return t.missed() }),
		claim("wasted", 0.029, (*miraTrial).wasted)}
}
