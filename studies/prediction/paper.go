package prediction

import (
	_ "embed"

	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

//go:embed sizey.yaml
var texts []byte

// Paper has the texts of the experiment.
var Paper = lab.NewPaper("sizey.yaml", texts)

// Runs has what runs the experiment.
var Runs = map[string]lab.Run{wastageName: wastage}
