package scenarios

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"pgregory.net/rapid"
)

// choices are all policies, with each setting that affects decisions.
var choices = []choice{
	made("capacity", "queues", queuesForRandom),
	made("capacity", "queues", queuesForRandom, "reservations", "false"),
	made("capacity", "queues", queuesForRandom, "reservations", "false", "calculator", "dominant", "ordering", "fair"),
	made("capacity", "queues", tightQueues, "ordering", "fair"),
	made("capacity", "queues", tightQueues, "reservations", "false"),
	made("capacity", "queues", queuesForRandom, "preemption", "true", "preemption-interval", oddInterval,
		"preemption-per-round", "1", "preemption-termination", "1"),
	made("capacity", "queues", tightQueues, "preemption", "true", "preemption-per-round", "1", "preemption-wait", "1s",
		"preemption-interval", oddInterval, "preemption-ignored", "0"),
	made("capacity", "queues", queuesForRandom, "preemption", "true", "preemption-interval", oddInterval,
		"preemption-per-round", "1", "calculator", "dominant"),
	made("capacity", "queues", tightQueues, "user-limits", "true", "minimum-user-limit-percent", "25",
		"user-limit-factor", "1.5"),
	made("bellows"),
	made("bellows", "patience", "7s"),
	made("bellows", "backfill", "any", "patience", "0s", "level", "off"),
	made("bellows", "patience", "1ns", "window", "3", "backoff", "share", "backfill", "any"),
	made("bellows", "order", "fifo", "patience", "7s", "level", "off", "backoff", "off"),
	made("bellows", "queues", "a=2,b=1,b.x=1,b.y=3,default=1", "patience", "7s", "window", "2"),
	made("bellows", "size", "ideal", "backfill", "any", "patience", "0s"),
	made("bellows", "patience", "0s"),
	made("bellows", "place", "tetris", "level", "off", "backfill", "any", "patience", "0s"),
	made("bellows", "place", "first"),
	made("bellows", "renew", "on", "patience", "7s"),
	made("bellows", "renew", "on", "level", "off", "backoff", "off"),
	made("bellows", "place", "first", "size", "ideal", "level", "off", "backoff", "off", "backfill", "any", "patience",
		"0s"),
	made("contention-aware"),
	made("drf"),
	made("drf", "queues", "a=2,b=1,b.x=1,b.y=3,default=1"),
	made("drf", "queues", "a=2,b=1,b.x=1,b.y=3,default=1", "hierarchy", "naive"),
	made("ecs"),
	made("ecs", "short", "false", "threshold", "0", "interval", "1s"),
	made("ecs", "short", "false", "threshold", "0", "interval", "3s", "units", "core", "suspension", "0.1", "delay",
		"0.01", "sets", "2", "states", "100"),
	made("ecs", "short", "false", "threshold", "1", "discount", "0.5", "eta", "0"),
	made("ecs", "short", "false", "leveling", "false"),
	made("ecs", "overcommit", "false"),
	made("ecs", "cpu", "weight"),
	made("ecs", "cpu", "weight", "short", "false", "threshold", "0", "interval", "3s"),
	made("ecs", "memory", "phase", "short", "false", "threshold", "0", "interval", "3s"),
	made("ecs", "memory", "phase", "leveling", "false"),
	made("ecs", "memory", "phase", "short", "false", "ahead", "0s"),
	made("ecs", "memory", "phase", "short", "false", "ahead", "1s", "ahead-share", "0.4"),
	made("fifo"),
	made("fair"),
	made("fair", "reservations", "false"),
	made("fair", "gaps", "true"),
	made("fair", "gaps", "false"),
	made("pufferfish"),
	made("pufferfish", "order", "sjf"),
	made("pufferfish", "room", "2", "stop", "0.8", "count-quantile", "0.1"),
	made("mira"),
	made("mira", "path", "longest"),
	made("mira", "rule", "paper"),
	made("mira", "keep", "next"),
	made("mira", "keep", "2.7317s"),
	made("mira", "queues", "a=2,b=1,b.x=1,b.y=3,default=1"),
	made("mira", "queues", "a=2:2..,b=1:..3,b.x=1,b.y=3:1..2,default=1"),
	made("prism"),
	made("prism", "patience", "7s"),
	made("prophet"),
	made("prophet", "eta", "0.9", "window", "0.2", "deadline", "1"),
	made("prophet", "window", "1", "deadline", "0", "kinds", "network,disk,memory", "unknown", "7s"),
	made("prophet", "score", "literal"),
	made("prophet", "score", "literal", "window", "1", "distinct", "strict"),
	made("prophet", "distinct", "strict"),
	made("prophet", "backoff", "0s"),
	made("prophet", "backoff", "17.317s"),
	made("prophet", "backoff", "17.317s", "relief", "share"),
	made("srjf"),
	made("static"),
	made("static", "order", "fifo"),
	made("static", "memory", "9GB"),
	made("static", "memory", "9GB", "order", "fifo"),
	made("tetris"),
	made("tetris", "fairness", "0"),
	made("tetris", "fairness", "0.6", "barrier", "0.5"),
	made("tetris", "fairness", "1", "remaining-work", "3"),
	made("tetris", "remaining-work", "0", "barrier", "1"),
	made("yarn-me"),
	made("yarn-me", "reservations", "false"),
	made("yarn-me", "gaps", "true"),
	made("yarn-me", "gaps", "false"),
	made("yarn-me", "timeline", "resimulate"),
	made("yarn-me", "timeline", "resimulate", "gaps", "true"),
	made("yarn-me", "timeline", "resimulate", "gaps", "false"),
	made("yarn-me", "timeline", "resimulate", "reservations", "false"),
	made("yarn-me", "disk-share", "0.5"),
	made("yarn-me", "granularity", "700MB", "interval", "7s"),
}

// oddInterval never ends at the time of another event, so that all drivers report the same events in the same order.
const oddInterval = "1.7317s"

// tightQueues have maxima below the capacity of the cluster, and some have a guarantee of 0.
const (
	queuesForRandom = "a=40%,b=50%,b.x=50%,b.y=50%,default=10%"
	tightQueues     = "b=60%..80%,b.x=0%..70%,b.y=80%..90%,default=0%..60%,a=40%..50%"
)

func made(name string, settings ...string) choice {
	c := choice{name: name, title: name, settings: map[string]string{}}
	for i := 0; i < len(settings); i += 2 {
		c.settings[name+"."+settings[i]] = settings[i+1]
		c.title += " " + settings[i] + "=" + settings[i+1]
	}
	return c
}

// TestRandomScenarios runs random scenarios. The auditor looks for violated invariants; all drivers must agree; and the
// same input must give the same bytes.
func TestRandomScenarios(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := draw(rt)
		s.policies = []choice{rapid.SampledFrom(choices).Draw(rt, "policy")}
		s.apart(rt)
		if s.tooLarge(s.policies[0].make(rt)) == nil {
			check(rt, s, s.drivers())
		}
	})
}

// apart removes the changes of grants from a scenario under a policy that grants by phase: drivers that let tasks
// compete for CPU would let them end at other times.
func (s *scenario) apart(t tester) {
	if s.policies[0].make(t).Traits().ByPhase {
		s.resizings = nil
	}
}

// TestEveryJobOfProphetEnds runs random forecasts, deadlines and stages whose tasks start together: the auditor fails a
// job that does not end although it fits when nothing runs.
func TestEveryJobOfProphetEnds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := draw(rt)
		s.drawForecasts(rt)
		if s.halts, s.entries, s.pauses, s.suspensions, s.resizings = nil, nil, nil, nil, nil; s.heartbeat == 0 {
			s.drawProgress(rt)
			s.drawNeeds(rt)
			s.drawPressure(rt)
		}
		s.checkOne(rt, func(c choice) bool { return c.name == "prophet" })
	})
}

// TestEveryJobByPhaseEnds does the same with the policies that grant by phase, whose forecasts are as wrong as chance
// has it.
func TestEveryJobByPhaseEnds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := draw(rt)
		s.drawForecasts(rt)
		for i := range s.jobs {
			for k := range s.jobs[i].Stages {
				s.jobs[i].Stages[k].Together = false
			}
		}
		if s.asks, s.halts, s.entries, s.pauses, s.suspensions = false, nil, nil, nil, nil; s.heartbeat == 0 {
			s.drawProgress(rt)
			// tasks that are resumed at the same time end at the same time, in any order
			s.suspensions, s.pauses, s.resizings = nil, nil, nil
		}
		s.checkOne(rt, func(c choice) bool {
			return c.name == "ecs" || c.name == "prism" || c.name == "contention-aware" || c.name == "bellows"
		})
	})
}

// TestEveryJobByMemoryEnds does the same with FLEX jobs of which the phases need different amounts of memory: the
// auditor fails a grant of memory that a node does not have, and a job that does not end.
func TestEveryJobByMemoryEnds(t *testing.T) {
	seen := map[cluster.ReasonCode]int{}
	checkUntil(t, func(rt *rapid.T) {
		s := draw(rt)
		s.drawForecasts(rt)
		s.drawMemory(rt)
		s.heartbeat, s.coordinates, s.coordinator = 0, 0, resource.Vector{}
		s.asks, s.halts, s.entries, s.pauses, s.suspensions, s.reports, s.resizings = false, nil, nil, nil, nil, nil, nil
		s.outSpeed = resource.Amount(rapid.IntRange(0, 50).Draw(rt, "out speed")) * 100 * resource.MB
		if s.checkOne(rt, func(c choice) bool { return c.settings["ecs.memory"] != "" }) {
			loop(rt, s, s.policies[0]).count(seen)
		}
	}, func() bool { return seen[cluster.MemoryWaits] > 0 && seen[cluster.PhaseAhead] > 0 })
	t.Logf("%d waits for memory, %d decisions before a phase", seen[cluster.MemoryWaits], seen[cluster.PhaseAhead])
}

// checkOne checks one of the policies that are wanted. It returns false if no node holds some task under it.
func (s *scenario) checkOne(rt *rapid.T, wanted func(choice) bool) bool {
	of := slices.DeleteFunc(slices.Clone(choices), func(c choice) bool { return !wanted(c) })
	s.policies = []choice{rapid.SampledFrom(of).Draw(rt, "policy")}
	if s.tooLarge(s.policies[0].make(rt)) != nil {
		return false
	}
	check(rt, s, s.drivers())
	return true
}

// TestReservationsAreRenewed does the same with jobs whose reservations are learned, and tasks that hold whatever
// chance has it. The auditor fails a reservation below what a task holds, more memory than a node has, and a task whose
// reservation changes too often.
func TestReservationsAreRenewed(t *testing.T) {
	seen := map[cluster.ReasonCode]int{}
	checkUntil(t, func(rt *rapid.T) {
		s := draw(rt)
		s.drawForecasts(rt)
		s.drawMemory(rt)
		s.heartbeat, s.coordinates, s.coordinator, s.entries, s.halts = 0, 0, resource.Vector{}, nil, nil
		s.drawHoldings(rt)
		s.drawProgress(rt)
		s.asks, s.pauses, s.suspensions, s.reports, s.resizings = false, nil, nil, nil, nil
		if s.checkOne(rt, func(c choice) bool { return c.settings["bellows.renew"] == "on" }) {
			loop(rt, s, s.policies[0]).count(seen)
		}
	}, func() bool { return seen[cluster.RestNeeds] > 0 && seen[cluster.HoldsMore] > 0 })
	t.Logf("%d reservations follow the forecast, %d what a task holds", seen[cluster.RestNeeds], seen[cluster.HoldsMore])
}

// drawHoldings makes the reservations of most FLEX jobs learned, and lets their tasks hold memory.
func (s *scenario) drawHoldings(t *rapid.T) {
	number := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(t, what) }
	for i := range s.jobs {
		j := &s.jobs[i]
		if j.Class != cluster.Flex || number("learns", 0, 3) == 0 {
			continue
		}
		j.Reserve = cluster.ReserveLearned
		for k := range j.Stages {
			stage := &j.Stages[k]
			stage.MinMemory, stage.Elasticity = 0, cluster.Elasticity{}
			stage.Phases = nil
			for range number("courses", 0, 4) {
				stage.Phases = append(stage.Phases, cluster.Phase{Duration: time.Duration(number("lasts", 1, 40)) * time.Second,
					Demand: resource.Of(stage.Ideal[resource.CPU], stage.Ideal[resource.Memory]/4*
						resource.Amount(number("quarters", 0, 4)))})
			}
			if len(stage.Phases) > 0 {
				stage.Duration, j.really[k] = 0, stage.RunTime()+time.Duration(number("later", 0, 9))*time.Second
			}
			first := cluster.TaskID{Job: j.ID, Stage: int32(k)}
			if number("lies", 0, 2) == 0 { // it gives back what it needs again later
				need, begins := stage.Ideal, int(j.Submitted.Sub(0).Seconds())
				stage.Phases = []cluster.Phase{{Duration: 10 * time.Second, Demand: need},
					{Duration: 100 * time.Second, Demand: need.With(resource.Memory, need[resource.Memory]/4)}}
				stage.Duration, j.really[k] = 0, stage.RunTime()
				s.holdings = append(s.holdings, holding{first, s.oddly(begins + 20), need[resource.Memory] / 8},
					holding{first, s.oddly(begins + 40), need[resource.Memory]})
			}
			learned(stage, number("runs", 0, 6))
			for range number("holdings", 0, 9) {
				s.holdings = append(s.holdings, holding{cluster.TaskID{Job: j.ID, Stage: int32(k),
					Index: int32(number("holds", 0, stage.Tasks-1))}, s.oddly(number("holds at", 0, 150)),
					stage.Ideal[resource.Memory] / 10 * resource.Amount(number("held", 1, 12))})
			}
		}
	}
}

// checkUntil checks a property of random scenarios until all that it is about has happened in some of them. The
// scenarios of one check may lack it by chance, those of ten do not. Where cases are drawn from a fixed seed, each
// check has a seed of its own.
func checkUntil(t *testing.T, property func(*rapid.T), happened func() bool) {
	t.Helper()
	seed := flag.Lookup("rapid.seed").Value
	first, err := strconv.ParseUint(seed.String(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = seed.Set(strconv.FormatUint(first, 10)) }()
	for i := range uint64(10) {
		if first != 0 {
			_ = seed.Set(strconv.FormatUint(first+i, 10))
		}
		if rapid.Check(t, property); happened() {
			return
		}
	}
	t.Error("what this test is about has not happened in any scenario")
}

// count adds how often each reason was given for a decision.
func (h history) count(reasons map[cluster.ReasonCode]int) {
	for i := range h.steps {
		for k := range h.steps[i].decisions {
			reasons[h.steps[i].decisions[k].Reason.Code]++
		}
	}
}

// TestJobsThatDrive does the same with jobs that start their own tasks, beside others: no executor works for two
// jobs, none is kept that is not demanded without being asked back at once, and a job that closes ends.
func TestJobsThatDrive(t *testing.T) {
	asked := map[cluster.ReasonCode]int{}
	checkUntil(t, func(rt *rapid.T) {
		s := draw(rt)
		s.heartbeat, s.coordinates, s.coordinator = 0, 0, resource.Vector{}
		s.close()
		s.drawGrowth(rt)
		if s.checkOne(rt, func(c choice) bool { return c.name == "mira" }) {
			loop(rt, s, s.policies[0]).count(asked)
		}
	}, func() bool { return asked[cluster.AskedBack] > 0 && asked[cluster.StageHasMore] > 0 })
	t.Logf("%d executors were asked back for other jobs, and %d for other stages", asked[cluster.AskedBack],
		asked[cluster.StageHasMore])
}

// drawMemory makes most jobs FLEX, and lets their phases demand parts of their memory.
func (s *scenario) drawMemory(t *rapid.T) {
	number := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(t, what) }
	for i := range s.jobs {
		if number("class", 0, 3) > 0 {
			s.jobs[i].Class = cluster.Flex
		}
		for k := range s.jobs[i].Stages {
			stage := &s.jobs[i].Stages[k]
			stage.Together = false
			for n := range stage.Phases {
				stage.Phases[n].Demand[resource.Memory] = stage.Ideal[resource.Memory] / 4 * resource.Amount(number("quarters", 0,
					4))
			}
		}
	}
}

// TestRandomScenariosLive does the same with the live driver, which takes longer for each scenario.
func TestRandomScenariosLive(t *testing.T) {
	for i := range choices {
		s := rapid.Custom(func(rt *rapid.T) *scenario {
			s := draw(rt)
			s.heartbeat, s.coordinates, s.coordinator, s.revisions = 0, 0, resource.Vector{}, nil
			s.close()
			s.asks = false // the live driver has an answer before anything else that happens at the same time
			return s
		}).Example(i)
		s.policies = []choice{choices[i%len(choices)]}
		s.apart(t)
		t.Run(fmt.Sprintf("%d %s", i, s.policies[0].title), func(t *testing.T) {
			if s.tooLarge(s.policies[0].make(t)) != nil {
				return
			}
			check(t, s, []driver{{"loop", loop}, {"live", runLive}})
			if t.Failed() {
				t.Logf("the scenario is\n%s", s)
			}
		})
	}
}

// check runs s with some drivers. The live driver needs a *testing.T.
func check(t tester, s *scenario, drivers []driver) {
	t.Helper()
	c := s.policies[0]
	first := ""
	for _, d := range drivers {
		if _, whole := t.(*testing.T); d.name == "live" && !whole {
			continue
		}
		h := d.run(t, s, c)
		if err := audit(s, c, &h); err != nil {
			passOver(t, &h)
			t.Fatalf("%s under %s: %v\n%s\n%s", c.title, d.name, err, s, s.render(&h))
		}
		got := s.render(&h) + exactly(&h)
		if first == "" {
			first = got
			// 2. The same run again.
			again := d.run(t, s, c)
			if text := s.render(&again) + exactly(&again); text != got {
				t.Fatalf("%s decides\n%s\nand then\n%s\n%s", d.name, got, text, s)
			}
		}
		if got != first {
			t.Fatalf("%s: %s decides\n%s\nand %s\n%s\n%s", c.title, drivers[0].name, first, d.name, got, s)
		}
	}
}

// exactly prints decisions with all digits.
func exactly(h *history) string {
	var out strings.Builder
	for _, step := range h.steps {
		for i := range step.decisions {
			fmt.Fprintf(&out, "%d %+v\n", step.now, step.decisions[i])
		}
	}
	return out.String()
}

// draw returns a small random scenario whose tasks fit on some node. Amounts are few and round, so that ties are
// common.
func draw(t *rapid.T) *scenario {
	s := &scenario{showTasks: true}
	number := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(t, what) }
	oneIn := func(what string, n int) bool { return number(what, 1, n) == n }
	nodes := number("nodes", 1, 4)
	for i := range nodes {
		capacity := resource.Of(resource.Amount(number("cores", 1, 4))*resource.Core,
			resource.Amount(number("gigabytes", 6, 10))*resource.GB)
		if i == 0 {
			capacity = resource.Of(4*resource.Core, 10*resource.GB)
		}
		if oneIn("disk", 2) {
			capacity[resource.Disk] = 100 * resource.MB
		}
		s.nodes = append(s.nodes, cluster.Node{ID: cluster.NodeID(i), Name: fmt.Sprintf("n%d", i+1), Capacity: capacity})
	}
	if oneIn("heartbeats", 3) {
		s.heartbeat = time.Duration(number("heartbeat", 1, 3)) * time.Second
		s.starts = number("starts", 0, 2)
		if oneIn("coordinators", 2) {
			s.coordinates = time.Second
			s.coordinator = resource.Of(100, resource.Amount(number("coordinator", 0, 2))*500*resource.MB)
		}
	}
	at := 0
	for i := range number("jobs", 1, 5) {
		at += number("pause", 0, 3) * number("pause unit", 0, 20)
		j := plannedJob{Job: cluster.Job{ID: cluster.JobID(i + 1), Name: fmt.Sprintf("J%d", i+1),
			Submitted: timeline.Seconds(float64(at)), Weight: float64(number("weight", 0, 2)),
			MaxAttempts: number("attempts", 0, 3),
			Queue:       rapid.SampledFrom([]string{"", "a", "b.x", "b.y"}).Draw(t, "queue"),
			Owner:       rapid.SampledFrom([]string{"ada", "bob"}).Draw(t, "owner")}}
		for k := range number("stages", 1, 3) {
			j.Stages = append(j.Stages, drawStage(t, k))
			j.really = append(j.really,
				max(j.Stages[k].Duration+time.Duration(number("error", -1, 1)*number("error size", 0, 9))*time.Second, time.Second))
		}
		s.jobs = append(s.jobs, j)
	}
	if oneIn("forecasts", 3) {
		s.drawForecasts(t)
	}
	if s.heartbeat == 0 && oneIn("accidents", 3) {
		s.drawAccidents(t)
	}
	if s.heartbeat == 0 && oneIn("breathing", 4) {
		s.drawFlex(t)
	}
	if s.heartbeat == 0 && oneIn("progress", 3) {
		s.drawProgress(t)
	}
	if s.heartbeat == 0 && oneIn("pressure", 3) {
		s.drawPressure(t)
	}
	if s.asks = oneIn("asks", 3); s.asks {
		s.states = number("states", 1, 3) * number("states unit", 1, 1000)
		s.each = time.Duration(number("each", 0, 2)*number("each unit", 1, 20_011)) * time.Microsecond
	}
	s.drawPageOut(t)
	if s.heartbeat == 0 && oneIn("growth", 3) {
		s.drawGrowth(t)
	}
	if oneIn("retries", 2) {
		for i := range s.jobs {
			s.jobs[i].RetryDelay = time.Duration(s.oddly(number("retry delay", 0, 8)))
			s.jobs[i].KeepGoing = oneIn("keeps going", 2) && !s.jobs[i].Open && !s.jobs[i].Drives
		}
	}
	return s
}

// drawGrowth opens jobs, and lets them grow step by step to what they are.
func (s *scenario) drawGrowth(t *rapid.T) {
	number := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(t, what) }
	for i := range s.jobs {
		j := &s.jobs[i]
		if j.Open = number("open", 0, 2) > 0; !j.Open {
			continue
		}
		j.KeepGoing = false
		s.revisions = slices.DeleteFunc(s.revisions, func(r revision) bool { return r.job == i })
		if number("drives", 0, 2) == 0 {
			s.drawDemands(t, i)
			continue
		}
		second := 0
		grow := func(by cluster.Growth) {
			second += number("grows after", 0, 3) * number("grows after unit", 0, 12)
			s.growths = append(s.growths, growing{i, j.Submitted + s.oddly(second), by})
		}
		have := make([]int, len(j.Stages))
		for k := range have {
			have[k] = number("tasks at first", 0, j.Stages[k].Tasks)
		}
		begun := number("stages at first", 0, len(j.Stages))
		j.first = slices.Clone(have[:begun])
		for begun < len(have) || number("goes on", 0, 1) > 0 {
			var by cluster.Growth
			for k := range begun {
				if more := number("more tasks", 0, j.Stages[k].Tasks-have[k]); more > 0 {
					by.Tasks, have[k] = append(by.Tasks, cluster.MoreTasks{Stage: k, Tasks: more}), have[k]+more
				}
			}
			for range number("more stages", 0, len(have)-begun) {
				by.Stages, begun = append(by.Stages, cluster.Stage{Name: j.Stages[begun].Name, Tasks: have[begun]}), begun+1
			}
			grow(by)
		}
		if number("closes", 0, 4) > 0 {
			grow(cluster.Growth{Closes: true})
		}
	}
}

// drawDemands makes a job start its own tasks, and demand executors for them.
func (s *scenario) drawDemands(t *rapid.T, job int) {
	number := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(t, what) }
	j := &s.jobs[job]
	j.Drives = true
	for k := range j.Stages {
		j.Stages[k].Together, j.Stages[k].AtOnce = false, 0
		j.first = append(j.first, j.Stages[k].Tasks)
	}
	second := 0
	for last := number("demands", 0, 6); last >= 0; last-- {
		second += number("demands after", 0, 3) * number("demands after unit", 0, 12)
		var by cluster.Growth
		for k := range j.Stages {
			if number("demands of stage", 0, 2) > 0 {
				by.Demands = append(by.Demands, cluster.Demand{Stage: k, Tasks: number("demand", 0, 5),
					Coming: number("coming", 0, 3) == 0})
			}
		}
		by.Closes = last == 0 && number("closes", 0, 4) > 0
		s.growths = append(s.growths, growing{job, j.Submitted + s.oddly(second), by})
	}
}

// close lets no job grow.
func (s *scenario) close() {
	s.growths = nil
	for i := range s.jobs {
		s.jobs[i].Open, s.jobs[i].Drives, s.jobs[i].first = false, false, nil
	}
}

func drawStage(t *rapid.T, index int) cluster.Stage {
	number := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(t, what) }
	stage := cluster.Stage{Name: fmt.Sprintf("s%d", index), Tasks: number("tasks", 1, 5),
		Ideal: resource.Of(max(cluster.LeastRunCPU, resource.Amount(number("task cores", 0, 2))*resource.Core),
			resource.Amount(number("task memory", 1, 10))*resource.GB),
		Duration: time.Duration(number("run", 0, 12)*5) * time.Second}
	if stage.Ideal[resource.Memory] == 10*resource.GB {
		stage.Ideal[resource.Memory] -= 2 * resource.GB // so that a coordinator fits, too
	}
	for p := range index {
		if number("parent", 0, 1) == 1 {
			stage.Parents = append(stage.Parents, p)
		}
	}
	switch number("elasticity", 0, 3) {
	case 1:
		stage.Elasticity = cluster.Elasticity{Kind: cluster.Step, Factor: float64(number("factor", 2, 6)) / 2}
	case 2:
		stage.Elasticity = cluster.Elasticity{Kind: cluster.SawTooth, Factor: float64(number("factor", 2, 6)) / 2}
	case 3:
		half := stage.Ideal[resource.Memory] / 2
		stage.Elasticity = cluster.Elasticity{Kind: cluster.Points,
			Points: []cluster.ElasticityPoint{{Memory: half, Slowdown: 1.4}, {Memory: 2 * half, Slowdown: 1}}}
	}
	if stage.Elasticity.Kind != cluster.NotElastic {
		stage.MinMemory = stage.Ideal[resource.Memory] * resource.Amount(number("least", 1, 10)) / 10
		stage.Elasticity.DiskRate = resource.Amount(number("spill", 0, 3)) * 25 * resource.MB
	}
	if number("bounded", 0, 5) == 5 {
		stage.AtOnce = number("at once", 1, 3)
	}
	return stage
}

// drawForecasts gives stages forecasts, lets their tasks start together, and gives jobs deadlines.
func (s *scenario) drawForecasts(t *rapid.T) {
	number := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(t, what) }
	for i := range s.jobs {
		j := &s.jobs[i]
		j.Deadline = time.Duration(number("deadline", 0, 3)*number("deadline unit", 0, 20)) * time.Second
		for k := range j.Stages {
			stage := &j.Stages[k]
			if stage.Together, stage.Phases = number("together", 0, 3) == 0, nil; stage.Together {
				stage.AtOnce = 0
			}
			for range number("phases", 0, 3) {
				p := cluster.Phase{Duration: time.Duration(number("phase", 0, 9)) * time.Second}
				for _, kind := range rates {
					p.Demand[kind] = resource.Amount(number("demand", 0, 3)) * 30 * resource.MB
				}
				p.Demand[resource.CPU] = resource.Amount(number("demanded cores", 0, 4)) * resource.Core / 2
				stage.Phases = append(stage.Phases, p)
			}
		}
	}
}

func (s *scenario) drawAccidents(t *rapid.T) {
	number := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(t, what) }
	for range number("cancellations", 0, 2) {
		job := number("cancelled", 0, len(s.jobs)-1)
		s.cancellations = append(s.cancellations,
			cancellation{job, s.jobs[job].Submitted + timeline.Seconds(float64(number("cancelled after", 0, 80)))})
	}
	for range number("revisions", 0, 2) {
		job := number("revised", 0, len(s.jobs)-1)
		at := s.jobs[job].Submitted + timeline.Seconds(float64(number("revised after", 0, 80)))
		s.revisions = append(s.revisions, revision{job, at, time.Duration(number("revised run", 1, 60)) * time.Second})
	}
	for range number("failures", 0, 3) {
		job := number("failing job", 0, len(s.jobs)-1)
		stage := number("failing stage", 0, len(s.jobs[job].Stages)-1)
		task := cluster.TaskID{Job: cluster.JobID(job + 1), Stage: int32(stage),
			Index: int32(number("failing task", 0, s.jobs[job].Stages[stage].Tasks-1))}
		s.failures = append(s.failures, failure{task, time.Duration(number("failing after", 0, 20)) * time.Second,
			number("failing runs", 1, 3), cluster.Outcome(number("outcome", int(cluster.Failed), int(cluster.OutOfMemory)))})
	}
	for n := 1; n < len(s.nodes); n++ { // the first node, on which everything fits, stays
		if number("leaves", 0, 3) == 0 {
			s.departures = append(s.departures,
				departure{cluster.NodeID(n), timeline.Seconds(float64(number("leaves at", 0, 150)))})
		}
	}
}

// drawFlex makes jobs FLEX, and sometimes reports how far their containers have grown or shrunk.
func (s *scenario) drawFlex(t *rapid.T) {
	number := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(t, what) }
	for i := range s.jobs {
		s.jobs[i].Class = cluster.Class(number("class", 0, 1))
	}
	for range number("reports", 0, 8) {
		s.reports = append(s.reports, report{cluster.NodeID(number("reporting", 0, len(s.nodes)-1)),
			timeline.Seconds(float64(number("reported at", 0, 150))), resource.Amount(number("held", 0, 10)) * resource.GB})
	}
}

// drawProgress lets tasks stand still, and reports phases that they are in.
func (s *scenario) drawProgress(t *rapid.T) {
	number := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(t, what) }
	task := func() cluster.TaskID {
		job := number("job", 0, len(s.jobs)-1)
		stage := number("stage", 0, len(s.jobs[job].Stages)-1)
		return cluster.TaskID{Job: cluster.JobID(job + 1), Stage: int32(stage),
			Index: int32(number("task", 0, s.jobs[job].Stages[stage].Tasks-1))}
	}
	for range number("halts", 0, 5) {
		at := s.oddly(number("halted at", 0, 150))
		s.halts = append(s.halts, halt{task(), at, at.Add(time.Duration(number("halted for", 1, 60)) * time.Second)})
	}
	s.lends = rapid.Bool().Draw(t, "lends")
	for range number("pauses", 0, 3) {
		job := number("paused", 0, len(s.jobs)-1)
		at := s.jobs[job].Submitted + s.oddly(number("paused after", 0, 80))
		s.pauses = append(s.pauses, pausing{job: job, at: at, until: at + s.oddly(number("paused for", 1, 60))})
	}
	for range number("suspensions", 0, 4) {
		at := s.oddly(number("suspended at", 0, 150))
		s.suspensions = append(s.suspensions,
			suspension{task: task(), at: at, until: at + s.oddly(number("suspended for", 1, 60)),
				forTask: cluster.TaskID{Job: 1, Index: 99}})
	}
	for range number("resizings", 0, 4) {
		r := resizing{task: task(), at: s.oddly(number("resized at", 0, 150)), fails: number("fails", 0, 3) == 0}
		r.to[resource.CPU] = resource.Amount(number("cores", 0, 4)) * resource.Core / 2
		if stage := &s.jobs[r.task.Job-1].Stages[r.task.Stage]; stage.Elasticity.Kind == cluster.NotElastic {
			r.to[resource.Memory] = resource.Amount(number("resized memory", 0, 8)) * resource.GB
		}
		s.resizings = append(s.resizings, r)
	}
	for range number("entries", 0, 5) {
		id := task()
		if phases := len(s.jobs[id.Job-1].Stages[id.Stage].Phases); phases > 0 {
			s.entries = append(s.entries, entry{id, s.oddly(number("entered at", 0, 150)),
				int32(number("entered", 0, phases-1))})
		}
	}
}

// drawPageOut pages out the memory of some of what is paused.
func (s *scenario) drawPageOut(t *rapid.T) {
	s.outSpeed = resource.Amount(rapid.IntRange(1, 50).Draw(t, "out speed")) * 100 * resource.MB
	for i := range s.pauses {
		s.pauses[i].out = rapid.Bool().Draw(t, "pages out")
	}
}

// drawNeeds lets tasks need bandwidth of the disk, so that it slows them if they are throttled.
func (s *scenario) drawNeeds(t *rapid.T) {
	for i := range s.jobs {
		for k := range s.jobs[i].Stages {
			need := resource.Amount(rapid.IntRange(0, 3).Draw(t, "disk need")) * 25 * resource.MB
			s.jobs[i].Stages[k].Ideal[resource.Disk] = min(need, s.nodes[0].Capacity[resource.Disk])
		}
	}
}

// drawPressure reports that nodes give less than they have.
func (s *scenario) drawPressure(t *rapid.T) {
	number := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(t, what) }
	for range number("pressures", 0, 8) {
		p := pressure{node: cluster.NodeID(number("pressed", 0, len(s.nodes)-1)), at: s.oddly(number("pressed at", 0, 60))}
		for _, k := range rates {
			p.gives[k] = s.nodes[p.node].Capacity[k] / 4 * resource.Amount(number("gives", 0, 3))
		}
		s.pressures = append(s.pressures, p)
	}
}

// oddly returns a time at which nothing else happens, so that all drivers report the same events in the same order.
// Such times are more than 1 microsecond apart: prophet orders jobs by floats, which do not tell apart two times
// within 128 ns of today.
func (s *scenario) oddly(second int) timeline.Time {
	s.odd++
	return timeline.Seconds(float64(second)) + timeline.Time(17_317_001+1_000_003*second+1031*s.odd)
}

// String prints s for debugging.
func (s *scenario) String() string {
	var out strings.Builder
	for _, n := range s.nodes {
		fmt.Fprintf(&out, "node %s %v unknown %v\n", n.Name, n.Capacity, n.Unknown)
	}
	fmt.Fprintf(&out, "heartbeat %v starts=%d coordinator %v %v\n", s.heartbeat, s.starts, s.coordinates, s.coordinator)
	for i := range s.jobs {
		j := &s.jobs[i]
		fmt.Fprintf(&out, "job %s at=%s open=%v first=%v weight=%v attempts=%d retry=%v keep-going=%v class=%s "+
			"deadline=%v\n", j.Name, seconds(j.Submitted), j.Open, j.first, j.Weight, j.MaxAttempts, j.RetryDelay, j.KeepGoing,
			j.Class, j.Deadline)
		for k := range j.Stages {
			fmt.Fprintf(&out, "  stage tasks=%d after=%v needs %v min=%d run=%v really=%v penalty=%v spill=%d phases=%v "+
				"together=%v at-once=%d\n", j.Stages[k].Tasks, j.Stages[k].Parents, j.Stages[k].Ideal, j.Stages[k].MinMemory,
				j.Stages[k].Duration, j.really[k], j.Stages[k].Elasticity, j.Stages[k].Elasticity.DiskRate, j.Stages[k].Phases,
				j.Stages[k].Together, j.Stages[k].AtOnce)
		}
	}
	fmt.Fprintf(&out, "asks %v %d %v\n", s.asks, s.states, s.each)
	fmt.Fprintf(&out, "pressed %v still %v pauses %v out %dB/s suspensions %v resizings %v lends %v enters %v\n",
		s.pressures, s.halts, s.pauses, s.outSpeed, s.suspensions, s.resizings, s.lends, s.entries)
	for _, g := range s.growths {
		fmt.Fprintf(&out, "grow %s at=%s by %+v\n", s.jobs[g.job].Name, seconds(g.at), g.by)
	}
	fmt.Fprintf(&out, "tasks hold %v\n", s.holdings)
	fmt.Fprintf(&out, "cancel %v revise %v fail %v leave %v holds %v\n", s.cancellations, s.revisions, s.failures,
		s.departures, s.reports)
	return out.String()
}
