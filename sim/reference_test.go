package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

// reference is a second, slow and plain simulator of fair sharing and of YARN-ME's Algorithm 1 on a cluster in which
// tasks start at once: jobs of one stage, saw-tooths, no coordinators. It shares no code with the engine or the
// policies.
//
// A node is offered when a task on it ends or its reservation ends; when a job arrives, every node with room for it is
// offered. The job with the least memory is served first, until nothing more can start. With reservations, the first
// job whose task cannot start, but could if nothing ran on the node, reserves the node. An under-sized task gets the
// multiple of 100 MB with the shortest run time, the smallest of ties, if it ends no later than its job does when this
// simulator continues without under-sizing.
type reference struct {
	jobs         []*refJob
	nodes        []refNode
	running      []refTask // in the order of their starts
	now          timeline.Time
	reservations bool
	elastic      bool
	estimatedAt  timeline.Time
	log          []string
	keeps        int // how often a node was reserved
}

type refJob struct {
	id                   int
	submitted            timeline.Time
	waiting, left        int
	cores, memory, least int64 // memory in MB
	ms                   int64 // run time with ideal memory
	factor2              int64 // twice the largest slowdown of the saw-tooth; 0: not elastic
	used                 int64
	end                  timeline.Time // estimated
	estimated            bool
}

type refNode struct {
	cores, memory int64 // free
	kept          int   // index of the job that reserved it, -1 if none
}

type refTask struct {
	job, node     int
	cores, memory int64
	end           timeline.Time
}

// play runs everything and returns one line per task.
func (r *reference) play() []string {
	r.estimatedAt = -1
	arrivals := slices.Clone(r.jobs)
	all := r.jobs
	r.jobs = nil
	for len(arrivals) > 0 || len(r.running) > 0 {
		first := r.firstEnd()
		if len(arrivals) > 0 && (first < 0 || arrivals[0].submitted < r.running[first].end) {
			r.now = arrivals[0].submitted
			r.jobs = all[:len(r.jobs)+1]
			arrivals = arrivals[1:]
			r.decide(nil, r.jobs[len(r.jobs)-1])
			continue
		}
		r.now = r.running[first].end
		r.decide([]int{r.finish(first)}, nil)
	}
	slices.Sort(r.log)
	return r.log
}

// firstEnd is the task that ends next; ties go to the task that started first. -1: no task is running.
func (r *reference) firstEnd() int {
	first := -1
	for i, t := range r.running {
		if first < 0 || t.end < r.running[first].end {
			first = i
		}
	}
	return first
}

// finish ends a task and returns its node.
func (r *reference) finish(i int) int {
	t := r.running[i]
	r.running = slices.Delete(r.running, i, i+1)
	r.nodes[t.node].cores += t.cores
	r.nodes[t.node].memory += t.memory
	r.jobs[t.job].used -= t.memory
	r.jobs[t.job].left--
	if r.jobs[t.job].left == 0 {
		r.jobs[t.job].end = r.now
	}
	return t.node
}

// decide starts what can start: on the given nodes, and tasks of an arrived job on any node.
func (r *reference) decide(nodes []int, arrived *refJob) {
	if r.elastic && (arrived != nil || r.now > r.estimatedAt) {
		r.estimatedAt = r.now
		r.estimate(nodes, arrived)
	}
	r.serve(nodes, arrived)
}

// estimate continues a copy without under-sizing and without new jobs.
func (r *reference) estimate(nodes []int, arrived *refJob) {
	c := &reference{now: r.now, nodes: slices.Clone(r.nodes), running: slices.Clone(r.running),
		reservations: r.reservations}
	var same *refJob
	for _, j := range r.jobs {
		k := *j
		c.jobs = append(c.jobs, &k)
		if j == arrived {
			same = &k
		}
	}
	c.serve(nodes, same)
	for len(c.running) > 0 {
		first := c.firstEnd()
		c.now = c.running[first].end
		c.serve([]int{c.finish(first)}, nil)
	}
	for i, j := range r.jobs {
		j.end, j.estimated = c.jobs[i].end, c.jobs[i].left == 0
	}
}

func (r *reference) serve(nodes []int, arrived *refJob) {
	if len(r.running) == 0 { // no task will end that a reservation could wait for
		for i := range r.nodes {
			if n := &r.nodes[i]; n.kept >= 0 && !r.fits(r.jobs[n.kept], n) {
				n.kept = -1
				nodes = append(nodes, i)
			}
		}
	}
	for len(nodes) > 0 || arrived != nil {
		if len(nodes) > 0 {
			nodes = append(nodes[1:], r.offer(nodes[0])...)
			continue
		}
		for i := range r.nodes {
			if n := &r.nodes[i]; n.kept < 0 && n.cores >= arrived.cores && n.memory >= arrived.leastMemory() {
				nodes = append(nodes, r.offer(i)...)
			}
		}
		arrived = nil
	}
}

func (j *refJob) leastMemory() int64 {
	if j.factor2 > 0 {
		return j.least
	}
	return j.memory
}

func (r *reference) fits(j *refJob, n *refNode) bool {
	return n.cores >= j.cores && n.memory >= j.memory
}

// offer starts on a node all tasks that may start there, and returns nodes that are no longer reserved.
func (r *reference) offer(node int) (freed []int) {
	for n := &r.nodes[node]; ; {
		if n.kept >= 0 && r.jobs[n.kept].waiting > 0 {
			started, more := r.start(n.kept, node)
			freed = append(freed, more...)
			if started {
				continue
			}
			return freed
		}
		n.kept = -1
		again := false
		for _, j := range r.queue() {
			started, more := r.start(j, node)
			freed = append(freed, more...)
			if started {
				again = true
				break
			}
			if r.reservations && len(r.running) > 0 && r.holds(r.jobs[j], node) {
				n.kept = j
				r.keeps++
				return freed
			}
		}
		if !again {
			return freed
		}
	}
}

// holds reports whether a task of a job could start on a node that runs nothing: with its ideal memory or, under
// yarn-me, with any smaller multiple of 100 MB that is at least its minimum memory.
func (r *reference) holds(j *refJob, node int) bool {
	empty := r.nodes[node]
	for _, t := range r.running {
		if t.node == node {
			empty.cores += t.cores
			empty.memory += t.memory
		}
	}
	if !r.elastic || j.factor2 == 0 {
		return r.fits(j, &empty)
	}
	smallest := min(j.memory, (j.least+99)/100*100)
	return empty.cores >= j.cores && empty.memory >= smallest
}

// queue returns the jobs with tasks to start, by ascending memory.
func (r *reference) queue() []int {
	var q []int
	for i, j := range r.jobs {
		if j.waiting > 0 {
			q = append(q, i)
		}
	}
	slices.SortFunc(q, func(a, b int) int {
		return cmp.Or(cmp.Compare(r.jobs[a].used, r.jobs[b].used), cmp.Compare(r.jobs[a].submitted, r.jobs[b].submitted),
			cmp.Compare(a, b))
	})
	return q
}

// start starts a task of a job on a node, if it may, and returns nodes whose reservation the job no longer needs.
func (r *reference) start(job, node int) (ok bool, freed []int) {
	j, n := r.jobs[job], &r.nodes[node]
	memory := j.memory
	if !r.fits(j, n) {
		if memory, ok = r.underSized(j, n); !ok {
			return false, nil
		}
	}
	end := r.now.Add(time.Duration(j.takes(memory)) * time.Millisecond)
	n.cores -= j.cores
	n.memory -= memory
	j.used += memory
	j.waiting--
	r.running = append(r.running, refTask{job, node, j.cores, memory, end})
	r.log = append(r.log, fmt.Sprintf("job %d on node %d: %d to %d ns with %d MB", j.id, node, r.now, end, memory))
	if n.kept == job {
		n.kept = -1
		freed = append(freed, node)
	}
	for i := range r.nodes {
		if j.waiting == 0 && r.nodes[i].kept == job {
			r.nodes[i].kept = -1
			freed = append(freed, i)
		}
	}
	return true, freed
}

// underSized is lines 7 to 10 of Algorithm 1.
func (r *reference) underSized(j *refJob, n *refNode) (memory int64, ok bool) {
	if !r.elastic || j.factor2 == 0 || n.cores < j.cores || n.memory < j.least {
		return 0, false
	}
	for m := (j.least + 99) / 100 * 100; m < j.memory && m <= n.memory; m += 100 {
		if memory == 0 || j.takes(m) < j.takes(memory) {
			memory = m
		}
	}
	end := r.now.Add(time.Duration(j.takes(memory)) * time.Millisecond)
	return memory, memory > 0 && (!j.estimated || end <= j.end)
}

// takes is the run time in ms: the run time with ideal memory, plus (factor-1) of it for each time that a memory
// smaller than the input is spilled whole.
func (j *refJob) takes(memory int64) int64 {
	if memory == j.memory {
		return j.ms
	}
	fills := (j.memory+memory-1)/memory - 1
	return j.ms * (2*j.memory + (j.factor2-2)*fills*memory) / (2 * j.memory)
}

// simulated is the result of package sim for the same cluster, one line per task.
func simulated(t rapid.TB, r *reference, name string, settings map[string]string) []string {
	t.Helper()
	p, err := policy.New(name, settings)
	if err != nil {
		t.Fatal(err)
	}
	c := Config{KeepTasks: true}
	for i, n := range r.nodes {
		c.Nodes = append(c.Nodes, cluster.Node{ID: cluster.NodeID(i), Name: fmt.Sprint("node", i),
			Capacity: resource.Of(resource.Amount(n.cores)*resource.Core, resource.Amount(n.memory)*testMB)})
	}
	w := &workload.Workload{}
	for _, j := range r.jobs {
		stage := cluster.Stage{Name: "s", Tasks: j.waiting, Ideal: resource.Of(resource.Amount(j.cores)*resource.Core,
			resource.Amount(j.memory)*testMB), Duration: time.Duration(j.ms) * time.Millisecond}
		if j.factor2 > 0 {
			stage.MinMemory, stage.Elasticity = resource.Amount(j.least)*testMB,
				cluster.Elasticity{Kind: cluster.SawTooth, Factor: float64(j.factor2) / 2}
		}
		w.Jobs = append(w.Jobs,
			workload.Job{Job: cluster.Job{ID: cluster.JobID(j.id), Name: fmt.Sprint("j", j.id), Submitted: j.submitted,
				Stages: []cluster.Stage{stage}}, After: -1})
	}
	res, err := Run(c, w, p)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, x := range res.Tasks {
		lines = append(lines, fmt.Sprintf("job %d on node %d: %d to %d ns with %d MB", x.ID.Job, x.Node, x.Launched,
			x.Finished, x.Memory/testMB))
	}
	slices.Sort(lines)
	return lines
}

// settings are the settings of the policy that r implements.
func (r *reference) settings() (name string, settings map[string]string) {
	if !r.elastic {
		return "fair", map[string]string{"fair.reservations": fmt.Sprint(r.reservations), "fair.gaps": "false"}
	}
	return "yarn-me", map[string]string{"yarn-me.reservations": fmt.Sprint(r.reservations), "yarn-me.gaps": "false",
		"yarn-me.timeline": "resimulate", "yarn-me.interval": "1ns"}
}

// TestReference: on random clusters fair and yarn-me, with and without reservations, start every task at the same time,
// on the same node and with the same memory as the reference.
func TestReference(t *testing.T) {
	underSized, kept, clusters := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		for range 4 {
			r := drawReference(t)
			name, settings := r.settings()
			got := simulated(t, r, name, settings)
			want := r.play()
			if !slices.Equal(got, want) {
				t.Fatalf("%s %v\nsimulated:\n%s\nreference:\n%s", name, settings, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			clusters++
			kept += r.keeps
			for _, line := range want {
				var job, node, from, to, memory int64
				if _, err := fmt.Sscanf(line, "job %d on node %d: %d to %d ns with %d MB", &job, &node, &from, &to,
					&memory); err != nil {
					t.Fatal(err)
				}
				if memory < r.jobs[job-1].memory {
					underSized++
				}
			}
		}
	})
	// With -short rapid draws a fifth.
	if !testing.Short() && (clusters < 400 || underSized < clusters/4 || kept < clusters/4) {
		t.Errorf("%d clusters with %d under-sized tasks and %d reservations are too few to show anything", clusters,
			underSized, kept)
	}
}

func drawReference(t *rapid.T) *reference {
	r := &reference{reservations: rapid.Bool().Draw(t, "reservations"),
		elastic: rapid.IntRange(0, 3).Draw(t, "elastic") > 0}
	for range rapid.IntRange(1, 4).Draw(t, "nodes") {
		r.nodes = append(r.nodes, refNode{cores: rapid.Int64Range(2, 8).Draw(t, "cores"),
			memory: 100 * rapid.Int64Range(40, 100).Draw(t, "memory"), kept: -1})
	}
	at := int64(0) // ms
	for i := range rapid.IntRange(1, 6).Draw(t, "jobs") {
		on := r.nodes[rapid.IntRange(0, len(r.nodes)-1).Draw(t, "node")]
		at += rapid.Int64Range(0, 60_000).Draw(t, "gap")
		j := &refJob{id: i + 1, waiting: rapid.IntRange(1, 7).Draw(t, "tasks"),
			cores: rapid.Int64Range(1, on.cores/2).Draw(t, "needs"), memory: 100 * rapid.Int64Range(5, on.memory/100).Draw(t,
				"ideal"), ms: rapid.Int64Range(1000, 100_000).Draw(t, "ms"),
			factor2: rapid.SampledFrom([]int64{0, 3, 4, 6}).Draw(t, "twice the factor")}
		// No job arrives, and no task ends, in the microsecond in which another job arrives.
		j.submitted = timeline.Time(at*1e6 + int64(i+1)*1e3)
		j.left, j.least = j.waiting, max(100, j.memory/10)
		r.jobs = append(r.jobs, j)
	}
	return r
}

// TestTiny: clusters so small that the results were worked out by hand.
func TestTiny(t *testing.T) {
	one := []refNode{{cores: 16, memory: 10_000, kept: -1}}
	job := func(id int, at int64, tasks int, memory, ms, factor2 int64) *refJob {
		return &refJob{id: id, submitted: timeline.Seconds(float64(at)), waiting: tasks, left: tasks, cores: 1,
			memory: memory, least: memory / 10, ms: ms, factor2: factor2}
	}
	for _, c := range []struct {
		name string
		r    reference
		want []string // "job: from to seconds, MB"
	}{
		// One after the other, the tasks would end at 300 s. 4 GB are free beside the first task: half of the ideal
		// memory spills half of the input and costs half of the penalty, 150 s. In the last GB, 5 fills of a sixth are
		// spilled: 100 + 5/6 of 100 s.
		{"the best sizes below the ideal", reference{elastic: true, jobs: []*refJob{job(1, 0, 3, 6000, 100_000, 4)}},
			[]string{"1: 0 100 s, 6000", "1: 0 150 s, 3000", "1: 0 183.333 s, 1000"}},
		// Alone, the tasks end at 200 s; with 2 GB of 8, 3 fills of a quarter give 100 + 2*3/4*100 = 250 s, and less
		// memory more.
		{"no straggler", reference{elastic: true, jobs: []*refJob{job(1, 0, 2, 8000, 100_000, 6)}},
			[]string{"1: 0 100 s, 8000", "1: 100 200 s, 8000"}},
		// With a penalty of 1.5 instead of 3 it is 137.5 s, which is shorter.
		{"no straggler after all", reference{elastic: true, jobs: []*refJob{job(1, 0, 2, 8000, 100_000, 3)}},
			[]string{"1: 0 100 s, 8000", "1: 0 137.500 s, 2000"}},
		// The second job does not fit, and reserves the node: the third waits although it would fit.
		{"a node is kept", reference{reservations: true,
			jobs: []*refJob{job(1, 0, 1, 5000, 100_000, 0), job(2, 5, 1, 8000, 50_000, 0), job(3, 6, 1, 4000, 10_000, 0)}},
			[]string{"1: 0 100 s, 5000", "2: 100 150 s, 8000", "3: 150 160 s, 4000"}},
		{"no node is kept", reference{jobs: []*refJob{job(1, 0, 1, 5000, 100_000, 0), job(2, 5, 1, 8000, 50_000, 0),
			job(3, 6, 1, 4000, 10_000, 0)}}, []string{"1: 0 100 s, 5000", "2: 100 150 s, 8000", "3: 6 16 s, 4000"}},
		// The second task may be under-sized: 5 GB are free, and 4 GB, half, give 50+25 s. Waiting, it would have ended
		// at 150 s.
		{"under-sized instead of waiting",
			reference{reservations: true, elastic: true,
				jobs: []*refJob{job(1, 0, 1, 5000, 100_000, 0), job(2, 5, 1, 8000, 50_000, 4)}},
			[]string{"1: 0 100 s, 5000", "2: 5 80 s, 4000"}},
		// At 10 s both tasks of the first job end. After one end the second job has the least memory; after the other,
		// the first.
		{"least memory first", reference{jobs: []*refJob{job(1, 0, 4, 4000, 10_000, 0), job(2, 1, 2, 4000, 10_000, 0)}},
			[]string{"1: 0 10 s, 4000", "1: 0 10 s, 4000", "1: 10 20 s, 4000", "1: 20 30 s, 4000", "2: 10 20 s, 4000",
				"2: 20 30 s, 4000"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.r.nodes = slices.Clone(one)
			name, settings := c.r.settings()
			for who, lines := range map[string][]string{"simulated": simulated(t, &c.r, name, settings),
				"reference": c.r.play()} {
				var got []string
				for _, line := range lines {
					var id, node, from, to, memory int64
					if _, err := fmt.Sscanf(line, "job %d on node %d: %d to %d ns with %d MB", &id, &node, &from, &to,
						&memory); err != nil {
						t.Fatal(err)
					}
					got = append(got, fmt.Sprintf("%d: %s %s s, %d", id, briefSeconds(from), briefSeconds(to), memory))
				}
				slices.Sort(got)
				if !slices.Equal(got, c.want) {
					t.Errorf("%s:\n%s\nwant:\n%s", who, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
				}
			}
		})
	}
}

func briefSeconds(ns int64) string {
	if ns%1e9 == 0 {
		return fmt.Sprint(ns / 1e9)
	}
	return fmt.Sprintf("%.3f", float64(ns)/1e9)
}
