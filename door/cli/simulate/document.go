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
	Workload workloadJSON `json:"workload"` // of the first seed
	Cluster  clusterJSON  `json:"cluster"`
	// With several seeds only.
	Seeds      int     `json:"seeds,omitempty"`
	Confidence float64 `json:"confidence,omitempty"`

	Results []resultJSON `json:"results"`
}

type workloadJSON struct {
	Name   string `json:"name"`
	Format string `json:"format"`
	Jobs   int    `json:"jobs"`
	Tasks  int    `json:"tasks"`
	// Generated workloads only.
	Seed    *uint64 `json:"seed,omitempty"`
	Penalty string  `json:"penalty,omitempty"`
	// The errors of estimates, and their seed; only if estimates are wrong.
	Misjudged    string  `json:"misjudged,omitempty"`
	MisjudgeSeed *uint64 `json:"misjudge_seed,omitempty"`
	// Stages with phases that demand more than any node has.
	Beyond []beyondJSON `json:"beyond,omitempty"`
}

type clusterJSON struct {
	Nodes int `json:"nodes"`
	// For clusters whose nodes have one size.
	NodeMemory int64   `json:"node_memory_bytes,omitempty"`
	NodeCPU    float64 `json:"node_cpus,omitempty"`
	// For clusters whose nodes have several sizes.
	Groups             []groupJSON `json:"groups,omitempty"`
	Heartbeat          float64     `json:"heartbeat_s"`
	StartsPerHeartbeat int         `json:"starts_per_heartbeat"`
	AMHeartbeat        float64     `json:"am_heartbeat_s"`
	AMMemory           int64       `json:"am_memory_bytes"`
	LaunchDelay        float64     `json:"launch_delay_s"`
	truthJSON
	Flex *flexManagerJSON `json:"flex,omitempty"`
}

// groupJSON describes the nodes of one size.
type groupJSON struct {
	Nodes      int     `json:"nodes"`
	NodeMemory int64   `json:"node_memory_bytes"`
	NodeCPU    float64 `json:"node_cpus"`
}

// truthJSON repeats the differences from an ideal cluster.
type truthJSON struct {
	Acquire   string  `json:"acquire,omitempty"`
	Machine   string  `json:"machine,omitempty"`
	Swap      int64   `json:"swap_bytes,omitempty"`
	FailEvery float64 `json:"fail_every_s,omitempty"`
	Repair    float64 `json:"repair_after_s,omitempty"`
	FailSeed  uint64  `json:"fail_seed,omitempty"`
}

// flexManagerJSON repeats how the memory of FLEX containers was managed.
type flexManagerJSON struct {
	Manager      string  `json:"manager"`
	PuffRatio    float64 `json:"puff_ratio"`
	MinContainer int64   `json:"min_container_bytes,omitempty"` // omitted if it is as in the workload
	Look         float64 `json:"look_s"`
	SwapSpeed    int64   `json:"swap_bytes_per_s"`
}

// resultJSON is the result of one policy; with several seeds, numbers are means over the seeds with a result. A failed
// run has only policy, pooled, settings, jobs, tasks, bounds and error.
type resultJSON struct {
	Policy string `json:"policy"`
	Label  string `json:"label"` // the policy as given
	// Pooled says that the policy ran on one node as large as all nodes together.
	Pooled bool `json:"pooled,omitempty"`
	// Box is the fixed size of the containers that FLEX jobs ran in, or peak; empty if the jobs ran as FLEX.
	Box      string            `json:"box,omitempty"`
	Settings map[string]string `json:"settings"`
	// Timeline is how the policy estimated ends of jobs: sum or resimulate; empty for policies that estimate none.
	Timeline    string              `json:"timeline,omitempty"`
	Average     *float64            `json:"average_job_runtime_s,omitempty"`
	Makespan    *float64            `json:"makespan_s,omitempty"`
	Utilisation *float64            `json:"memory_utilisation,omitempty"`
	Elastic     *float64            `json:"elastic_task_share,omitempty"`
	Jobs        int                 `json:"jobs"`
	Tasks       int                 `json:"tasks"`
	Unfinished  []unfinishedJSON    `json:"unfinished_jobs,omitempty"`
	Failed      []unfinishedJSON    `json:"failed_jobs,omitempty"`
	Losses      *lossesJSON         `json:"task_losses,omitempty"`
	Throttles   int                 `json:"throttles,omitempty"`
	Throttled   float64             `json:"throttled_s,omitempty"`
	Resizes     int                 `json:"resizes,omitempty"`
	Idle        float64             `json:"idle_executors_byte_s,omitempty"`
	Flex        *flexJSON           `json:"flex,omitempty"`      // for workloads with jobs that run as FLEX
	Forecasts   *forecastsJSON      `json:"forecasts,omitempty"` // if jobs teach
	Bounds      boundsJSON          `json:"lower_bounds"`
	Simulation  *simulationCostJSON `json:"simulation,omitempty"` // with one seed
	PerJob      []jobResultJSON     `json:"per_job,omitempty"`
	Series      *seriesJSON         `json:"series,omitempty"`
	Error       string              `json:"error,omitempty"`
	// With several seeds only.
	OverSeeds *trial.Summary  `json:"over_seeds,omitempty"`
	PerSeed   []trial.Outcome `json:"per_seed,omitempty"`

	underSizes bool // the policy may under-size tasks, which lowers its bounds
}

type boundsJSON struct {
	Makespan   float64 `json:"makespan_s"`
	Average    float64 `json:"average_job_runtime_s"`
	MakespanBy string  `json:"makespan_by,omitempty"` // with one seed
	AverageBy  string  `json:"average_job_runtime_by,omitempty"`
}

type simulationCostJSON struct {
	CPU    float64 `json:"cpu_s"`
	CPUOf  string  `json:"cpu_of"` // process or thread
	Wall   float64 `json:"wall_s"`
	Events int64   `json:"events"`
	Steps  int64   `json:"steps"`
}

type unfinishedJSON struct {
	Job  int64  `json:"job"`
	Name string `json:"name"`
	Why  string `json:"why"`
}

type jobResultJSON struct {
	Job       int64    `json:"job"`
	Name      string   `json:"name"`
	Submitted float64  `json:"submitted_s"`
	Started   *float64 `json:"started_s,omitempty"`
	Ended     *float64 `json:"ended_s,omitempty"`
	Runtime   *float64 `json:"runtime_s,omitempty"`
	Tasks     int      `json:"tasks"`
	Elastic   int      `json:"elastic_tasks"`
}

// lossesJSON is the lost runs of tasks under one policy.
type lossesJSON struct {
	OutOfMemory int     `json:"out_of_memory"`
	Killed      int     `json:"killed"`
	Preempted   int     `json:"preempted"`
	Lost        int     `json:"lost"`
	Retries     int     `json:"retries"`
	LostWork    float64 `json:"lost_work_s"`
}

// flexJSON is the cost of managing the memory of FLEX containers.
type flexJSON struct {
	Suspended    float64 `json:"suspended_s"`
	Waited       float64 `json:"waited_for_memory_s"`
	Swapped      int64   `json:"swapped_bytes"`
	ManagerKills int     `json:"manager_kills"`
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

// hasFlex reports whether a workload has FLEX jobs.
func hasFlex(w *workload.Workload) bool {
	return slices.ContainsFunc(w.Jobs, func(j workload.Job) bool { return j.Class == cluster.Flex })
}

// head begins the result of contender p.
func (s *Study) head(p int, w workloadJSON) resultJSON {
	c := s.Contenders[p]
	r := resultJSON{Policy: c.Policy, Pooled: c.Pooled, Box: c.Box.String(), Settings: c.AllSettings(), Jobs: w.Jobs,
		Tasks: w.Tasks, Label: c.Label}
	r.Timeline = r.Settings[c.Policy+".timeline"]
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
	r.Throttles, r.Throttled, r.Resizes = res.Throttles, res.Throttled.Seconds(), res.Resizes
	r.Idle = res.IdleExecutors
	if r.Box == "" && hasFlex(s.Workload) {
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
