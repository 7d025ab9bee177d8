package demo

import "github.com/bellows-rm/bellows/sim/trial"

// contender is a policy under which the programs run.
type contender struct {
	trial.Contender // its label is its name
	about           string
}
