package policy

import (
	"cmp"
	"fmt"
	"math"
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

// twin is a plain implementation of a policy.
type twin interface{ decide(p *book.Plan) }

// slow decides in the plainest way and looks at everything each time. first returns what to start next on a node;
// without a node, on the first node that can start something.
type slow struct {
	first func(p *book.Plan, n *book.NodeState) (j *book.JobState, stage int, memory resource.Amount, ok bool)
	// jobs are served in their order on any node, rather than one node after the other.
	jobs bool
	// alike: nodes that changed are not served first.
	alike bool
	rank  func(p *book.Plan, j *book.JobState) float64
}

func (s *slow) decide(p *book.Plan) {
	for _, id := range p.Changes.Nodes {
		for n := p.Nodes[id]; !s.alike && s.startOn(p, n); {
		}
	}
	for s.startAnywhere(p) {
	}
}

func (s *slow) startAnywhere(p *book.Plan) bool {
	best, rank := (*book.NodeState)(nil), math.Inf(1)
	for _, n := range p.Nodes {
		j, _, _, ok := s.first(p, n)
		switch {
		case !ok || n.Gone:
		case !s.jobs:
			for s.startOn(p, n) {
			}
			return true
		case best == nil || s.rank(p, j) < rank:
			best, rank = n, s.rank(p, j)
		}
	}
	return best != nil && s.startOn(p, best)
}

func (s *slow) startOn(p *book.Plan, n *book.NodeState) bool {
	j, stage, memory, ok := s.first(p, n)
	if !ok || n.Gone {
		return false
	}
	p.StartSized(j, stage, n, memory, cluster.BecauseFits(memory))
	return true
}

// runnable sorts the jobs that have a task to start.
func runnable(p *book.Plan, key func(*book.JobState) float64) []*book.JobState {
	var jobs []*book.JobState
	for _, j := range p.Jobs {
		if _, ok := j.NextStage(); ok {
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, func(a, b *book.JobState) int {
		return cmp.Or(cmp.Compare(key(a), key(b)), cmp.Compare(a.Submitted, b.Submitted), cmp.Compare(a.ID, b.ID))
	})
	return jobs
}

// slowFirstFit is the twin of srjf and static.
func slowFirstFit(key func(*book.JobState) float64, size resource.Amount, blocks bool) *slow {
	memory := func(j *book.JobState, stage int) resource.Amount {
		return cmp.Or(size, j.Stages[stage].Ideal[resource.Memory])
	}
	return &slow{jobs: true, alike: blocks,
		first: func(p *book.Plan, n *book.NodeState) (*book.JobState, int, resource.Amount, bool) {
			for _, j := range runnable(p, key) {
				stage, _ := j.NextStage()
				m := memory(j, stage)
				if size > 0 && j.Stages[stage].Ideal[resource.Memory] > size {
					continue // refused
				}
				if j.Stages[stage].Ideal.With(resource.Memory, m).FitsIn(n.Free) {
					return j, stage, m, true
				}
				if blocks {
					break
				}
			}
			return nil, 0, 0, false
		},
		rank: func(p *book.Plan, j *book.JobState) float64 { return float64(slices.Index(runnable(p, key), j)) },
	}
}

// slowTetris is the twin of tetris.
func slowTetris(fairness, barrier, multiplier float64) *slow {
	return &slow{first: func(p *book.Plan, n *book.NodeState) (*book.JobState, int, resource.Amount, bool) {
		jobs := runnable(p, func(j *book.JobState) float64 { return slowShare(p, j) })
		jobs = slices.DeleteFunc(jobs, func(j *book.JobState) bool { // no node can hold a task of it
			return !slices.ContainsFunc(p.Nodes, func(n *book.NodeState) bool {
				for i := range j.Stages {
					if j.Ready(i) && n.Holds(j.Stages[i].Ideal) {
						return true
					}
				}
				return false
			})
		})
		jobs = jobs[:min(len(jobs), max(1, int(math.Ceil(float64(len(jobs))*(1-fairness)-1e-9))))]
		type option struct {
			job         *book.JobState
			stage       int
			score, work float64
			last        bool
		}
		var options []option
		anyLast := false
		for _, j := range jobs {
			for i := range j.Stages {
				if !j.Ready(i) || !j.Stages[i].Ideal.FitsIn(n.Free) {
					continue
				}
				last := barrier < 1 && float64(j.Progress[i].Ended) >= barrier*float64(j.Stages[i].Tasks)
				anyLast = anyLast || last
				options = append(options, option{j, i, slowAlignment(&j.Stages[i], n), slowWork(p, j), last})
			}
		}
		if len(options) == 0 || n.Gone {
			return nil, 0, 0, false
		}
		var scores, works, most, known float64
		for _, o := range options {
			scores += o.score
			if !math.IsNaN(o.work) {
				works, known, most = works+o.work, known+1, max(most, o.work)
			}
		}
		epsilon := 0.0
		if works > 0 {
			epsilon = multiplier * (scores / float64(len(options))) / (works / known)
		}
		best, value := option{}, math.Inf(-1)
		for _, o := range options {
			if math.IsNaN(o.work) {
				o.work = most
			}
			if v := o.score - epsilon*o.work; o.last == anyLast && v > value {
				best, value = o, v
			}
		}
		return best.job, best.stage, best.job.Stages[best.stage].Ideal[resource.Memory], true
	}}
}

func slowShare(p *book.Plan, j *book.JobState) float64 {
	share := 0.0
	for k := range p.Capacity {
		if p.Capacity[k] > 0 {
			share = max(share, float64(j.Used[k])/float64(p.Capacity[k]))
		}
	}
	return share / cmp.Or(j.Weight, 1)
}

func slowWork(p *book.Plan, j *book.JobState) float64 {
	work := 0.0
	for i, s := range j.Stages {
		if j.Progress[i].Pending > 0 && s.Duration == 0 {
			return math.NaN()
		}
		for k := range p.Capacity {
			if p.Capacity[k] > 0 {
				work += float64(j.Progress[i].Pending) * s.Duration.Seconds() * float64(s.Ideal[k]) / float64(p.Capacity[k])
			}
		}
	}
	return work
}

func slowAlignment(s *cluster.Stage, n *book.NodeState) float64 {
	score := 0.0
	for k := range n.Capacity {
		if n.Capacity[k] > 0 {
			score += float64(s.Ideal[k]) / float64(n.Capacity[k]) * (float64(n.Free[k]) / float64(n.Capacity[k]))
		}
	}
	return score
}

// slowPufferfish is the twin of pufferfish, from the text of the paper: start the first job that has a node, and
// repeat.
type slowPufferfish struct {
	shortest             bool
	room, stop, quantile float64
}

func (s *slowPufferfish) decide(p *book.Plan) {
	starts := map[cluster.NodeID]int{}
	for s.startOne(p, starts) {
	}
}

func (s *slowPufferfish) startOne(p *book.Plan, starts map[cluster.NodeID]int) bool {
	for _, j := range runnable(p, s.key) {
		stage, _ := j.NextStage()
		flex := flexible(j, stage)
		reports := func(n *book.NodeState) bool {
			return (p.Heartbeats.Every == 0 || slices.Contains(p.Changes.Heartbeats, n.ID)) &&
				(p.Heartbeats.Starts == 0 || starts[n.ID] < p.Heartbeats.Starts)
		}
		var nodes []*book.NodeState
		for _, n := range p.Nodes {
			if s.takes(n, &j.Stages[stage], flex) && (flex || reports(n)) {
				nodes = append(nodes, n)
			}
		}
		if flex {
			var counts []int
			for _, n := range p.Nodes {
				if !n.Gone {
					counts = append(counts, countFlex(n))
				}
			}
			slices.Sort(counts)
			few := func(n *book.NodeState) bool { return countFlex(n) <= counts[int(s.quantile*float64(len(counts)-1))] }
			slices.SortStableFunc(nodes, func(a, b *book.NodeState) int {
				switch {
				case few(a) == few(b):
					return 0
				case few(a):
					return -1
				}
				return 1
			})
			if len(nodes) > 0 && few(nodes[0]) {
				nodes = slices.DeleteFunc(nodes, func(n *book.NodeState) bool { return !few(n) })
			}
		}
		most := resource.Amount(math.MinInt64)
		for _, n := range nodes {
			most = max(most, n.Available())
		}
		nodes = slices.DeleteFunc(nodes, func(n *book.NodeState) bool { return n.Available() < most })
		local := func(n *book.NodeState) bool { return slices.Contains(j.Stages[stage].DataOn, n.Name) }
		if slices.ContainsFunc(nodes, local) {
			nodes = slices.DeleteFunc(nodes, func(n *book.NodeState) bool { return !local(n) })
		}
		best := slices.IndexFunc(nodes, reports)
		if best < 0 {
			continue
		}
		n := nodes[best]
		starts[n.ID]++
		p.Start(j, stage, n, j.Stages[stage].Ideal[resource.Memory], cluster.BecauseFits(0))
		return true
	}
	return false
}

func (s *slowPufferfish) takes(n *book.NodeState, stage *cluster.Stage, flex bool) bool {
	if n.Gone || !stage.Ideal.FitsIn(n.Free) {
		return false
	}
	memory := float64(n.Capacity[resource.Memory])
	return !flex || float64(stage.Ideal[resource.Memory])*s.room <= float64(n.Available())-memory+s.stop*memory
}

// key is 0, or the job's minimum duration.
func (s *slowPufferfish) key(j *book.JobState) float64 {
	longest := 0.0
	for i := range j.Stages {
		end := 0.0
		for _, k := range append(slices.Clone(j.Stages[i].Parents), i) { // no stage has parents that have parents
			switch d := j.Stages[k].Duration.Seconds(); {
			case j.Stages[k].Coordinator:
			case d == 0:
				end = math.Inf(1)
			default:
				end += d
			}
		}
		longest = max(longest, end)
	}
	if !s.shortest {
		return 0
	}
	return longest
}

func flexible(j *book.JobState, stage int) bool {
	return j.Class == cluster.Flex && !j.Stages[stage].Coordinator
}

func countFlex(n *book.NodeState) (count int) {
	for _, t := range n.Tasks {
		if flexible(t.Job, int(t.ID.Stage)) {
			count++
		}
	}
	return count
}

var rates = []resource.Kind{resource.Disk, resource.Network}

// TestFastAndSlowStartTheSame runs a fast policy and its plain twin through the same random events: they must start the
// same tasks on the same nodes, and throttle the same tasks to the same bounds, in the same order.
func TestFastAndSlowStartTheSame(t *testing.T) {
	turns := slowBackoff{lasts: 5 * time.Second, turns: true, told: true}
	for _, c := range []struct {
		policy, settings string
		twin             twin
	}{
		{"pufferfish", "", &slowPufferfish{room: 1, stop: 1, quantile: 1}},
		{"pufferfish", "order=sjf room=2", &slowPufferfish{shortest: true, room: 2, stop: 1, quantile: 1}},
		{"pufferfish", "room=2 stop=0.8 count-quantile=0.1", &slowPufferfish{room: 2, stop: 0.8, quantile: 0.1}},
		{"prophet", "", &slowProphet{eta: 0.3, window: 0.5, deadline: 3, kinds: rates, unknown: time.Minute,
			backoff: slowBackoff{lasts: 5 * time.Second, turns: true}}},
		{"prophet", "eta=0.9 window=1 deadline=0 unknown=5ns backoff=0s",
			&slowProphet{eta: 0.9, window: 1, kinds: rates, unknown: 5}},
		{"prophet", "window=0.2 deadline=0.5 kinds=network,disk,memory backoff=5ns",
			&slowProphet{eta: 0.3, window: 0.2, deadline: 0.5, kinds: []resource.Kind{resource.Memory, resource.Disk,
				resource.Network}, unknown: time.Minute, backoff: slowBackoff{lasts: 5, turns: true}}},
		{"prophet", "relief=share backoff=3ns distinct=strict",
			&slowProphet{eta: 0.3, window: 0.5, deadline: 3, kinds: rates, unknown: time.Minute, strict: true,
				backoff: slowBackoff{lasts: 3}}},
		{"prophet", "score=literal relief=share backoff=9ns", &slowProphet{eta: 0.3, window: 0.5, deadline: 3, kinds: rates,
			unknown: time.Minute, literal: true, backoff: slowBackoff{lasts: 9}}},
		{"prophet", "score=literal distinct=strict window=1 deadline=0",
			&slowProphet{eta: 0.3, window: 1, kinds: rates, unknown: time.Minute, literal: true, strict: true,
				backoff: slowBackoff{lasts: 5 * time.Second, turns: true}}},
		{"bellows", "", &slowBellows{longest: true, patience: 5 * time.Minute, window: 16, foresees: true, levels: true,
			backoff: turns}},
		{"bellows", "level=off patience=5s window=2", &slowBellows{longest: true, patience: 5 * time.Second, window: 2,
			foresees: true, backoff: turns}},
		{"bellows", "queues=a=2,b=1,b.x=1,b.y=3,default=1 level=off place=tetris patience=0s backoff=off",
			&slowBellows{longest: true, window: 16,
				weights: map[string]float64{"a": 2, "b": 1, "b.x": 1, "b.y": 3, "default": 1}}},
		{"bellows", "level=off place=first patience=3s size=ideal backfill=any",
			&slowBellows{ideal: true, any: true, patience: 3 * time.Second, backoff: turns}},
		{"bellows", "level=off patience=0s size=ideal backfill=any backoff=off longest=off",
			&slowBellows{ideal: true, any: true, window: 16, foresees: true, everywhere: true}},
		{"bellows", "order=fifo patience=0s size=ideal backfill=any backoff=off",
			&slowBellows{longest: true, fifo: true, ideal: true, any: true, window: 16, foresees: true, levels: true,
				everywhere: true}},
		{"srjf", "", slowFirstFit(remainingWork, 0, false)},
		{"static", "", slowFirstFit(fairKey, 0, false)},
		{"static", "memory=5GB", slowFirstFit(fairKey, 5*resource.GB, false)},
		{"static", "memory=5GB order=fifo", slowFirstFit(func(*book.JobState) float64 { return 0 }, 5*resource.GB, true)},
		{"tetris", "", slowTetris(0.25, 0.9, 1)},
		{"tetris", "fairness=0", slowTetris(0, 0.9, 1)},
		{"tetris", "fairness=0.7 barrier=0.5 remaining-work=2", slowTetris(0.7, 0.5, 2)},
		{"tetris", "fairness=1 barrier=1 remaining-work=0", slowTetris(1, 1, 0)},
	} {
		t.Run(c.policy+" "+c.settings, func(t *testing.T) {
			settings := map[string]string{}
			for _, s := range strings.Fields(c.settings) {
				name, value, _ := strings.Cut(s, "=")
				settings[c.policy+"."+name] = value
			}
			rapid.Check(t, func(rt *rapid.T) {
				fast, err := New(c.policy, settings)
				if err != nil {
					rt.Fatal(err)
				}
				liveTogether(rt, fast, c.twin)
			})
		})
	}
}

// side is one of two clusters that receive the same events.
type side struct {
	book     *book.Book
	snapshot *book.Snapshot
	plan     *book.Plan
}

func newSide() *side {
	b := book.NewBook(nil)
	return &side{b, b.Snapshot(), b.Open(0)}
}

// close ends the step and returns what was started and throttled.
func (s *side) close(t *rapid.T) string {
	decisions, err := s.book.Close()
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, d := range decisions {
		if d.Kind == cluster.Start {
			text += fmt.Sprintf("%v on %d with %v\n", d.Task, d.Node, d.Grant)
		}
		if d.Kind == cluster.Throttle {
			text += fmt.Sprintf("%v to %v until %d\n", d.Task, d.Bound, d.At)
		}
	}
	return text
}

// throttle returns the newest decision to throttle a task.
func (s *side) throttle(id cluster.TaskID) cluster.DecisionID {
	for _, n := range s.snapshot.Nodes {
		for _, t := range n.Tasks {
			if t.ID == id {
				return t.Throttled.Decision
			}
		}
	}
	return 0
}

func liveTogether(t *rapid.T, fast Policy, twin twin) {
	number := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(t, what) }
	a, b := newSide(), newSide()
	_, whole := twin.(*slowPufferfish)      // it knows coordinators and heartbeats
	foresight, ahead := twin.(*slowProphet) // it knows forecasts and gangs
	stages, mixes := twin.(*slowBellows)    // it knows all but gangs, and lives in seconds
	unit := timeline.Time(1)
	if mixes {
		whole, ahead, unit = true, true, timeline.Seconds(1)
	}
	if whole && number("heartbeats", 0, 1) == 1 {
		starts := number("starts", 0, 2)
		for _, s := range []*side{a, b} {
			s.snapshot.Heartbeats.Every, s.snapshot.Heartbeats.Starts = 1, starts
		}
	}
	begin := func(now timeline.Time) {
		a.book.Open(now)
		b.book.Open(now)
	}
	apply := func(now timeline.Time, e cluster.Event) {
		for _, s := range []*side{a, b} {
			e := e
			if e.Decision != 0 { // which are numbered otherwise on the other side
				e.Decision = s.throttle(e.Task)
			}
			if err := s.book.Enter(now, &e); err != nil {
				t.Fatal(err)
			}
		}
	}
	decide := func(now timeline.Time) {
		if drop := fast.Traits().DropCaches; drop != nil && number("drop", 0, 4) == 0 {
			drop()
		}
		fast.Decide(now, a.plan)
		switch {
		case mixes:
			stages.now = now
		case ahead:
			foresight.now = now
		}
		twin.decide(b.plan)
		if got, want := a.close(t), b.close(t); got != want {
			t.Fatalf("at %d the fast one decides\n%s\nthe slow one\n%s", now, got, want)
		}
	}
	begin(0)
	for i := range number("nodes", 1, 4) {
		capacity := resource.Of(resource.Amount(number("cores", 2, 8))*resource.Core,
			resource.Amount(number("memory", 8, 10))*resource.GB)
		capacity[resource.Disk] = resource.Amount(number("disk", 0, 2)) * 100 * resource.MB
		capacity[resource.Network] = resource.Amount(number("network", 0, 1)) * 100 * resource.MB
		apply(0, cluster.Event{Kind: cluster.NodeJoined,
			NewNode: &cluster.Node{ID: cluster.NodeID(i), Name: fmt.Sprintf("n%d", i), Capacity: capacity}})
	}
	apply(0, cluster.Event{Kind: cluster.Synced})
	decide(0)
	for step := range timeline.Time(number("steps", 1, 50)) {
		now := step * unit
		begin(now)
		for range number("events", 1, 3) {
			e, ok := possibleEvent(t, a.snapshot, step*4+timeline.Time(len(a.snapshot.Jobs)))
			if ahead && number("progress", 0, 3) == 0 {
				e, ok = progress(t, a.snapshot)
			} else if ahead && number("pressure", 0, 3) == 0 {
				e, ok = pressure(t, a.snapshot)
			}
			if !ok {
				continue
			}
			if e.NewJob != nil {
				if _, twice := a.snapshot.Job(e.NewJob.ID); twice {
					continue
				}
				vary(t, e.NewJob)
				if ahead {
					foretell(t, e.NewJob)
				}
				if mixes {
					mixed(t, e.NewJob, now)
				}
				if first := &e.NewJob.Stages[0]; whole && first.Tasks == 1 && number("coordinator", 0, 3) == 0 {
					first.Coordinator = true
				}
			}
			apply(now, e)
		}
		for _, n := range a.snapshot.Nodes {
			if a.snapshot.Heartbeats.Every > 0 && !n.Gone && number("beat", 0, 1) == 1 {
				apply(now, cluster.Event{Kind: cluster.Heartbeat, Node: n.ID})
			}
		}
		decide(now)
	}
}

// vary makes the stages of a job request all resources, and gives them different or unknown run times.
func vary(t *rapid.T, j *cluster.Job) {
	number := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(t, what) }
	j.Class = cluster.Class(number("class", 0, 1))
	for i := range j.Stages {
		s := &j.Stages[i]
		s.Duration = timeline.Seconds(float64(number("run", 0, 9))).Sub(0)
		for range number("data", 0, 2) {
			s.DataOn = append(s.DataOn, fmt.Sprintf("n%d", number("data on", 0, 4)))
		}
		s.Ideal[resource.CPU] = resource.Amount(number("cpu", 0, 3)) * resource.Core
		if number("bandwidth", 0, 2) == 0 {
			s.Ideal[resource.Disk] = resource.Amount(number("disk", 0, 2)) * 40 * resource.MB
			s.Ideal[resource.Network] = resource.Amount(number("network", 0, 2)) * 40 * resource.MB
		}
	}
}

func TestStaticRefusesWhatItsContainersCannotHold(t *testing.T) {
	b := book.NewBook(nil)
	if err := b.Enter(0,
		&cluster.Event{Kind: cluster.NodeJoined,
			NewNode: &cluster.Node{Name: "n1", Capacity: resource.Of(8*resource.Core, 10*resource.GB)}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		memory, tooLarge string
		need             resource.Amount
		want             string
	}{
		{"peak", "refuse", 9 * resource.GB, ""},
		{"5GB", "refuse", 5 * resource.GB, ""},
		{"5GB", "refuse", 6 * resource.GB, `job "J" stage 0 memory 6GB: must be at most static.memory, 5GB`},
		{"5GB", "run", 6 * resource.GB, ""},
		{"11GB", "run", 6 * resource.GB, `setting static.memory=11GB: must be at most what a node has, 10GB`},
	} {
		p, err := New("static", map[string]string{"static.memory": c.memory, "static.too-large": c.tooLarge})
		if err != nil {
			t.Fatal(err)
		}
		err = CheckRuns(p, b.Snapshot(),
			&cluster.Job{Name: "J", Stages: []cluster.Stage{{Tasks: 1, Ideal: resource.Of(resource.Core, c.need)}}})
		if got := fmt.Sprint(err); got != c.want && (err != nil || c.want != "") {
			t.Errorf("%+v: error is %v", c, err)
		}
	}
}

// A job admitted under other settings is not started, and a reason is recorded; it blocks no other job.
func TestStaticSaysWhatItRefuses(t *testing.T) {
	p, err := New("static", map[string]string{"static.memory": "5GB", "static.order": "fifo"})
	if err != nil {
		t.Fatal(err)
	}
	b := book.NewBook(p.Traits().Why)
	s := &side{b, b.Snapshot(), b.Open(0)}
	for _, e := range []cluster.Event{
		{Kind: cluster.NodeJoined,
			NewNode: &cluster.Node{Name: "n1", Capacity: resource.Of(8*resource.Core, 10*resource.GB)}},
		{Kind: cluster.Synced},
		{Kind: cluster.JobSubmitted,
			NewJob: &cluster.Job{ID: 1, Stages: []cluster.Stage{{Tasks: 1, Ideal: resource.Of(resource.Core, 6*resource.GB)}}}},
		{Kind: cluster.JobSubmitted,
			NewJob: &cluster.Job{ID: 2, Stages: []cluster.Stage{{Tasks: 1, Ideal: resource.Of(resource.Core, resource.GB)}}}},
	} {
		if err := s.book.Enter(0, &e); err != nil {
			t.Fatal(err)
		}
	}
	p.Decide(0, s.plan)
	decisions, err := s.book.Close()
	if err != nil || len(decisions) != 2 {
		t.Fatalf("decisions are %+v, %v", decisions, err)
	}
	if d := decisions[0]; d.Kind != cluster.Start || d.Task.Job != 2 || d.Grant[resource.Memory] != 5*resource.GB {
		t.Errorf("it starts %+v", d)
	}
	if d := decisions[1]; d.Kind != cluster.Wait || d.Task.Job != 1 ||
		d.Reason.Words(nil) != "refused: it needs 6GB, and every container has 5GB" {
		t.Errorf("it says %q of %+v", d.Reason.Words(nil), d)
	}
}

func TestSettingsOfBaselines(t *testing.T) {
	for _, c := range []struct{ policy, setting, value, want string }{
		{"static", "static.order", "lifo", `setting static.order="lifo": must be one of fair, fifo`},
		{"static", "static.memory", "much", `setting static.memory="much": must be a positive amount of memory`},
		{"static", "static.too-large", "kill", `setting static.too-large="kill": must be one of refuse, run`},
		{"tetris", "tetris.fairness", "1.1", `setting tetris.fairness="1.1": must be a number from 0 to 1`},
		{"tetris", "tetris.barrier", "-0.1", `setting tetris.barrier="-0.1": must be a number from 0 to 1`},
		{"tetris", "tetris.remaining-work", "-1", `setting tetris.remaining-work="-1": must be a number of at least 0`},
		{"srjf", "srjf.pool", "true", `setting "srjf.pool": policy srjf has no settings`},
	} {
		if _, err := New(c.policy, map[string]string{c.setting: c.value}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%s: error is %v, want %q", c.setting, c.value, err, c.want)
		}
	}
}

func TestOneJobAtLeastIsConsidered(t *testing.T) {
	for _, c := range []struct {
		fairness   float64
		jobs, want int
	}{{0, 1, 1}, {0, 10, 10}, {0.25, 4, 3}, {0.25, 5, 4}, {0.7, 10, 3}, {0.9, 10, 1}, {0.9, 11, 2}, {1, 10, 1}} {
		if got := considered(c.fairness, c.jobs); got != c.want {
			t.Errorf("f=%v: %d of %d jobs are considered, want %d", c.fairness, got, c.jobs, c.want)
		}
	}
}
