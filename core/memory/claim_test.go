package memory

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// claims checks the guarantees for REGULAR containers that were refused.
type claims struct {
	k       *kernel
	refused []*program // in the order of their first requests, even if they are not requesting again now
	times   int        // how many requests were refused
	met     timeline.Time
	metNow  bool // the free memory is enough for the first
	waited  map[*program]time.Duration
	without bool // the manager has no claims: given counts violations
	given   int
}

// want is how much of the claims made before p's the given memory would meet; nil: of all claims.
func (c *claims) want(memory resource.Amount, p *program) (sum resource.Amount) {
	for _, o := range c.refused {
		if o == p {
			break
		}
		if o.state == "refused" && sum+o.Min <= memory {
			sum += o.Min
		}
	}
	return sum
}

func (c *claims) free() resource.Amount {
	free := c.k.memory
	for _, p := range c.k.programs {
		if p.state == "running" {
			free -= p.limit
		}
	}
	return free
}

// see checks the use of free memory. Free memory that would meet claims is not given away. Growth into spare memory and
// the start of a FLEX container use only what is left after all claims. So does growth ahead of need while another
// container runs whose end would meet a claim.
func (c *claims) see(a *Action, p *program) (fail, silent bool) {
	free, more, kept := c.free(), resource.Amount(0), resource.Amount(0)
	switch {
	case a.Kind == Grow:
		more, kept = a.Limit-p.limit, c.want(free, nil)
		if a.Reason.Code == RoomToSpare || a.Reason.Code == NearLimit && c.anotherRuns(p) {
			kept = c.want(c.k.memory, nil)
		}
	case a.Kind == Admit && p.Class == cluster.Flex:
		more, kept = p.Min, c.want(c.k.memory, nil)
	case a.Kind == Admit:
		more, kept = p.Min, c.want(free, p)
		c.refused = slices.DeleteFunc(c.refused, func(o *program) bool { return o == p })
	case a.Kind == Refuse && p.Class == cluster.Regular && !slices.Contains(c.refused, p):
		c.refused, c.times = append(c.refused, p), c.times+1
	}
	switch broken := more > 0 && free-more < kept; {
	case broken && c.without:
		c.given++
	case broken:
		c.k.fail("%v of %v: %d of %d free, and %d is kept for claims", a.Kind, p.Container, more, free, kept)
	}
	return false, false
}

// anotherRuns reports whether the end of a container other than p would meet a claim that is not met now.
func (c *claims) anotherRuns(p *program) bool {
	free := c.free()
	could := free
	for _, o := range c.k.programs {
		if o != p && o.state == "running" && !o.stopped {
			could += o.limit
		}
	}
	return c.want(could, nil) > c.want(free, nil)
}

// served checks that the first refused container gets its memory once enough is free and it has requested again, which
// takes up to a second.
func (c *claims) served() {
	k := c.k
	for _, p := range k.programs {
		if p.Class == cluster.Regular && (p.state == "asked" || p.state == "refused") {
			c.waited[p] += k.tick
		}
	}
	met := len(c.refused) > 0 && c.refused[0].Min <= c.free()
	if met && !c.metNow {
		c.met = k.now
	}
	if c.metNow = met; met && !c.without && k.now.Sub(c.met) > time.Second+k.tick {
		k.fail("%v needs %d of %d that are free since %v", c.refused[0].Container, c.refused[0].Min, c.free(),
			time.Duration(c.met))
	}
}

// scarce allows hardly any swap, and makes REGULAR containers larger.
func scarce(k *kernel, r *rand.Rand) {
	k.budget = resource.Amount(r.IntN(8)) << 20
	for _, p := range k.programs {
		if p.Class == cluster.Regular {
			p.Min *= 2
			p.Max, p.sets[0] = p.Min, p.Min
		} else {
			p.Max = k.memory
		}
	}
}

// TestRandomClaims runs nodes on which hardly any memory may be swapped, so that REGULAR containers are refused. see
// and served find no violation, and all programs end. Without claims there are violations.
func TestRandomClaims(t *testing.T) {
	for _, claimFor := range []time.Duration{Default().ClaimFor, 0} {
		p, without := Default(), claimFor == 0
		p.ClaimFor = claimFor
		refused, given := 0, 0
		var sum, longest time.Duration
		for seed := range *seeds {
			r := rand.New(rand.NewPCG(seed, 12))
			k := randomKernel(t, r, p)
			scarce(k, r)
			c := &claims{k: k, without: without, waited: map[*program]time.Duration{}}
			k.seen, k.after = c.see, c.served
			k.finish(seed)
			given, refused = given+c.given, refused+c.times
			for _, w := range c.waited {
				sum, longest = sum+w, max(longest, w)
			}
		}
		t.Logf("claims %v: %d REGULAR containers were refused, all waited for %v together and %v at most; %d times it "+
			"was given away", claimFor, refused, sum, longest, given)
		if refused < int(*seeds)/10 || without && given == 0 {
			t.Errorf("only %d REGULAR containers were refused, and %d times what they waited for was given away", refused, given)
		}
	}
}

// TestClaimEnds: the claim of a REGULAR container ends when the container ends, or has not requested memory for
// ClaimFor.
func TestClaimEnds(t *testing.T) {
	for _, ends := range []bool{true, false} {
		m := newManager(t, Default(), 1000, Started{Envelope: flex(1, 500, 1000)}, Started{Envelope: flex(2, 500, 1000)})
		regular := Envelope{Container: id(9), Envelope: cluster.Envelope{Class: cluster.Regular, Min: 400, Max: 400, Rank: 9}}
		expect(t, "no room", m.Step(at(1), Input{Requests: []Request{{regular}}}), "refuse 9")
		small := Request{flex(3, 50, 1000)}
		freed := Input{Ended: []cluster.ContainerID{id(2)}, Requests: []Request{small}}
		expect(t, "too little is left", m.Step(at(2), freed), "admit 3")
		more := Request{flex(4, 60, 1000)}
		expect(t, "nothing is left", m.Step(at(3), Input{Requests: []Request{more}}), "refuse 4")
		if next := m.Next(); next != at(6) {
			t.Fatalf("next step at %v, want 6s", time.Duration(next))
		}
		in, now := Input{Requests: []Request{more}}, at(6)
		if ends {
			in.Ended, now = []cluster.ContainerID{id(9)}, at(4)
		}
		expect(t, "no longer", m.Step(now, in), "admit 4")
	}
}

// TestClaimsInOrder: of two refused containers, the one that requested first is served first, whichever requests again
// first.
func TestClaimsInOrder(t *testing.T) {
	m := newManager(t, Default(), 1000, Started{Envelope: flex(1, 500, 1000)}, Started{Envelope: flex(2, 500, 1000)})
	one, other := Request{Envelope{Container: id(8), Envelope: cluster.Envelope{Min: 400, Max: 400, Rank: 8}}},
		Request{Envelope{Container: id(7), Envelope: cluster.Envelope{Min: 300, Max: 300, Rank: 7}}}
	expect(t, "no room", m.Step(at(1), Input{Requests: []Request{one, other}}), "refuse 8, refuse 7")
	expect(t, "the other asks first",
		m.Step(at(2), Input{Ended: []cluster.ContainerID{id(2)}, Requests: []Request{other}}), "refuse 7")
	expect(t, "both ask", m.Step(at(3), Input{Requests: []Request{other, one}}), "admit 8, refuse 7")
}
