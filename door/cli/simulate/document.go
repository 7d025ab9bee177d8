package simulate

import (
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/sim/bound"
	"github.com/bellows-rm/bellows/sim/trial"
)

// simulationJSON is the output of `bellows simulate --json`; docs/reference/output.md describes it.
type simulationJSON struct {
	Workload   workloadJSON `json:"workload" doc:"the workload; with several seeds that of the first"`
	Cluster    clusterJSON  `json:"cluster" doc:"the cluster"`
	Seeds      int          `json:"seeds,omitempty" doc:"number of seeds, if there are several"`
	Confidence float64      `json:"confidence,omitempty" doc:"level of the intervals, if there are several seeds: 0.95"`

	Results []resultJSON `json:"results" doc:"one for each policy, in the order of --policy: the fields below"`
}

type workloadJSON struct {
	Name         string       `json:"name" doc:"the file, or the name of the generator"`
	Format       string       `json:"format" doc:"generated, or the format of the file"`
	Jobs         int          `json:"jobs" doc:"number of jobs"`
	Tasks        int          `json:"tasks" doc:"number of tasks, without application masters"`
	Seed         *uint64      `json:"seed,omitempty" doc:"of the generator; omitted for files"`
	Penalty      string       `json:"penalty,omitempty" doc:"what less memory costs, as --penalty says"`
	Misjudged    string       `json:"misjudged,omitempty" doc:"[errors of estimates](simulation.md#wrong-estimates); omitted if there are none"`
	MisjudgeSeed *uint64      `json:"misjudge_seed,omitempty" doc:"their seed"`
	Beyond       []beyondJSON `json:"beyond,omitempty" doc:"stages with a phase that demands more CPU, disk or network than any node has, and so takes longer than stated"`
}

type clusterJSON struct {
	Nodes              int         `json:"nodes" doc:"number of nodes"`
	NodeMemory         int64       `json:"node_memory_bytes,omitempty" doc:"of each node; omitted if nodes have several sizes"`
	NodeCPU            float64     `json:"node_cpus,omitempty" doc:"cores of each node; omitted if nodes have several sizes"`
	Groups             []groupJSON `json:"groups,omitempty" doc:"nodes by their size, if they have several"`
	Heartbeat          float64     `json:"heartbeat_s" doc:"time between heartbeats of a node; 0: it reports and takes work at once"`
	StartsPerHeartbeat int         `json:"starts_per_heartbeat" doc:"the most tasks that start on a node at a heartbeat; 0: no limit"`
	AMHeartbeat        float64     `json:"am_heartbeat_s" doc:"time between heartbeats of an application master"`
	AMMemory           int64       `json:"am_memory_bytes" doc:"memory of an application master"`
	LaunchDelay        float64     `json:"launch_delay_s" doc:"from the decision to start a task until it runs"`
	truthJSON
	Flex *flexManagerJSON `json:"flex,omitempty" doc:"the memory manager; omitted without FLEX jobs"`
}

// groupJSON describes the nodes of one size.
type groupJSON struct {
	Nodes      int     `json:"nodes" doc:"number of nodes of this size"`
	NodeMemory int64   `json:"node_memory_bytes" doc:"memory of each"`
	NodeCPU    float64 `json:"node_cpus" doc:"cores of each"`
}

// truthJSON repeats the differences from an ideal cluster.
type truthJSON struct {
	Acquire   string  `json:"acquire,omitempty" doc:"[how tasks acquire memory](../truth.md#acquisition); omitted unless stated"`
	Machine   string  `json:"machine,omitempty" doc:"the preset or file of the machine; omitted if it is ideal"`
	Swap      int64   `json:"swap_bytes,omitempty" doc:"swap of each node"`
	FailEvery float64 `json:"fail_every_s,omitempty" doc:"mean time between failures of a node"`
	Repair    float64 `json:"repair_after_s,omitempty" doc:"time until a failed node returns"`
	FailSeed  uint64  `json:"fail_seed,omitempty" doc:"seed of the failures"`
}

// flexManagerJSON repeats how the memory of FLEX containers was managed.
type flexManagerJSON struct {
	Manager      string  `json:"manager" doc:"name of the memory manager"`
	PuffRatio    float64 `json:"puff_ratio" doc:"its setting of this name"`
	MinContainer int64   `json:"min_container_bytes,omitempty" doc:"the least memory of a container; omitted if it is as in the workload"`
	Look         float64 `json:"look_s" doc:"time between its looks"`
	SwapSpeed    int64   `json:"swap_bytes_per_s" doc:"bandwidth of swap"`
}

// resultJSON is the result of one policy; with several seeds, numbers are means over the seeds with a result. A failed
// run has only policy, pooled, settings, jobs, tasks, bounds and error.
type resultJSON struct {
	contenderJSON
	Average     *float64         `json:"average_job_runtime_s,omitempty" doc:"mean over jobs of end − submission"`
	Makespan    *float64         `json:"makespan_s,omitempty" doc:"from the first submission to the end of the last job"`
	Utilisation *float64         `json:"memory_utilisation,omitempty" doc:"granted memory × time / (memory of all nodes × makespan), 0 to 1"`
	Elastic     *float64         `json:"elastic_task_share,omitempty" doc:"tasks started with less than their ideal memory / all tasks started, without application masters, 0 to 1"`
	Jobs        int              `json:"jobs" doc:"number of jobs in the workload"`
	Tasks       int              `json:"tasks" doc:"number of tasks in the workload"`
	Unfinished  []unfinishedJSON `json:"unfinished_jobs,omitempty" doc:"jobs that can never end; the exit code is 1"`
	Failed      []unfinishedJSON `json:"failed_jobs,omitempty" doc:"jobs that failed; the exit code is 1"`
	Losses      *lossesJSON      `json:"task_losses,omitempty" doc:"runs of tasks that did not end well; omitted if there were none"`
	steeringJSON
	Flex       *flexJSON           `json:"flex,omitempty" doc:"cost of managing memory; omitted unless jobs ran as FLEX"`
	Forecasts  *forecastsJSON      `json:"forecasts,omitempty" doc:"with --history"`
	Bounds     boundsJSON          `json:"lower_bounds" doc:"for all policies of this kind, elastic or not"`
	Simulation *simulationCostJSON `json:"simulation,omitempty" doc:"cost of the simulation; omitted with several seeds"`
	PerJob     []jobResultJSON     `json:"per_job,omitempty" doc:"with --per-job"`
	Series     *seriesJSON         `json:"series,omitempty" doc:"with --series, which needs one seed: the [nodes over time](#nodes-over-time), exactly"`
	Error      string              `json:"error,omitempty" doc:"why the run has no result; the exit code is 1"`
	OverSeeds  *trial.Summary      `json:"over_seeds,omitempty" doc:"with [several seeds](#several-seeds)"`
	PerSeed    []trial.Outcome     `json:"per_seed,omitempty" doc:"with [several seeds](#several-seeds), every run"`

	underSizes bool // the policy may under-size tasks, which lowers its bounds
}

// contenderJSON is a policy, and how it was set.
type contenderJSON struct {
	Policy   string            `json:"policy" doc:"name of the policy"`
	Label    string            `json:"label" doc:"the policy as given, such as srjf@pool"`
	Pooled   bool              `json:"pooled,omitempty" doc:"the policy ran on one node as large as all nodes together (NAME@pool), which starts any number of tasks per heartbeat"`
	Box      string            `json:"box,omitempty" doc:"fixed size of the containers that FLEX jobs ran in, or peak (NAME@SIZE, NAME@peak); omitted if the jobs ran as FLEX"`
	Settings map[string]string `json:"settings" doc:"every setting with its effective value"`
	Timeline string            `json:"timeline,omitempty" doc:"how the policy estimated ends of jobs, sum or resimulate; omitted for policies that estimate none"`
}

func contenderOf(c *trial.Contender) contenderJSON {
	out := contenderJSON{Policy: c.Policy, Label: c.Label, Pooled: c.Pooled, Box: c.Box.String(),
		Settings: c.AllSettings()}
	out.Timeline = out.Settings[c.Policy+".timeline"]
	return out
}

// name is what a row of a table is called.
func (c *contenderJSON) name() string { return c.Label }

// boxed reports whether FLEX jobs ran in containers of a fixed size.
func (c *contenderJSON) boxed() bool { return c.Box != "" }

// steeringJSON is what a policy did to tasks that ran, and what executors held.
type steeringJSON struct {
	Throttles int     `json:"throttles,omitempty" doc:"how often tasks were throttled, where throttles that replace each other count once"`
	Throttled float64 `json:"throttled_s,omitempty" doc:"for how long in total"`
	Resizes   int     `json:"resizes,omitempty" doc:"how often the grants of running tasks were changed"`
	Idle      float64 `json:"idle_executors_byte_s,omitempty" doc:"memory that executors held while they idled ([acquisition](../truth.md#acquisition)), over time; not part of memory_utilisation"`
}

func steeringOf(r *sim.Result) steeringJSON {
	return steeringJSON{r.Throttles, r.Throttled.Seconds(), r.Resizes, r.IdleExecutors}
}

type boundsJSON struct {
	Makespan   float64 `json:"makespan_s" doc:"lower bound"`
	Average    float64 `json:"average_job_runtime_s" doc:"lower bound"`
	MakespanBy string  `json:"makespan_by,omitempty" doc:"name of the [bound](../decisions/0008-lower-bounds.md); omitted with several seeds"`
	AverageBy  string  `json:"average_job_runtime_by,omitempty" doc:"the same"`
}

type simulationCostJSON struct {
	CPU    float64 `json:"cpu_s" doc:"CPU time of the run"`
	CPUOf  string  `json:"cpu_of" doc:"what the CPU time covers: the process, if one policy ran at a time, else the thread"`
	Wall   float64 `json:"wall_s" doc:"wall time of the run"`
	Events int64   `json:"events" doc:"events of the simulation"`
	Steps  int64   `json:"steps" doc:"steps of the engine"`
}

type unfinishedJSON struct {
	Job  int64  `json:"job" doc:"number of the job"`
	Name string `json:"name" doc:"its name"`
	Why  string `json:"why" doc:"the reason"`
}

type jobResultJSON struct {
	Job       int64    `json:"job" doc:"number of the job"`
	Name      string   `json:"name" doc:"its name"`
	Submitted float64  `json:"submitted_s" doc:"when it was submitted"`
	Started   *float64 `json:"started_s,omitempty" doc:"when its first task started"`
	Ended     *float64 `json:"ended_s,omitempty" doc:"when it ended"`
	Runtime   *float64 `json:"runtime_s,omitempty" doc:"ended_s − submitted_s"`
	Tasks     int      `json:"tasks" doc:"tasks started"`
	Elastic   int      `json:"elastic_tasks" doc:"of these, tasks started with less than their ideal memory"`
}

// lossesJSON is the lost runs of tasks under one policy.
type lossesJSON struct {
	OutOfMemory int     `json:"out_of_memory" doc:"runs that ended for want of memory"`
	Killed      int     `json:"killed" doc:"runs that were killed"`
	Preempted   int     `json:"preempted" doc:"runs that were preempted"`
	Lost        int     `json:"lost" doc:"runs that were lost with their node"`
	Retries     int     `json:"retries" doc:"how many of these tasks were to run again"`
	LostWork    float64 `json:"lost_work_s" doc:"total duration of the lost runs"`
}

// flexJSON is the cost of managing the memory of FLEX containers.
type flexJSON struct {
	Suspended    float64 `json:"suspended_s" doc:"sum over FLEX containers of the time for which they were suspended"`
	Waited       float64 `json:"waited_for_memory_s" doc:"sum over tasks of the time from their start until the memory manager of a node gave them their memory"`
	Swapped      int64   `json:"swapped_bytes" doc:"memory of FLEX containers that was written to swap"`
	ManagerKills int     `json:"manager_kills" doc:"runs that a memory manager killed; task_losses.preempted counts them, too"`
}

// describe describes the simulated workload and cluster.
func (s *Study) describe() simulationJSON {
	c, config := s.cluster, &s.Config
	doc := simulationJSON{Workload: s.options.workload.describe(s.Workload), Cluster: clusterJSON{
		Nodes: len(config.Nodes), Heartbeat: config.Heartbeat.Seconds(), StartsPerHeartbeat: config.StartsPerHeartbeat,
		AMHeartbeat: config.CoordinatorHeartbeat.Seconds(), AMMemory: int64(config.Coordinator[resource.Memory]),
		LaunchDelay: config.LaunchDelay.Seconds(),
		truthJSON: truthJSON{Swap: int64(config.Machine.Swap), FailEvery: c.Failures.Every.Seconds(),
			Repair: c.Failures.Repair.Seconds()},
	}}
	doc.Workload.Beyond = s.beyond()
	if c.Misjudge.Text != "none" {
		doc.Workload.Misjudged, doc.Workload.MisjudgeSeed = c.Misjudge.Text, &c.Misjudge.Seed
	}
	for _, g := range c.Groups {
		doc.Cluster.Groups = append(doc.Cluster.Groups, groupJSON{len(g.Names), int64(g.Capacity[resource.Memory]),
			float64(g.Capacity[resource.CPU]) / float64(resource.Core)})
	}
	if g := doc.Cluster.Groups; len(g) == 1 {
		doc.Cluster.NodeMemory, doc.Cluster.NodeCPU, doc.Cluster.Groups = g[0].NodeMemory, g[0].NodeCPU, nil
	}
	if c.Acquire != nil {
		doc.Cluster.Acquire = *c.Acquire
	}
	if c.Machine != nil && *c.Machine != "ideal" {
		doc.Cluster.Machine = *c.Machine
	}
	if c.Failures.Every > 0 {
		doc.Cluster.FailSeed = c.Failures.Seed
	}
	if hasFlex(s.Workload) {
		doc.Cluster.Flex = &flexManagerJSON{c.Flex.Manager, config.Flex.Manager.PuffRatio, int64(c.Flex.MinContainer),
			config.Flex.Look.Seconds(), int64(config.Machine.SwapSpeed)}
	}
	return doc
}

func hasFlex(w *workload.Workload) bool {
	return slices.ContainsFunc(w.Jobs, func(j workload.Job) bool { return j.Class == cluster.Flex })
}

// head begins the result of contender p.
func (s *Study) head(p int, w workloadJSON) resultJSON {
	c := s.Contenders[p]
	r := resultJSON{contenderJSON: contenderOf(&c), Jobs: w.Jobs, Tasks: w.Tasks}
	if s.options.history {
		r.Forecasts = forecastsOf(s.forecasts[p])
	}
	return r
}

// result describes the run of contender c on the only seed.
func (s *Study) result(c int, w workloadJSON, run *Run, p *printing) resultJSON {
	r := s.head(c, w)
	r.Simulation = &simulationCostJSON{CPU: run.CPU.Seconds(), CPUOf: "thread", Wall: run.Wall.Seconds()}
	if s.alone() {
		r.Simulation.CPUOf = "process"
	}
	if run.Trial != nil {
		r.Bounds, r.underSizes = boundsOf(&run.Bounds), run.Trial.UnderSizes()
	}
	if run.Err != nil {
		r.Error = run.Err.Error()
		return r
	}
	res := run.Result
	r.Simulation.Events, r.Simulation.Steps = res.Events, res.Steps
	share := res.UnderSizedShare()
	r.Average, r.Makespan = seconds(res.AverageJobRuntime), seconds(res.Makespan)
	r.Utilisation, r.Elastic = &res.MemoryUtilisation, &share
	for _, j := range res.Unfinished() {
		r.Unfinished = append(r.Unfinished, unfinishedJSON{int64(j.ID), j.Name, j.Stuck})
	}
	for _, j := range res.Failures() {
		r.Failed = append(r.Failed, unfinishedJSON{int64(j.ID), j.Name, j.Failure})
	}
	r.Losses = lossesOf(res)
	r.steeringJSON = steeringOf(res)
	if !r.boxed() && hasFlex(s.Workload) {
		r.Flex = &flexJSON{res.Suspended.Seconds(), res.WaitedForMemory.Seconds(), int64(res.SwappedBytes), res.ManagerKills}
	}
	if p.perJob {
		r.PerJob = perJob(res)
	}
	if p.series {
		r.Series = seriesOf(res, s.firstSubmission())
	}
	return r
}

// overSeeds describes all runs of contender p.
func (s *Study) overSeeds(p int, w workloadJSON, c *trial.Comparison) resultJSON {
	r := s.head(p, w)
	sum := c.Summaries()[p]
	r.OverSeeds, r.PerSeed = &sum, c.PerSeed(p)
	if sum.Runs == 0 {
		r.Error = "no seed has a result"
		return r
	}
	r.Average, r.Makespan, r.Utilisation, r.Elastic = &sum.Average.Mean, &sum.Makespan.Mean, &sum.Utilisation.Mean,
		&sum.Elastic.Mean
	for _, o := range r.PerSeed {
		r.Bounds.Average += o.BoundAverage / float64(sum.Runs)
		r.Bounds.Makespan += o.BoundMakespan / float64(sum.Runs)
	}
	return r
}

// boundsOf describes lower bounds, whose makespan counts from the first submission, as that of a result.
func boundsOf(b *bound.Bounds) boundsJSON {
	return boundsJSON{Makespan: b.Makespan.Seconds(), Average: b.AverageJobRuntime.Seconds(), MakespanBy: b.MakespanBy,
		AverageBy: b.AverageBy}
}

// firstSubmission returns when the first job is submitted.
func (s *Study) firstSubmission() timeline.Time {
	first := timeline.Never
	for i := range s.Workload.Jobs {
		if j := &s.Workload.Jobs[i]; j.After < 0 {
			first = min(first, j.Submitted)
		}
	}
	return first
}

// lossesOf returns nil if no run was lost.
func lossesOf(r *sim.Result) *lossesJSON {
	l := lossesJSON{r.OutOfMemory, r.Killed, r.Preempted, r.Lost, r.Retries, r.LostWork.Seconds()}
	if l == (lossesJSON{}) {
		return nil
	}
	return &l
}

func perJob(res *sim.Result) []jobResultJSON {
	var list []jobResultJSON
	for i := range res.Jobs {
		j := &res.Jobs[i]
		row := jobResultJSON{Job: int64(j.ID), Name: j.Name, Submitted: j.Submitted.Seconds(), Tasks: j.Tasks,
			Elastic: j.UnderSized}
		if j.Tasks > 0 {
			row.Started = seconds(time.Duration(j.Started))
		}
		if j.Done {
			row.Ended, row.Runtime = seconds(time.Duration(j.Ended)), seconds(j.Runtime())
		}
		list = append(list, row)
	}
	return list
}

func seconds(d time.Duration) *float64 {
	s := d.Seconds()
	return &s
}
