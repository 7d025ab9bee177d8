package command

import (
	"errors"
	"strings"

	"github.com/spf13/pflag"
)

// MovedFlags adds removed flags, by their names, or NAME,LETTER: the use of one is a wrong usage, and the error names
// the replacement. docs/renamed.md lists them. Help does not show them.
func MovedFlags(f *pflag.FlagSet, instead map[string]string) {
	for name, sentence := range instead {
		name, letter, _ := strings.Cut(name, ",")
		old := f.VarPF(movedFlag(sentence), name, letter, "")
		old.Hidden, old.NoOptDefVal = true, "true" // the error comes before a missing value is noticed
	}
}

// movedFlag is the replacement of a flag.
type movedFlag string

func (movedFlag) String() string     { return "" }
func (movedFlag) Type() string       { return "" }
func (r movedFlag) Set(string) error { return errors.New(string(r)) }
