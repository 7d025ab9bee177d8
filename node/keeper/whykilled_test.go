package keeper

import (
	"context"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/internal/testswap"
)

// A container that is killed with all the memory that it may have is said to have had it, whether it grew to that,
// began with it, was found with it, or may have no more since it was resized.
func TestWhyKilledWithAllItMayHave(t *testing.T) {
	testswap.Lock(t) // that swap is removed is a reason, too
	root, groups := ground(t, "apart", "killed")
	const all = "it had all the memory that it may have"
	grown := func(to resource.Amount) func(*played, *Container) {
		return func(k *played, c *Container) {
			k.takeNews(news{of: c, outcome: &memory.Outcome{Limit: to}}, new(memory.Input))
		}
	}
	resized := func(to resource.Amount) func(*played, *Container) {
		return func(k *played, c *Container) {
			e := c.envelope()
			e.Max = to
			k.takeNews(news{of: c, changed: &e, answer: make(chan error, 1)}, new(memory.Input))
		}
	}
	nothing := func(*played, *Container) {}
	const few, most = 32 * resource.MiB, 64 * resource.MiB
	for _, tt := range []struct {
		name         string
		starts, most resource.Amount
		then         func(*played, *Container)
		want         string
	}{
		{"began with all", most, most, nothing, all},
		{"may grow", few, most, nothing, ""},
		{"grew to all", few, most, grown(most), all},
		{"grew to a part", few, most, grown(few + resource.MiB), ""},
		{"may have no more", few, most, resized(few), all},
		{"may have more", most, most, resized(2 * most), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := play(t, root.Group, groups[0])
			c := k.add(groups[1], cluster.Envelope{Class: cluster.Flex, Min: resource.MiB, Max: tt.most})
			if err := SetMemory(context.Background(), c.Group, tt.starts); err != nil {
				t.Fatal(err)
			}
			k.takeNews(news{started: found(k.closed, c), of: c}, new(memory.Input))
			defer k.drop(c.ID)
			if tt.then(k, c); k.WhyKilled(c.ID) != tt.want {
				t.Errorf("it was killed because %q, want %q", k.WhyKilled(c.ID), tt.want)
			}
		})
	}
}
