// Package bellows has the experiments on the policy bellows: what each of its stages is worth, how it does on the
// grounds of the policies that its stages are from, and how much more work the same machines do.
package bellows

import (
	_ "embed"

	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

//go:embed bellows.yaml
var texts []byte

// Paper has the texts of the experiments.
var Paper = lab.NewPaper("bellows.yaml", texts)

// Runs has what runs the experiments.
var Runs = map[string]lab.Run{name: ablation, headlineName: headline}

const name = "bellows/ablation"
