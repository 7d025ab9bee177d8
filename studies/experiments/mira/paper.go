// Package mira has the tables and figures of the Mira paper.
package mira

import (
	_ "embed"

	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

//go:embed mira.yaml
var texts []byte

// Paper has the texts of the experiments.
var Paper = lab.NewPaper("mira.yaml", texts)
