package command

import (
	"errors"
	"strings"

	"github.com/spf13/pflag"
)

// MovedFlags adds flags that are gone, by their names, or NAME,LETTER: to give one is a wrong usage, whose sentence says what stands for it
// now. docs/renamed.md lists them. Help does not show them.
func MovedFlags(f *pflag.FlagSet, instead map[string]string) {
	for name, sentence := range instead {
		name, letter, _ := strings.Cut(name, ",")
		old := f.VarPF(movedFlag(sentence), name, letter, "")
		old.Hidden, old.NoOptDefVal = true, "true" // the error comes before a value is missed
	}
}

// movedFlag says what stands for the flag now.
type movedFlag string

func (movedFlag) String() string     { return "" }
func (movedFlag) Type() string       { return "" }
func (r movedFlag) Set(string) error { return errors.New(string(r)) }
