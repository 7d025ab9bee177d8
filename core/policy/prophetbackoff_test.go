package policy

import (
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"pgregory.net/rapid"
)

// slowBackoff is the twin of backoff.
type slowBackoff struct {
	lasts time.Duration
	turns bool
	told  bool // tasks without a forecast are left alone
}

func (s slowBackoff) relieve(now timeline.Time, p *book.Plan) {
	for _, id := range p.Changes.Pressed {
		n := p.Nodes[id]
		if s.lasts == 0 || n.Gone || n.Pressed == (resource.Vector{}) {
			continue
		}
		tasks := slices.DeleteFunc(slices.Clone(n.Tasks), func(t *book.TaskState) bool {
			return !t.Running || t.Killing || t.Suspended || s.told && t.Stage().Phases == nil
		})
		most := make([]resource.Vector, len(tasks))
		for _, k := range rates {
			if n.Pressed[k] > 0 && !n.Unknown.Has(k) {
				for i, bound := range s.bounds(now, n, k, tasks) {
					most[i][k] = bound
				}
			}
		}
		for i, t := range tasks {
			before, throttled := t.Bounded(now)
			if most[i] == (resource.Vector{}) && !(throttled && s.turns) {
				continue
			}
			for _, k := range rates {
				if throttled && n.Pressed[k] == 0 {
					most[i][k] = before.Most[k]
				}
			}
			p.Throttle(t, most[i], now.Add(s.lasts), cluster.BecauseNodePressure(rates[0], 0, 0))
		}
	}
}

// bounds returns what each of the tasks may use of a resource; 0 is no bound.
func (s slowBackoff) bounds(now timeline.Time, n *book.NodeState, k resource.Kind,
	tasks []*book.TaskState) []resource.Amount {
	demands, sum := make([]resource.Amount, len(tasks)), resource.Amount(0)
	for i, t := range tasks {
		end, known := t.UsualEnd(now)
		for _, d := range foreseen(t, end, known) {
			if d.from <= now && now < d.until {
				demands[i] += d.demand[k]
			}
		}
		if s.turns && demands[i] == 0 && t.Stage().Phases == nil {
			demands[i] = n.Capacity[k]
		}
		sum += demands[i]
	}
	if s.turns {
		return slowTurns(now, n.Capacity[k], sum, demands, tasks)
	}
	return slowShares(n.Capacity[k], sum, demands)
}

// slowTurns lets those go on that have waited longest, as long as they demand no more than there is, and than half of
// all; at least one.
func slowTurns(now timeline.Time, capacity, sum resource.Amount, demands []resource.Amount,
	tasks []*book.TaskState) []resource.Amount {
	most, left := make([]resource.Amount, len(tasks)), min(capacity, sum/2)
	for served := range tasks {
		next := -1
		for i, t := range tasks {
			if demands[i] > 0 && (next < 0 || t.ThrottledFor(now) > tasks[next].ThrottledFor(now)) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		if served == 0 || demands[next] <= left {
			left -= demands[next]
		} else {
			most[next] = max(1, capacity/200)
		}
		demands[next] = 0
	}
	return most
}

// slowShares bounds the largest demands to the largest level at which all demands are met, or gives what is left to
// all alike.
func slowShares(capacity, sum resource.Amount, demands []resource.Amount) []resource.Amount {
	most := make([]resource.Amount, len(demands))
	level := sort.Search(int(capacity), func(level int) bool { // the first that is too much, less one
		used := resource.Amount(0)
		for _, d := range demands {
			used += min(d, resource.Amount(level+1))
		}
		return used > capacity
	})
	for i, d := range demands {
		switch {
		case sum <= capacity:
			most[i] = max(1, d+(capacity-sum)/resource.Amount(len(demands)))
		case d > resource.Amount(level):
			most[i] = max(1, resource.Amount(level))
		}
	}
	return most
}

// pressure is an event about what a node gives, or an answer to a throttle; the decision to be answered is that of
// the snapshot.
func pressure(t *rapid.T, s *book.Snapshot) (e cluster.Event, ok bool) {
	number := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(t, what) }
	for _, n := range s.Nodes {
		for _, task := range n.Tasks {
			if th := task.Throttled; th != nil && !th.InForce && !th.Failed && number("answered", 0, 2) == 0 {
				return cluster.Event{Kind: rapid.SampledFrom([]cluster.EventKind{cluster.DecisionDone,
					cluster.DecisionFailed}).Draw(t, "answer"), Task: task.ID, Decision: th.Decision}, true
			}
		}
	}
	gives := resource.Vector{}
	for _, k := range rates {
		gives[k] = resource.Amount(number("gives", 0, 2)) * 30 * resource.MB
	}
	n := s.Nodes[number("pressed", 0, len(s.Nodes)-1)]
	return cluster.Event{Kind: cluster.NodePressed, Node: n.ID, Found: &cluster.Condition{Bound: gives}}, !n.Gone
}

// Bounds meet the capacity exactly, up to what the division into whole bytes leaves, and bound nobody below anybody
// else.
func TestBackoffShares(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var b backoff
		capacity, sum := resource.Amount(1+r.Int64N(1000)), resource.Amount(0)
		for range 1 + r.IntN(6) {
			d := demand{of: resource.Vector{}.With(resource.Disk, resource.Amount(r.Int64N(600)))}
			sum += d.of[resource.Disk]
			b.demands = append(b.demands, d)
		}
		b.share(resource.Disk, capacity)
		used, least := resource.Amount(0), capacity
		for _, d := range b.demands {
			is, most := d.of[resource.Disk], d.most[resource.Disk]
			switch {
			case most == 0 && sum <= capacity:
				t.Fatalf("of %d, demands of %d: a task is not bounded", capacity, sum)
			case most == 0:
				most = is
			case sum > capacity:
				least = min(least, most)
			}
			used += most
		}
		if slack := resource.Amount(len(b.demands)); used > capacity+slack || used < capacity-slack {
			t.Fatalf("of %d, demands of %d may use %d: %+v", capacity, sum, used, b.demands)
		}
		for _, d := range b.demands {
			if sum > capacity && d.most[resource.Disk] == 0 && d.of[resource.Disk] > least {
				t.Fatalf("a task of %d is not bounded, another is bounded to %d", d.of[resource.Disk], least)
			}
		}
	}
}

// In turns, those go on without a bound that have waited longest, as far as they demand no more than there is and
// than half of all, but at least one; nobody who demands nothing waits.
func TestBackoffTurns(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		var b backoff
		capacity, sum := resource.Amount(200+r.Int64N(1000)), resource.Amount(0)
		job := &book.JobState{Job: &cluster.Job{Stages: []cluster.Stage{{Phases: []cluster.Phase{{Duration: time.Second}}}}}}
		for range 1 + r.IntN(6) {
			d := demand{task: &book.TaskState{Job: job}, waited: time.Duration(r.IntN(3)),
				of: resource.Vector{}.With(resource.Disk, max(0, resource.Amount(r.Int64N(600)-100)))}
			sum += d.of[resource.Disk]
			b.demands = append(b.demands, d)
		}
		b.takeTurns(resource.Disk, capacity)
		goOn, used, most, largest := 0, resource.Amount(0), time.Duration(-1), time.Duration(-1)
		for _, d := range b.demands {
			is := d.of[resource.Disk]
			switch bound := d.most[resource.Disk]; {
			case is == 0 && bound > 0:
				t.Fatalf("who demands nothing may use %d", bound)
			case is > 0 && bound == 0:
				goOn, used, most = goOn+1, used+is, max(most, d.waited)
			case is > 0 && bound != capacity/crawl:
				t.Fatalf("of %d a task may use %d while it waits", capacity, bound)
			}
			if is > 0 {
				largest = max(largest, d.waited)
			}
		}
		if sum > 0 && (goOn == 0 || goOn > 1 && used > min(capacity, sum/2)) || most != largest {
			t.Fatalf("of %d, %d tasks that demand %d go on: %+v", capacity, goOn, used, b.demands)
		}
	}
}

// A pressed node has the tasks with the largest demands throttled, for as long as the setting says; a relieved node,
// and a policy without back-off, nobody.
func TestBackoff(t *testing.T) {
	for _, c := range []struct {
		settings map[string]string
		pressed  resource.Amount
		want     []resource.Amount
	}{
		{nil, 60 * resource.MB, []resource.Amount{500 * resource.KB}},
		{map[string]string{"prophet.relief": "share"}, 60 * resource.MB, []resource.Amount{80 * resource.MB}},
		{map[string]string{"prophet.backoff": "0s"}, 60 * resource.MB, nil},
		{nil, 0, nil},
	} {
		p, err := New("prophet", c.settings)
		if err != nil {
			t.Fatal(err)
		}
		b := book.NewBook(p.Traits().Why)
		enter := func(now timeline.Time, events ...cluster.Event) []cluster.Decision {
			plan := b.Open(now)
			for i := range events {
				if err := b.Enter(now, &events[i]); err != nil {
					t.Fatal(err)
				}
			}
			p.Decide(now, plan)
			decisions, err := b.Close()
			if err != nil {
				t.Fatal(err)
			}
			return append([]cluster.Decision(nil), decisions...)
		}
		job := func(id cluster.JobID, disk resource.Amount) cluster.Event {
			need := resource.Of(resource.Core, resource.GiB)
			return cluster.Event{Kind: cluster.JobSubmitted,
				NewJob: &cluster.Job{ID: id,
					Stages: []cluster.Stage{{Tasks: 1, Ideal: need,
						Phases: []cluster.Phase{{Duration: time.Minute, Demand: need.With(resource.Disk, disk)}}}}}}
		}
		has := resource.Of(4*resource.Core, 4*resource.GiB).With(resource.Disk, 100*resource.MB)
		var launched []cluster.Event
		for _, d := range enter(0, cluster.Event{Kind: cluster.NodeJoined, NewNode: &cluster.Node{Name: "n", Capacity: has}},
			cluster.Event{Kind: cluster.Synced}, job(1, 20*resource.MB), job(2, 150*resource.MB)) {
			if d.Kind == cluster.Start {
				launched = append(launched, cluster.Event{Kind: cluster.DecisionDone, Decision: d.ID, Task: d.Task})
			}
		}
		enter(1, launched...)
		var got []resource.Amount
		for _, d := range enter(timeline.Seconds(2),
			cluster.Event{Kind: cluster.NodePressed,
				Found: &cluster.Condition{Bound: resource.Vector{}.With(resource.Disk, c.pressed)}}) {
			if d.Kind != cluster.Throttle || d.Task.Job != 2 || d.At != timeline.Seconds(7) ||
				d.Reason.Code != cluster.NodePressure {
				t.Errorf("decided %+v", d)
			}
			got = append(got, d.Bound[resource.Disk])
		}
		if len(launched) != 2 || len(got) != len(c.want) || len(got) > 0 && got[0] != c.want[0] {
			t.Errorf("settings %v, pressure %d: %d launched, bounds %v, want %v", c.settings, c.pressed, len(launched), got,
				c.want)
		}
	}
}
