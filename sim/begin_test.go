package sim

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

// foreseeable makes all estimates of a workload true, and lets the last job arrive after all others, at a time at
// which nothing else happens. What a task demands is within its grant, so that tasks do not slow each other down.
// Tasks of different stages do not end, or enter phases, together: a cluster as it was found does not tell which of
// them the policy would have heard of first.
func foreseeable(t *rapid.T, w *workload.Workload) (at timeline.Time) {
	at = timeline.Seconds(float64(rapid.IntRange(1, 120).Draw(t, "arrives"))) + 1
	apart := 3 * time.Nanosecond
	for i := range w.Jobs {
		j := &w.Jobs[i]
		j.After, j.Truth, j.Submitted = -1, nil, min(j.Submitted, at-1)
		for k := range j.Stages {
			s := &j.Stages[k]
			s.Duration += apart
			apart *= 2
			s.Phases, s.Elasticity.DiskRate = nil, 0
			s.Ideal[resource.Disk], s.Ideal[resource.Network] = 0, 0
			if rapid.IntRange(0, 3).Draw(t, "has phases") == 0 {
				s.Phases = []cluster.Phase{{Duration: s.Duration / 3, Demand: s.Ideal},
					{Duration: s.Duration - s.Duration/3, Demand: s.Ideal.With(resource.CPU, s.Ideal[resource.CPU]/2)}}
			}
		}
	}
	w.Jobs[len(w.Jobs)-1].Submitted = at
	return at
}

// playTo plays a simulation until shortly before a time.
func playTo(t *rapid.T, c Config, w *workload.Workload, p policy.Policy, at timeline.Time) *run {
	r, err := newRun(c, w, p)
	if err != nil {
		t.Fatal(err)
	}
	r.expect()
	r.protocol.begin()
	for {
		i, ok := r.agenda.pop()
		if !ok || i.at >= at {
			return r
		}
		if r.handle(i); r.err != nil {
			t.Fatal(r.err)
		}
	}
}

// A simulation that begins with a cluster as it was found goes on as that cluster would: every job ends when it would
// have, and a job that arrives starts and ends when it would have. prophet is left out: what it does depends on how
// long earlier jobs have waited.
func TestBeginGoesOnAsItWould(t *testing.T) {
	for _, name := range []string{"fifo", "fair", "drf", "srjf", "static", "capacity", "tetris", "yarn-me", "pufferfish",
		"contention-aware", "mira", "prism", "ecs"} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				made := func() policy.Policy {
					p, err := policy.New(name, nil)
					if err != nil {
						t.Fatal(err)
					}
					return p
				}
				c := Config{Nodes: Uniform(rapid.IntRange(1, 3).Draw(t, "nodes"),
					resource.Of(resource.Core*resource.Amount(rapid.IntRange(2, 6).Draw(t, "cores")),
						testGB*resource.Amount(rapid.IntRange(2, 6).Draw(t, "memory"))))}
				w := randomWorkload(t, c.Nodes[0].Capacity)
				at := foreseeable(t, w)
				whole, err := Run(c, w, made())
				if err != nil {
					t.Fatal(err)
				}
				before := playTo(t, c, &workload.Workload{Jobs: w.Jobs[:len(w.Jobs)-1]}, made(), at)
				c.Begin = &Begin{At: at, Found: before.engine.Snapshot().Inventory(at)}
				var rest workload.Workload
				for i := range w.Jobs {
					if _, here := before.engine.Snapshot().Job(w.Jobs[i].ID); here || i == len(w.Jobs)-1 {
						rest.Jobs = append(rest.Jobs, w.Jobs[i])
					}
				}
				again, err := Run(c, &rest, made())
				if err != nil {
					t.Fatal(err)
				}
				for i := range again.Jobs {
					got, want := &again.Jobs[i], &whole.Jobs[again.Jobs[i].ID-1]
					if got.Ended != want.Ended || got.Done != want.Done || got.Submitted == at && got.Started != want.Started {
						t.Fatalf("job %d: started %v, ended %v (%v), and in one go started %v, ended %v (%v)", got.ID, got.Started,
							got.Ended, got.Stuck, want.Started, want.Ended, want.Stuck)
					}
				}
			})
		})
	}
}

// What was told of a cluster is what the engine that was told of it tells.
func TestInventoryOfAnInventory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := randomCluster(t)
		w := randomWorkload(t, c.Nodes[0].Capacity)
		at := timeline.Seconds(float64(rapid.IntRange(0, 200).Draw(t, "at"))) + 1
		p := haphazard{seed: rapid.Uint64Range(0, 1000).Draw(t, "seed of the policy")}
		found := playTo(t, c, w, p, at).engine.Snapshot().Inventory(at)
		var here workload.Workload
		for i := range found {
			if j := found[i].NewJob; j != nil {
				here.Jobs = append(here.Jobs, w.Jobs[j.ID-1])
			}
		}
		c.Begin = &Begin{At: at, Found: found}
		r, err := newRun(c, &here, idle{})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := linesOf(t, r.engine.Snapshot().Inventory(at)), linesOf(t, found); !slices.Equal(got, want) {
			t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// linesOf returns events as texts, sorted: tasks that were launched together are in no particular order.
func linesOf(t *rapid.T, events []cluster.Event) (lines []string) {
	for i := range events {
		text, err := json.Marshal(&events[i])
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(text))
	}
	slices.Sort(lines)
	return lines
}

// A simulation ends at the time until which it is to go on, and says why a job has not ended.
func TestUntil(t *testing.T) {
	job := func(id cluster.JobID) workload.Job {
		return workload.Job{After: -1,
			Job: cluster.Job{ID: id, Name: "j",
				Stages: []cluster.Stage{{Name: "s", Tasks: 1, Ideal: resource.Of(resource.Core, testGB), Duration: time.Hour}}}}
	}
	p, err := policy.New("fifo", nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(Config{Nodes: Uniform(1, resource.Of(resource.Core, testGB)), Until: timeline.Time(90 * time.Minute)},
		&workload.Workload{Jobs: []workload.Job{job(1), job(2), job(3)}}, p)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Jobs[0].Done || r.Jobs[1].Done || r.Jobs[1].Tasks != 1 || r.Jobs[2].Tasks != 0 || r.Jobs[2].Stuck == "" {
		t.Errorf("%+v", r.Jobs)
	}
}

// idle decides nothing.
type idle struct{}

func (idle) Name() string                     { return "idle" }
func (idle) Traits() policy.Traits            { return policy.Traits{UnderSizes: true} }
func (idle) Decide(timeline.Time, *book.Plan) {}
