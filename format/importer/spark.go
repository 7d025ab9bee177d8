package importer

import (
	"fmt"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

// Spark reads event logs of Spark, one application each, as history servers keep them. An application is a job; stages,
// their parents, and the resource use of tasks are measured. The memory of a task outside of Spark's accounting, and
// the cost of spilling, are assumed.
type Spark struct {
	// TaskBase is the memory of a task outside of Spark's execution memory, bytes; 0: its share of the executor's other
	// memory.
	TaskBase resource.Amount
	// SpillRate is the rate at which spilled bytes were written and read again, bytes per second. It turns a duration
	// measured with spills into the duration with ideal memory.
	SpillRate resource.Amount
	// InputOverNetwork says that input and output are in an object store, not on the nodes' own disks.
	InputOverNetwork bool
	// IndependentJobs says that the Spark jobs of an application do not wait for the jobs that had ended before.
	IndependentJobs bool
	// NameApps says that each job has the name of its application as its App: it recurs for who learns from runs.
	NameApps bool
	// Granted says that the estimate of a task's memory is what the executor had for each task at a time, as the
	// application asked for it; otherwise it is what the largest task of the stage needed.
	Granted bool

	shape workload.ClusterShape // of the executors, the largest number in any log
	runs  []*sparkRun           // in the order in which the jobs were passed on
}

// sparkRun is the samples of a log, for use with another log that has the same stages with other memory.
type sparkRun struct {
	app     string
	outside resource.Amount
	samples []profile.Sample // per stage; the memory is execution memory alone
}

// DefaultSpark returns the bandwidth of a common disk.
func DefaultSpark() *Spark { return &Spark{SpillRate: 100 * resource.MB} }

// Name implements Format.
func (f *Spark) Name() string { return "spark-eventlog" }

// Node implements Format: an executor of the logs, or of Spark's defaults.
func (f *Spark) Node() resource.Vector {
	if f.shape.Nodes > 0 {
		return f.shape.Node
	}
	return resource.Of(resource.Core, resource.GiB+384*resource.MiB)
}

// nodes is the largest number of simultaneous executors.
func (f *Spark) nodes() int { return f.shape.Nodes }

func (f *Spark) check() error {
	switch {
	case f.TaskBase < 0:
		return fmt.Errorf("task base %d bytes: must not be negative", f.TaskBase)
	case f.SpillRate < 1:
		return fmt.Errorf("spill rate %d bytes/s: must be above 0", f.SpillRate)
	}
	f.shape, f.runs = workload.ClusterShape{}, nil
	return nil
}

func (f *Spark) read(in *input, job func(workload.Job) error) error {
	a, err := readSparkLog(in)
	if err != nil {
		return err
	}
	x, err := a.executor(in)
	if err != nil {
		return err
	}
	kept := a.ranStages(in)
	if len(kept) == 0 {
		return in.nothing("SparkListenerTaskEnd: must have at least one task that succeeded")
	}
	f.shape.Nodes += max(a.mostExecutors, 1)
	f.shape.Node = f.shape.Node.Max(resource.Of(x.cpu, x.heap+x.overhead).With(resource.Disk,
		500*resource.MB).With(resource.Network, 1250*resource.MB))
	started := a.started
	if started == 0 { // the beginning of the log is missing
		started = kept[0].ran().begin
	}
	j := workload.Job{Job: cluster.Job{Name: a.label(in.name), Owner: plainName(a.user),
		Submitted: timeline.Milliseconds(started)}}
	if f.NameApps {
		j.App = a.recurring()
	}
	run := &sparkRun{app: a.name, outside: f.outside(&x)}
	parents := a.parents(kept, !f.IndependentJobs)
	var gc, lasting int64
	for i, s := range kept {
		stage, truth, sample := f.stage(s, &x)
		stage.Parents = parents[i]
		j.Stages, j.Truth = append(j.Stages, stage), append(j.Truth, truth)
		run.samples = append(run.samples, sample)
		for _, t := range s.tasks {
			gc, lasting = gc+t.GCTime, lasting+t.finish-t.launch
		}
	}
	if err := j.Check(); err != nil {
		return in.faultAt(kept[0].line, "%v", err)
	}
	if lasting > 0 {
		in.notes.say(fmt.Sprintf(
			"%s: %.1f %% of the time of its tasks was garbage collection, and is part of their durations.", j.Name,
			100*float64(gc)/float64(lasting)))
	}
	a.countFailed(&j.Job, kept, in.notes)
	f.runs = append(f.runs, run)
	return job(j)
}

// countFailed counts the tasks that failed of a job that its application names, also of stages that are not kept.
func (a *sparkApp) countFailed(j *cluster.Job, kept []*sparkStage, n *notes) {
	if j.App == "" {
		return
	}
	for _, s := range a.order {
		app := profile.App{Owner: j.Owner, Name: j.App, Stage: s.label()}
		if i := slices.Index(kept, s); i >= 0 {
			app = profile.AppOf(j, i)
		}
		n.endings(app, s.failed)
	}
}

func (f *Spark) outside(x *executor) resource.Amount {
	if f.TaskBase > 0 {
		return f.TaskBase
	}
	return x.outside()
}

// stage makes a stage of a Spark stage.
func (f *Spark) stage(s *sparkStage, x *executor) (cluster.Stage, workload.StageTruth, profile.Sample) {
	outside := f.outside(x)
	stage := cluster.Stage{Name: s.label(), Tasks: len(s.tasks), Ideal: resource.Of(x.taskCPU, 0)}
	var ran onePhaseTasks
	var total sparkTotals
	for i := range s.tasks {
		t := &s.tasks[i]
		measured := t.lasting()
		// Spilled bytes were written and read once, at the given rate; the rest of the time stays.
		spilling := seconds(2 * float64(t.DiskSpilled) / float64(f.SpillRate))
		lasting := max(measured-spilling, measured/10, time.Millisecond)
		needs := outside + resource.Amount(t.PeakExecution) + resource.Amount(t.MemorySpilled)
		ran.add(cluster.Phase{Duration: lasting, Demand: f.demand(t, lasting, needs)})
		total.add(t, measured, lasting)
		stage.Ideal[resource.Memory] = max(stage.Ideal[resource.Memory], needs)
	}
	stage.Duration, stage.Input = mean(ran.durations), s.input()
	var sums resource.Vector
	for _, p := range ran.phases {
		sums = sums.Add(p[0].Demand)
	}
	n := resource.Amount(len(s.tasks))
	stage.Ideal[resource.Disk], stage.Ideal[resource.Network] = sums[resource.Disk]/n, sums[resource.Network]/n
	total.underSized(&stage, outside)
	if f.Granted {
		stage.Ideal[resource.Memory] = max(stage.Ideal[resource.Memory], x.perTask())
	}
	sample := profile.Sample{Memory: resource.Amount(total.peak / int64(n)), Duration: total.measured / time.Duration(n),
		Spilled: resource.Amount(total.disk / int64(n)), SpilledKnown: true}
	return stage, ran.truth(), sample
}

// demand returns the demand of a task on its node while it runs with ideal memory.
func (f *Spark) demand(t *sparkTask, lasting time.Duration, memory resource.Amount) resource.Vector {
	per := func(bytes int64) resource.Amount { return amount(float64(bytes) / lasting.Seconds()) }
	disk, network := f.transferred(t)
	cpu := float64(t.CPUTime+t.DeserializeCPUTime) / float64(lasting) * float64(resource.Core)
	return resource.Of(amount(min(cpu, 1000*float64(resource.Core))), memory).With(resource.Disk,
		per(disk)).With(resource.Network, per(network))
}

// transferred returns the bytes that a task read and wrote on disks of its node and over the network, without what it
// spilled.
func (f *Spark) transferred(t *sparkTask) (disk, network int64) {
	disk = t.ShuffleWrite.Bytes + t.ShuffleRead.Local + t.ShuffleRead.RemoteToDisk
	network = t.ShuffleRead.Remote
	if f.InputOverNetwork {
		network += t.Input.Bytes + t.Output.Bytes
	} else {
		disk += t.Input.Bytes + t.Output.Bytes
	}
	return disk, network
}

// sparkTotals are sums over the tasks of a stage.
type sparkTotals struct {
	peak, disk       int64
	measured, spent  time.Duration // spent: run time of the tasks that spilled
	ideal            time.Duration // the same tasks, with ideal memory
	spilled          int64         // number of tasks that spilled
	peakWhileSpilled int64
}

func (s *sparkTotals) add(t *sparkTask, measured, ideal time.Duration) {
	s.peak += t.PeakExecution
	s.disk += t.DiskSpilled
	s.measured += measured
	if t.DiskSpilled > 0 {
		s.spilled++
		s.peakWhileSpilled += t.PeakExecution
		s.spent += measured
		s.ideal += ideal
	}
}

// underSized makes one measured point of the tasks that spilled: with their execution memory, they took longer by the
// measured factor. Nothing is known below that memory, so it is the minimum memory of the stage.
func (s *sparkTotals) underSized(stage *cluster.Stage, outside resource.Amount) {
	if s.spilled == 0 {
		return
	}
	had := outside + resource.Amount(s.peakWhileSpilled/s.spilled)
	ideal := stage.Ideal[resource.Memory]
	if had >= ideal {
		return
	}
	stage.MinMemory = had
	stage.Elasticity = cluster.Elasticity{Kind: cluster.Points, DiskRate: amount(2 * float64(s.disk) / s.spent.Seconds()),
		Points: []cluster.ElasticityPoint{{Memory: had, Slowdown: max(1, float64(s.spent)/float64(s.ideal))},
			{Memory: ideal, Slowdown: 1}}}
}

// merge looks for stages that ran with different memory in different logs, and learns their elasticity.
func (f *Spark) merge(jobs []workload.Job, n *notes) {
	for i := range jobs {
		for k := range jobs[i].Stages {
			if f.runs[i].samples[k].SpilledKnown {
				f.mergeStage(jobs, i, k, n)
			}
		}
	}
	elastic := func(s cluster.Stage) bool { return s.Elastic() }
	if !slices.ContainsFunc(jobs, func(j workload.Job) bool { return slices.ContainsFunc(j.Stages, elastic) }) {
		n.say("No task spilled in a way that tells what less memory costs: that is unknown, and no task may be " +
			"under-sized. " +
			"\"bellows simulate --penalty sawtooth:1.5\" assumes that spilling all makes a task 1.5 times as long.")
	}
}

// mergeStage fits a model to stage k of job i and the same stage of later jobs, and applies it to all of them.
func (f *Spark) mergeStage(jobs []workload.Job, i, k int, n *notes) {
	same := []int{i}
	samples := []profile.Sample{f.runs[i].samples[k]}
	for o := i + 1; o < len(jobs); o++ {
		if f.runs[o].app != f.runs[i].app || k >= len(jobs[o].Stages) || jobs[o].Stages[k].Name != jobs[i].Stages[k].Name ||
			jobs[o].Stages[k].Tasks != jobs[i].Stages[k].Tasks {
			continue
		}
		sample := f.runs[o].samples[k]
		if !slices.ContainsFunc(samples, func(s profile.Sample) bool { return s.Memory == sample.Memory }) {
			same, samples = append(same, o), append(samples, sample)
		}
	}
	spilled := slices.ContainsFunc(samples, func(s profile.Sample) bool { return s.Spilled > 0 })
	if len(samples) < 2 || !spilled {
		return
	}
	// The memory of a task outside of execution memory does not affect its run time; the least that any task had is
	// enough.
	outside := f.runs[i].outside
	for _, o := range same {
		outside = min(outside, f.runs[o].outside)
	}
	for at := range samples {
		samples[at].Memory += outside
	}
	program := profile.Program{Buffer: profile.Buffer{Share: 1, Overhead: outside}}
	m, err := profile.FitKind(profile.SawTooth, samples, program)
	if err != nil {
		if m, _, err = profile.Fit(samples, program); err != nil {
			return
		}
	}
	for at, o := range same {
		t := &jobs[o].Truth[k]
		m.Apply(&jobs[o].Stages[k])
		rescale(t, float64(m.IdealDuration)/float64(samples[at].Duration), float64(mean(t.Duration.Values())),
			float64(samples[at].Duration))
		t.IdealMemory = t.IdealMemory.Map(func(a resource.Amount) resource.Amount { return min(a, m.IdealMemory) })
		f.runs[o].samples[k].SpilledKnown = false
	}
	n.add("stages ran with different memory in several logs; what less of it costs is fitted to that", 1)
}

// rescale scales the durations so that their mean is by times the measured mean.
func rescale(t *workload.StageTruth, by, now, measured float64) {
	factor := by * measured / now
	scaled := func(d time.Duration) time.Duration {
		return max(time.Duration(float64(d)*factor).Round(time.Millisecond), time.Millisecond)
	}
	t.Duration = t.Duration.Map(scaled)
	t.MapPhases(func(p *cluster.Phase) { p.Duration = scaled(p.Duration) })
}

// parents returns the indexes of the stages that each stage waits for. A stage waits for its parents. If ordered is
// set, a stage without parents that ran waits for the last stages of the Spark jobs that had ended when its own job was
// submitted: the driver submits the next job when it has seen the result of the previous one.
func (a *sparkApp) parents(kept []*sparkStage, ordered bool) [][]int {
	index := map[int64]int{}
	for i, s := range kept {
		index[s.id] = i
	}
	all := make([][]int, len(kept))
	for i, s := range kept {
		all[i] = a.ran(s.parents, index, map[int64]bool{})
	}
	if !ordered {
		return all
	}
	// A stage belongs to the first job that lists it; later jobs skip it.
	of := make([]int, len(kept))
	for i := range of {
		of[i] = -1
	}
	ran := make([]interval, len(a.jobs), len(a.jobs)+len(kept))
	for k, j := range a.jobs {
		ran[k] = interval{j.submitted, j.completed}
		for _, id := range j.stages {
			if i, ok := index[id]; ok && of[i] < 0 {
				of[i] = k
			}
		}
	}
	for i, s := range kept {
		if of[i] < 0 { // the start of its job is missing: it counts as a job of its own
			of[i] = len(ran)
			ran = append(ran, s.ran())
		}
	}
	w := sparkWaits{before: precede(ran), last: lastStages(all, of, len(ran)), memo: map[int][]int{}}
	for i := range kept {
		if len(all[i]) == 0 {
			all[i] = w.stages(of[i])
		}
	}
	return all
}

// ran returns the stages that have tasks; a stage without tasks is replaced by the stages that it waited for.
func (a *sparkApp) ran(ids []int64, index map[int64]int, seen map[int64]bool) []int {
	var all []int
	for _, id := range ids {
		if seen[id] {
			continue
		}
		seen[id] = true
		if i, ok := index[id]; ok {
			all = append(all, i)
		} else if s := a.stages[id]; s != nil {
			all = append(all, a.ran(s.parents, index, seen)...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// lastStages returns for each job the stages that no other stage of the job waits for.
func lastStages(parents [][]int, of []int, jobs int) [][]int {
	waited := make([]bool, len(parents))
	for i, all := range parents {
		for _, p := range all {
			waited[p] = waited[p] || of[p] == of[i]
		}
	}
	last := make([][]int, jobs)
	for i, k := range of {
		if k >= 0 && !waited[i] {
			last[k] = append(last[k], i)
		}
	}
	return last
}

// sparkWaits finds the stages that the first stages of a job wait for.
type sparkWaits struct {
	before, last [][]int
	memo         map[int][]int
}

// stages returns the last stages of the jobs before job k; a job without stages is replaced by the jobs before it.
func (w *sparkWaits) stages(k int) []int {
	if known, ok := w.memo[k]; ok {
		return known
	}
	var all []int
	for _, b := range w.before[k] {
		if len(w.last[b]) > 0 {
			all = append(all, w.last[b]...)
		} else {
			all = append(all, w.stages(b)...)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	w.memo[k] = all
	return all
}
