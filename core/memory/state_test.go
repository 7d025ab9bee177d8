package memory

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestTransitions enumerates the table: suspend and resume decide whether the programs run and leave doubts; confirm
// and denied affect only doubts.
func TestTransitions(t *testing.T) {
	for s := range state(len(transitions)) {
		suspended, inDoubt := s.suspended(), s.inDoubt()
		want := map[stimulus][2]bool{
			suspend: {true, inDoubt},
			resume:  {false, inDoubt},
			confirm: {suspended, false},
			denied:  {suspended, true},
		}
		for what := range stimulus(len(transitions[s])) {
			if next := s.to(what); [2]bool{next.suspended(), next.inDoubt()} != want[what] {
				t.Errorf("state %d goes to %d after stimulus %d: want suspended and in doubt %v", s, next, what, want[what])
			}
		}
	}
}

// TestPlaces enumerates the order of containers: turns first, then by job, yielding containers last; promoted
// containers come immediately before the job whose place they have.
func TestPlaces(t *testing.T) {
	inOrder := []place{
		{standing: onTurn, turn: 1, rank: 9},
		{standing: onTurn, turn: 2, rank: 1},
		{standing: ranked, duration: time.Second, rank: 3},
		{standing: promoted, duration: time.Minute, rank: 1},
		{standing: ranked, duration: time.Minute, rank: 1},
		{standing: promoted, duration: time.Minute, rank: 2},
		{standing: ranked, duration: time.Minute, rank: 2},
		{standing: yielding, duration: time.Second, rank: 1},
		{standing: yielding, duration: time.Minute, rank: 0},
	}
	for i, a := range inOrder {
		for k, b := range inOrder {
			if got := comparePlaces(a, b); got < 0 != (i < k) || got > 0 != (i > k) {
				t.Errorf("%+v against %+v: %d", a, b, got)
			}
		}
	}
}

// TestStatesAreReached runs nodes with failures, and programs that wait for each other, and checks that every state and
// every standing is reached: none of them is superfluous.
func TestStatesAreReached(t *testing.T) {
	states, standings := map[state]bool{}, map[standing]bool{}
	look := func(k *kernel) {
		k.after = func() {
			for _, c := range k.manager.ordered {
				states[c.state], standings[c.place.standing] = true, true
			}
		}
	}
	for seed := range uint64(20) {
		for _, p := range []Parameters{Default(), Paper()} {
			p.ActionTimeout = 10 * time.Second
			r := rand.New(rand.NewPCG(seed, 31))
			k := randomKernel(t, r, p)
			k.faults = &faults{r: r, until: k.now.Add(3 * time.Minute), fail: 0.2, silent: 0.1, from: k.memory * 3 / 4,
				most: k.memory}
			look(k)
			k.finish(seed)
		}
		r := rand.New(rand.NewPCG(seed, 32))
		k := newKernel(t, Default(), 64<<20, 4<<30, 100<<20)
		randomWaiters(k, r)
		look(k)
		k.finish(seed)
	}
	if len(states) != len(transitions) || len(standings) != int(yielding)+1 {
		t.Errorf("only states %v and standings %v were reached", states, standings)
	}
}
