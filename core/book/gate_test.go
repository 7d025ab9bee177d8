package book

import (
	"fmt"
	"slices"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"pgregory.net/rapid"
)

// gated is a node on which the tasks of several users run under quotas. Its policy starts what the gate lets through,
// in the order of jobs.
type gated struct {
	*testing.T
	book *Book
	now  timeline.Time
	last []cluster.Decision
}

func newGated(t *testing.T, q *cluster.Quotas) *gated {
	g := &gated{T: t, book: NewBook(nil)}
	g.step(cluster.Event{Kind: cluster.QuotasSet, Found: &cluster.Condition{Quotas: q}})
	g.step(cluster.Event{Kind: cluster.NodeJoined,
		NewNode: &cluster.Node{Name: "n", Capacity: resource.Of(100*resource.Core, 100*resource.GB)}})
	g.step(cluster.Event{Kind: cluster.Synced})
	return g
}

// step enters an event, and starts and launches tasks. It returns those that were started.
func (g *gated) step(e cluster.Event) (started []cluster.TaskID) {
	g.Helper()
	p := g.enter(e)
	if p.Synced {
		g.book.Gate()
		for _, j := range p.Jobs {
			for stage, ok := j.NextStage(); ok; stage, ok = j.NextStage() {
				started = append(started, p.Start(j, stage, p.Nodes[0], j.Stages[stage].Ideal[resource.Memory],
					cluster.BecauseFits(1)).ID)
			}
		}
	}
	g.close()
	for _, id := range started {
		g.enter(cluster.Event{Kind: cluster.DecisionDone, Task: id})
		g.close()
	}
	return started
}

func (g *gated) enter(e cluster.Event) *Plan {
	g.Helper()
	g.now++
	p := g.book.Open(g.now)
	if err := g.book.Enter(g.now, &e); err != nil {
		g.Fatal(err)
	}
	return p
}

func (g *gated) close() {
	g.Helper()
	all, err := g.book.Close()
	if err != nil {
		g.Fatal(err)
	}
	g.last = slices.Clone(all)
}

// submit submits a job with tasks of one core and the given memory, in GB.
func (g *gated) submit(id cluster.JobID, owner string, tasks, memory int) []cluster.TaskID {
	g.Helper()
	return g.step(cluster.Event{Kind: cluster.JobSubmitted, NewJob: ofUser(id, owner, tasks, memory)})
}

func ofUser(id cluster.JobID, owner string, tasks, memory int) *cluster.Job {
	return &cluster.Job{ID: id, Name: fmt.Sprint("J", id), Owner: owner, MaxAttempts: 3,
		Stages: []cluster.Stage{{Tasks: tasks, Ideal: resource.Of(resource.Core, resource.Amount(memory)*resource.GB)}}}
}

func (g *gated) end(id cluster.TaskID, outcome cluster.Outcome) []cluster.TaskID {
	g.Helper()
	return g.step(cluster.Event{Kind: cluster.TaskEnded, Task: id, Outcome: outcome})
}

func (g *gated) waits(id cluster.JobID, want string) {
	g.Helper()
	j, _ := g.book.Snapshot().Job(id)
	why, ok := g.book.WhyWaits(g.now, j)
	if got := why.Words(nil); ok != (want != "") || ok && got != want {
		g.Errorf("job %d waits (%v): %q, want %q", id, ok, got, want)
	}
}

func (g *gated) started(got []cluster.TaskID, want ...cluster.TaskID) {
	g.Helper()
	if !slices.Equal(got, want) {
		g.Errorf("%v were started, want %v", got, want)
	}
}

func users(limits cluster.Limits) *cluster.Quotas {
	return &cluster.Quotas{Users: map[string]cluster.Limits{"": limits}}
}

// A user has no more memory than the quota, whatever the user submits. A later job that fits is not kept back, and
// other users and root are not concerned.
func TestMemoryQuota(t *testing.T) {
	g := newGated(t, users(cluster.Limits{cluster.QuotaMemory: {Most: 6 * int64(resource.GB)}}))
	g.started(g.submit(1, "ada", 3, 2), cluster.TaskID{Job: 1}, cluster.TaskID{Job: 1, Index: 1},
		cluster.TaskID{Job: 1, Index: 2})
	g.started(g.submit(2, "ada", 1, 4))
	if w := g.last[0]; w.Kind != cluster.Wait || w.Reason.Code != cluster.OverUserQuota || w.Task.Job != 2 {
		t.Errorf("decided %+v", g.last)
	}
	g.waits(2, "over the memory quota of its user: 6GB of 6GB taken")
	g.started(g.submit(3, "bob", 1, 6), cluster.TaskID{Job: 3})
	g.started(g.submit(4, "root", 1, 7), cluster.TaskID{Job: 4})
	g.started(g.end(cluster.TaskID{Job: 1}, cluster.Succeeded))
	g.waits(2, "over the memory quota of its user: 4GB of 6GB taken, and it needs more than is left")
	g.started(g.submit(5, "ada", 2, 1), cluster.TaskID{Job: 5}, cluster.TaskID{Job: 5, Index: 1})
	// A task that runs again keeps its part of the quota.
	g.started(g.end(cluster.TaskID{Job: 1, Index: 1}, cluster.Failed), cluster.TaskID{Job: 1, Index: 1})
	g.started(g.end(cluster.TaskID{Job: 1, Index: 2}, cluster.Succeeded))
	g.started(g.end(cluster.TaskID{Job: 5}, cluster.Succeeded))
	g.started(g.end(cluster.TaskID{Job: 5, Index: 1}, cluster.Succeeded), cluster.TaskID{Job: 2})
	g.waits(2, "")
}

// The tasks of one job start as far as the quota permits.
func TestQuotaWithinAJob(t *testing.T) {
	g := newGated(t, users(cluster.Limits{cluster.QuotaCPU: {Most: int64(2 * resource.Core)}}))
	g.started(g.submit(1, "ada", 5, 1), cluster.TaskID{Job: 1}, cluster.TaskID{Job: 1, Index: 1})
	g.waits(1, "over the cpus quota of its user: 2 cores of 2 cores taken")
	g.started(g.end(cluster.TaskID{Job: 1, Index: 1}, cluster.Succeeded), cluster.TaskID{Job: 1, Index: 2})
	g.step(cluster.Event{Kind: cluster.JobCancelled, Job: 1})
	g.started(g.submit(2, "ada", 1, 1)) // What is being killed still counts.
	g.started(g.end(cluster.TaskID{Job: 1}, cluster.Killed), cluster.TaskID{Job: 2})
}

// A job that has started counts until it has ended, also between its stages.
func TestRunningQuota(t *testing.T) {
	g := newGated(t, &cluster.Quotas{Users: map[string]cluster.Limits{"": {cluster.QuotaRunning: {Most: 1}},
		"ada": {cluster.QuotaRunning: {Most: 2}}, "eve": {cluster.QuotaRunning: {Most: cluster.Unlimited}}},
		Queues: map[string]cluster.Limits{"slow": {cluster.QuotaRunning: {Most: 1}}}})
	g.started(g.submit(1, "ada", 1, 1), cluster.TaskID{Job: 1})
	two := ofUser(2, "ada", 1, 1)
	two.Stages = append(two.Stages, cluster.Stage{Tasks: 1, Ideal: two.Stages[0].Ideal, Parents: []int{0}})
	g.started(g.step(cluster.Event{Kind: cluster.JobSubmitted, NewJob: two}), cluster.TaskID{Job: 2})
	g.started(g.submit(3, "ada", 1, 1))
	g.waits(3, "over the running quota of its user: 2 jobs of 2 jobs taken")
	g.started(g.end(cluster.TaskID{Job: 2}, cluster.Succeeded), cluster.TaskID{Job: 2, Stage: 1})
	g.started(g.submit(4, "bob", 1, 1), cluster.TaskID{Job: 4})
	g.started(g.submit(5, "bob", 1, 1))
	for id := cluster.JobID(6); id < 9; id++ {
		g.started(g.submit(id, "eve", 1, 1), cluster.TaskID{Job: id})
	}
	g.started(g.end(cluster.TaskID{Job: 2, Stage: 1}, cluster.Succeeded), cluster.TaskID{Job: 3})
	for id := cluster.JobID(9); id < 11; id++ {
		j := ofUser(id, "eve", 1, 1)
		j.Queue = "slow"
		g.step(cluster.Event{Kind: cluster.JobSubmitted, NewJob: j})
	}
	g.waits(10, "over the running quota of its queue: 1 job of 1 job taken")
	g.started(g.end(cluster.TaskID{Job: 9}, cluster.Succeeded), cluster.TaskID{Job: 10})
}

// Tasks that start together are let through together.
func TestQuotaOfAGang(t *testing.T) {
	g := newGated(t, users(cluster.Limits{cluster.QuotaMemory: {Most: 6 * int64(resource.GB)}}))
	g.started(g.submit(1, "ada", 1, 4), cluster.TaskID{Job: 1})
	gang := ofUser(2, "ada", 3, 1)
	gang.Stages[0].Together = true
	g.started(g.step(cluster.Event{Kind: cluster.JobSubmitted, NewJob: gang}))
	g.waits(2, "over the memory quota of its user: 4GB of 6GB taken, and it needs more than is left")
	g.started(g.end(cluster.TaskID{Job: 1}, cluster.Succeeded), cluster.TaskID{Job: 2}, cluster.TaskID{Job: 2, Index: 1},
		cluster.TaskID{Job: 2, Index: 2})
}

// A paused job that has not started leaves its part of the quota to others; one whose programs stand still keeps it.
func TestQuotaAndPauses(t *testing.T) {
	g := newGated(t, users(cluster.Limits{cluster.QuotaMemory: {Most: 2 * int64(resource.GB)}}))
	g.started(g.submit(1, "ada", 3, 1), cluster.TaskID{Job: 1}, cluster.TaskID{Job: 1, Index: 1})
	g.step(cluster.Event{Kind: cluster.JobPaused, Job: 1})
	g.started(g.submit(2, "ada", 1, 1))
	g.started(g.end(cluster.TaskID{Job: 1}, cluster.Lost), cluster.TaskID{Job: 2})
	g.started(g.step(cluster.Event{Kind: cluster.JobResumed, Job: 1}))
	g.waits(1, "over the memory quota of its user: 2GB of 2GB taken")
	g.started(g.end(cluster.TaskID{Job: 2}, cluster.Succeeded), cluster.TaskID{Job: 1})
	g.step(cluster.Event{Kind: cluster.JobPaused, Job: 1, Task: cluster.TaskID{Job: 1}})
	g.started(g.end(cluster.TaskID{Job: 1}, cluster.Lost), cluster.TaskID{Job: 1, Index: 2})
	g.started(g.step(cluster.Event{Kind: cluster.JobResumed, Job: 1, Task: cluster.TaskID{Job: 1}}))
	g.started(g.end(cluster.TaskID{Job: 1, Index: 1}, cluster.Succeeded), cluster.TaskID{Job: 1})
}

// Quotas can change: what runs stays, what waits starts when there is enough, and a job that could start no longer
// does.
func TestQuotasChange(t *testing.T) {
	g := newGated(t, &cluster.Quotas{})
	g.started(g.submit(1, "ada", 3, 1), cluster.TaskID{Job: 1}, cluster.TaskID{Job: 1, Index: 1},
		cluster.TaskID{Job: 1, Index: 2})
	g.step(cluster.Event{Kind: cluster.QuotasSet,
		Found: &cluster.Condition{Quotas: users(cluster.Limits{cluster.QuotaMemory: {Most: 2 * int64(resource.GB)}})}})
	g.started(g.submit(2, "ada", 1, 1))
	g.started(g.end(cluster.TaskID{Job: 1}, cluster.Succeeded))
	g.waits(2, "over the memory quota of its user: 2GB of 2GB taken")
	g.started(g.end(cluster.TaskID{Job: 1, Index: 1}, cluster.Succeeded), cluster.TaskID{Job: 2})
	g.started(g.submit(3, "ada", 2, 1))
	g.step(cluster.Event{Kind: cluster.QuotasSet,
		Found: &cluster.Condition{Quotas: users(cluster.Limits{cluster.QuotaMemory: {Most: int64(resource.GB)}})}})
	g.started(g.end(cluster.TaskID{Job: 1, Index: 2}, cluster.Lost)) // It keeps nothing of a quota that is exceeded.
	g.started(g.end(cluster.TaskID{Job: 2}, cluster.Succeeded), cluster.TaskID{Job: 1, Index: 2})
	g.started(g.step(cluster.Event{Kind: cluster.QuotasSet, Found: &cluster.Condition{Quotas: &cluster.Quotas{}}}),
		cluster.TaskID{Job: 3}, cluster.TaskID{Job: 3, Index: 1})
}

// A job that a quota can never let start is refused, with the field; so is one that a quota refuses now.
func TestOverQuota(t *testing.T) {
	q := &cluster.Quotas{Users: map[string]cluster.Limits{"": {cluster.QuotaMemory: {Most: 4 * int64(resource.GB),
		Refuses: true}, cluster.QuotaWaiting: {Most: 2}, cluster.QuotaRunning: {Most: 1}}}}
	g := newGated(t, q)
	if w := q.Never(ofUser(1, "ada", 1, 5)); w == nil ||
		w.Error() != `job "J1" stage "0" memory 5GB: must be at most 4GB, the quota of user ada` {
		t.Errorf("%v", w)
	}
	if w := q.Never(ofUser(1, "root", 1, 5)); w != nil {
		t.Error(w)
	}
	s := g.book.Snapshot()
	if e, over := s.OverQuota(ofUser(1, "ada", 1, 2), ofUser(2, "ada", 1, 2)); over {
		t.Error(e.Error())
	}
	if e, over := s.OverQuota(ofUser(1, "ada", 1, 2), ofUser(2, "ada", 1, 3)); !over ||
		e.Error() != "quota memory of user ada: must be at most 4GB, with 0B taken and 5GB added" {
		t.Error(over, e.Error())
	}
	g.started(g.submit(1, "ada", 1, 1), cluster.TaskID{Job: 1})
	g.submit(2, "ada", 1, 1)
	g.submit(3, "ada", 1, 1)
	if e, over := s.OverQuota(ofUser(4, "ada", 1, 1)); !over || e.Kind != cluster.QuotaWaiting || e.Taken != 2 ||
		e.Refuses {
		t.Error(over, e)
	}
	if e, over := s.OverQuota(ofUser(4, "bob", 1, 1)); over {
		t.Error(e.Error())
	}
}

// TestRandomQuotas: whatever is submitted, ends, is paused or cancelled, and whichever of the tasks that may start a
// policy chooses, no task starts above a quota, no job waits for a quota of which enough is left, and nothing is
// counted wrongly.
func TestRandomQuotas(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		number := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(rt, what) }
		quotas := func() *cluster.Quotas {
			limits := func() cluster.Limits {
				l := cluster.Limits{}
				for k := range cluster.NumCounted {
					most := int64(number("most", 1, 6))
					switch k {
					case cluster.QuotaMemory:
						most *= int64(resource.GB)
					case cluster.QuotaCPU:
						most *= int64(resource.Core)
					}
					if number("limited", 0, 1) == 0 {
						l[k] = cluster.Quota{Most: most}
					}
				}
				return l
			}
			return &cluster.Quotas{Users: map[string]cluster.Limits{"": limits(), "ada": limits()},
				Queues: map[string]cluster.Limits{"": limits()}}
		}
		b, q := NewBook(nil), quotas()
		now := timeline.Time(0)
		step := func(e cluster.Event) {
			now++
			p := b.Open(now)
			if err := b.Enter(now, &e); err != nil {
				rt.Fatal(err)
			}
			if p.Synced {
				b.Hold()
				b.Gate()
				checkGate(rt, p.Snapshot, q)
				for range number("starts", 0, 4) {
					if len(p.Jobs) == 0 {
						break
					}
					j := p.Jobs[number("job", 0, len(p.Jobs)-1)]
					if stage, ok := j.NextStage(); ok {
						if j.Stages[stage].Ideal.FitsIn(p.Nodes[0].Free) {
							p.Start(j, stage, p.Nodes[0], j.Stages[stage].Ideal[resource.Memory], cluster.BecauseFits(1))
							checkStart(rt, p.Snapshot, q, j)
						}
					}
				}
			}
			if _, err := b.Close(); err != nil {
				rt.Fatal(err)
			}
			checkGate(rt, b.Snapshot(), q)
		}
		step(cluster.Event{Kind: cluster.QuotasSet, Found: &cluster.Condition{Quotas: q}})
		step(cluster.Event{Kind: cluster.NodeJoined,
			NewNode: &cluster.Node{Name: "n", Capacity: resource.Of(100*resource.Core, 1000*resource.GB)}})
		step(cluster.Event{Kind: cluster.Synced})
		for id := range cluster.JobID(number("events", 1, 80)) {
			jobs := b.Snapshot().Jobs
			if len(jobs) == 0 || number("event", 0, 2) == 0 {
				j := ofUser(id+1, rapid.SampledFrom([]string{"ada", "bob", "root"}).Draw(rt, "owner"), number("tasks", 1, 4),
					number("memory", 1, 3))
				j.Queue = rapid.SampledFrom([]string{"", "q"}).Draw(rt, "queue")
				if number("second stage", 0, 2) == 0 {
					j.Stages = append(j.Stages, cluster.Stage{Tasks: number("more tasks", 1, 3),
						Ideal: resource.Of(resource.Core, resource.GB), Parents: []int{0}})
				}
				if number("coordinator", 0, 4) == 0 {
					j.Stages = append(j.Stages,
						cluster.Stage{Tasks: 1, Coordinator: true, Ideal: resource.Of(resource.Core, resource.GB)})
				}
				step(cluster.Event{Kind: cluster.JobSubmitted, NewJob: j})
				continue
			}
			j := jobs[number("which", 0, len(jobs)-1)]
			switch what := number("what", 0, 9); {
			case what == 0:
				step(cluster.Event{Kind: cluster.JobCancelled, Job: j.ID})
			case what == 1 && !j.PausedWhole():
				step(cluster.Event{Kind: cluster.JobPaused, Job: j.ID})
			case what <= 2 && j.PausedWhole():
				step(cluster.Event{Kind: cluster.JobResumed, Job: j.ID})
			case what == 3:
				q = quotas()
				step(cluster.Event{Kind: cluster.QuotasSet, Found: &cluster.Condition{Quotas: q}})
			case len(j.Tasks) == 0:
			default:
				task := j.Tasks[number("task", 0, len(j.Tasks)-1)]
				switch {
				case !task.Running:
					step(cluster.Event{Kind: cluster.DecisionDone, Task: task.ID})
				case what == 4 && len(j.paused.parts) == 0:
					step(cluster.Event{Kind: cluster.JobPaused, Job: j.ID, Task: task.ID})
				case what == 5 && len(j.paused.parts) > 0:
					step(cluster.Event{Kind: cluster.JobResumed, Job: j.ID, Task: j.paused.parts[0].task})
				default:
					step(cluster.Event{Kind: cluster.TaskEnded, Task: task.ID,
						Outcome: rapid.SampledFrom([]cluster.Outcome{cluster.Succeeded, cluster.Failed, cluster.Lost}).Draw(rt,
							"outcome")})
				}
			}
		}
	})
}

// takes is what jobs take of a quota: of what runs alone, or also of what was let through.
func takes(s *Snapshot, party cluster.Party, k cluster.QuotaKind, letThrough bool) (sum int64) {
	for _, j := range s.Jobs {
		if parties := j.Parties(); !slices.Contains(parties[:], party) {
			continue
		}
		tasks := 0
		for i, p := range j.Progress {
			n := p.Booked + p.Running
			if letThrough && !j.Status.Ended() {
				n += p.Pending - p.Withheld
			}
			if tasks += n; k < cluster.QuotaRunning {
				sum += int64(n) * j.Stages[i].Counts(k, 1)
			}
		}
		switch {
		case k == cluster.QuotaRunning && (tasks > 0 || j.begun && !j.Status.Ended()):
			sum++
		case k == cluster.QuotaWaiting && !j.begun && !j.Status.Ended():
			sum++
		}
	}
	return sum
}

// checkStart checks that the newest start of a task of a job has exceeded no quota.
func checkStart(t *rapid.T, s *Snapshot, q *cluster.Quotas, j *JobState) {
	for _, party := range j.Parties() {
		for k := range cluster.QuotaWaiting {
			if got, most := takes(s, party, k, false), q.Of(party, k).Most; got > most &&
				(k != cluster.QuotaRunning || len(j.Tasks) == 1 && j.Started == 0) {
				t.Fatalf("%s has %s of %s, and may have %s", party, k.Format(got), k, k.Format(most))
			}
		}
	}
}

// checkGate compares the accounts with what the jobs take, and looks for jobs that wait although enough is left for
// them.
func checkGate(t *rapid.T, s *Snapshot, q *cluster.Quotas) {
	for _, a := range s.gate.accounts {
		jobs, waiting, inside := 0, 0, 0
		for _, j := range s.Jobs {
			if j.standing == nil || !slices.Contains(j.standing.accounts, a) {
				continue
			}
			jobs++
			if j.waitsForQuota() {
				waiting++
				inside += int(j.standing.claim[cluster.QuotaRunning])
			}
		}
		if jobs == 0 || jobs != a.jobs || waiting != len(a.waiting) || inside != a.inside {
			t.Fatalf("%s has %d jobs, %d waiting and %d of them inside, want %d, %d and %d", a.party, a.jobs, len(a.waiting),
				a.inside, jobs, waiting, inside)
		}
		for k := range cluster.NumCounted {
			if want := takes(s, a.party, k, true); a.most[k] != cluster.Unlimited && a.taken[k] != want {
				t.Fatalf("%s has taken %d of %s, want %d", a.party, a.taken[k], k, want)
			}
		}
	}
	if !s.Synced {
		return
	}
	for _, j := range s.Jobs {
		stage, waits := j.withheldStage()
		if !waits {
			continue
		}
		needs := j.Stages[stage].Ideal
		short := false
		for _, party := range j.Parties() {
			left := func(k cluster.QuotaKind) int64 { return q.Of(party, k).Most - takes(s, party, k, true) }
			short = short || left(cluster.QuotaMemory) < int64(needs[resource.Memory]) ||
				left(cluster.QuotaCPU) < int64(needs[resource.CPU]) ||
				left(cluster.QuotaRunning) < 1 && j.standing.claim[cluster.QuotaRunning] == 0
		}
		if !short {
			t.Fatalf("job %d waits for a quota of which enough is left: %v", j.ID, j.standing.why(j, stage).Words(nil))
		}
	}
}
