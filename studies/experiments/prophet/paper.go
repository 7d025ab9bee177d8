// Package prophet has the tables and figures of the Prophet paper.
package prophet

import (
	_ "embed"

	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

//go:embed prophet.yaml
var texts []byte

// Paper has the texts of the experiments.
var Paper = lab.NewPaper("prophet.yaml", texts)
