package policy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"pgregory.net/rapid"
)

// watched is a yarn-me policy that stops under-sizing at some time, and from then on records at each decision when all
// jobs should end.
type watched struct {
	policy.Policy
	from    timeline.Time
	last    cluster.JobID // of the workload
	arrived cluster.JobID // so far
	stopped bool
	notes   []estimated
}

type estimated struct {
	now, horizon timeline.Time
	ends         map[cluster.JobID]timeline.Time // of the jobs that should end within the horizon
	open         []cluster.JobID
}

func (w *watched) Decide(now timeline.Time, p *book.Plan) {
	if len(p.Jobs) > 0 {
		w.arrived = max(w.arrived, p.Jobs[len(p.Jobs)-1].ID)
	}
	if now < w.from || w.arrived < w.last {
		w.Policy.Decide(now, p)
		return
	}
	if !w.stopped {
		policy.StopUnderSizing(w.Policy)
		w.stopped = true
	}
	policy.Estimate(w.Policy, now, p)
	note := estimated{now: now, horizon: now.Add(reach(p)), ends: map[cluster.JobID]timeline.Time{}}
	for _, j := range p.Jobs {
		note.open = append(note.open, j.ID)
		if j.Estimate.EndKnown {
			note.ends[j.ID] = j.Estimate.End
		}
	}
	w.notes = append(w.notes, note)
	w.Policy.Decide(now, p)
}

// reach is how far ahead the resimulation promises to look: the longest run time of a job's first queued task when
// under-sized, plus its ideal duration and a heartbeat.
func reach(p *book.Plan) time.Duration {
	longest := time.Duration(0)
	for _, j := range p.Jobs {
		for i := range j.Stages {
			if j.Progress[i].Pending > 0 && !j.Stages[i].Coordinator {
				longest = max(longest, time.Duration(float64(j.Stages[i].Duration)*(1+j.Stages[i].Elasticity.Worst())))
				break
			}
		}
	}
	return longest + p.Heartbeats.Every
}

// play is a random cluster with its workload.
type play struct {
	config sim.Config
	jobs   []workload.Job
	from   timeline.Time
	keep   bool // reservations
}

func (s *play) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "from %v reservations=%v heartbeat %v starts=%d coordinator %v %v\n", s.from, s.keep,
		s.config.Heartbeat, s.config.StartsPerHeartbeat, s.config.CoordinatorHeartbeat, s.config.Coordinator)
	for _, n := range s.config.Nodes {
		fmt.Fprintf(&out, "node %v\n", n.Capacity)
	}
	for _, j := range s.jobs {
		fmt.Fprintf(&out, "job %d at %v weight %v\n", j.ID, j.Submitted, j.Weight)
		for _, g := range j.Stages {
			fmt.Fprintf(&out, "  %d tasks after %v need %v (%d) for %v, %v\n", g.Tasks, g.Parents, g.Ideal, g.MinMemory,
				g.Duration, g.Elasticity)
		}
	}
	return out.String()
}

func drawPlay(t *rapid.T) *play {
	number := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(t, what) }
	s := &play{keep: rapid.Bool().Draw(t, "reservations")}
	for i := range number("nodes", 1, 4) {
		capacity := resource.Of(4*resource.Core, 10*resource.GB)
		if i > 0 {
			capacity = resource.Of(resource.Amount(number("cores", 1, 4))*resource.Core,
				resource.Amount(number("memory", 5, 10))*resource.GB)
		}
		s.config.Nodes = append(s.config.Nodes, cluster.Node{ID: cluster.NodeID(i), Name: fmt.Sprint("n", i+1),
			Capacity: capacity})
	}
	at := 0
	for i := range number("jobs", 1, 5) {
		at += number("pause", 0, 15)
		j := workload.Job{After: -1, Job: cluster.Job{ID: cluster.JobID(i + 1), Name: fmt.Sprint("J", i+1),
			Submitted: timeline.Seconds(float64(at)), Weight: float64(number("weight", 0, 2))}}
		for k := range number("stages", 1, 3) {
			g := cluster.Stage{Tasks: number("tasks", 1, 4), Duration: time.Duration(number("duration", 1, 30)) * time.Second,
				Ideal: resource.Of(resource.Amount(number("need cores", 0, 2))*resource.Core,
					resource.Amount(number("need memory", 1, 8))*resource.GB)}
			if number("elastic", 0, 1) == 1 {
				g.MinMemory, g.Elasticity = g.Ideal[resource.Memory]/10,
					cluster.Elasticity{Kind: cluster.Step, Factor: float64(number("factor", 2, 6)) / 2}
			}
			for p := range k {
				if number("parent", 0, 2) == 0 {
					g.Parents = append(g.Parents, p)
				}
			}
			j.Stages = append(j.Stages, g)
		}
		s.jobs = append(s.jobs, j)
	}
	s.from = timeline.Seconds(float64(at + number("later", 0, 60)))
	return s
}

// run returns what was estimated, and when each job really ended.
func (s *play) run(t *rapid.T) (*watched, map[cluster.JobID]timeline.Time) {
	inner, err := policy.New("yarn-me", map[string]string{"yarn-me.timeline": "resimulate", "yarn-me.gaps": "false",
		"yarn-me.reservations": fmt.Sprint(s.keep)})
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{Policy: inner, from: s.from, last: cluster.JobID(len(s.jobs))}
	res, err := sim.Run(s.config, &workload.Workload{Jobs: s.jobs}, w)
	if err != nil {
		t.Fatal(err)
	}
	ends := map[cluster.JobID]timeline.Time{}
	for _, j := range res.Jobs {
		if !j.Done {
			t.Fatalf("job %d does not end: %s\n%s", j.ID, j.Stuck, s)
		}
		ends[j.ID] = j.Ended
	}
	return w, ends
}

// TestResimulationComesTrue runs a cluster without elasticity and without new jobs, as the resimulation assumes. Each
// estimated end must come true, and each job that ends within the horizon must have an estimate.
func TestResimulationComesTrue(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawPlay(rt)
		w, ends := s.run(rt)
		for _, note := range w.notes {
			for _, id := range note.open {
				end, known := note.ends[id]
				switch {
				case known && end != ends[id]:
					rt.Fatalf("at %v job %d should end at %v, and ends at %v\n%s", note.now, id, end, ends[id], s)
				case !known && ends[id] <= note.horizon:
					rt.Fatalf("at %v the end of job %d is not known, but it is at %v, within the horizon %v\n%s", note.now, id,
						ends[id], note.horizon, s)
				}
			}
		}
	})
}
