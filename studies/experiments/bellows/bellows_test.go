package bellows

import (
	"slices"
	"testing"

	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// One run of jobs of all papers uses every stage of the policy.
func TestEveryStageActs(t *testing.T) {
	l := &lab.Lab{Ctx: t.Context(), Settings: lab.Settings{Seed: 3}}
	list := grounds()
	g := &list[len(list)-2]
	config, w, err := g.Make(l, 0)
	if err != nil {
		t.Fatal(err)
	}
	lab.Apart(w)
	o, err := measure(lab.Contender{Contender: on(g, contenders()[0]), Flex: config.Flex}, config, w)
	if err != nil {
		t.Fatal(err)
	}
	if a := o.Actions; a.Order == 0 || a.Size == 0 || a.Place == 0 || a.Level == 0 || a.Stops == 0 || a.BackOff == 0 {
		t.Errorf("the stages did %+v, want some of each", a)
	}
	if o.Failed > 0 {
		t.Errorf("%d jobs failed", o.Failed)
	}
}

// Reservations of running tasks change on the ground where they are learned, unless that stage is off.
func TestRenewalActs(t *testing.T) {
	l := &lab.Lab{Ctx: t.Context(), Settings: lab.Settings{Seed: 3}}
	list := grounds()
	g := &list[slices.IndexFunc(list, func(g lab.Ground) bool { return g.Name == "learned" })]
	for _, c := range contenders() {
		if c.Label != all && c.Label != "without renewal" && c.Label != "renewal alone" && c.Label != none {
			continue
		}
		config, w, err := g.Make(l, 0)
		if err != nil {
			t.Fatal(err)
		}
		o, err := measure(lab.Contender{Contender: on(g, c), Flex: config.Flex}, config, w)
		if err != nil {
			t.Fatal(err)
		}
		want := c.Label == all || c.Label == "renewal alone"
		if acts := o.Actions.Renew > 0; acts != want || o.Failed > 0 {
			t.Errorf("%s: %d changes of reservations, %d jobs failed", c.Label, o.Actions.Renew, o.Failed)
		}
		t.Logf("%s: mean run time %.1f s, %d changes", c.Label, o.Runtime, o.Actions.Renew)
	}
}
