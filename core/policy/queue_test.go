package policy

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy/queue"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"pgregory.net/rapid"
)

// TestQueueIsSorted compares, after each decision of a random run with failures, the incrementally updated queue with
// one that is built and sorted anew.
func TestQueueIsSorted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		number := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(rt, what) }
		name := rapid.SampledFrom([]string{"fair", "yarn-me"}).Draw(rt, "policy")
		p, err := New(name, map[string]string{name + ".reservations": rapid.SampledFrom([]string{"true", "false"}).Draw(rt,
			"reservations")})
		if err != nil {
			rt.Fatal(err)
		}
		b := book.NewBook(nil)
		s := b.Snapshot()
		step := func(now timeline.Time, events ...cluster.Event) {
			plan := b.Open(now)
			for i := range events {
				if err := b.Enter(now, &events[i]); err != nil {
					rt.Fatal(err)
				}
			}
			p.Decide(now, plan)
			sorted(rt, p, s)
			if _, err := b.Close(); err != nil {
				rt.Fatal(err)
			}
		}
		var boot []cluster.Event
		for i := range number("nodes", 1, 3) {
			boot = append(boot, cluster.Event{Kind: cluster.NodeJoined,
				NewNode: &cluster.Node{ID: cluster.NodeID(i), Capacity: resource.Of(4*resource.Core, 8*resource.GB)}})
		}
		step(0, append(boot, cluster.Event{Kind: cluster.Synced})...)
		for now := range timeline.Time(number("steps", 1, 60)) {
			if e, ok := possibleEvent(rt, s, now); ok {
				step(now, e)
			}
		}
	})
}

// possibleEvent draws an event that is possible now.
func possibleEvent(t *rapid.T, s *book.Snapshot, now timeline.Time) (e cluster.Event, ok bool) {
	number := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(t, what) }
	var tasks []*book.TaskState
	for _, n := range s.Nodes {
		tasks = append(tasks, n.Tasks...)
	}
	switch kind := number("event", 0, 11); {
	case kind <= 2:
		job := &cluster.Job{ID: cluster.JobID(now + 1), Submitted: now - timeline.Time(number("age", 0, 2)),
			Weight: float64(number("weight", 0, 3)), MaxAttempts: 2}
		for k := range number("stages", 1, 2) {
			g := cluster.Stage{Tasks: number("tasks", 1, 4),
				Ideal: resource.Of(resource.Core, resource.Amount(number("memory", 1, 8))*resource.GB), Duration: 10}
			if k > 0 && number("barrier", 0, 1) == 1 {
				g.Parents = []int{0}
			}
			job.Stages = append(job.Stages, g)
		}
		return cluster.Event{Kind: cluster.JobSubmitted, NewJob: job}, true
	case kind == 3 && len(s.Jobs) > 0:
		return cluster.Event{Kind: cluster.JobCancelled, Job: s.Jobs[number("job", 0, len(s.Jobs)-1)].ID}, true
	case kind == 4 && len(s.Nodes) > 1 && !s.Nodes[1].Gone:
		return cluster.Event{Kind: cluster.NodeLeft, Node: 1}, true
	case kind >= 10:
		n := s.Nodes[number("reporting", 0, len(s.Nodes)-1)]
		held := resource.Amount(number("held", 0, 10)) * resource.GB
		return cluster.Event{Kind: map[int]cluster.EventKind{10: cluster.NodeMemory, 11: cluster.NodeLeftover}[kind],
			Node: n.ID, Held: held}, !n.Gone
	case len(tasks) > 0:
		task := tasks[number("task", 0, len(tasks)-1)]
		if !task.Running && kind < 8 {
			return cluster.Event{Kind: cluster.DecisionDone, Task: task.ID}, true
		}
		return cluster.Event{Kind: cluster.TaskEnded, Task: task.ID, Outcome: cluster.Outcome(number("outcome", 1, 5))}, true
	}
	return e, false
}

func sorted(t *rapid.T, p Policy, s *book.Snapshot) {
	t.Helper()
	var q *fairQueue
	switch p := p.(type) {
	case *fair:
		q = &p.queue
	case *yarnME:
		q = &p.queue
	}
	var want []queued
	for _, j := range s.Jobs {
		e := queue.EntryOf(j, fairKey(j), struct{}{})
		_, runnable := j.NextStage()
		if runnable {
			want = append(want, e)
		}
		if filed, ok := q.As(j); ok != runnable || ok && filed != e {
			t.Fatalf("job %d is filed as %v, %v, want %v, %v", j.ID, filed, ok, e, runnable)
		}
	}
	slices.SortFunc(want, queued.Compare)
	if !slices.Equal(q.Jobs, want) {
		t.Fatalf("the queue is %v, want %v", q.Jobs, want)
	}
}

// TestSettings checks that errors name the wrong setting.
func TestSettings(t *testing.T) {
	for _, c := range []struct {
		policy, key, value, want string
	}{
		{"fair", "fair.reservations", "false", ""},
		{"fair", "yarn-me.granularity", "1MB", ""}, // a setting of another policy is ignored
		{"yarn-me", "yarn-me.interval", "2s", ""},
		{"best", "fair.gaps", "true", `policy "best": must be one of `},
		{"fair", "fair.reservation", "true", `setting "fair.reservation": must be one of fair.reservations, fair.gaps`},
		{"fair", "best.gaps", "true", `setting "best.gaps": must be POLICY.NAME`},
		{"fifo", "fifo.order", "x", `setting "fifo.order": policy fifo has no settings`},
		{"fair", "fair.reservations", "perhaps", `setting fair.reservations="perhaps": must be true or false`},
		{"fair", "fair.gaps", "perhaps", `setting fair.gaps="perhaps": must be one of`},
		{"yarn-me", "yarn-me.timeline", "none", `setting yarn-me.timeline="none": must be one of sum, resimulate`},
		{"yarn-me", "yarn-me.granularity", "0B", `must be a positive amount of memory`},
		{"yarn-me", "yarn-me.granularity", "1", `must be a positive amount of memory`},
		{"yarn-me", "yarn-me.disk-share", "1.1", `must be a number from 0 to 1`},
		{"yarn-me", "yarn-me.disk-share", "NaN", `must be a number from 0 to 1`},
		{"yarn-me", "yarn-me.interval", "0s", `must be a positive duration`},
		{"yarn-me", "yarn-me.interval", "87600h", ""},
		{"yarn-me", "yarn-me.interval", "87601h",
			`setting yarn-me.interval="87601h": must be a positive duration such as 1s, up to 87600h0m0s`},
		{"mira", "mira.keep", "0s",
			`setting mira.keep="0s": must be one of none, next, or a positive duration such as 1s, up to 87600h0m0s`},
		{"prophet", "prophet.backoff", "9999999h",
			`setting prophet.backoff="9999999h": must be a duration such as 1s, up to 87600h0m0s, or 0s for never`},
	} {
		p, err := New(c.policy, map[string]string{c.key: c.value})
		if c.want == "" && (err != nil || p.Name() != c.policy) || c.want != "" &&
			(err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s %s=%s: error is %v, want %q", c.policy, c.key, c.value, err, c.want)
		}
	}
	for _, name := range Names() {
		about, parameters := About(name)
		if about == "" {
			t.Errorf("policy %s says nothing of itself", name)
		}
		for i, p := range parameters {
			if p.Meaning == "" {
				t.Errorf("parameter %s: must have a meaning", p.Name)
			}
			if slices.ContainsFunc(parameters[:i], func(other Parameter) bool { return other.Name == p.Name }) {
				t.Errorf("parameter %s: is declared twice", p.Name)
			}
			if _, err := New(name, map[string]string{p.Name: p.Default}); err != nil {
				t.Errorf("the default of %s: %v", p.Name, err)
			}
		}
	}
}

// TestBestSizes compares the table of sizes with trying every multiple of the granularity.
func TestBestSizes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ideal := resource.Amount(rapid.IntRange(1, 60).Draw(rt, "ideal"))
		stage := &cluster.Stage{Ideal: resource.Of(1, ideal),
			MinMemory: resource.Amount(rapid.IntRange(1, int(ideal)).Draw(rt, "least")), Duration: 1000 * time.Second,
			Elasticity: cluster.Elasticity{Kind: rapid.SampledFrom([]cluster.ElasticityKind{cluster.Step, cluster.SawTooth,
				cluster.SawToothTable}).Draw(rt, "kind"), Factor: 3}}
		granularity := resource.Amount(rapid.IntRange(1, 9).Draw(rt, "granularity"))
		free := resource.Amount(rapid.IntRange(0, 70).Draw(rt, "free"))
		var want resource.Amount
		var least time.Duration
		for m := granularity; m < ideal && m <= free; m += granularity {
			if d := stage.Elasticity.Duration(stage.Duration, ideal, m); m >= stage.MinMemory && (want == 0 || d < least) {
				want, least = m, d
			}
		}
		largest := free + resource.Amount(rapid.IntRange(0, 30).Draw(rt, "more"))
		got, d, ok := newBestSizes(stage, granularity, largest).within(free)
		if ok != (want > 0) || got != want || d != least {
			rt.Fatalf("best of %d with %v: %d for %v (%v), want %d for %v", free, stage.Elasticity, got, d, ok, want, least)
		}
	})
}

// The number of sizes and the largest size are bounded, and no sum of sizes overflows.
func TestBestSizesAreBounded(t *testing.T) {
	for _, tt := range []struct{ ideal, least, granularity, largest resource.Amount }{
		{8000 * 1024 * resource.TiB, 64 * resource.MiB, 100 * resource.MB, 2 * resource.GiB},
		{math.MaxInt64, 1, 100 * resource.MB, 2 * resource.GiB},
		{math.MaxInt64, 1, 1, math.MaxInt64},
		{math.MaxInt64, math.MaxInt64 - 1, 100 * resource.MB, math.MaxInt64},
		{math.MaxInt64, 2, math.MaxInt64 - 1, math.MaxInt64},
		{resource.GiB, 1, math.MaxInt64, resource.GiB},
		{resource.GiB, 1, 1, resource.TiB},
		{1, 1, 1, 1},
	} {
		stage := &cluster.Stage{Ideal: resource.Of(1, tt.ideal), MinMemory: tt.least, Duration: cluster.LongestTime,
			Elasticity: cluster.Elasticity{Kind: cluster.SawTooth, Factor: cluster.MostSlowdown}}
		b := newBestSizes(stage, tt.granularity, tt.largest)
		if len(b.sizes) > 2*mostSizes {
			t.Errorf("%+v: %d sizes", tt, len(b.sizes))
		}
		for i, m := range b.sizes {
			if m < tt.least || m > tt.largest || m >= tt.ideal || m%tt.granularity != 0 || i > 0 && m <= b.sizes[i-1] {
				t.Fatalf("%+v: sizes are %v", tt, b.sizes[:i+1])
			}
		}
		if m, _, ok := b.within(tt.largest); ok != (len(b.sizes) > 0) || m > tt.largest {
			t.Errorf("%+v: best is %d, %v", tt, m, ok)
		}
	}
}
