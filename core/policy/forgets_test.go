package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"pgregory.net/rapid"
)

// TestPoliciesForget: a policy knows nothing that it cannot compute again from the plan. A policy that was made for
// this one decision takes the same decisions as one that has seen all that came before, whether that has dropped its
// caches or not, and also when the cluster is learned from an inventory, as at the beginning of a segment of an event
// log.
func TestPoliciesForget(t *testing.T) {
	more := map[string][]string{
		"capacity": {"preemption=true preemption-interval=1ns preemption-wait=2ns preemption-per-round=1 " +
			"queues=a=40%,default=60%", "user-limits=true", "reservations=false"},
		"ecs": {"short=false threshold=0 interval=2ns suspension=0.01",
			"memory=phase short=false threshold=0 interval=2ns ahead=1ns", "cpu=weight overcommit=false"},
		"fair": {"reservations=false", "gaps=true", "gaps=false"},
		"mira": {"backoff=3ns", "keep=next backoff=0s", "keep=9ns", "rule=paper backoff=2ns keep=6ns",
			"queues=a=2:2..,b=1:..3,default=1 keep=9ns backoff=3ns"},
		"prism":      {"patience=5ns"},
		"prophet":    {"backoff=3ns", "backoff=3ns relief=share score=literal", "window=1 deadline=1"},
		"pufferfish": {"order=sjf"},
		"static":     {"order=fifo", "memory=9GB"},
		"tetris":     {"fairness=0.6 barrier=0.5"},
		"yarn-me":    {"timeline=resimulate", "gaps=true", "reservations=false"},
	}
	for _, name := range Names() {
		for _, text := range append([]string{""}, more[name]...) {
			t.Run(strings.TrimSpace(name+" "+text), func(t *testing.T) {
				settings := map[string]string{}
				for _, s := range strings.Fields(text) {
					key, value, _ := strings.Cut(s, "=")
					settings[name+"."+key] = value
				}
				rapid.Check(t, func(t *rapid.T) { forgets(t, name, settings) })
			})
		}
	}
}

// mind is a policy with the book of the cluster that it decides about.
type mind struct {
	policy Policy
	book   *book.Book
}

// begin begins an empty cluster. Its nodes report every so often, or at any time if that is 0.
func (m *mind) begin(every time.Duration) {
	m.book = book.NewBook(func(now timeline.Time, s *book.Snapshot, j *book.JobState, stage int) (cluster.Reason, bool) {
		if why := m.policy.Traits().Why; why != nil {
			return why(now, s, j, stage)
		}
		return cluster.Reason{}, false
	})
	s := m.book.Snapshot()
	s.Heartbeats.Every, s.Weighs = every, m.policy.Traits().Weighs
}

// step does what the engine does in a step.
func (m *mind) step(t *rapid.T, now timeline.Time, events []cluster.Event) []cluster.Decision {
	t.Helper()
	plan := m.book.Open(now)
	for i := range events {
		if err := m.book.Enter(now, &events[i]); err != nil {
			t.Fatal(err)
		}
	}
	m.book.Hold()
	m.book.Retry()
	m.book.Gate()
	m.policy.Decide(now, plan)
	decisions, err := m.book.Close()
	if err != nil {
		t.Fatal(err)
	}
	return decisions
}

func forgets(t *rapid.T, name string, settings map[string]string) {
	number := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(t, what) }
	made := func() Policy {
		p, err := New(name, settings)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	lives, fresh := &mind{policy: made()}, &mind{policy: made()}
	traits := lives.policy.Traits()
	every := time.Duration(max(0, number("heartbeats", -2, 1)))
	lives.begin(every)
	fresh.begin(every)
	story := ""
	compare := func(now timeline.Time, drops bool, events func(m *mind) []cluster.Event) (asks []cluster.Decision) {
		if drops && traits.DropCaches != nil {
			traits.DropCaches()
		}
		fresh.policy = made()
		told := events(lives)
		story += fmt.Sprintf("at %d: %s\n", now, inWords(told))
		decisions := lives.step(t, now, told)
		got, want := fmt.Sprintf("%+v", decisions), fmt.Sprintf("%+v", fresh.step(t, now, events(fresh)))
		if got != want {
			t.Fatalf("%sthe policy that has seen this decides\n%s\nand a new one\n%s", story, got, want)
		}
		accounted(t, lives.book.Snapshot())
		return slices.DeleteFunc(slices.Clone(decisions), func(d cluster.Decision) bool { return d.Kind != cluster.Ask })
	}
	var events []cluster.Event
	same := func(*mind) []cluster.Event { return events }
	for i := range number("nodes", 1, 4) {
		capacity := resource.Of(4*resource.Core, resource.Amount(number("memory", 8, 10))*resource.GB)
		capacity[resource.Disk], capacity[resource.Network] = 100*resource.MB, 100*resource.MB
		events = append(events,
			cluster.Event{Kind: cluster.NodeJoined, NewNode: &cluster.Node{ID: cluster.NodeID(i), Name: fmt.Sprintf("n%d", i),
				Capacity: capacity}})
	}
	events = append(events, cluster.Event{Kind: cluster.Synced})
	asks := compare(0, false, same)
	for now := range timeline.Time(number("steps", 1, 40)) {
		if s := lives.book.Snapshot(); number("segment", 0, 9) == 0 && s.Quiet() {
			asks = compare(now, true, func(m *mind) []cluster.Event {
				found := m.book.Snapshot().TakeOver(now)
				m.begin(every)
				return found
			})
			continue
		}
		events = nil
		for _, d := range asks {
			answer := lives.book.Question(d.ID).Solve(1000)
			events = append(events, cluster.Event{Kind: cluster.Answered, Node: d.Node, Decision: d.ID, Answer: &answer})
		}
		for _, n := range lives.book.Snapshot().Nodes {
			if every > 0 && !n.Gone && number("beat", 0, 1) == 1 {
				events = append(events, cluster.Event{Kind: cluster.Heartbeat, Node: n.ID})
			}
		}
		if e, ok := possibleFor(t, &traits, lives.book.Snapshot(), now); ok {
			events = append(events, e)
		}
		asks = compare(now, number("drop", 0, 4) == 0, same)
	}
}

// possibleFor draws an event that is possible now, of all kinds that a policy with these traits looks at.
func possibleFor(t *rapid.T, traits *Traits, s *book.Snapshot, now timeline.Time) (e cluster.Event, ok bool) {
	number := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(t, what) }
	driving := slices.IndexFunc(s.Jobs, func(j *book.JobState) bool { return j.Open && !j.Status.Ended() })
	switch kind := number("kind", 0, 7); {
	case kind == 0:
		return pressure(t, s)
	case kind == 1:
		return progress(t, s)
	case kind == 5:
		return revision(t, s)
	case kind == 7:
		e = cluster.Event{Kind: cluster.NodePagedOut, Node: cluster.NodeID(number("swaps", 0, len(s.Nodes)-1)),
			Held: resource.Amount(number("swapped", 0, 2))}
		return e, !s.Nodes[e.Node].Gone
	case kind == 6 && len(s.Jobs) > 0:
		e = cluster.Event{Kind: cluster.NodeSuits, Node: cluster.NodeID(number("suits", 0, len(s.Nodes)-1)),
			Job:   s.Jobs[number("suited", 0, len(s.Jobs)-1)].ID,
			Found: &cluster.Condition{Keeps: number("keeps", 0, 1) == 1, Fails: number("fails", 0, 1) == 1}}
		return e, !s.Nodes[e.Node].Gone
	case kind == 2 && driving >= 0:
		j := s.Jobs[driving]
		demand := cluster.Demand{Stage: number("stage", 0, len(j.Stages)-1), Tasks: number("demand", 0, 5),
			Coming: j.Drives && number("coming", 0, 3) == 0}
		return cluster.Event{Kind: cluster.JobGrew, Job: j.ID,
			Found: &cluster.Condition{Growth: &cluster.Growth{Demands: []cluster.Demand{demand}}}}, true
	}
	e, ok = possibleEvent(t, s, now)
	if ok && e.Kind == cluster.JobSubmitted {
		vary(t, e.NewJob)
		foretell(t, e.NewJob)
		e.NewJob.Drives = traits.Drives && number("drives", 0, 3) == 0
		e.NewJob.Open = e.NewJob.Drives
		if number("learned", 0, 2) == 0 {
			e.NewJob.Class, e.NewJob.Reserve = cluster.Flex, cluster.ReserveLearned
		}
		for i := range e.NewJob.Stages {
			g := &e.NewJob.Stages[i]
			g.Together = g.Together && traits.Together
			for k := range g.Phases {
				g.Phases[k].Demand = g.Phases[k].Demand.With(resource.CPU, resource.Amount(number("cores", 0, 3))*resource.Core)
			}
		}
	}
	return e, ok
}

// revision draws other reservations for a job that learns them, whether it runs or waits.
func revision(t *rapid.T, s *book.Snapshot) (e cluster.Event, ok bool) {
	var learned []*book.JobState
	for _, j := range s.Jobs {
		if j.Reserve == cluster.ReserveLearned && !j.Status.Ended() {
			learned = append(learned, j)
		}
	}
	if len(learned) == 0 {
		return e, false
	}
	j := learned[rapid.IntRange(0, len(learned)-1).Draw(t, "revised")]
	revised := j.Revised(j.Job)
	for i := range revised.Stages {
		g := &revised.Stages[i]
		g.Ideal[resource.Memory] = resource.Amount(rapid.IntRange(1, 8).Draw(t, "reserved")) * resource.GB
		g.Reserved = &cluster.Reservation{Bytes: g.Ideal[resource.Memory], Runs: 1}
	}
	return cluster.Event{Kind: cluster.JobRevised, Job: j.ID, NewJob: &revised}, true
}

// accounted fails if what is free on nodes is not what their tasks leave.
func accounted(t *rapid.T, s *book.Snapshot) {
	t.Helper()
	for _, n := range s.Nodes {
		taken := resource.Vector{}
		for _, task := range n.Tasks {
			taken = taken.Add(task.Holds())
		}
		if unused := n.Room().Sub(taken); !n.Gone && n.Unused() != unused {
			t.Fatalf("node %d has %v unused, and its tasks leave %v", n.ID, n.Unused(), unused)
		}
		if free := n.Free[resource.Memory]; free < 0 {
			t.Fatalf("node %d has %d bytes free", n.ID, free)
		}
	}
}

// inWords says of which kind events are, and about what.
func inWords(events []cluster.Event) string {
	var words []string
	for i := range events {
		e := &events[i]
		text := e.Kind.String()
		switch {
		case e.NewJob != nil:
			text += fmt.Sprintf(" %+v", *e.NewJob)
		case e.NewNode != nil:
			text += fmt.Sprintf(" %+v", *e.NewNode)
		case e.Task.Job != 0:
			text += fmt.Sprintf(" %s", e.Task)
		}
		words = append(words, text)
	}
	return strings.Join(words, ", ")
}
