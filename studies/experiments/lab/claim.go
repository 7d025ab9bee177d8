package lab

import (
	"fmt"
	"slices"
)

// Verdict says whether a claim of a paper holds in bellows.
type Verdict string

const (
	Holds    Verdict = "yes"
	Partly   Verdict = "partly"
	Fails    Verdict = "no"
	Untested Verdict = "not tested"
)

// Label says what the verdict on a claim is worth.
type Label string

const (
	// CanFail is a claim that a run could contradict: where the paper has a number, by one that is too small, and by one
	// that is too large. Only these verdicts are evidence, and count.
	CanFail Label = "can fail"
	// OneSided is a claim whose criterion lets pass whatever is on one side of the paper's number.
	OneSided Label = "one-sided"
	// PutIn is a claim that follows from parameters, from curves that were fitted, or from how something is built.
	PutIn Label = "put in"
)

// Claim is a sentence or a number of a paper with our number.
type Claim struct {
	Says  string `json:"says"`  // the paper's sentence, or what its figure shows
	Where string `json:"where"` // section
	Paper string `json:"paper"` // the paper's number
	Ours  string `json:"ours"`
	// Criterion says when the claim counts as holding, and when as partly holding; empty if it was not tested.
	Criterion string  `json:"criterion"`
	Label     Label   `json:"label"`
	LabelWhy  string  `json:"label_why,omitempty" yaml:"label_why"` // why it is not CanFail
	Holds     Verdict `json:"holds"`
	// Why explains a claim that does not hold, or holds only partly.
	Why string `json:"why,omitempty"`
}

// LabelText is the label with its reason.
func (c *Claim) LabelText() string {
	if c.LabelWhy == "" {
		return string(c.Label)
	}
	return string(c.Label) + ": " + c.LabelWhy
}

// Statement is a claim as the file of its paper has it. Runs of the experiment judge it, unless the file says that it
// is not tested. Why may have verbs of package fmt, for numbers of a run.
type Statement struct {
	ID    string
	Claim `yaml:",inline"`
}

// Because fills numbers into the explanation.
func (c Claim) Because(numbers ...any) Claim {
	c.Why = fmt.Sprintf(c.Why, numbers...)
	return c
}

// Judge returns the claim with our number, and with verdict Holds if whole, else Partly if half, else Fails. The
// explanation is kept unless the claim holds.
func (c Claim) Judge(ours string, whole, half bool) Claim {
	c.Ours = ours
	switch {
	case whole:
		c.Holds, c.Why = Holds, ""
	case half:
		c.Holds = Partly
	default:
		c.Holds = Fails
	}
	return c
}

// NeverActed is the verdict on what a mechanism gains where it did nothing: none.
func (c Claim) NeverActed(ours, mechanism string) Claim {
	c.Ours, c.Holds, c.Why = ours, Untested, mechanism+" never acted."
	return c
}

// Near judges a gain by the paper's: the claim holds if they differ by at most 10 points, and in part if ours is
// larger, or at least half of it.
func (c Claim) Near(ours string, paper, gain float64) Claim {
	c.Criterion = "within 10 points; in part: more, or at least half"
	if gain > paper {
		c.Why = "Ours is better than the paper's. " + c.Why
	}
	return c.Judge(ours, Within(gain, paper-0.1, paper+0.1), gain >= paper/2)
}

// MadeSo judges a claim that our models were fitted to, which is no evidence for the claim. It fails if the models do
// not meet it.
func (c Claim) MadeSo(ours string, meets bool) Claim {
	c.Ours, c.Criterion = ours, "not counted: the models are made so"
	c.Holds, c.Why = Untested, "Our models are made to show this: that they do is no evidence."
	if !meets {
		c.Holds, c.Why = Fails, "Our models were to show this, and miss it."
	}
	return c
}

// judged returns the claims of the experiment's file in the order of the file: as a run has judged them, or as the file
// says that they are not tested.
func (e *Experiment) judged(claims []Claim) ([]Claim, error) {
	var all []Claim
	for _, s := range e.Claims {
		if s.Holds == Untested {
			all = append(all, s.Claim)
			continue
		}
		i := slices.IndexFunc(claims, func(c Claim) bool { return c.Says == s.Says })
		if i < 0 {
			return nil, fmt.Errorf("claim %q is not judged", s.ID)
		}
		all = append(all, claims[i])
	}
	return all, nil
}

// Verdicts returns the verdict of each claim.
func Verdicts(claims []Claim) (all []Verdict) {
	for _, c := range claims {
		all = append(all, c.Holds)
	}
	return all
}
