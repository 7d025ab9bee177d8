package memory

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Presets returns the named sets of parameters that users can choose for the memory manager, by name: "default" is
// Default, "paper" is Paper, and the others are Variants.
func Presets() map[string]Parameters {
	all := Variants()
	all["default"], all["paper"] = Default(), Paper()
	return all
}

// PresetNames returns the names of Presets in order.
func PresetNames() []string { return slices.Sorted(maps.Keys(Presets())) }

// PresetOf returns the parameters of a preset by its name, with the given puff ratio instead of its own unless that
// is 0.
func PresetOf(name string, puffRatio float64) (Parameters, error) {
	p, known := Presets()[name]
	if !known {
		return p, fmt.Errorf("manager %q: must be one of %s", name, strings.Join(PresetNames(), ", "))
	}
	if puffRatio != 0 {
		p.PuffRatio = puffRatio
	}
	if puffRatio < 0 || p.Check() != nil {
		return p, fmt.Errorf("puff-ratio %v: must be 0, or from 0.01 to 100", puffRatio)
	}
	return p, nil
}
