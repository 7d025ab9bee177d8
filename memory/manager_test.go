package memory

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

func id(job int) cluster.ContainerID {
	return cluster.ContainerID{Task: cluster.TaskID{Job: cluster.JobID(job)}, Run: 1}
}

func flex(job int, min, max resource.Amount) Envelope {
	return Envelope{Container: id(job), Class: cluster.Flex, Min: min, Max: max, Rank: job}
}

// full is a reading of a container that swaps.
func full(job int, anonymous, swap resource.Amount, traffic int64) Reading {
	return Reading{Container: id(job), Anonymous: anonymous, Swap: swap, SwapTraffic: traffic, Pressed: swap > 0}
}

// words writes actions as "grow 1 to 1400" and the like.
func words(actions []Action) string {
	var all []string
	for _, a := range actions {
		text := fmt.Sprintf("%v %d", a.Kind, a.Container.Task.Job)
		if a.Limit > 0 {
			text += fmt.Sprintf(" to %d", a.Limit)
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func newManager(t *testing.T, p Parameters, memory resource.Amount, started ...Started) *Manager {
	t.Helper()
	m, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	if got := words(m.Step(0, Input{Node: &NodeReading{Memory: memory, SwapFree: 1 << 40}, Started: started})); got != "" {
		t.Fatalf("at the start: %s", got)
	}
	return m
}

func at(s float64) timeline.Time { return timeline.Time(s * 1e9) }

// done answers the last actions as a kernel that does all at once.
func done(actions []Action) []Outcome {
	var all []Outcome
	for _, a := range actions {
		if a.Kind != Admit && a.Kind != Refuse {
			all = append(all, Outcome{Action: a.ID, Limit: a.Limit})
		}
	}
	return all
}

func expect(t *testing.T, what string, actions []Action, want string) []Outcome {
	t.Helper()
	if got := words(actions); got != want {
		t.Fatalf("%s: %s; want %s", what, got, want)
	}
	for _, a := range actions {
		if a.Reason.Words() == "" {
			t.Fatalf("%s: no reason for %v: %+v", what, a.Kind, a.Reason)
		}
	}
	return done(actions)
}

// TestAlgorithm1 follows three containers that run out of memory at the same time: growth by φ, φ/3 and φ/9 of the limit,
// none more than half of what is left (section 4.3.1).
func TestAlgorithm1(t *testing.T) {
	m := newManager(t, Paper(), 10_000, Started{Envelope: flex(1, 1000, 9000)}, Started{Envelope: flex(2, 1000, 9000)},
		Started{Envelope: flex(3, 1000, 9000)})
	short := []Reading{full(1, 1000, 4000, 1), full(2, 1000, 4000, 1), full(3, 1000, 4000, 1)}
	out := expect(t, "out of memory", m.Step(at(1), Input{Readings: short}), "suspend 1, suspend 2, suspend 3")
	expect(t, "before the next puff", m.Step(at(2.5), Input{Outcomes: out}), "")
	out = expect(t, "puff", m.Step(at(3), Input{}), "grow 1 to 1400, grow 2 to 1133, grow 3 to 1044")
	out = expect(t, "next puff", m.Step(at(5), Input{Outcomes: out}), "grow 1 to 1960, grow 2 to 1284, grow 3 to 1090")
	expect(t, "met", m.Step(at(6), Input{Outcomes: out, Readings: []Reading{full(1, 1900, 0, 1)}}), "resume 1")
}

func TestHalfOfWhatIsLeft(t *testing.T) {
	m := newManager(t, Paper(), 2100, Started{Envelope: flex(1, 2000, 9000)})
	out := expect(t, "out of memory", m.Step(at(1), Input{Readings: []Reading{full(1, 2000, 500, 1)}}), "suspend 1")
	expect(t, "puff", m.Step(at(3), Input{Outcomes: out}), "grow 1 to 2050")
}

func TestOldSwapIsNoNeed(t *testing.T) {
	m := newManager(t, Default(), 10_000, Started{Envelope: flex(1, 1000, 9000)})
	cold := Reading{Container: id(1), Anonymous: 500, Swap: 600, SwapTraffic: 7}
	expect(t, "first seen", m.Step(at(1), Input{Readings: []Reading{cold}}), "")
	expect(t, "no traffic", m.Step(at(2), Input{Readings: []Reading{cold}}), "")
	cold.SwapTraffic++
	expect(t, "traffic", m.Step(at(3), Input{Readings: []Reading{cold}}), "grow 1 to 1400")
}

func TestPageCacheIsNoNeed(t *testing.T) {
	m := newManager(t, Default(), 10_000, Started{Envelope: flex(1, 1000, 9000)})
	for i := range 600 {
		r := Reading{Container: id(1), Anonymous: 300, Pressed: true} // the rest of its 1000 is cache
		expect(t, "streaming", m.Step(at(float64(i)), Input{Readings: []Reading{r}}), "")
	}
}

func TestDrainedContainerIsResumed(t *testing.T) {
	p := Paper()
	m := newManager(t, p, 1000, Started{Envelope: flex(1, 1000, 9000)})
	out := expect(t, "out of memory", m.Step(at(1), Input{Readings: []Reading{full(1, 1000, 200, 1)}}), "suspend 1")
	expect(t, "garbage collected, nothing in swap", m.Step(at(2), Input{Outcomes: out, Readings: []Reading{full(1, 700, 0, 1)}}), "resume 1")
}

func TestReclaimForRegular(t *testing.T) {
	m := newManager(t, Default(), 1000, Started{Envelope: flex(1, 100, 1000), Limit: 500}, Started{Envelope: flex(2, 100, 1000), Limit: 400})
	reads := []Reading{full(1, 440, 0, 0), full(2, 350, 0, 0)}
	expect(t, "all is well", m.Step(at(1), Input{Readings: reads}), "")
	regular := Envelope{Container: id(9), Class: cluster.Regular, Min: 300, Max: 300, Rank: 9}
	out := expect(t, "slack first, then the last", m.Step(at(2), Input{Requests: []Request{{regular}}}), "shrink 2 to 260, shrink 1 to 440")
	expect(t, "freed", m.Step(at(4), Input{Outcomes: out, Readings: []Reading{full(2, 260, 90, 90)}}), "admit 9")
}

func TestFlexIsNotServedByReclaim(t *testing.T) {
	m := newManager(t, Default(), 1000, Started{Envelope: flex(1, 100, 1000), Limit: 950})
	expect(t, "request", m.Step(at(1), Input{Readings: []Reading{full(1, 900, 0, 0)}, Requests: []Request{{flex(2, 100, 1000)}}}), "refuse 2")
}

func TestSwapBudget(t *testing.T) {
	m := newManager(t, Default(), 1000, Started{Envelope: flex(1, 100, 1000), Limit: 1000})
	regular := Request{Envelope{Container: id(9), Class: cluster.Regular, Min: 300, Max: 300, Rank: 9}}
	expect(t, "no swap left", m.Step(at(1), Input{Node: &NodeReading{Memory: 1000, SwapFree: 50},
		Readings: []Reading{full(1, 950, 0, 0)}, Requests: []Request{regular}}), "refuse 9")
}

func TestToleranceKillsAndRaises(t *testing.T) {
	p := Paper()
	short := flex(2, 100, 1000)
	short.Duration = 100 * time.Second
	m := newManager(t, p, 300, Started{Envelope: flex(1, 200, 1000)}, Started{Envelope: short})
	out := expect(t, "out of memory", m.Step(at(1), Input{Readings: []Reading{full(2, 100, 50, 1)}}), "suspend 2")
	m.Step(at(20), Input{Outcomes: out})
	if byRank(m.containers[id(2)], m.containers[id(1)]) < 0 {
		t.Fatal("it comes first too early")
	}
	m.Step(at(27), Input{})
	if byRank(m.containers[id(2)], m.containers[id(1)]) > 0 {
		t.Fatal("after half of its tolerance it does not come before the job above")
	}
	expect(t, "too long", m.Step(at(51), Input{}), "kill 2")
}

func TestBreaths(t *testing.T) {
	e := flex(1, 100, 1000)
	e.HeartbeatTimeout = 10 * time.Second
	m := newManager(t, Default(), 100, Started{Envelope: e}, Started{Envelope: Envelope{Container: id(2), Min: 0, Max: 0, Rank: 2}})
	out := expect(t, "out of memory", m.Step(at(1), Input{Readings: []Reading{full(1, 100, 50, 1)}}), "suspend 1")
	expect(t, "silent", m.Step(at(5), Input{Outcomes: out}), "")
	if next := m.Next(); next != at(6) {
		t.Fatalf("next step at %v, want 6s", time.Duration(next))
	}
	out = expect(t, "half of the time-out", m.Step(at(6), Input{}), "breathe 1")
	expect(t, "and again", m.Step(at(13), Input{Outcomes: out}), "breathe 1")
}

func TestKernelThatDoesNotAnswer(t *testing.T) {
	m := newManager(t, Default(), 10_000, Started{Envelope: flex(1, 1000, 9000)})
	expect(t, "out of memory", m.Step(at(1), Input{Readings: []Reading{full(1, 1000, 500, 1)}}), "grow 1 to 1400")
	expect(t, "waiting", m.Step(at(2), Input{Readings: []Reading{full(1, 1000, 600, 2)}}), "")
	expect(t, "given up", m.Step(at(61), Input{Readings: []Reading{full(1, 1000, 700, 3)}}), "grow 1 to 1400")
}

func TestFailedSuspensionIsAskedForAgain(t *testing.T) {
	m := newManager(t, Paper(), 1000, Started{Envelope: flex(1, 1000, 9000)})
	a := m.Step(at(1), Input{Readings: []Reading{full(1, 1000, 500, 1)}})
	expect(t, "once", a, "suspend 1")
	expect(t, "again", m.Step(at(2), Input{Outcomes: []Outcome{{Action: a[0].ID, Failed: true}}, Readings: []Reading{full(1, 1000, 600, 2)}}), "suspend 1")
}

func TestParametersOutOfRange(t *testing.T) {
	p := Paper()
	p.PuffRatio = 0
	if _, err := New(p); err == nil || err.Error() != "memory puff ratio 0: must be 0.01 to 100" {
		t.Fatal(err)
	}
	p = Default()
	p.Settle = -1
	if _, err := New(p); err == nil || !strings.HasPrefix(err.Error(), "memory settle -1ns: must not") {
		t.Fatal(err)
	}
}

func TestEveryReasonHasWords(t *testing.T) {
	for c := ReasonCode(1); c < numReasons; c++ {
		if (Reason{Code: c}).Words() == "" {
			t.Errorf("reason %d has no words", c)
		}
	}
}

// BenchmarkStep is a node with 500 containers of which one has been read.
func BenchmarkStep(b *testing.B) {
	m, err := New(Default())
	if err != nil {
		b.Fatal(err)
	}
	in := Input{Node: &NodeReading{Memory: 500 << 30, SwapFree: 1 << 40}}
	for i := range 500 {
		in.Started = append(in.Started, Started{Envelope: flex(i, 1<<28, 1<<34), Limit: 1 << 29})
	}
	m.Step(0, in)
	r := rand.New(rand.NewPCG(1, 2))
	now := timeline.Time(0)
	b.ReportAllocs()
	for b.Loop() {
		now += 1e6
		m.Step(now, Input{Readings: []Reading{full(r.IntN(500), 1<<28, 0, 0)}})
	}
}
