package memory

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Managers returns the parameters of all memory managers that users can choose, by name: "default" is Default, "paper" is
// Paper, and the others are Variants.
func Managers() map[string]Parameters {
	all := Variants()
	all["default"], all["paper"] = Default(), Paper()
	return all
}

// ManagerNames returns the names of Managers in order.
func ManagerNames() []string { return slices.Sorted(maps.Keys(Managers())) }

// ManagerOf returns the parameters of a manager by its name, with the given puff ratio instead of its own unless that is 0.
func ManagerOf(name string, puffRatio float64) (Parameters, error) {
	p, known := Managers()[name]
	if !known {
		return p, fmt.Errorf("manager %q: must be one of %s", name, strings.Join(ManagerNames(), ", "))
	}
	if puffRatio != 0 {
		p.PuffRatio = puffRatio
	}
	if puffRatio < 0 || p.Check() != nil {
		return p, fmt.Errorf("puff-ratio %v: must be 0, or from 0.01 to 100", puffRatio)
	}
	return p, nil
}
