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
	expect(t, "given up", m.Step(at(61), Input{Readings: []Reading{full(1, 1000, 700, 3)}}), "")
	expect(t, "next try", m.Step(at(61.1), Input{}), "grow 1 to 1400")
}

func TestFailedSuspensionIsAskedForAgain(t *testing.T) {
	m := newManager(t, Paper(), 1000, Started{Envelope: flex(1, 1000, 9000)})
	a := m.Step(at(1), Input{Readings: []Reading{full(1, 1000, 500, 1)}})
	expect(t, "once", a, "suspend 1")
	expect(t, "not at once", m.Step(at(2), Input{Outcomes: []Outcome{{Action: a[0].ID, Failed: true}}, Readings: []Reading{full(1, 1000, 600, 2)}}), "")
	if next := m.Next(); next != at(2.1) {
		t.Fatalf("next step at %v, want 2.1s", time.Duration(next))
	}
	expect(t, "again", m.Step(at(2.1), Input{}), "suspend 1")
}

// TestConsumerThatWaitsForItsProducer has two containers of one job: the first is suspended, the second waits for it and
// holds the memory. The paper kills; we take from the one that waits.
func TestConsumerThatWaitsForItsProducer(t *testing.T) {
	producer, consumer := flex(1, 100, 1000), flex(1, 100, 1000)
	consumer.Container.Task.Stage = 1
	reads := []Reading{full(1, 500, 300, 1), {Container: consumer.Container, Anonymous: 500}}
	start := []Started{{Envelope: producer, Limit: 500}, {Envelope: consumer, Limit: 500}}
	m := newManager(t, Default(), 1000, start...)
	out := expect(t, "out of memory", m.Step(at(1), Input{Readings: reads}), "suspend 1")
	expect(t, "patient", m.Step(at(20), Input{Outcomes: out}), "")
	out = expect(t, "the consumer gives way", m.Step(at(21.5), Input{}), "shrink 1 to 300")
	out = expect(t, "the producer grows", m.Step(at(22), Input{Outcomes: out, Readings: []Reading{{Container: consumer.Container, Anonymous: 300, Swap: 200}}}), "grow 1 to 600")
	if m.containers[consumer.Container].suspended != true || len(out) != 1 {
		t.Fatal("the consumer runs")
	}
	p := Paper()
	p.LongestSuspension = time.Minute
	m = newManager(t, p, 1000, start...)
	out = expect(t, "out of memory", m.Step(at(1), Input{Readings: reads}), "suspend 1")
	expect(t, "too long", m.Step(at(61), Input{Outcomes: out}), "kill 1")
}

func TestShortestFirst(t *testing.T) {
	p := Variants()["sjf"]
	var all []Started
	for i, d := range []time.Duration{0, time.Hour, time.Minute, 0} {
		e := flex(i+1, 1000, 9000)
		e.Duration = d
		all = append(all, Started{Envelope: e})
	}
	m := newManager(t, p, 20_000, all...)
	var order []cluster.JobID
	for _, c := range m.ordered {
		order = append(order, c.Container.Task.Job)
	}
	if fmt.Sprint(order) != "[3 2 1 4]" {
		t.Fatalf("order %v", order)
	}
}

func TestKillBaseline(t *testing.T) {
	m := newManager(t, Variants()["kill"], 2500, Started{Envelope: flex(1, 1000, 9000)}, Started{Envelope: flex(2, 1000, 9000)})
	out := expect(t, "the one that comes first is as good as any", m.Step(at(1), Input{Readings: []Reading{full(1, 1000, 500, 1), full(2, 1000, 500, 1)}}), "grow 1 to 1400, kill 2")
	expect(t, "after the next interval", m.Step(at(3), Input{Outcomes: out[:1], Ended: []cluster.ContainerID{id(2)}, Readings: []Reading{full(1, 1400, 100, 2)}}), "grow 1 to 1960")
}

// TestUnshrinkable has a kernel that answers EBUSY: what asked for memory is refused, not kept waiting.
func TestUnshrinkable(t *testing.T) {
	m := newManager(t, Default(), 1000, Started{Envelope: flex(1, 100, 1000), Limit: 1000})
	regular := Request{Envelope{Container: id(9), Class: cluster.Regular, Min: 300, Max: 300, Rank: 9}}
	a := m.Step(at(1), Input{Readings: []Reading{full(1, 950, 0, 0)}, Requests: []Request{regular}})
	expect(t, "reclaim", a, "shrink 1 to 700")
	expect(t, "busy", m.Step(at(2), Input{Outcomes: []Outcome{{Action: a[0].ID, Limit: 900, Failed: true}}}), "refuse 9")
	if got := m.allocated(); got != 900 {
		t.Fatalf("%d are allocated, want the 900 that it came down to", got)
	}
	expect(t, "what is free again is given back", m.Step(at(2.1), Input{}), "grow 1 to 950")
}

// TestRequestWaitsForAnAction has memory that can be had as soon as a growth that is under way is over.
func TestRequestWaitsForAnAction(t *testing.T) {
	m := newManager(t, Default(), 1000, Started{Envelope: flex(1, 100, 1000), Limit: 500})
	regular := Request{Envelope{Container: id(9), Class: cluster.Regular, Min: 600, Max: 600, Rank: 9}}
	out := expect(t, "out of memory", m.Step(at(1), Input{Readings: []Reading{full(1, 500, 100, 1)}}), "grow 1 to 700")
	expect(t, "asked meanwhile", m.Step(at(1.1), Input{Requests: []Request{regular}}), "")
	expect(t, "grown", m.Step(at(1.2), Input{Outcomes: out}), "shrink 1 to 400")
}

func TestNodeThatShrinks(t *testing.T) {
	m := newManager(t, Default(), 1000, Started{Envelope: flex(1, 100, 1000), Limit: 500}, Started{Envelope: flex(2, 100, 1000), Limit: 500})
	expect(t, "the last gives", m.Step(at(1), Input{Node: &NodeReading{Memory: 700, SwapFree: 1000},
		Readings: []Reading{full(1, 500, 0, 0), full(2, 500, 0, 0)}}), "shrink 2 to 200")
}

func TestTurns(t *testing.T) {
	p := Default()
	long := flex(2, 100, 1000)
	long.Duration = 100 * time.Second
	m := newManager(t, p, 1000, Started{Envelope: flex(1, 100, 1000), Limit: 900}, Started{Envelope: long})
	out := expect(t, "out of memory", m.Step(at(1), Input{Readings: []Reading{full(1, 800, 0, 0), full(2, 100, 600, 1)}}), "suspend 2")
	out = expect(t, "before its next", m.Step(at(26), Input{Outcomes: out}), "shrink 1 to 860")
	expect(t, "which the kernel does not do", m.Step(at(27), Input{Outcomes: []Outcome{{Action: out[0].Action, Failed: true}}}), "")
	if at, ok := m.Outlook(id(2)); ok {
		t.Fatalf("resumed at %v, although nobody tells how long it takes", time.Duration(at))
	}
	out = expect(t, "its turn", m.Step(at(51), Input{Readings: []Reading{full(1, 800, 0, 0)}}), "shrink 1 to 860")
	if m.ordered[0].Container != id(2) {
		t.Fatal("it does not come first")
	}
	out = expect(t, "a puff at a time", m.Step(at(52), Input{Outcomes: out, Readings: []Reading{full(1, 800, 60, 0)}}), "grow 2 to 120")
	expect(t, "and so on", m.Step(at(52.1), Input{Outcomes: out}), "grow 2 to 130")
}

func TestOutlook(t *testing.T) {
	first := flex(1, 100, 1000)
	first.Duration = 30 * time.Second
	m := newManager(t, Default(), 1000, Started{Envelope: first, Limit: 900}, Started{Envelope: flex(2, 100, 1000)})
	m.Step(at(1), Input{Readings: []Reading{full(1, 800, 0, 0), full(2, 100, 600, 1)}})
	if got, ok := m.Outlook(id(2)); !ok || got != at(30) {
		t.Fatalf("resumed at %v %v, want 30s", time.Duration(got), ok)
	}
	if _, ok := m.Outlook(id(1)); ok {
		t.Fatal("what runs is to be resumed")
	}
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
