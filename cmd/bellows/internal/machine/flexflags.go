package machine

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/bellows-rm/bellows/cmd/internal/command"
	"github.com/bellows-rm/bellows/cmd/internal/flags"
	"github.com/bellows-rm/bellows/memory"
)

// managerOptions are the flags for the memory management of FLEX containers.
type managerOptions struct {
	preset    string
	puffRatio float64 // 0 is the preset's
}

func (o *managerOptions) flags(f *pflag.FlagSet) {
	o.preset = "default"
	f.Var(flags.Choice(&o.preset, memory.PresetNames()...), "flex", "memory `manager` of FLEX containers: default, paper (Pufferfish), or a variant that the paper compares: "+
		strings.Join(slices.Sorted(maps.Keys(memory.Variants())), ", "))
	f.Var(flags.Number(&o.puffRatio, 0, 100), "puff-ratio", "growth of a FLEX container per puff, as a `share` of its limit, from 0.01 to 100; 0: as --flex says")
}

// parameters returns the parameters of the chosen preset.
func (o *managerOptions) parameters() (memory.Parameters, error) {
	p, err := memory.PresetOf(o.preset, o.puffRatio)
	return p, command.Usage(err)
}
