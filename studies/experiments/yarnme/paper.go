// Package yarnme has the tables and figures of the YARN-ME paper.
package yarnme

import (
	_ "embed"

	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

//go:embed yarn-me.yaml
var texts []byte

// Paper has the texts of the experiments.
var Paper = lab.NewPaper("yarn-me.yaml", texts)
