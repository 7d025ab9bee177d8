package experiments

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bellows-rm/bellows/studies/experiments/bellows"
	"github.com/bellows-rm/bellows/studies/experiments/ecs"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
	"github.com/bellows-rm/bellows/studies/experiments/mira"
	"github.com/bellows-rm/bellows/studies/experiments/prophet"
	"github.com/bellows-rm/bellows/studies/experiments/pufferfish"
	"github.com/bellows-rm/bellows/studies/experiments/yarnme"
	"github.com/bellows-rm/bellows/studies/prediction"
)

// All returns every experiment, in the order of the papers.
func All() []lab.Experiment {
	return slices.Concat(yarnme.Paper.Experiments(yarnme.Runs), pufferfish.Paper.Experiments(pufferfish.Runs),
		prophet.Paper.Experiments(prophet.Runs), ecs.Paper.Experiments(ecs.Runs), mira.Paper.Experiments(mira.Runs),
		bellows.Paper.Experiments(bellows.Runs), prediction.Paper.Experiments(prediction.Runs))
}

// Find returns the experiments that match a name or a pattern such as "yarn-me/*"; "yarn-me/..." matches all below
// yarn-me. It returns an error if none matches.
func Find(pattern string) ([]lab.Experiment, error) {
	var found []lab.Experiment
	below, tree := strings.CutSuffix(pattern, "/...")
	for _, e := range All() {
		ok, err := path.Match(pattern, e.Name)
		if err != nil {
			return nil, fmt.Errorf("experiment %q: is no pattern", pattern)
		}
		if ok || tree && strings.HasPrefix(e.Name, below+"/") || pattern == "..." {
			found = append(found, e)
		}
	}
	if found == nil {
		return nil, fmt.Errorf("experiment %q: does not exist; `bellows-lab experiment list` lists the experiments", pattern)
	}
	return found, nil
}

// Names returns the names of all experiments.
func Names() []string {
	var names []string
	for _, e := range All() {
		names = append(names, e.Name)
	}
	return names
}

// ReadSummaries returns the summaries stored in a folder, in the order of All.
func ReadSummaries(dir string) ([]lab.Summary, error) {
	var all []lab.Summary
	for _, name := range Names() {
		m, ok, err := lab.ReadSummary(dir, name)
		if err != nil {
			return nil, err
		}
		if ok {
			all = append(all, m)
		}
	}
	return all, nil
}
