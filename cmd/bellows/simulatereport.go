package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/bellows-rm/bellows/bound"
	"github.com/bellows-rm/bellows/cmd/internal/command"
	"github.com/bellows-rm/bellows/cmd/internal/terminal"
	"github.com/bellows-rm/bellows/policy"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/timeline"
)

// simulationJSON is what `bellows simulate --json` prints.
type simulationJSON struct {
	Workload workloadJSON `json:"workload"`
	Cluster  clusterJSON  `json:"cluster"`
	Results  []resultJSON `json:"results"`
}

type workloadJSON struct {
	Name   string `json:"name"`
	Format string `json:"format"`
	Jobs   int    `json:"jobs"`
	Tasks  int    `json:"tasks"`
	// Generated workloads only.
	Seed    *uint64 `json:"seed,omitempty"`
	Penalty string  `json:"penalty,omitempty"`
	// How far off the truth estimates are, and the seed of their errors; only if they are.
	Misjudged    string  `json:"misjudged,omitempty"`
	MisjudgeSeed *uint64 `json:"misjudge_seed,omitempty"`
}

type clusterJSON struct {
	Nodes              int     `json:"nodes"`
	NodeMemory         int64   `json:"node_memory_bytes"`
	NodeCPU            float64 `json:"node_cpus"`
	Heartbeat          float64 `json:"heartbeat_s"`
	StartsPerHeartbeat int     `json:"starts_per_heartbeat"`
	AMHeartbeat        float64 `json:"am_heartbeat_s"`
	AMMemory           int64   `json:"am_memory_bytes"`
	LaunchDelay        float64 `json:"launch_delay_s"`
	truthJSON
	Flex *flexManagerJSON `json:"flex,omitempty"`
}

// resultJSON is what came of one policy. Of a run that failed only policy, pooled, settings, jobs, tasks and error are
// there.
type resultJSON struct {
	Policy string `json:"policy"`
	// Pooled tells that it ran on one node as large as all.
	Pooled bool `json:"pooled,omitempty"`
	// Box is the size of the containers that FLEX jobs were put in, or peak; empty if they breathed.
	Box      string            `json:"box,omitempty"`
	Settings map[string]string `json:"settings"`
	// Timeline is how ends of jobs were estimated: sum or resimulate; empty for policies that do not.
	Timeline    string             `json:"timeline,omitempty"`
	Average     *float64           `json:"average_job_runtime_s,omitempty"`
	Makespan    *float64           `json:"makespan_s,omitempty"`
	Utilisation *float64           `json:"memory_utilisation,omitempty"`
	Elastic     *float64           `json:"elastic_task_share,omitempty"`
	Jobs        int                `json:"jobs"`
	Tasks       int                `json:"tasks"`
	Unfinished  []unfinishedJSON   `json:"unfinished_jobs,omitempty"`
	Failed      []unfinishedJSON   `json:"failed_jobs,omitempty"`
	Losses      *lossesJSON        `json:"task_losses,omitempty"`
	Flex        *flexJSON          `json:"flex,omitempty"` // of workloads with FLEX jobs that breathe
	Bounds      boundsJSON         `json:"lower_bounds"`
	Simulation  simulationCostJSON `json:"simulation"`
	PerJob      []jobResultJSON    `json:"per_job,omitempty"`
	Error       string             `json:"error,omitempty"`

	underSizes bool // the policy may, so that its bounds are others
}

type boundsJSON struct {
	Makespan   float64 `json:"makespan_s"`
	Average    float64 `json:"average_job_runtime_s"`
	MakespanBy string  `json:"makespan_by"`
	AverageBy  string  `json:"average_job_runtime_by"`
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

// report prints the results and returns the error that sets the exit code.
func (s *simulation) report(out, errOut io.Writer) error {
	doc := s.document()
	if s.options.jobsFile != "" {
		if err := s.writeJobs(); err != nil {
			return err
		}
	}
	var err error
	if s.options.asJSON {
		err = terminal.WriteJSON(out, doc)
	} else {
		err = printSimulation(out, doc)
	}
	if err != nil {
		return fmt.Errorf("print the results: %w", err)
	}
	failed := false
	for i, r := range doc.Results {
		switch {
		case s.outcomes[i].err != nil:
			fmt.Fprintf(errOut, "bellows: policy %s: %s\n", r.title(), r.Error)
			failed = true
		case len(r.Unfinished) > 0:
			u := r.Unfinished[0]
			fmt.Fprintf(errOut, "bellows: policy %s: %d of %s did not end; job %d (%s): %s\n",
				r.title(), len(r.Unfinished), terminal.Count(r.Jobs, "job"), u.Job, u.Name, u.Why)
			failed = true
		case len(r.Failed) > 0:
			u := r.Failed[0]
			fmt.Fprintf(errOut, "bellows: policy %s: %d of %s failed; job %d (%s): %s\n",
				r.title(), len(r.Failed), terminal.Count(r.Jobs, "job"), u.Job, u.Name, u.Why)
			failed = true
		}
	}
	if failed {
		return command.Code(command.Failed)
	}
	return nil
}

func (s *simulation) document() simulationJSON {
	o, c := s.options, s.config
	doc := simulationJSON{Workload: s.options.workload.describe(s.workload), Cluster: clusterJSON{
		Nodes: o.nodes, NodeMemory: int64(o.node[resource.Memory]), NodeCPU: float64(o.node[resource.CPU]) / float64(resource.Core),
		Heartbeat: c.Heartbeat.Seconds(), StartsPerHeartbeat: c.StartsPerHeartbeat,
		AMHeartbeat: c.CoordinatorHeartbeat.Seconds(), AMMemory: int64(o.am[resource.Memory]), LaunchDelay: c.LaunchDelay.Seconds(), truthJSON: o.truth.describe(),
	}}
	if hasFlex(s.workload) {
		doc.Cluster.Flex = o.flex.describe(&c)
	}
	for i := range s.outcomes {
		r := s.result(i, doc.Workload)
		r.Bounds, r.underSizes = s.bounds(i), s.underSizes(i)
		doc.Results = append(doc.Results, r)
	}
	return doc
}

// result describes what came of policy i.
func (s *simulation) result(i int, w workloadJSON) resultJSON {
	o := &s.outcomes[i]
	name := s.contenders[i].policy.Name()
	r := resultJSON{Policy: name, Pooled: s.contenders[i].pooled, Box: s.contenders[i].box.String(), Settings: settingsInForce(name, s.options.settings), Jobs: w.Jobs, Tasks: w.Tasks}
	r.Timeline = r.Settings[name+".timeline"]
	r.Simulation = simulationCostJSON{CPU: o.cpu.Seconds(), CPUOf: "thread", Wall: o.wall.Seconds()}
	if s.alone() {
		r.Simulation.CPUOf = "process"
	}
	if o.err != nil {
		r.Error = o.err.Error()
		return r
	}
	res := o.result
	r.Simulation.Events, r.Simulation.Steps = res.Events, res.Steps
	share := res.ElasticShare()
	r.Average, r.Makespan = seconds(res.AverageJobRuntime), seconds(res.Makespan)
	r.Utilisation, r.Elastic = &res.MemoryUtilisation, &share
	for _, j := range res.Unfinished() {
		r.Unfinished = append(r.Unfinished, unfinishedJSON{int64(j.ID), j.Name, j.Stuck})
	}
	for _, j := range res.Failures() {
		r.Failed = append(r.Failed, unfinishedJSON{int64(j.ID), j.Name, j.Failure})
	}
	r.Losses = lossesOf(res)
	if r.Box == "" && hasFlex(s.workload) {
		r.Flex = flexOf(res)
	}
	if s.options.perJob {
		r.PerJob = perJob(res)
	}
	return r
}

func perJob(res *sim.Result) []jobResultJSON {
	var list []jobResultJSON
	for i := range res.Jobs {
		j := &res.Jobs[i]
		row := jobResultJSON{Job: int64(j.ID), Name: j.Name, Submitted: j.Submitted.Seconds(), Tasks: j.Tasks, Elastic: j.Elastic}
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

// writeJobs writes every job's times, per policy, to the file asked for.
func (s *simulation) writeJobs() error {
	all := map[string][]map[string]any{"results": {}}
	for i, o := range s.outcomes {
		if o.err == nil {
			all["results"] = append(all["results"], map[string]any{"policy": s.contenders[i].policy.Name(), "pooled": s.contenders[i].pooled, "box": s.contenders[i].box.String(), "per_job": perJob(o.result)})
		}
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err == nil {
		err = os.WriteFile(s.options.jobsFile, append(text, '\n'), 0o666)
	}
	if err != nil {
		return fmt.Errorf("write the times of jobs: %w", err)
	}
	return nil
}

// printSimulation prints the results as a table, each also as a multiple of what no policy of its kind can beat.
func printSimulation(w io.Writer, doc simulationJSON) error {
	c := doc.Cluster
	fmt.Fprintf(w, "%s: %s, %s on %s of %s, %s cores each", doc.Workload.Name, terminal.Count(doc.Workload.Jobs, "job"),
		terminal.Count(doc.Workload.Tasks, "task"), terminal.Count(c.Nodes, "node"), resource.FormatMemory(resource.Amount(c.NodeMemory)), strconv.FormatFloat(c.NodeCPU, 'g', -1, 64))
	if c.Heartbeat > 0 {
		fmt.Fprintf(w, ", heartbeat %gs", c.Heartbeat)
	}
	fmt.Fprint(w, "\n\n")
	t := terminal.NewTable("POLICY", ">JOB RUNTIME", ">/LEAST", ">MAKESPAN", ">/LEAST", ">MEMORY", ">ELASTIC", ">CPU")
	t.Shrinks = 0
	for i := range doc.Results {
		t.Add(doc.Results[i].row()...)
	}
	var shown [][]string // most policies share theirs
	for i := range doc.Results {
		row := doc.Results[i].leastRow()
		if !slices.ContainsFunc(shown, func(other []string) bool { return slices.Equal(other, row) }) {
			shown = append(shown, row)
			t.Add(row...)
		}
	}
	if err := t.Write(w); err != nil {
		return err
	}
	if slices.ContainsFunc(doc.Results, func(r resultJSON) bool { return r.Flex != nil || r.Box != "" }) {
		fmt.Fprintln(w)
		t := terminal.NewTable("FLEX JOBS", ">SUSPENDED", ">WAITED", ">SWAPPED", ">KILLED", ">OUT OF MEMORY")
		t.Shrinks = 0
		for i := range doc.Results {
			t.Add(doc.Results[i].flexRow()...)
		}
		if err := t.Write(w); err != nil {
			return err
		}
	}
	for _, r := range doc.Results {
		if r.Timeline != "" {
			fmt.Fprintf(w, "%s: estimated ends of jobs by timeline %s\n", r.title(), r.Timeline)
		}
	}
	return nil
}

func (r *resultJSON) title() string { return titleOf(r.Policy, r.Pooled, r.Box) }

func (r *resultJSON) row() []string {
	name, cpu := r.title(), fmt.Sprintf("%.2fs", r.Simulation.CPU)
	if r.Error != "" {
		return []string{name, "failed", "", "", "", "", "", cpu}
	}
	return []string{name, secondsText(r.Average), timesText(*r.Average, r.Bounds.Average), secondsText(r.Makespan),
		timesText(*r.Makespan, r.Bounds.Makespan), percentText(*r.Utilisation), percentText(*r.Elastic), cpu}
}

// leastRow is what no policy of the kind can be better than: one that under-sizes tasks, one whose containers are boxes.
func (r *resultJSON) leastRow() []string {
	name := "least"
	if r.underSizes {
		name += ", elastic"
	}
	if r.Box != "" {
		name += ", " + r.Box
	}
	return []string{name, secondsText(&r.Bounds.Average), "", secondsText(&r.Bounds.Makespan), "", "", "", ""}
}

// timesText prints how many times the least a value is.
func timesText(value, least float64) string {
	if least <= 0 {
		return "-"
	}
	return strconv.FormatFloat(value/least, 'f', 2, 64)
}

func secondsText(s *float64) string {
	if s == nil {
		return "-"
	}
	return strconv.FormatFloat(*s, 'f', 2, 64) + "s"
}

func percentText(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }

// settingsInForce returns every setting of a policy: as given, else its default.
func settingsInForce(name string, given map[string]string) map[string]string {
	all := map[string]string{}
	_, parameters := policy.About(name)
	for _, p := range parameters {
		all[p.Name] = p.Default
		if v, ok := given[p.Name]; ok {
			all[p.Name] = v
		}
	}
	return all
}

// underSizes reports whether policy i may start tasks with less than their ideal memory.
func (s *simulation) underSizes(i int) bool {
	return s.contenders[i].policy.Traits().UnderSizes
}

// bounds returns what policy i cannot beat. A makespan counts from the origin, not from the first submission.
func (s *simulation) bounds(i int) boundsJSON {
	options := bound.Options{AnySize: s.contenders[i].policy.Traits().Resizes}
	if s.options.intervals {
		options.Iterations = bound.DefaultIterations
	}
	b := bound.Of(s.contenders[i].box.fill(s.workload), s.contenders[i].config.Nodes, s.underSizes(i), options)
	first := timeline.Never
	for j := range s.workload.Jobs {
		if s.workload.Jobs[j].After < 0 {
			first = min(first, s.workload.Jobs[j].Submitted)
		}
	}
	return boundsJSON{Makespan: (b.Makespan + time.Duration(first)).Seconds(), Average: b.AverageJobRuntime.Seconds(),
		MakespanBy: b.MakespanBy, AverageBy: b.AverageBy}
}
