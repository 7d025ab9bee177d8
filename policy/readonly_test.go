package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
	"pgregory.net/rapid"
)

// TestPoliciesOnlyRead: a policy changes a snapshot only by its decisions. A second book that receives the same events
// and repeats the decisions has the same contents afterwards.
func TestPoliciesOnlyRead(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				settings := map[string]string{"capacity.preemption": "true", "capacity.preemption-wait": "2ns", "capacity.preemption-interval": "1ns"}
				p, err := New(name, settings)
				if err != nil {
					t.Fatal(err)
				}
				livesByDecisions(t, p)
			})
		})
	}
}

func livesByDecisions(t *rapid.T, p Policy) {
	number := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(t, what) }
	decided, again := cluster.NewBook(p.Traits().Why), cluster.NewBook(nil)
	enter := func(now timeline.Time, e cluster.Event) {
		for _, b := range []*cluster.Book{decided, again} {
			if err := b.Enter(now, &e); err != nil {
				t.Fatal(err)
			}
		}
	}
	decide := func(now timeline.Time, plan, other *cluster.Plan) {
		p.Decide(now, plan)
		decisions, err := decided.Close()
		if err != nil {
			t.Fatal(err)
		}
		for i := range decisions {
			take(other, &decisions[i])
		}
		if _, err := again.Close(); err != nil {
			t.Fatal(err)
		}
		if got, want := text(decided.Snapshot()), text(again.Snapshot()); got != want {
			t.Fatalf("at %d, after\n%+v\nthe snapshot is\n%s\nwhich by the decisions would be\n%s", now, decisions, got, want)
		}
	}
	plan, other := decided.Open(0), again.Open(0)
	for i := range number("nodes", 1, 3) {
		enter(0, cluster.Event{Kind: cluster.NodeJoined, NewNode: &cluster.Node{ID: cluster.NodeID(i), Name: fmt.Sprintf("n%d", i), Capacity: resource.Of(4*resource.Core, 8*resource.GB)}})
	}
	enter(0, cluster.Event{Kind: cluster.Synced})
	decide(0, plan, other)
	for now := range timeline.Time(number("steps", 1, 30)) {
		plan, other = decided.Open(now), again.Open(now)
		if e, ok := possibleEvent(t, decided.Snapshot(), now); ok {
			enter(now, e)
		}
		decide(now, plan, other)
	}
}

// take repeats a decision of another plan. Wakes and reasons leave no trace in text.
func take(p *cluster.Plan, d *cluster.Decision) {
	n := p.Nodes[d.Node]
	j, _ := p.Job(d.Task.Job)
	switch d.Kind {
	case cluster.Start:
		p.StartWith(j, int(d.Task.Stage), n, d.Grant, d.Reason)
	case cluster.Reserve:
		p.Reserve(n, j, int(d.Task.Stage), d.Reason)
	case cluster.Unreserve:
		p.Unreserve(n, d.Reason)
	case cluster.Kill:
		for _, t := range n.Tasks {
			switch {
			case t.ID == d.Task && d.Preempt:
				p.Preempt(t, d.Reason)
			case t.ID == d.Task:
				p.Kill(t, d.Reason)
			}
		}
	}
}

// text prints what policies can see of a snapshot, except what they record there besides decisions: reasons, estimates,
// and marks for preemption.
func text(s *cluster.Snapshot) string {
	out := fmt.Sprintln(s.Capacity, s.Running, s.Synced, len(s.Changes.Nodes), len(s.Changes.Jobs))
	for _, n := range s.Nodes {
		holder := cluster.JobID(-1)
		if n.ReservedFor != nil {
			holder = n.ReservedFor.ID
		}
		out += fmt.Sprintln(n.Node, n.Gone, n.Free, n.Paused, n.Doubtful, n.UnderSizedDisk, n.Held, holder, n.ReservedStage, n.Pressed, n.Version)
		var tasks []string
		for _, t := range n.Tasks {
			tasks = append(tasks, fmt.Sprintln(t.ID, t.Grant, t.Running, t.UnderSized, t.Steers, t.Killing, t.Preempting, t.Duration, t.Booked, t.Launched,
				t.Phase, t.PhaseSince, t.Still, t.StillSince, t.StillBy, t.Stood))
		}
		slices.Sort(tasks)
		out += fmt.Sprint(tasks)
	}
	for _, j := range s.Jobs {
		out += fmt.Sprintln(j.ID, j.Status, j.Progress, j.Used, len(j.Tasks), j.Steered, j.Reservations, j.Started, j.Version)
	}
	return out
}

// TestPoliciesDoNotSeeHeartbeats: the plan hides how nodes report, see Plan.Offers.
func TestPoliciesDoNotSeeHeartbeats(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 10 {
		t.Fatalf("files are %v, %v", files, err)
	}
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, "_test.go") && strings.Contains(string(source), ".Heartbeats") {
			t.Errorf("%s looks at heartbeats", name)
		}
	}
}
