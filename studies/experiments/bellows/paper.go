// Package bellows has the experiment on the policy bellows: what each of its stages is worth, and how it does on the
// grounds of the policies that its stages are from.
package bellows

import (
	_ "embed"

	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

//go:embed bellows.yaml
var texts []byte

// Paper has the texts of the experiment.
var Paper = lab.NewPaper("bellows.yaml", texts)

// Runs has what runs the experiment.
var Runs = map[string]lab.Run{name: ablation}

const name = "bellows/ablation"
