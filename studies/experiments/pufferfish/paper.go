// Package pufferfish has the tables and figures of the Pufferfish paper.
package pufferfish

import (
	_ "embed"

	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

//go:embed pufferfish.yaml
var texts []byte

// Paper has the texts of the experiments.
var Paper = lab.NewPaper("pufferfish.yaml", texts)
