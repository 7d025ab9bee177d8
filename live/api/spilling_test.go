package api

import (
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

func TestSpillInstead(t *testing.T) {
	const mib, gib = resource.MiB, resource.GiB
	stage := func(ideal, least resource.Amount, factor float64) cluster.Stage {
		s := cluster.Stage{Tasks: 1, Ideal: resource.Of(1000, ideal), MinMemory: least, MaxMemory: 4 * gib,
			HeartbeatTimeout: time.Minute}
		if factor > 0 {
			s.Elasticity = cluster.Elasticity{Kind: cluster.Step, Factor: factor}
		}
		return s
	}
	sort := cluster.Profile{Ideal: 2 * gib, MinMemory: 512 * mib, Duration: time.Minute,
		Elasticity: cluster.Elasticity{Kind: cluster.Step, Factor: 1.4}}
	for _, c := range []struct {
		why    string
		stages []cluster.Stage
		first  *cluster.Profile // of the first stage
		words  string           // empty: rejected
		ideal  resource.Amount
	}{
		{"elastic by itself", []cluster.Stage{stage(gib, 256*mib, 1.5)}, nil,
			"no swap: runs as regular with 1GiB, or spilling with as little as 256MiB, 1.5x as long by its profile", gib},
		{"a small start, and a profile", []cluster.Stage{stage(64*mib, 0, 0)}, &sort,
			"no swap: runs as regular with 2GiB, or spilling with as little as 512MiB, 1.4x as long by its profile", 2 * gib},
		{"two stages", []cluster.Stage{stage(gib, 512*mib, 2), stage(gib, 256*mib, 1.25)}, &sort,
			`no swap: runs as regular stage "0" with 2GiB, or spilling with as little as 512MiB, 1.4x as long by its profile; ` +
				`stage "1" with 1GiB, or spilling with as little as 256MiB, 1.2x as long by its profile`, 2 * gib},
		{"cannot spill", []cluster.Stage{stage(gib, 0, 0)}, nil, "", gib},
		{"no profile", []cluster.Stage{stage(gib, 512*mib, 0)}, nil, "", gib},
		{"one of two cannot", []cluster.Stage{stage(gib, 0, 0), stage(gib, 0, 0)}, &sort, "", gib},
	} {
		j := cluster.Job{Class: cluster.Flex, Stages: c.stages}
		words, err := SpillInstead(&j, "this machine has none", func(i int) (cluster.Profile, bool) {
			if i == 0 && c.first != nil {
				return *c.first, true
			}
			return cluster.Profile{}, false
		})
		s := j.Stages[0]
		switch {
		case words != c.words || (err == nil) != (c.words != "") || s.Ideal[resource.Memory] != c.ideal:
			t.Errorf("%s: %q, %v, ideal %d", c.why, words, err, s.Ideal[resource.Memory])
		case err != nil && (KindOf(err) != Conflict || !strings.Contains(err.Error(), "needs swap") ||
			j.Class != cluster.Flex || s.MaxMemory != 4*gib):
			t.Errorf("%s: %v, class %s, most %d", c.why, err, j.Class, s.MaxMemory)
		case err == nil && (j.Class != cluster.Regular || j.Check() != nil || s.MaxMemory != 0 ||
			s.HeartbeatTimeout != time.Minute):
			t.Errorf("%s: class %s, stage %+v, %v", c.why, j.Class, s, j.Check())
		}
	}
}
