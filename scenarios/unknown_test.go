package scenarios

import (
	"slices"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/resource"
	"pgregory.net/rapid"
)

// TestUnknownCapacityBoundsNothing: on nodes that lack a number, every policy decides as if they had very much. The
// exceptions are tetris, whose scores hold the part of that much, prophet, which counts what stays idle of it, and
// H-DRF, where the part of that much counts alone once all other resources are saturated: they are audited only.
func TestUnknownCapacityBoundsNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := draw(rt)
		s.drawUnknown(rt)
		s.policies = []choice{rapid.SampledFrom(choices).Draw(rt, "policy")}
		s.apart(rt)
		if s.tooLarge(s.policies[0].make(rt)) != nil {
			return
		}
		if looksAtParts(&s.policies[0]) {
			drivers := s.drivers()
			if s.policies[0].make(rt).Traits().UnderSizes { // what spills contends for the disk, in the simulator alone
				drivers = drivers[:1]
			}
			check(rt, s, drivers)
			return
		}
		d := s.drivers()[0]
		h := d.run(rt, s, s.policies[0])
		got := s.render(&h) + exactly(&h)
		if strings.Contains(got, "4611686018427387903") {
			rt.Fatalf("the number that stands for an unknown amount is in\n%s", got)
		}
		ample := *s
		ample.nodes = nil
		for _, n := range s.nodes {
			n.Capacity, n.Unknown = n.Unknown.In(n.Capacity, resource.MostRate), 0
			ample.nodes = append(ample.nodes, n)
		}
		h = d.run(rt, &ample, s.policies[0])
		if want := s.render(&h) + exactly(&h); got != want {
			rt.Fatalf("%s with unknown capacities:\n%s\nwith very large ones:\n%s\n%s", s.policies[0].title, got, want, s)
		}
	})
}

// looksAtParts reports whether a policy decides by parts of capacities, however small they are.
func looksAtParts(c *choice) bool {
	hierarchical := c.settings["drf.queues"] != "" && c.settings["drf.hierarchy"] != "naive"
	aligns := c.name == "bellows" && c.settings["bellows.place"] != "first"
	return c.name == "tetris" || c.name == "prophet" || aligns || hierarchical
}

// drawUnknown lets tasks request disk and network bandwidth, and lets some nodes lack a number for them. The first
// node has what one task requests.
func (s *scenario) drawUnknown(t *rapid.T) {
	rate := func(what string, least, most int) resource.Amount {
		return resource.Amount(rapid.IntRange(least, most).Draw(t, what)) * 30 * resource.MB
	}
	for i := range s.nodes {
		n := &s.nodes[i]
		for _, k := range rates {
			least := 0
			if i == 0 || len(s.pressures) > 0 { // what is pressed must be there
				least = 3
			}
			n.Capacity[k] = rate("capacity", least, 6)
			if rapid.Bool().Draw(t, "unknown") {
				n.Unknown |= resource.KindsOf(k)
				n.Capacity[k] = 0
			}
		}
	}
	s.pressures = slices.DeleteFunc(s.pressures, func(p pressure) bool { // a rate without a number is never pressed
		return slices.ContainsFunc(rates, func(k resource.Kind) bool {
			return p.gives[k] > 0 && s.nodes[p.node].Unknown.Has(k)
		})
	})
	for i := range s.jobs {
		for j := range s.jobs[i].Stages {
			for _, k := range rates {
				s.jobs[i].Stages[j].Ideal[k] = rate("request", 0, 3)
			}
		}
	}
}
