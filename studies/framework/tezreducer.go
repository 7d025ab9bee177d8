package framework

import "github.com/bellows-rm/bellows/core/resource"

// TezReducer is a Tez reducer (YARN-ME section 2.4): a Hadoop reducer that reads map outputs on its own node directly,
// without the shuffle buffer. Its settings have other names in Tez (tez.runtime.shuffle.*) and the same meaning.
type TezReducer struct {
	HadoopReducer         // Input is all input, local or not
	LocalShare    float64 // share of the input on the reducer's own node, 0 to 1
}

// TezReducerPaper returns a reducer in the reading of YARN-ME.
func TezReducerPaper(input, segment resource.Amount, local float64) TezReducer {
	return TezReducer{HadoopReducerPaper(input, segment), local}
}

// Name implements Task.
func (t TezReducer) Name() string { return "tez-reducer" }

// Check implements Task.
func (t TezReducer) Check() error {
	if err := checkShare("local-share", t.LocalShare, true); err != nil {
		return err
	}
	return t.HadoopReducer.Check()
}

// SpilledBytes implements Task.
func (t TezReducer) SpilledBytes(memory resource.Amount) resource.Amount {
	remote := t.HadoopReducer
	remote.Input -= resource.Amount(t.LocalShare * float64(t.Input))
	if remote.Input == 0 {
		return 0
	}
	return remote.SpilledBytes(memory)
}
