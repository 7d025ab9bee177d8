package memory

import (
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// TestOut: what a container gives back while it is paged out is given to others, nothing is ordered for it meanwhile,
// and it comes back when its memory is free: a REGULAR container running, a FLEX container in its place in the order.
func TestOut(t *testing.T) {
	regular := func(job int, memory resource.Amount) Envelope {
		return Envelope{Container: id(job), Envelope: cluster.Envelope{Class: cluster.Regular, Min: memory, Max: memory,
			Rank: job}}
	}
	for _, e := range []Envelope{regular(1, 600), flex(1, 600, 900)} {
		t.Run(e.Class.String(), func(t *testing.T) {
			m := newManager(t, Default(), 1000, Started{Envelope: e})
			expect(t, "before", m.Step(at(1), Input{Readings: []Reading{full(1, 590, 0, 0)}, Out: []Out{{Container: id(1)}}}),
				"")
			if held := m.Allocated(); held != 600 {
				t.Errorf("on its way out it counts %d bytes", held)
			}
			expect(t, "out", m.Step(at(2), Input{Readings: []Reading{full(1, 90, 500, 500)},
				Out: []Out{{Container: id(1), Limit: 100}}}), "")
			expect(t, "its memory is given away", m.Step(at(3), Input{Requests: []Request{{regular(2, 900)}}}), "admit 2")
			expect(t, "pressed", m.Step(at(4), Input{Readings: []Reading{full(1, 99, 501, 600)}}), "")
			back := Input{Requests: []Request{{e}}}
			expect(t, "no room", m.Step(at(5), back), "refuse 1")
			expect(t, "it changes its mind",
				m.Step(at(6), Input{Out: []Out{{Container: id(1), Limit: 100}}, Ended: []cluster.ContainerID{id(2)}}), "")
			expect(t, "the claim is gone", m.Step(at(7), Input{Requests: []Request{{regular(3, 900)}}}), "admit 3")
			expect(t, "room", m.Step(at(8), Input{Requests: back.Requests, Ended: []cluster.ContainerID{id(3)}}), "admit 1")
			if held := m.Allocated(); held != 600 {
				t.Errorf("back it counts %d bytes", held)
			}
			want := ""
			if e.Class == cluster.Flex {
				want = "resume 1"
			}
			expect(t, "back", m.Step(at(10), Input{Readings: []Reading{full(1, 590, 0, 600)}}), want)
		})
	}
}

// TestFoundOut: a container that an earlier manager had paged out is left alone, and counts with its limit.
func TestFoundOut(t *testing.T) {
	m := newManager(t, Default(), 1000, Started{Envelope: flex(1, 600, 900), Limit: 100, Suspended: true, Out: true})
	expect(t, "left alone", m.Step(at(1), Input{Readings: []Reading{full(1, 100, 500, 500)}}), "")
	if held := m.Allocated(); held != 100 {
		t.Errorf("it counts %d bytes", held)
	}
}

// TestOutCutsOffActions: an action that was under way when a container was paged out does not count any more.
func TestOutCutsOffActions(t *testing.T) {
	m := newManager(t, Default(), 1000, Started{Envelope: flex(1, 400, 900)})
	m.Step(at(1), Input{Readings: []Reading{full(1, 300, 0, 0)}})
	grown := m.Step(at(2), Input{Readings: []Reading{full(1, 400, 50, 50)}})
	if len(grown) != 1 || grown[0].Kind != Grow {
		t.Fatalf("short: %s", words(grown))
	}
	m.Step(at(3), Input{Out: []Out{{Container: id(1)}}})
	m.Step(at(4), Input{Out: []Out{{Container: id(1), Limit: 50}}})
	expect(t, "late", m.Step(at(5), Input{Outcomes: done(grown)}), "")
	if held := m.Allocated(); held != 50 {
		t.Errorf("it counts %d bytes", held)
	}
}
