// Package ecs has the tables and figures of the ECS paper.
package ecs

import (
	_ "embed"

	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

//go:embed ecs.yaml
var texts []byte

// Paper has the texts of the experiments.
var Paper = lab.NewPaper("ecs.yaml", texts)
