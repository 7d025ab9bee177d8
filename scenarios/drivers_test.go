package scenarios

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/engine"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/core/usage"
	"github.com/bellows-rm/bellows/format/eventlog"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
	"github.com/bellows-rm/bellows/sim"
	"pgregory.net/rapid"
)

// endless is more steps than any scenario takes.
const endless = 50_000

// mustEnd fails a run of too many steps.
func mustEnd(t tester, s *scenario, c choice, h *history) {
	t.Helper()
	if len(h.steps) > endless {
		passOver(t, h)
		t.Fatalf("%s: does not end\n%s\n%s", c.title, s, s.render(&history{steps: h.steps[:500]}))
	}
}

// passOver skips a random run in which tasks are preempted again and again, while none succeeds: preemption frees
// room on several nodes one by one, and a preempted task can be the first to start again there. The simulator gives
// such runs up.
func passOver(t tester, h *history) {
	preempted, succeeded := 0, 0
	for _, st := range h.steps[len(h.steps)/2:] {
		for i := range st.decisions {
			if st.decisions[i].Preempt {
				preempted++
			}
		}
		for i := range st.events {
			if st.events[i].Outcome == cluster.Succeeded {
				succeeded++
			}
		}
	}
	if random, ok := t.(*rapid.T); ok && preempted > 100 && succeeded == 0 {
		random.Skip("tasks are preempted for ever")
	}
}

// simulate runs a scenario in the simulator.
func simulate(t tester, s *scenario, c choice) history {
	t.Helper()
	var h history
	config := sim.Config{Nodes: s.nodes, Heartbeat: s.heartbeat, StartsPerHeartbeat: s.starts,
		CoordinatorHeartbeat: s.coordinates, Coordinator: s.coordinator, KeepTasks: true, Lends: s.lends,
		PageOutSpeed: s.outSpeed, Solver: sim.Solver{States: s.states, PerState: s.each}}
	if len(s.resizings) > 0 { // as in the world
		config.Caps, config.Series.Nodes = resource.KindsOf(resource.CPU), true
	}
	config.Observe = func(now timeline.Time, events []cluster.Event, decisions []cluster.Decision) {
		mustEnd(t, s, c, &h)
		h.steps = append(h.steps, step{now, slices.Clone(events), slices.Clone(decisions)})
	}
	for _, p := range s.pressures {
		config.Incidents = append(config.Incidents, sim.Incident{At: time.Duration(p.at), Kind: sim.NodePressure,
			Node: p.node, Gives: p.gives})
	}
	for _, p := range s.pauses {
		id := s.jobs[p.job].ID
		config.Incidents = append(config.Incidents, sim.Incident{At: time.Duration(p.at), Kind: sim.JobPause, Job: id,
			PageOut: p.out}, sim.Incident{At: time.Duration(p.until), Kind: sim.JobResume, Job: id})
	}
	slices.SortStableFunc(config.Incidents, func(a, b sim.Incident) int { return int(a.At - b.At) })
	var w workload.Workload
	for _, j := range s.jobs {
		work := workload.Job{Job: j.Job, After: -1}
		for i, d := range j.really {
			truth := workload.StageTruth{Duration: workload.ForAll(d)}
			if len(j.Stages[i].Phases) > 0 { // a forecast: as in the world, tasks demand what they need, all the time
				demand := j.Stages[i].Ideal
				if len(s.resizings) == 0 { // and no more CPU than they are granted
					demand[resource.CPU] = 0
				}
				truth.Phases = workload.ForAll([]cluster.Phase{{Duration: d, Demand: demand}})
			}
			work.Truth = append(work.Truth, truth)
		}
		w.Jobs = append(w.Jobs, work)
	}
	res, err := sim.Run(config, &w, uninformed{s.policy(t, c)})
	if err != nil {
		t.Fatalf("%s: %v", c.title, err)
	}
	for i := range res.Jobs {
		j := &res.Jobs[i]
		if !j.Done && j.Stuck == "" {
			t.Errorf("%s: job %s does not end, and no reason is given", c.title, j.Name)
		}
		h.jobs = append(h.jobs, ending{j.Done, "succeeded", j.Ended})
	}
	for _, r := range res.Tasks {
		if !r.Coordinator {
			h.tasks = append(h.tasks, life{r.ID, r.Node, r.Memory, r.Launched, r.Finished, r.Outcome})
		}
	}
	slices.SortStableFunc(h.tasks, func(a, b life) int { return lifeOrder(&a, &b) })
	return h
}

// loop is the smallest possible driver: it passes each event of the world to an engine.
func loop(t tester, s *scenario, c choice) history { return loopFrom(t, s, c, 0) }

// loopLater is loop with a clock that started long ago: decisions must not depend on the origin of time.
func loopLater(t tester, s *scenario, c choice) history {
	return loopFrom(t, s, c, timeline.Time(26*365*24*time.Hour+777*time.Millisecond))
}

func loopFrom(t tester, s *scenario, c choice, origin timeline.Time) history {
	t.Helper()
	var h history
	e, ends := engine.New(s.policy(t, c), s.describe),
		foreseer{map[cluster.JobID]*cluster.Job{}, map[cluster.TaskID]*foreseen{},
			map[[2]int64]int{}}
	tell := func(now timeline.Time, events ...cluster.Event) []cluster.Decision {
		for i := range events {
			events[i] = shift(events[i], origin)
		}
		decisions, err := e.Step(origin+now, events...)
		if err != nil {
			t.Fatalf("%s: %v", c.title, err)
		}
		if err := auditReasons(e, origin+now); err != nil {
			t.Errorf("%s at %s: %v", c.title, seconds(now), err)
		}
		ends.see(origin+now, events, decisions)
		if err := ends.check(e, origin+now); err != nil {
			t.Errorf("%s at %s: %v", c.title, seconds(now), err)
		}
		mustEnd(t, s, c, &h)
		h.steps = append(h.steps, step{origin + now, events, slices.Clone(decisions)})
		for i := range decisions {
			decisions[i].At -= origin // of a Wake, a Throttle or a Suspend, for the world
		}
		return decisions
	}
	var boot []cluster.Event
	for i := range s.nodes {
		boot = append(boot, cluster.Event{Kind: cluster.NodeJoined, NewNode: &s.nodes[i]})
	}
	tell(0, append(boot, cluster.Event{Kind: cluster.Synced})...)
	w := newWorld(s)
	w.solve = func(ask *cluster.Decision) cluster.Event {
		answer := e.Question(ask).Solve(cmp.Or(s.states, cluster.SolverStates))
		return shift(cluster.Event{Kind: cluster.Answered, Node: ask.Node, Decision: ask.ID, Answer: &answer}, -origin)
	}
	states := make([]*book.JobState, len(s.jobs))
	w.tell = func(now timeline.Time, ev cluster.Event) []cluster.Decision {
		j, here := e.Snapshot().Job(ev.Job)
		switch ev.Kind {
		case cluster.JobCancelled, cluster.JobRevised:
			if !here {
				return nil // it has ended: to cancel it is an error then, and it is not revised
			}
		case cluster.JobPaused, cluster.JobResumed:
			if !here || j.Status.Ended() || j.PausedWhole() == (ev.Kind == cluster.JobPaused) {
				return nil // an error, or nothing, for whoever wants it
			}
		case cluster.JobGrew:
			if !here || j.CheckGrowth(ev.Found.Growth) != nil {
				return nil // it has ended, or a stage has ended that would get more tasks
			}
		case cluster.Answered:
			if !slices.ContainsFunc(states, func(j *book.JobState) bool { return j == nil || !j.Status.Ended() }) {
				return nil // the simulator has ended
			}
		}
		decisions := tell(now, ev)
		if ev.Kind == cluster.JobSubmitted {
			states[ev.NewJob.ID-1], _ = e.Snapshot().Job(ev.NewJob.ID)
		}
		return decisions
	}
	w.pass(func(at timeline.Time) (timeline.Time, []cluster.Decision) { return at, nil })
	for _, j := range states {
		h.jobs = append(h.jobs, ending{j.Status.Ended(), j.Status.String(), j.Finish - origin})
	}
	h.tasks = w.lives
	h.moveBack(origin)
	return h
}

// shift returns e with its times counted from an earlier origin.
func shift(e cluster.Event, by timeline.Time) cluster.Event {
	if e.Launched != 0 || e.Kind == cluster.DecisionDone {
		e.Launched += by
	}
	if e.NewJob != nil {
		job := *e.NewJob
		job.Submitted += by
		e.NewJob = &job
	}
	if e.Answer != nil {
		answer := *e.Answer
		answer.Shifts = slices.Clone(answer.Shifts)
		for i := range answer.Shifts {
			answer.Shifts[i].From += by
			answer.Shifts[i].To += by
		}
		e.Answer = &answer
	}
	return e
}

// moveBack makes all times of the steps relative to the origin.
func (h *history) moveBack(origin timeline.Time) {
	if origin == 0 {
		return
	}
	for i := range h.steps {
		step := &h.steps[i]
		step.now -= origin
		for k := range step.events {
			step.events[k] = shift(step.events[k], -origin)
		}
		for k := range step.decisions {
			moveReason(&step.decisions[k].Reason, origin)
			if step.decisions[k].At != 0 {
				step.decisions[k].At -= origin // of a Wake, a Throttle or a Suspend
			}
		}
	}
}

func moveReason(r *cluster.Reason, origin timeline.Time) {
	switch r.Code {
	case cluster.FitsUnderSized, cluster.FitsUnderSizedNoLimit, cluster.FitsInGap, cluster.WouldEndAfterJob,
		cluster.KeptForStage:
		for _, at := range []*int64{&r.B, &r.C} {
			if *at != 0 && *at != int64(timeline.Never) {
				*at -= int64(origin)
			}
		}
	case cluster.Fluctuates, cluster.Shifted, cluster.ExceedsLater:
		r.A -= int64(origin)
	case cluster.PastDeadline:
		r.B -= int64(origin)
	case cluster.WaitedTooLittle, cluster.TooFewServers, cluster.TooFewPlaces:
		if r.C != int64(timeline.Never) {
			r.C -= int64(origin)
		}
	}
}

// backend is a machine whose containers are processes of a world.
type backend struct {
	events  chan cluster.Event
	applied chan struct{} // has an element when there may be orders
	origin  timeline.Time
	mu      sync.Mutex
	orders  []cluster.Order
}

func (b *backend) Apply(orders []cluster.Order) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.orders = append(b.orders, orders...)
	select {
	case b.applied <- struct{}{}:
	default:
	}
}

// wait returns at the given time, or earlier when unrequested orders arrive, which a driver's own timer causes.
func (b *backend) wait(until time.Time) []cluster.Decision {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return nil
		case <-b.applied:
			synctest.Wait()
			if decisions := b.take(); len(decisions) > 0 {
				return decisions
			}
		}
	}
}

func (b *backend) Events() <-chan cluster.Event             { return b.events }
func (b *backend) Forget(cluster.ContainerID)               {}
func (b *backend) Capabilities() (all cluster.Capabilities) { return all }
func (b *backend) Input(cluster.ContainerID) (io.ReadWriteCloser, error) {
	return nil, errors.ErrUnsupported
}
func (b *backend) Usage(cluster.ContainerID) (usage.Usage, error) {
	return usage.Usage{}, errors.ErrUnsupported
}
func (b *backend) Readings() map[cluster.ContainerID]cluster.Reading { return nil }

// take returns the decisions that have arrived since the last call.
func (b *backend) take() (decisions []cluster.Decision) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, o := range b.orders {
		o.At -= b.origin // of a Throttle
		decisions = append(decisions, o.Decision)
	}
	b.orders = nil
	return decisions
}

// runLive runs the driver in real time, in a bubble in which time advances at once. Its steps are read from its event
// log.
func runLive(tb tester, s *scenario, c choice) (h history) {
	tb.Helper()
	dir := tb.(*testing.T).TempDir()
	synctest.Test(tb.(*testing.T), func(t *testing.T) {
		st, err := store.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		origin := timeline.Time(time.Now().UnixNano())
		b := &backend{origin: origin, events: make(chan cluster.Event, len(s.nodes)+1), applied: make(chan struct{}, 1)}
		for i := range s.nodes {
			b.events <- cluster.Event{Kind: cluster.NodeJoined, NewNode: &s.nodes[i]}
		}
		b.events <- cluster.Event{Kind: cluster.Synced}
		d, err := live.Start(live.Config{Policy: s.policy(t, c), Settings: c.settings, Backend: b, Store: st, Dir: dir,
			Log: slog.New(slog.NewTextHandler(t.Output(), nil)), ContainersPerCore: s.containers, Keeps: !s.lends,
			SolverStates: s.states})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := errors.Join(d.Close(), st.Close()); err != nil {
				t.Error(err)
			}
			h.steps = readLog(t, d.EventLog())
			h.moveBack(origin)
		}()
		w := newWorld(s)
		w.tell = func(now timeline.Time, e cluster.Event) []cluster.Decision {
			hand(t, d, b, e, origin)
			synctest.Wait()
			return b.take()
		}
		w.pass(func(at timeline.Time) (timeline.Time, []cluster.Decision) {
			decisions := b.wait(time.Unix(0, int64(origin+at)))
			return timeline.Time(time.Now().UnixNano()) - origin, decisions
		})
		for i := range s.jobs {
			j, err := d.Job(context.Background(), s.jobs[i].ID, false)
			if err != nil {
				t.Fatal(err)
			}
			h.jobs = append(h.jobs, ending{j.Ended, j.Status.String(), timeline.Time(j.Finished.UnixNano()) - origin})
		}
		h.tasks = w.lives
	})
	return h
}

// hand passes an event of the world to a live driver, through the interface of whoever causes it.
func hand(t *testing.T, d *live.Driver, b *backend, e cluster.Event, origin timeline.Time) {
	t.Helper()
	switch e.Kind {
	case cluster.JobSubmitted:
		job := *e.NewJob
		job.ID, job.Submitted = 0, 0
		sub := live.Submission{Job: job, Caller: cluster.Credentials{User: job.Owner}, Dir: "/"}
		sub.Job.Stages = slices.Clone(job.Stages)
		for i := range sub.Job.Stages {
			s := &sub.Job.Stages[i]
			s.Args = []string{"true"}
			s.MaxCPU = cmp.Or(s.MaxCPU, s.Ideal[resource.CPU]) // as the simulator takes it, and not all of the node
		}
		id, err := d.Submit(context.Background(), sub)
		if err != nil || id != e.NewJob.ID {
			t.Fatalf("submit job %s: id %d, %v", job.Name, id, err)
		}
	case cluster.JobCancelled:
		if err := d.Cancel(context.Background(), cluster.Credentials{}, e.Job); err != nil &&
			api.KindOf(err) != api.Invalid {
			t.Fatal(err)
		}
	case cluster.JobPaused, cluster.JobResumed:
		do := func() error {
			return d.Pause(context.Background(), cluster.Credentials{}, e.Job, cluster.TaskID{}, e.Condition().PageOut)
		}
		if e.Kind == cluster.JobResumed {
			do = func() error { return d.Resume(context.Background(), cluster.Credentials{}, e.Job, cluster.TaskID{}) }
		}
		if err := do(); err != nil && api.KindOf(err) != api.Invalid {
			t.Fatal(err)
		}
	default:
		b.events <- shift(e, origin)
	}
}

// readLog reads the steps of an event log.
func readLog(t *testing.T, name string) (steps []step) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	r, err := eventlog.NewReader(f, name)
	if err != nil {
		t.Fatal(err)
	}
	for {
		record, err := r.Next()
		switch {
		case err == io.EOF:
			return steps
		case err != nil:
			t.Fatal(err)
		case record.Events != nil:
			steps = append(steps, step{now: record.Now, events: record.Events})
		default:
			steps[len(steps)-1].decisions = record.Decisions
		}
	}
}

// replay passes the events of another driver's run to a new engine whose policy sometimes drops its caches.
func replay(of driver) func(tester, *scenario, choice) history {
	return func(t tester, s *scenario, c choice) history {
		t.Helper()
		h := of.run(t, s, c)
		e := engine.New(&forgetful{s.policy(t, c), rand.New(rand.NewPCG(1, 2))}, s.describe)
		for i := range h.steps {
			step := &h.steps[i]
			decisions, err := e.Step(step.now, step.events...)
			if err != nil {
				t.Fatalf("%s: %v", c.title, err)
			}
			if fmt.Sprintf("%+v", decisions) != fmt.Sprintf("%+v", step.decisions) {
				t.Fatalf("%s: at %s, replaying %+v, it decides\n%+v\ninstead of\n%+v", c.title, seconds(step.now), step.events,
					decisions, step.decisions)
			}
		}
		return h
	}
}

// describe configures in an engine's snapshot how s launches tasks.
func (s *scenario) describe(to *book.Snapshot) {
	to.Heartbeats.Every, to.Heartbeats.Starts = s.heartbeat, s.starts
	to.ContainersPerCore, to.Lends = s.containers, s.lends
	to.Heartbeats.Launch, to.LaunchDelay = s.coordinates, s.coordinates
}

// forgetful drops the caches of a policy before some decisions.
type forgetful struct {
	policy.Policy
	random *rand.Rand
}

func (f *forgetful) Decide(now timeline.Time, p *book.Plan) {
	if drop := f.Policy.Traits().DropCaches; drop != nil && f.random.IntN(3) == 0 {
		drop()
	}
	f.Policy.Decide(now, p)
}

// uninformed is a policy that is not told how tasks come along: the world of the other drivers does not tell it.
type uninformed struct{ policy.Policy }

func (u uninformed) Traits() policy.Traits {
	t := u.Policy.Traits()
	t.LooksAhead = false
	return t
}

// tooLarge returns an error for the first job that fits on no node, or that the policy does not admit.
func (s *scenario) tooLarge(p policy.Policy) error {
	b := book.NewBook(nil)
	for i := range s.nodes {
		if err := b.Enter(0, &cluster.Event{Kind: cluster.NodeJoined, NewNode: &s.nodes[i]}); err != nil {
			return err
		}
	}
	for i := range s.jobs {
		j := s.jobs[i].Job
		if s.coordinates > 0 {
			j.Stages = append([]cluster.Stage{{Tasks: 1, Coordinator: true, Ideal: s.coordinator}}, j.Stages...)
		}
		if err := policy.CheckRuns(p, b.Snapshot(), &j); err != nil {
			return err
		}
	}
	return nil
}
