package scenarios

import (
	"slices"
	"testing"

	"github.com/bellows-rm/bellows/core/policy"
	"pgregory.net/rapid"
)

// seesForecasts reports whether a policy may look at what a forecast says of demand: policies that look ahead, and
// tetris, which grants peaks.
func seesForecasts(name string) bool {
	p, err := policy.New(name, nil)
	return err == nil && (p.Traits().LooksAhead || name == "tetris")
}

// TestBaselinesAreBlindToForecasts: policies that existed before forecasts take the same decisions, for the same
// reasons, with forecasts and without them. A run time is known in both cases: without it a forecast would supply
// one.
func TestBaselinesAreBlindToForecasts(t *testing.T) {
	for _, name := range policy.Names() {
		of := slices.DeleteFunc(slices.Clone(choices), func(c choice) bool { return c.name != name })
		t.Run(name, func(t *testing.T) {
			if len(of) == 0 {
				t.Fatal("the random scenarios never choose this policy")
			}
			if seesForecasts(name) {
				differs := rapid.Custom(func(rt *rapid.T) bool {
					return decidesByForecasts(rt, rapid.SampledFrom(of).Draw(rt, "policy"))
				})
				for seed := range 200 {
					if differs.Example(seed) {
						return
					}
				}
				t.Error("it decides the same with forecasts and without: this test would not notice a policy that reads forecasts")
				return
			}
			rapid.Check(t, func(rt *rapid.T) {
				if c := rapid.SampledFrom(of).Draw(rt, "policy"); decidesByForecasts(rt, c) {
					rt.Fatalf("%s decides differently with forecasts", c.title)
				}
			})
		})
	}
}

// decidesByForecasts reports whether the decisions in a random scenario with forecasts change when the forecasts are
// removed.
func decidesByForecasts(t *rapid.T, c choice) bool {
	s := draw(t)
	s.drawForecasts(t)
	s.entries = nil // a phase of a forecast
	for i := range s.jobs {
		for k := range s.jobs[i].Stages {
			stage := &s.jobs[i].Stages[k]
			stage.Together = stage.Together && c.make(t).Traits().Together
			stage.Duration = stage.RunTime()
		}
	}
	if s.policies = []choice{c}; s.tooLarge(c.make(t)) != nil {
		return false
	}
	with := loop(t, s, c)
	for i := range s.jobs {
		for k := range s.jobs[i].Stages {
			s.jobs[i].Stages[k].Phases = nil
		}
	}
	without := loop(t, s, c)
	return exactly(&with) != exactly(&without)
}
