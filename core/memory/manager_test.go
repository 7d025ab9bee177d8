package memory

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

func id(job int) cluster.ContainerID {
	return cluster.ContainerID{Task: cluster.TaskID{Job: cluster.JobID(job)}, Run: 1}
}

func flex(job int, min, max resource.Amount) Envelope {
	return Envelope{Container: id(job), Envelope: cluster.Envelope{Class: cluster.Flex, Min: min, Max: max, Rank: job}}
}

// full is a reading of a container that swaps.
func full(job int, anonymous, swap resource.Amount, traffic int64) Reading {
	return Reading{Container: id(job), Anonymous: anonymous, Swap: swap, SwapTraffic: traffic, Pressed: swap > 0}
}

// words prints actions as "grow 1 to 1400" and the like.
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

// done returns the outcomes of the last actions by a kernel that carries out everything at once.
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

// TestShortTask: a container that requests memory, starts or ends within one step leaves nothing allocated, in any
// combination, and the next container gets its memory.
func TestShortTask(t *testing.T) {
	e := Envelope{Container: id(1), Envelope: cluster.Envelope{Min: 600, Max: 600, Rank: 1}}
	ends, starts, asks := []cluster.ContainerID{id(1)}, []Started{{Envelope: e}}, []Request{{e}}
	cases := map[string][]Input{
		"started and ended":        {{Requests: asks}, {Started: starts, Ended: ends}},
		"asked and ended":          {{Requests: asks, Ended: ends}},
		"asked, started and ended": {{Requests: asks, Started: starts, Ended: ends}},
		"started late, read and ended": {{Requests: asks}, {Started: starts, Readings: []Reading{full(1, 500, 0, 0)},
			Ended: ends}},
	}
	for name, steps := range cases {
		t.Run(name, func(t *testing.T) {
			m := newManager(t, Default(), 1000)
			for i, in := range steps {
				m.Step(at(float64(1+i)), in)
			}
			if held := m.Allocated(); held != 0 {
				t.Errorf("%d bytes stay allocated", held)
			}
			next := Envelope{Container: id(2), Envelope: cluster.Envelope{Min: 900, Max: 900, Rank: 2}}
			expect(t, "the next", m.Step(at(9), Input{Requests: []Request{{next}}}), "admit 2")
		})
	}
}

// TestNewsInTheWrongOrder: a late report does not bring an ended container back.
func TestNewsInTheWrongOrder(t *testing.T) {
	m := newManager(t, Default(), 1000)
	e := flex(1, 600, 900)
	m.Step(at(1), Input{Ended: []cluster.ContainerID{id(1)}})
	expect(t, "asks late", m.Step(at(2), Input{Requests: []Request{{e}}}), "")
	expect(t, "starts late",
		m.Step(at(3), Input{Started: []Started{{Envelope: e}}, Readings: []Reading{full(1, 500, 500, 1)}}), "")
	if held := m.Allocated(); held != 0 {
		t.Errorf("%d bytes stay allocated", held)
	}
	if m.Step(at(100), Input{}); len(m.endedEarly) != 0 {
		t.Errorf("%d ends are remembered for ever", len(m.endedEarly))
	}
}

// TestChanged: a container whose minimum is raised gets it at once, also shortly after another was grown, and gives
// it back when the minimum is lowered. If there is not enough memory it is suspended, and a REGULAR container comes
// before it.
func TestChanged(t *testing.T) {
	regular := func(job int, memory resource.Amount) Envelope {
		return Envelope{Container: id(job), Envelope: cluster.Envelope{Min: memory, Max: memory, Rank: job}}
	}
	p := Default()
	p.Lend = 0
	m := newManager(t, p, 10_000, Started{Envelope: flex(1, 1000, 9000)}, Started{Envelope: regular(2, 2000)})
	step := func(s float64, what, want string, in Input) {
		t.Helper()
		in.Outcomes = append(in.Outcomes, expect(t, what, m.Step(at(s), in), want)...)
		expect(t, what+", afterwards", m.Step(at(s+0.01), Input{Outcomes: in.Outcomes}), "")
	}
	step(1, "raised", "grow 1 to 3000",
		Input{Changed: []Envelope{flex(1, 3000, 9000)}, Readings: []Reading{full(1, 900, 0, 0)}})
	step(1.1, "raised again", "grow 1 to 4000", Input{Changed: []Envelope{flex(1, 4000, 9000)}})
	step(60, "lowered", "shrink 1 to 1090",
		Input{Changed: []Envelope{flex(1, 1000, 9000)}, Readings: []Reading{full(1, 900, 0, 0)}})
	step(61, "regular", "", Input{Changed: []Envelope{regular(2, 8500)}})
	if got := m.Allocated(); got != 8500+1090 {
		t.Errorf("%d are allocated", got)
	}
	expect(t, "more than there is", m.Step(at(62), Input{Changed: []Envelope{flex(1, 2000, 9000)}}), "suspend 1")
}

// TestUntouched: what is lent to a container that never touches it starts others as free memory does, and what it holds
// does not; without swap, nothing that is lent counts as untouched.
func TestUntouched(t *testing.T) {
	m := newManager(t, Default(), 10_000, Started{Envelope: flex(1, 100, 9000)})
	lent := expect(t, "lent", m.Step(at(1), Input{Readings: []Reading{full(1, 50, 0, 0)}}), "grow 1 to 2537")
	m.Step(at(1.1), Input{Outcomes: lent})
	if holds := m.Allocated() - m.Untouched(); holds != 150 {
		t.Errorf("it holds %d, and may grow as much again", holds)
	}
	room := 10_000 - (m.Allocated() - m.Untouched())
	asks := Input{Requests: []Request{{flex(2, room, room)}}}
	taken := expect(t, "more than is free", m.Step(at(2), asks), "shrink 1 to 150")
	expect(t, "now it is free", m.Step(at(2.1), Input{Outcomes: taken}), "admit 2")
	if m.Untouched() != 0 {
		t.Errorf("%d were never touched", m.Untouched())
	}

	m = newManager(t, Default(), 10_000, Started{Envelope: flex(1, 100, 9000)})
	m.Step(at(1.1), Input{Outcomes: done(m.Step(at(1), Input{Readings: []Reading{full(1, 50, 0, 0)}}))})
	m.Step(at(1.2), Input{Node: &NodeReading{Memory: 10_000, SwapFull: true}})
	if m.Untouched() != 0 {
		t.Errorf("without swap, %d were never touched", m.Untouched())
	}
}

// TestBelowLeast: a container that is found running below its minimum gets its minimum at once, or is suspended until
// it can have it.
func TestBelowLeast(t *testing.T) {
	m, err := New(Default())
	if err != nil {
		t.Fatal(err)
	}
	poor := Started{Envelope: flex(2, 400, 4000), Limit: 40}
	in := Input{Node: &NodeReading{Memory: 1000, SwapFree: 1 << 40}, Started: []Started{{Envelope: flex(1, 900, 900)},
		poor}, Readings: []Reading{full(1, 900, 0, 0), full(2, 40, 300, 300)}}
	outcomes := expect(t, "no room", m.Step(0, in), "suspend 2")
	if got := words(m.Step(at(1), Input{Outcomes: outcomes})); strings.Contains(got, "resume") {
		t.Errorf("without its least: %s", got)
	}
	actions := m.Step(at(2), Input{Ended: []cluster.ContainerID{id(1)}})
	if len(actions) != 1 || actions[0].Kind != Grow || actions[0].Limit < 400 {
		t.Fatalf("with room: %s", words(actions))
	}
	expect(t, "with its least", m.Step(at(3), Input{Outcomes: done(actions), Readings: []Reading{full(2, 300, 0, 600)}}),
		"resume 2")

	if m, err = New(Default()); err != nil {
		t.Fatal(err)
	}
	in.Started, in.Readings = []Started{poor}, in.Readings[1:]
	if actions := m.Step(0, in); len(actions) != 1 || actions[0].Kind != Grow || actions[0].Limit < 400 {
		t.Errorf("found where there is room: %s", words(actions))
	}
}

// TestMakesDo: a container that can never have all that it lacks gets what there is, or what it needs to run if there
// is enough. If it runs and there is not, it is suspended.
func TestMakesDo(t *testing.T) {
	for _, c := range []struct {
		name      string
		others    resource.Amount // what a service takes, of 1000
		suspended bool
		want      string
	}{
		{"less than the minimum", 900, false, "suspend 2"},
		{"more than the minimum", 500, false, "grow 2 to 400"},
		{"suspended, less than the minimum", 900, true, "grow 2 to 100"},
		{"suspended, more than the minimum", 500, true, "grow 2 to 500"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := New(Default())
			if err != nil {
				t.Fatal(err)
			}
			in := Input{Node: &NodeReading{Memory: 1000, SwapFree: 1 << 40}, Readings: []Reading{full(2, 40, 3000, 3000)}}
			service := Envelope{Container: id(1), Envelope: cluster.Envelope{Min: c.others, Max: c.others, Rank: 1}}
			in.Started = []Started{{Envelope: service}, {Envelope: flex(2, 400, 4000), Limit: 40, Suspended: c.suspended}}
			expect(t, "found", m.Step(0, in), c.want)
		})
	}
}

// TestAlgorithm1 follows three containers that run out of memory at the same time: they grow by φ, φ/3 and φ/9 of the
// limit, none by more than half of the free memory (section 4.3.1).
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
	p := Default()
	p.Lend = 0
	m := newManager(t, p, 10_000, Started{Envelope: flex(1, 1000, 9000)})
	cold := Reading{Container: id(1), Anonymous: 500, Swap: 600, SwapTraffic: 7}
	expect(t, "first seen", m.Step(at(1), Input{Readings: []Reading{cold}}), "")
	expect(t, "no traffic", m.Step(at(2), Input{Readings: []Reading{cold}}), "")
	cold.SwapTraffic++
	expect(t, "traffic", m.Step(at(3), Input{Readings: []Reading{cold}}), "grow 1 to 1500")
}

func TestPageCacheIsNoNeed(t *testing.T) {
	p := Default()
	p.Lend = 0
	m := newManager(t, p, 10_000, Started{Envelope: flex(1, 1000, 9000)})
	for i := range 600 {
		r := Reading{Container: id(1), Anonymous: 300, Pressed: true} // the rest of its 1000 is page cache
		expect(t, "streaming", m.Step(at(float64(i)), Input{Readings: []Reading{r}}), "")
	}
}

func TestFlexIsNotServedByReclaim(t *testing.T) {
	m := newManager(t, Default(), 1000, Started{Envelope: flex(1, 100, 1000), Limit: 950})
	expect(t, "request",
		m.Step(at(1), Input{Readings: []Reading{full(1, 900, 0, 0)}, Requests: []Request{{flex(2, 100, 1000)}}}), "refuse 2")
}

func TestKernelThatDoesNotAnswer(t *testing.T) {
	m := newManager(t, Default(), 10_000, Started{Envelope: flex(1, 1000, 9000)})
	expect(t, "out of memory", m.Step(at(1), Input{Readings: []Reading{full(1, 1000, 500, 1)}}), "grow 1 to 1900")
	expect(t, "waiting", m.Step(at(2), Input{Readings: []Reading{full(1, 1000, 600, 2)}}), "")
	expect(t, "given up", m.Step(at(61), Input{Readings: []Reading{full(1, 1000, 700, 3)}}), "")
	expect(t, "next try", m.Step(at(61.1), Input{}), "grow 1 to 2100")
}

func TestKillIsAskedForOnce(t *testing.T) {
	p := Paper()
	p.LongestSuspension = 10 * time.Second
	m := newManager(t, p, 100, Started{Envelope: flex(1, 100, 1000)})
	out := expect(t, "out of memory", m.Step(at(1), Input{Readings: []Reading{full(1, 100, 50, 1)}}), "suspend 1")
	kill := expect(t, "too long", m.Step(at(12), Input{Outcomes: out}), "kill 1")
	expect(t, "it is about to end", m.Step(at(13), Input{Outcomes: kill}), "")
	expect(t, "given up", m.Step(at(72), Input{}), "")
	expect(t, "once more", m.Step(at(73), Input{}), "kill 1")
}

func TestFailedSuspensionIsAskedForAgain(t *testing.T) {
	m := newManager(t, Paper(), 1000, Started{Envelope: flex(1, 1000, 9000)})
	a := m.Step(at(1), Input{Readings: []Reading{full(1, 1000, 500, 1)}})
	expect(t, "once", a, "suspend 1")
	expect(t, "not at once",
		m.Step(at(2), Input{Outcomes: []Outcome{{Action: a[0].ID, Failed: true}},
			Readings: []Reading{full(1, 1000, 600, 2)}}), "")
	if next := m.Next(); next != at(2.1) {
		t.Fatalf("next step at %v, want 2.1s", time.Duration(next))
	}
	expect(t, "again", m.Step(at(2.1), Input{}), "suspend 1")
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

// TestRequestWaitsForAnAction requests memory that is free as soon as a growth in progress is over.
func TestRequestWaitsForAnAction(t *testing.T) {
	m := newManager(t, Default(), 1000, Started{Envelope: flex(1, 100, 1000), Limit: 500})
	regular := Request{Envelope{Container: id(9), Envelope: cluster.Envelope{Class: cluster.Regular, Min: 600, Max: 600,
		Rank: 9}}}
	out := expect(t, "out of memory", m.Step(at(1), Input{Readings: []Reading{full(1, 500, 100, 1)}}), "grow 1 to 800")
	expect(t, "asked meanwhile", m.Step(at(1.1), Input{Requests: []Request{regular}}), "")
	expect(t, "grown", m.Step(at(1.2), Input{Outcomes: out}), "shrink 1 to 400")
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
	regular := Request{Envelope{Container: id(9), Envelope: cluster.Envelope{Class: cluster.Regular, Min: 500, Max: 500,
		Rank: 9}}}
	in := Input{Node: &NodeReading{Memory: 1000}, Requests: []Request{regular}}
	expect(t, "no swap", m.Step(at(2), in), "refuse 9")
	if got, ok := m.Outlook(id(2)); ok {
		t.Fatalf("resumed at %v, but a claim comes first", time.Duration(got))
	}
	m.Step(at(8), Input{})
	if got, ok := m.Outlook(id(2)); !ok || got != at(30) {
		t.Fatalf("without the claim resumed at %v %v, want 30s", time.Duration(got), ok)
	}
}

// TestOutlookOfHeldBack: a container that waits for the ends of others goes on when those are to come, however much
// memory is free meanwhile.
func TestOutlookOfHeldBack(t *testing.T) {
	const mib = resource.MiB
	first := flex(1, 32*mib, 256*mib)
	first.Duration = 30 * time.Second
	m := newManager(t, Default(), 256*mib, Started{Envelope: first, Limit: 170 * mib},
		Started{Envelope: flex(2, 32*mib, 256*mib), Limit: 52 * mib})
	m.Step(at(1), Input{Node: &NodeReading{Memory: 256 * mib, SwapFree: 250 * mib},
		Readings: []Reading{full(1, 145*mib, 0, 0), full(2, 51*mib, 20*mib, 1)}})
	if c := m.containers[id(2)]; !c.held || !c.state.suspended() {
		t.Fatalf("held back: %v, %v", c.held, c.state)
	}
	if l := m.ledger(); l.free() < mib {
		t.Fatalf("%d free", l.free())
	}
	if got, ok := m.Outlook(id(2)); !ok || got != at(30) {
		t.Fatalf("resumed at %v %v, want 30s", time.Duration(got), ok)
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

// BenchmarkStep is a node with 500 containers. Either nothing is wrong and one or all containers have been read; or
// half of them are suspended; or all are always out of memory, and the kernel carries out every action at once.
func BenchmarkStep(b *testing.B) {
	const gib = 1 << 30
	for _, c := range []struct {
		name            string
		read, suspended int
		swap            resource.Amount
	}{{"one read", 1, 0, 0}, {"all read", 500, 0, 0}, {"half suspended", 500, 2, 0}, {"all out of memory", 500, 0, gib}} {
		b.Run(c.name, func(b *testing.B) {
			m, err := New(Default())
			if err != nil {
				b.Fatal(err)
			}
			in := Input{Node: &NodeReading{Memory: 260 * gib, SwapFree: 1 << 40}}
			for i := range 500 {
				s := Started{Envelope: flex(i, gib/4, 16*gib), Limit: gib / 2, Suspended: c.suspended > 0 && i%c.suspended > 0}
				in.Started = append(in.Started, s)
			}
			m.Step(0, in)
			r := rand.New(rand.NewPCG(1, 2))
			readings, outcomes := make([]Reading, c.read), []Outcome(nil)
			now, traffic := timeline.Time(0), int64(0)
			step := func() {
				now, traffic = now+1e6, traffic+1
				for i := range readings {
					id := i
					if c.read == 1 {
						id = r.IntN(500)
					}
					readings[i] = full(id, 7*gib/16, c.swap, traffic)
					if c.suspended > 0 && id%c.suspended > 0 {
						readings[i].Swap = gib
					}
				}
				actions := m.Step(now, Input{Readings: readings, Outcomes: outcomes})
				outcomes = outcomes[:0]
				for _, a := range actions {
					outcomes = append(outcomes, Outcome{Action: a.ID, Limit: a.Limit})
				}
			}
			for range 1000 {
				step()
			}
			b.ReportAllocs()
			for b.Loop() {
				step()
			}
		})
	}
}

// TestHeartbeatsOfARegularContainer: others than the manager stop a REGULAR container and let it breathe, even one
// that was found stopped.
func TestHeartbeatsOfARegularContainer(t *testing.T) {
	m := newManager(t, Default(), 1000)
	e := Envelope{Container: id(1), Envelope: cluster.Envelope{Min: 600, Max: 600, Rank: 1,
		HeartbeatTimeout: 20 * time.Second}}
	in := Input{Started: []Started{{Envelope: e, Suspended: true}}}
	for s := range 60 {
		actions := m.Step(at(float64(1+s)), in)
		if len(actions) > 0 {
			t.Errorf("after %d s: %s", s, words(actions))
		}
		in = Input{Outcomes: done(actions)}
	}
}
