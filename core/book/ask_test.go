package book

import (
	"math"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"pgregory.net/rapid"
)

// known is a question whose answer the test supplies.
type known cluster.Answer

func (k known) Solve(int) cluster.Answer { return cluster.Answer(k) }

// askAbout asks about a node of a book, and returns the decisions.
func askAbout(t *testing.T, b *Book, now timeline.Time, q cluster.Question) []cluster.Decision {
	t.Helper()
	p := b.Open(now)
	p.Ask(p.Nodes[0], q, cluster.BecauseFits(0))
	decisions, err := b.Close()
	if err != nil {
		t.Fatal(err)
	}
	return decisions
}

func askingBook(t *testing.T) (*Book, *NodeState) {
	t.Helper()
	b := NewBook(nil)
	enterAll(t, b, joins(0), cluster.Event{Kind: cluster.Synced})
	return b, b.Snapshot().Nodes[0]
}

func enterAll(t *testing.T, b *Book, events ...cluster.Event) {
	t.Helper()
	for i := range events {
		if err := b.Enter(1, &events[i]); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAsk(t *testing.T) {
	b, n := askingBook(t)
	best := cluster.Answer{Shifts: []cluster.Shift{{Task: cluster.TaskID{Job: 1}, From: 5, To: 9}}, Value: 3, Bound: 3,
		Proved: true, States: 7}
	asked := askAbout(t, b, 2, known(best))
	if len(asked) != 1 || asked[0].Kind != cluster.Ask || asked[0].Node != 0 || !n.Asking() || n.Leveled != nil {
		t.Fatalf("decided %+v, and the node is %+v", asked, n)
	}
	answer := b.Question(asked[0].ID).Solve(100)
	if again := askAbout(t, b, 3, known(best)); len(again) != 0 {
		t.Errorf("asked %+v about a node with an open question", again)
	}
	if b.Question(asked[0].ID) != nil {
		t.Error("the question of an earlier step is still there")
	}
	version := n.Version
	enterAll(t, b, cluster.Event{Kind: cluster.Answered, Decision: asked[0].ID, Answer: &answer})
	if n.Asking() || n.Leveled != &answer || n.Asked.Answer != &answer || n.Asked.Stale || n.Version != version {
		t.Errorf("after the answer the node is %+v, %+v", n, n.Asked)
	}
	if got := b.Snapshot().Changes.Answered; len(got) != 1 || got[0] != 0 {
		t.Errorf("nodes %v are named", got)
	}
	if again := askAbout(t, b, 4, known(best)); len(again) != 1 || n.Leveled != &answer {
		t.Errorf("asked %+v after an answer, and has forgotten it: %v", again, n.Leveled == nil)
	}
}

// An answer about a node that has changed is not used; that no answer was found replaces none.
func TestUnusedAnswers(t *testing.T) {
	b, n := askingBook(t)
	good := cluster.Answer{Value: 2, Bound: 1, States: 9}
	for _, c := range []struct {
		name   string
		answer cluster.Answer
		change cluster.Event // before the answer
		words  string
		used   bool
	}{
		{"in time", good, cluster.Event{Kind: cluster.Woken}, "value 2, bound 1, gap 50 %, 9 states", true},
		{"changed", cluster.Answer{Proved: true}, cluster.Event{Kind: cluster.NodeMemory, Held: 5},
			"value 0, proved optimal, 0 states; not used, because the node changed while it was solved", false},
		{"none", cluster.Answer{Failed: "no schedule"}, cluster.Event{Kind: cluster.Woken}, "not solved: no schedule", false},
	} {
		asked := askAbout(t, b, 1, known(c.answer))
		if got := n.Asked.Words(); got != "being solved" {
			t.Errorf("%s: at first it is %q", c.name, got)
		}
		enterAll(t, b, c.change, cluster.Event{Kind: cluster.Answered, Decision: asked[0].ID, Answer: &c.answer})
		if used := n.Leveled == &c.answer; used != c.used || n.Asking() || n.Leveled.Value != good.Value {
			t.Errorf("%s: used: %v, and the last answer in use is %+v", c.name, used, n.Leveled)
		}
		if got := n.Asked.Words(); got != c.words {
			t.Errorf("%s: it is %q, want %q", c.name, got, c.words)
		}
	}
	asked := askAbout(t, b, 1, known(good))
	enterAll(t, b, cluster.Event{Kind: cluster.NodeLeft}, cluster.Event{Kind: cluster.Answered, Decision: asked[0].ID,
		Answer: &good})
	if n.Asked != nil || n.Leveled != nil {
		t.Errorf("a node that left has %+v", n.Asked)
	}
}

func TestWrongAnswers(t *testing.T) {
	b, n := askingBook(t)
	id := askAbout(t, b, 1, known{})[0].ID
	for _, c := range []struct {
		e    cluster.Event
		want string
	}{
		{cluster.Event{Decision: id}, "the answer is missing"},
		{cluster.Event{Decision: id, Node: 1, Answer: &cluster.Answer{}}, "never was in the cluster"},
		{cluster.Event{Decision: id, Node: -1, Answer: &cluster.Answer{}}, "never was in the cluster"},
		{cluster.Event{Decision: id + 1, Answer: &cluster.Answer{}}, "decision 2 is not its open question"},
		{cluster.Event{Decision: id, Answer: &cluster.Answer{Value: math.NaN()}}, "value NaN and bound 0: must be finite"},
		{cluster.Event{Decision: id, Answer: &cluster.Answer{Bound: math.Inf(-1)}}, "bound -Inf: must be finite"},
		{cluster.Event{Decision: id, Answer: &cluster.Answer{Bound: 1}}, "bound 1 of value 0"},
		{cluster.Event{Decision: id, Answer: &cluster.Answer{Value: 1, Proved: true}}, "bound 0 of value 1, proved true"},
		{cluster.Event{Decision: id, Answer: &cluster.Answer{States: -1}}, "states -1: must not be negative"},
		{cluster.Event{Decision: id,
			Answer: &cluster.Answer{Shifts: []cluster.Shift{{Task: cluster.TaskID{Job: 1, Index: 2}, From: 5, To: 5}}}},
			"shift of task 1.0.2 from 5ns to 5ns"},
	} {
		c.e.Kind = cluster.Answered
		if err := b.Enter(2, &c.e); err == nil || !strings.Contains(err.Error(), c.want) || !n.Asking() {
			t.Errorf("%+v: error is %v, want one with %q", c.e, err, c.want)
		}
		if c.e.Answer == nil || c.e.Answer.Check() == nil {
			continue
		}
		b2, _ := askingBook(t)
		if got := b2.Question(askAbout(t, b2, 1, known(*c.e.Answer))[0].ID).Solve(1); !strings.Contains(got.Failed,
			c.want) || got.Check() != nil {
			t.Errorf("a question is answered with %+v, want one that failed for %q", got, c.want)
		}
	}
	enterAll(t, b, cluster.Event{Kind: cluster.Answered, Decision: id, Answer: &cluster.Answer{}})
	if err := b.Enter(2, &cluster.Event{Kind: cluster.Answered, Decision: id, Answer: &cluster.Answer{}}); err == nil {
		t.Error("a question was answered twice")
	}
}

// asking follows the questions about nodes.
type asking map[cluster.NodeID]struct {
	id      cluster.DecisionID
	version uint64
}

func (a asking) add(s *Snapshot, decisions []cluster.Decision) {
	for _, d := range decisions {
		if d.Kind == cluster.Ask {
			a[d.Node] = struct {
				id      cluster.DecisionID
				version uint64
			}{d.ID, s.Nodes[d.Node].Asked.Version} // later decisions of the step may have changed the node
		}
	}
}

// answer checks whether an answer was accepted (err is nil): it must be to the open question of the node, or the node
// has left.
func (a asking) answer(t *rapid.T, s *Snapshot, e *cluster.Event, err error) {
	for id := range a {
		if s.Nodes[id].Gone {
			delete(a, id)
		}
	}
	if e.Kind != cluster.Answered || e.Answer == nil {
		return
	}
	here := e.Node >= 0 && int(e.Node) < len(s.Nodes)
	open, is := a[e.Node]
	is = is && open.id == e.Decision
	if accepts := here && (is || s.Nodes[e.Node].Gone); accepts != (err == nil) {
		t.Fatalf("%+v: %v, and the open question is %+v", e, err, open)
	}
	if !is {
		return
	}
	delete(a, e.Node)
	n := s.Nodes[e.Node]
	if n.Asked.Stale != (n.Version != open.version) || n.Asked.Stale == (n.Leveled == e.Answer) {
		t.Fatalf("%+v is used: %v; the node had version %d, and has %d", e, n.Leveled == e.Answer, open.version, n.Version)
	}
}
