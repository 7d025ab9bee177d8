package api

import (
	"fmt"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// SpillInstead turns a FLEX job into a REGULAR one that does the same work without swap: with less than its ideal
// memory its programs spill by themselves, at a known cost. missing says why there is no swap: see
// cluster.Capabilities. measured returns the profile that a stage names; the profile gives the size of the stage,
// because the initial memory of a FLEX container does not. words says to the owner how the job runs. The error is a
// Conflict, and j is unchanged, if some stage cannot spill: its container would start with little memory, and the
// kernel would kill it as soon as it outgrows that.
func SpillInstead(j *cluster.Job, missing string,
	measured func(stage int) (cluster.Profile, bool)) (words string, err error) {
	stages := slices.Clone(j.Stages)
	var all []string
	for i := range stages {
		s := &stages[i]
		if p, ok := measured(i); ok {
			s.Ideal[resource.Memory], s.MinMemory, s.Duration, s.Elasticity = p.Ideal, p.MinMemory, p.Duration, p.Elasticity
		}
		s.MaxMemory = 0
		s.Command = s.AsRegular()
		if !s.Elastic() {
			return "", Errorf(Conflict,
				"class flex: needs swap, and %s, or use class regular, or name a profile by which the program can spill", missing)
		}
		size := fmt.Sprintf("%s, or spilling with as little as %s, %.2gx as long by its profile",
			resource.FormatMemory(s.Ideal[resource.Memory]), resource.FormatMemory(s.MinMemory),
			s.Elasticity.Slowdown(s.Ideal[resource.Memory], s.MinMemory))
		if len(stages) > 1 {
			size = fmt.Sprintf("stage %q with %s", j.StageName(i), size)
		} else {
			size = "with " + size
		}
		all = append(all, size)
	}
	j.Stages, j.Class = stages, cluster.Regular
	return "no swap: runs as regular " + cluster.ClipList(all, "; "), nil
}
