package sim

import (
	"fmt"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/engine"
	"github.com/bellows-rm/bellows/policy"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
	"github.com/bellows-rm/bellows/trace"
)

// run is a simulation in progress.
type run struct {
	config   Config
	policy   policy.Policy
	engine   *engine.Engine
	agenda   agenda
	now      timeline.Time
	jobs     []*job
	byID     map[cluster.JobID]*job
	protocol protocol
	used     usage
	ended    int
	result   *Result
	err      error
	events   []cluster.Event // of the step in preparation
	tasks    []*task         // all that were started, by index
	spare    []task          // room for tasks to come
}

// protocol is how the cluster acquires and reports work: by heartbeats or at once.
type protocol interface {
	begin()
	arrive(j *job)             // the job was submitted
	started(t *task)           // a decision started it
	gaveBack(n cluster.NodeID) // a hopeless reservation ended
	handle(i item)             // a happening of the protocol's own
	finished(t *task)          // the process ended
}

// job is a job as it really is.
type job struct {
	*trace.Job
	index     int32
	arrived   bool
	done      bool
	unstarted int // tasks that no decision has started yet, coordinator included
	unended   int // tasks whose process has not ended, coordinator aside
	master    master
}

// task is a task that has been started.
type task struct {
	index    int32
	job      *job
	id       cluster.TaskID
	decision cluster.DecisionID
	node     cluster.NodeID
	grant    resource.Vector
	result   TaskResult
}

// Run simulates the workload under the policy. Jobs that do not end are in the result with the reason; an error means a
// bad configuration, a workload that no node can hold, or an impossible decision of the policy.
func Run(c Config, w *trace.Workload, p policy.Policy) (*Result, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	r := &run{config: c, policy: p, engine: engine.New(p, c.describe), byID: map[cluster.JobID]*job{},
		result: &Result{}}
	if err := r.load(w); err != nil {
		return nil, err
	}
	if c.Heartbeat > 0 {
		r.protocol = newHeartbeats(r)
	} else {
		r.protocol = &direct{r}
	}
	r.boot()
	if err := r.checkFits(); err != nil {
		return nil, err
	}
	for _, j := range r.jobs {
		if j.After < 0 {
			r.agenda.push(j.Submitted, arrival, j.index)
		}
	}
	r.protocol.begin()
	for r.ended < len(r.jobs) && r.err == nil {
		i, ok := r.agenda.pop()
		if !ok {
			break
		}
		r.handle(i)
	}
	if r.err != nil {
		return nil, r.err
	}
	return r.finish(), nil
}

// load takes over the workload, with coordinators where the cluster has them.
func (r *run) load(w *trace.Workload) error {
	for i := range w.Jobs {
		t := new(trace.Job) // the workload may serve other runs at the same time
		*t = w.Jobs[i]
		if r.config.CoordinatorHeartbeat > 0 {
			t = withCoordinator(t, r.config.Coordinator)
		}
		j := &job{Job: t, index: int32(i)}
		if _, twice := r.byID[t.ID]; twice {
			return fmt.Errorf("job %q id %d: another job has it", t.Name, t.ID)
		}
		for s := range t.Stages {
			j.unstarted += t.Stages[s].Tasks
			if !t.Stages[s].Coordinator {
				j.unended += t.Stages[s].Tasks
			}
		}
		r.jobs = append(r.jobs, j)
		r.byID[t.ID] = j
		r.result.Jobs = append(r.result.Jobs, JobResult{ID: t.ID, Name: t.Name, Submitted: t.Submitted})
	}
	return nil
}

// boot brings the nodes up.
func (r *run) boot() {
	var events []cluster.Event
	for i := range r.config.Nodes {
		events = append(events, cluster.Event{Kind: cluster.NodeJoined, NewNode: &r.config.Nodes[i]})
	}
	r.step(append(events, cluster.Event{Kind: cluster.Synced}))
}

// checkFits refuses a workload with a task that no node can ever hold.
func (r *run) checkFits() error {
	e, ok := r.policy.(policy.Elastic)
	for _, j := range r.jobs {
		if err := r.engine.Snapshot().CheckFits(&j.Job.Job, ok && e.UnderSizes()); err != nil {
			return err
		}
		for s := range j.Stages {
			if !j.Stages[s].Coordinator && trueDuration(j.Job, s, 0, j.Stages[s].Ideal[resource.Memory]) <= 0 {
				return fmt.Errorf("job %q stage %d duration: the simulator must know how long its tasks run", j.Name, s)
			}
		}
	}
	return r.err
}

func (r *run) handle(i item) {
	r.now = i.at
	r.result.Events++
	switch i.what {
	case arrival:
		r.arrive(r.jobs[i.who])
	case woken:
		r.stepOne(cluster.Event{Kind: cluster.Woken})
	case ended:
		t := r.tasks[i.who]
		t.result.Finished = r.now
		r.used.change(r.now, -t.grant[resource.Memory])
		if !t.result.Coordinator {
			t.job.unended--
		}
		r.protocol.finished(t)
	default:
		r.protocol.handle(i)
	}
}

func (r *run) arrive(j *job) {
	j.arrived = true
	j.Submitted = r.now
	r.result.Jobs[j.index].Submitted = r.now
	r.protocol.arrive(j)
}

func (r *run) stepOne(e cluster.Event) {
	r.events = append(r.events[:0], e)
	r.step(r.events)
}

// newTask makes room for tasks in batches.
func (r *run) newTask() *task {
	if len(r.spare) == 0 {
		r.spare = make([]task, 256)
	}
	t := &r.spare[0]
	r.spare = r.spare[1:]
	t.index = int32(len(r.tasks))
	r.tasks = append(r.tasks, t)
	return t
}

// step hands events to the engine and carries its decisions out.
func (r *run) step(events []cluster.Event) {
	decisions, err := r.engine.Step(r.now, events...)
	if err != nil {
		r.err = err
		return
	}
	if r.config.Observe != nil {
		r.config.Observe(r.now, events, decisions)
	}
	for i := range decisions {
		switch d := &decisions[i]; d.Kind {
		case cluster.Start:
			j := r.byID[d.Task.Job]
			j.unstarted--
			t := r.newTask()
			*t = task{index: t.index, job: j, id: d.Task, decision: d.ID, node: d.Node, grant: d.Grant}
			t.result = TaskResult{ID: d.Task, Coordinator: j.Stages[d.Task.Stage].Coordinator, Node: d.Node,
				Memory: d.Grant[resource.Memory], Decided: r.now,
				Elastic: d.Grant[resource.Memory] < j.Stages[d.Task.Stage].Ideal[resource.Memory]}
			r.used.change(r.now, d.Grant[resource.Memory])
			r.protocol.started(t)
		case cluster.Wake:
			r.agenda.push(d.At, woken, 0)
		case cluster.Unreserve:
			if d.Reason.Code == cluster.ReservationHopeless {
				r.protocol.gaveBack(d.Node)
			}
		}
	}
}

// launch makes a task's process run.
func (r *run) launch(t *task) {
	t.result.Launched = r.now
	if !t.result.Coordinator {
		j := &r.result.Jobs[t.job.index]
		if j.Tasks == 0 {
			j.Started = r.now
		}
		j.Tasks++
		r.result.Started++
		if t.result.Elastic {
			j.Elastic++
			r.result.Elastic++
		}
		d := trueDuration(t.job.Job, int(t.id.Stage), t.id.Index, t.grant[resource.Memory])
		r.agenda.push(r.now.Add(d), ended, t.index)
	}
	r.stepOne(cluster.Event{Kind: cluster.DecisionDone, Decision: t.decision, Task: t.id, Node: t.node})
}

// keep records a task that ended.
func (r *run) keep(t *task) {
	if r.config.KeepTasks {
		r.result.Tasks = append(r.result.Tasks, t.result)
	}
}

// endJob records the end of a job and submits those that wait for it.
func (r *run) endJob(j *job) {
	j.done = true
	r.ended++
	res := &r.result.Jobs[j.index]
	res.Done, res.Ended = true, r.now
	for _, next := range r.jobs {
		if next.After == int(j.index) {
			r.agenda.push(r.now, arrival, next.index)
		}
	}
	if r.config.Progress != nil {
		r.config.Progress(r.ended, len(r.jobs), r.now)
	}
}
