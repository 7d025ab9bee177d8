package sim

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/bellows-rm/bellows/core/resource"
)

// Loss says how much of a resource's capacity is lost when demand exceeds it: seeks between streams on a disk, incast
// on a network, cold caches of cores. With a demand of r times the capacity (r > 1), the efficiency is
//
//	max(Floor, 1 / (1 + Slope × (r - 1)))
//
// and 1 otherwise. The zero value loses nothing.
type Loss struct {
	Slope float64 // at least 0; the larger, the faster efficiency falls
	Floor float64 // least efficiency; above 0 if Slope is
}

// docs/truth.md has the sources of the presets. YARN-ME section 2.6 (Fig. 2c) has the one measurement: eight
// under-sized WordCount reducers at a time take 70 % longer on a hard disk and 15 % longer on a solid-state disk.
var (
	// HDDLoss makes eight tasks that spill 20.7 MB/s each to a disk of 110 MB/s take 1.7 times as long.
	HDDLoss = Loss{Slope: 0.25, Floor: 0.3}
	// SSDLoss makes the same eight tasks take 1.15 times as long on a solid-state disk of 145 MB/s, reads and writes
	// mixed.
	SSDLoss = Loss{Slope: 0.05, Floor: 0.8}
	// IncastLoss is assumed: Prophet (sections I and III.B) names incast as a cause of lost bandwidth without a
	// measurement.
	IncastLoss = Loss{Slope: 0.1, Floor: 0.5}
	// SharedCoreLoss is what ordinary programs lost that shared a real core (studies/measured.md).
	SharedCoreLoss = Loss{Slope: 0.1179, Floor: 0.8526}
)

// Efficiency returns the fraction of the capacity, 0 to 1, that remains usable when demand over capacity is ratio.
func (l Loss) Efficiency(ratio float64) float64 {
	if ratio <= 1 || l.Slope == 0 {
		return 1
	}
	return max(l.Floor, 1/(1+l.Slope*(ratio-1)))
}

func (l Loss) check(of string) error {
	if !(l.Slope >= 0 && l.Slope <= 1000) {
		return fmt.Errorf("%s loss slope %v: must be a number from 0 to 1000", of, l.Slope)
	}
	if l.Slope > 0 && !(l.Floor > 0 && l.Floor <= 1) {
		return fmt.Errorf("%s loss floor %v: must be above 0, at most 1", of, l.Floor)
	}
	return nil
}

// contended are the resources for which the running tasks of a node compete, and rates are the resources of which a
// slower task needs less at a time.
var contended, rates = resource.KindsWhere(resource.Kind.Contended), resource.KindsWhere(resource.Kind.IsRate)

// claim is a task's demand of a resource that is shared.
type claim struct {
	level  float64 // the demand for each unit of weight
	weight float64 // above 0
}

// fairLevel returns the level up to which demands are met when capacity is shared max-min by weight: the sum of
// weight × min(claim's level, level) is capacity. The sum of the demands must exceed capacity. It sorts claims.
func fairLevel(claims []claim, capacity float64) float64 {
	slices.SortFunc(claims, func(a, b claim) int { return cmp.Compare(a.level, b.level) })
	left, weights := capacity, 0.0
	for _, c := range claims {
		weights += c.weight
	}
	for _, c := range claims {
		level := left / weights
		if c.level >= level {
			return level
		}
		left -= c.level * c.weight
		weights -= c.weight
	}
	return claims[len(claims)-1].level
}

// weight is what a task counts when a resource is shared. Where tasks lend, or their grants are weights, a node
// shares CPU as a real machine does: by the grants, in cores, and a task without a grant counts as one core.
func (r *run) weight(t *task, k resource.Kind) float64 {
	if cpu := t.grant[resource.CPU]; (r.config.Lends || t.mostCPU > 0) && k == resource.CPU && cpu > 0 {
		return float64(cpu) / float64(resource.Core)
	}
	return 1
}
