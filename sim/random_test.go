package sim

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"time"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

const (
	testMB = resource.MB
	testGB = resource.GB
)

// haphazard is a policy that is arbitrary but deterministic: it gives tasks any memory that they may have, and
// sometimes kills or preempts a task. With an odd seed it looks ahead, and may throttle and resize tasks and hold
// them for a while.
type haphazard struct {
	seed               uint64
	throttles, resizes bool
}

func (haphazard) Name() string { return "haphazard" }

func (h haphazard) Traits() policy.Traits {
	return policy.Traits{UnderSizes: true, LooksAhead: h.seed%2 == 1}
}

func (h haphazard) draw(of ...any) uint64 {
	f := fnv.New64a()
	fmt.Fprint(f, h.seed, of)
	return f.Sum64()
}

func (h haphazard) Decide(now timeline.Time, p *book.Plan) {
	for _, n := range p.Nodes {
		if now > timeline.Seconds(60) { // otherwise it would never let a long task end
			break
		}
		for _, t := range n.Tasks {
			switch h.draw("end", now, t.ID, t.Decision) % 40 {
			case 0:
				p.Kill(t, cluster.BecauseFits(0))
			case 3, 4, 5, 6, 7, 8:
				_, already := t.Bounded(now)
				if bound := h.draw("bound", now, t.ID) % 3; h.throttles && h.Traits().LooksAhead && t.Running && !already {
					v := resource.Vector{}.With(resource.Disk, resource.Amount(bound*20)*testMB).With(resource.Network,
						resource.Amount(bound*30)*testMB)
					p.Throttle(t, v, now.Add(time.Duration(1+h.draw("until", now, t.ID)%5)*time.Second), cluster.BecauseFits(0))
				}
			case 9, 10, 11, 12:
				if h.throttles && h.Traits().LooksAhead && t.Running {
					p.SuspendUntil(t, now.Add(time.Duration(1+h.draw("held until", now, t.ID)%9)*time.Second), cluster.TaskID{},
						cluster.BecauseFits(0))
				}
			case 13:
				if t.Running {
					p.Resume(t, cluster.HeldByLeveling, cluster.BecauseFits(0))
				}
			case 14, 15, 16, 17, 18, 19:
				// or it would go on for ever
				if h.resizes && t.Running && !t.Steers && (t.Resized == nil || t.Resized.Since < now) {
					want := t.Grant
					want[resource.CPU] = min(resource.Amount(200+h.draw("cpus", now, t.ID)%4000), n.Capacity[resource.CPU])
					if change := h.draw("bytes", now, t.ID) % 3; change > 0 {
						want[resource.Memory] = t.Stage().Ideal[resource.Memory] / 2 * resource.Amount(1+h.draw("factor", now, t.ID)%4)
						want[resource.Memory] = min(want[resource.Memory], cmp.Or(t.Stage().MaxMemory, resource.MostMemory),
							t.Grant[resource.Memory]+max(0, n.Unused()[resource.Memory]))
					}
					p.Resize(t, want, cluster.BecauseFits(0))
				}
			case 1, 2:
				if !t.Job.Stages[t.ID.Stage].Coordinator {
					p.Preempt(t, cluster.BecauseFits(0))
				}
			}
		}
	}
	for _, j := range p.Jobs {
		for stage, ok := j.NextStage(); ok; stage, ok = j.NextStage() {
			s := &j.Stages[stage]
			need := s.Ideal
			if s.Elastic() && h.draw("size", now, j.ID)%2 == 0 {
				need[resource.Memory] = s.MinMemory +
					resource.Amount(h.draw("memory", now, j.ID))%(s.Ideal[resource.Memory]-s.MinMemory)
				need[resource.Memory] = max(need[resource.Memory], s.MinMemory)
			}
			n, fits := p.FirstFit(need)
			if !fits {
				break
			}
			p.Start(j, stage, n, need[resource.Memory], cluster.BecauseFits(0))
		}
	}
}

// randomCluster draws equal nodes, and their properties.
func randomCluster(t *rapid.T) Config {
	capacity := resource.Vector{resource.Core * resource.Amount(rapid.IntRange(2, 6).Draw(t, "cores")),
		testGB * resource.Amount(rapid.IntRange(2, 6).Draw(t, "memory")),
		testMB * rapid.SampledFrom([]resource.Amount{0, 50, 100}).Draw(t, "disk"),
		testMB * rapid.SampledFrom([]resource.Amount{0, 60, 120}).Draw(t, "network")}
	c := Config{Nodes: Uniform(rapid.IntRange(1, 3).Draw(t, "nodes"), capacity), KeepTasks: true}
	c.Caps = rapid.SampledFrom([]resource.Kinds{0, resource.KindsOf(resource.CPU), resource.KindsOf(contended...)}).Draw(
		t, "caps")
	kind := rapid.SampledFrom(Machines()).Draw(t, "machine")
	c.Machine, _ = MachineOf(kind)
	if len(c.Machine.Paging) > 0 && rapid.Bool().Draw(t, "swaps") {
		c.Machine.Swap = 1000 * testGB
	}
	return c
}

// randomProtocol adds how work is acquired, and external incidents.
func randomProtocol(t *rapid.T, c *Config, jobs int) {
	switch rapid.IntRange(0, 5).Draw(t, "protocol") {
	case 0:
		c.Heartbeat = time.Second
	case 1, 2:
		c.Heartbeat, c.CoordinatorHeartbeat = time.Second, time.Second
		c.StartsPerHeartbeat = rapid.IntRange(0, 1).Draw(t, "starts per heartbeat")
	case 3:
		YARN().Apply(c)
	case 4:
		Bellows().Apply(c)
	}
	c.ResizeDelay = rapid.SampledFrom([]time.Duration{0, 0, ECSResizeDelay, 3 * time.Second}).Draw(t, "resize delay")
	c.KillDelay = time.Duration(rapid.IntRange(0, 3).Draw(t, "kill delay")) * time.Second
	here := len(c.Nodes)
	for i, id := 0, 0; i < rapid.IntRange(0, 4).Draw(t, "incidents"); i++ {
		in := Incident{At: time.Duration(i*25+rapid.IntRange(0, 20).Draw(t, "at")) * time.Second}
		switch in.Kind = rapid.SampledFrom([]IncidentKind{NodeLoss, NodeJoin, JobCancel}).Draw(t, "incident"); {
		case in.Kind == NodeLoss && here > 1:
			in.Node = cluster.NodeID(id)
			id++
			here--
		case in.Kind == JobCancel:
			in.Job = cluster.JobID(rapid.IntRange(1, jobs+1).Draw(t, "cancelled"))
		default:
			in.Kind, in.New = NodeJoin, c.Nodes[0]
			here++
		}
		c.Incidents = append(c.Incidents, in)
	}
}

// randomWorkload draws jobs whose tasks fit on the nodes, with a truth that may not fit.
func randomWorkload(t *rapid.T, capacity resource.Vector) *workload.Workload {
	w := &workload.Workload{}
	retries := rapid.Bool().Draw(t, "pauses between attempts")
	for i := range rapid.IntRange(1, 4).Draw(t, "jobs") {
		j := workload.Job{After: -1, Job: cluster.Job{ID: cluster.JobID(i + 1), Name: fmt.Sprint("job", i+1),
			Submitted:   timeline.Seconds(float64(rapid.IntRange(0, 60).Draw(t, "submitted"))),
			MaxAttempts: rapid.IntRange(0, 4).Draw(t, "attempts")}}
		if retries {
			j.RetryDelay = time.Duration(rapid.IntRange(0, 20_000).Draw(t, "retry delay")) * time.Millisecond
		}
		if i > 0 && rapid.IntRange(0, 4).Draw(t, "waits") == 0 {
			j.After = i - 1
		}
		for s := range rapid.IntRange(1, 2).Draw(t, "stages") {
			stage, truth := randomStage(t, capacity)
			if s > 0 && rapid.Bool().Draw(t, "barrier") {
				stage.Parents = []int{s - 1}
			}
			j.Stages, j.Truth = append(j.Stages, stage), append(j.Truth, truth)
		}
		w.Jobs = append(w.Jobs, j)
	}
	return w
}

func randomStage(t *rapid.T, capacity resource.Vector) (cluster.Stage, workload.StageTruth) {
	seconds := func(name string, most int) time.Duration {
		return time.Duration(rapid.IntRange(1, most*1000).Draw(t, name)) * time.Millisecond
	}
	amount := func(name string, least, most resource.Amount) resource.Amount {
		return resource.Amount(rapid.Int64Range(int64(least), int64(most)).Draw(t, name))
	}
	s := cluster.Stage{Tasks: rapid.IntRange(1, 4).Draw(t, "tasks"), Duration: seconds("duration", 60),
		Ideal: resource.Vector{amount("cpus", 500, 2000), amount("ideal memory", testGB/2, 2*testGB)}}
	for _, k := range []resource.Kind{resource.Disk, resource.Network} {
		if capacity[k] > 0 && rapid.Bool().Draw(t, "estimates "+k.String()) {
			s.Ideal[k] = amount(k.String(), testMB, capacity[k]) // with a cap of less, a phase could take years
		}
	}
	if rapid.Bool().Draw(t, "elastic") {
		s.MinMemory = s.Ideal[resource.Memory] / 4
		s.Elasticity = cluster.Elasticity{Kind: cluster.SawTooth, Factor: 2.5, DiskRate: amount("disk rate", 0, 40*testMB)}
	}
	var truth workload.StageTruth
	phases := func() []cluster.Phase {
		var list []cluster.Phase
		for range rapid.IntRange(1, 4).Draw(t, "phases") {
			list = append(list, cluster.Phase{Duration: seconds("phase", 30) - time.Millisecond,
				Demand: resource.Vector{amount("true cpus", 0, 3000), amount("working set", 0, 2*testGB),
					amount("true disk", 0, 80*testMB), amount("true network", 0, 80*testMB)}})
		}
		return list
	}
	switch rapid.IntRange(0, 3).Draw(t, "truth") {
	case 1:
		list := phases()
		truth.Phases = workload.ForAll(list)
		if rapid.Bool().Draw(t, "forecast") {
			s.Phases = list
		}
	case 2:
		if rapid.Bool().Draw(t, "forecast") {
			s.Phases = phases()
		}
		var durations []time.Duration
		var each [][]cluster.Phase
		for range s.Tasks {
			each = append(each, phases())
			durations = append(durations, seconds("true duration", 60))
		}
		truth.Duration, truth.Phases = workload.ForEach(durations), workload.ForEach(each)
	case 3:
		truth.IdealMemory = workload.ForAll(amount("true ideal memory", testGB/4, 3*testGB))
		truth.Duration = workload.ForAll(seconds("true duration", 60))
	}
	if rapid.IntRange(0, 3).Draw(t, "collects") == 0 {
		truth.Heap = &workload.Heap{Live: amount("live", 0, testGB),
			Size: rapid.SampledFrom([]resource.Amount{0, testGB, 4 * testGB}).Draw(t, "heap")}
	}
	return s, truth
}

// randomPolicy draws a policy: one that throttles nothing, or one of more.
func randomPolicy(t *rapid.T, more ...string) func() policy.Policy {
	name := rapid.SampledFrom(append([]string{"fifo", "fair", "yarn-me", "haphazard"}, more...)).Draw(t, "policy")
	seed := rapid.Uint64Range(0, 1000).Draw(t, "seed of the policy")
	return func() policy.Policy {
		if name == "haphazard" {
			return haphazard{seed: seed}
		}
		p, err := policy.New(name, nil)
		if err != nil {
			panic(err)
		}
		return p
	}
}
