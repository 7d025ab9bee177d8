package policy

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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

// TestPoliciesOnlyRead: a policy changes a snapshot only by its decisions. A second book that receives the same events
// and repeats the decisions has the same contents afterwards.
func TestPoliciesOnlyRead(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				settings := map[string]string{"capacity.preemption": "true", "capacity.preemption-wait": "2ns",
					"capacity.preemption-interval": "1ns", "ecs.short": "false", "ecs.threshold": "0", "ecs.interval": "2ns",
					"ecs.suspension": "0.01", "prism.patience": "5ns"}
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
	decided, again := book.NewBook(p.Traits().Why), book.NewBook(nil)
	enter := func(now timeline.Time, e cluster.Event) {
		for _, b := range []*book.Book{decided, again} {
			if err := b.Enter(now, &e); err != nil {
				t.Fatal(err)
			}
		}
	}
	var answers []cluster.Event
	decide := func(now timeline.Time, plan, other *book.Plan) {
		p.Decide(now, plan)
		decisions, err := decided.Close()
		if err != nil {
			t.Fatal(err)
		}
		for i := range decisions {
			d := &decisions[i]
			if d.Kind == cluster.Ask {
				question := decided.Question(d.ID)
				other.Ask(other.Nodes[d.Node], question, d.Reason)
				answer := question.Solve(1000)
				answers = append(answers, cluster.Event{Kind: cluster.Answered, Node: d.Node, Answer: &answer})
				continue
			}
			take(other, d)
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
		enter(0, cluster.Event{Kind: cluster.NodeJoined,
			NewNode: &cluster.Node{ID: cluster.NodeID(i), Name: fmt.Sprintf("n%d", i),
				Capacity: resource.Of(4*resource.Core, 8*resource.GB)}})
	}
	enter(0, cluster.Event{Kind: cluster.Synced})
	decide(0, plan, other)
	for now := range timeline.Time(number("steps", 1, 30)) {
		plan, other = decided.Open(now), again.Open(now)
		for _, e := range answers {
			for _, b := range []*book.Book{decided, again} {
				e.Decision = b.Snapshot().Nodes[e.Node].Asked.Decision // Wakes and Waits are not repeated, so that numbers differ
				if err := b.Enter(now, &e); err != nil {
					t.Fatal(err)
				}
			}
		}
		answers = nil
		if e, ok := possibleEvent(t, decided.Snapshot(), now); ok {
			if e.Kind == cluster.JobSubmitted && p.Traits().ByPhase {
				for i := range e.NewJob.Stages {
					s := &e.NewJob.Stages[i]
					s.Ideal[resource.CPU] *= 3
					for range number("phases", 0, 3) {
						s.Phases = append(s.Phases, cluster.Phase{Duration: time.Duration(number("phase", 0, 9)),
							Demand: resource.Of(resource.Amount(number("cores", 0, 3))*resource.Core, 0)})
					}
				}
			}
			enter(now, e)
		}
		decide(now, plan, other)
	}
}

// take repeats a decision of another plan. Wakes and reasons leave no trace in text.
func take(p *book.Plan, d *cluster.Decision) {
	n := p.Nodes[d.Node]
	j, _ := p.Job(d.Task.Job)
	switch d.Kind {
	case cluster.Start:
		if d.ByPhase {
			p.StartPhased(j, int(d.Task.Stage), n, d.Grant, d.Reason)
		} else {
			p.StartWith(j, int(d.Task.Stage), n, d.Grant, d.Reason)
		}
	case cluster.Resize, cluster.Suspend, cluster.Resume:
		t := n.Tasks[slices.IndexFunc(n.Tasks, func(t *book.TaskState) bool { return t.ID == d.Task })]
		switch d.Kind {
		case cluster.Resize:
			p.Resize(t, d.Grant, d.Reason)
		case cluster.Suspend:
			p.SuspendUntil(t, d.At, d.For, d.Reason)
		default:
			p.Resume(t, cluster.HeldByLeveling, d.Reason)
		}
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
func text(s *book.Snapshot) string {
	out := fmt.Sprintln(s.Capacity, s.Running, s.Synced, len(s.Changes.Nodes), len(s.Changes.Jobs))
	for _, n := range s.Nodes {
		holder := cluster.JobID(-1)
		if n.ReservedFor != nil {
			holder = n.ReservedFor.ID
		}
		out += fmt.Sprintln(n.Node, n.Gone, n.Free, n.Paused, n.Doubtful, n.UnderSizedDisk, n.Held, holder, n.ReservedStage,
			n.Pressed, n.Version)
		var tasks []string
		for _, t := range n.Tasks {
			tasks = append(tasks, fmt.Sprintln(t.ID, t.Grant, t.Running, t.UnderSized, t.Steers, t.Killing, t.Preempting,
				t.Duration, t.Booked, t.Launched, t.Phase, t.PhaseSince, t.Suspended, t.SuspendedSince, t.SuspendedBy,
				t.SuspendedFor))
		}
		slices.Sort(tasks)
		out += fmt.Sprint(tasks)
	}
	for _, j := range s.Jobs {
		out += fmt.Sprintln(j.ID, j.Status, j.Progress, j.Used, len(j.Tasks), j.Steered, j.Reservations, j.Started, j.Version)
	}
	return out
}

// TestPoliciesDoNotSeeHeartbeats: the plan hides how nodes report, see Plan.Offers. The exceptions are those of
// decision 25. core/policy/resimulate plays the cluster forward, and with it the protocol.
func TestPoliciesDoNotSeeHeartbeats(t *testing.T) {
	exempt := map[string]func(file string) bool{
		".Heartbeats": func(file string) bool { return filepath.Dir(file) == "resimulate" },
		".AtOnce(":    startsWithOneOf("capacity", "fair"),
		".HeardOf(":   startsWithOneOf("fair"),
	}
	used := map[string]int{}
	files := 0
	err := fs.WalkDir(os.DirFS("."), ".", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			return err
		}
		files++
		source, err := os.ReadFile(file)
		for call, may := range exempt {
			switch uses := strings.Contains(string(source), call); {
			case uses && may(file):
				used[call]++
			case uses:
				t.Errorf("%s looks at %s", file, call)
			}
		}
		return err
	})
	if err != nil || files < 10 || len(used) < len(exempt) {
		t.Errorf("%d files use %v, %v", files, used, err)
	}
}

func startsWithOneOf(names ...string) func(string) bool {
	return func(file string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(file, name) })
	}
}
