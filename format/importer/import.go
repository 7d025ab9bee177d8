package importer

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/fault"
	"github.com/bellows-rm/bellows/format/workload"
)

// Format reads one kind of file. Its fields are assumptions about values that the file does not contain.
type Format interface {
	// Name is the name of the format on the command line.
	Name() string
	// Node is a typical node for such a workload.
	Node() resource.Vector
	// check returns an error that names the first field that is out of range.
	check() error
	// read passes the jobs of a file to job, in any order, each with the time of its submission in the file's own
	// count. A list of a job may have any length up to the number of its tasks.
	read(in *input, job func(workload.Job) error) error
}

// Source is a file to import.
type Source struct {
	Name string // for errors
	Data io.Reader
}

// Options apply to every format. The zero value is the whole workload as it is.
type Options struct {
	// From and To limit the times of submission, from the first submission in the file: From <= time < To. To 0 means
	// no limit.
	From, To time.Duration
	// Jobs is the number of jobs to keep: the first ones submitted or, if Sample is set, a random sample. 0 keeps all.
	Jobs   int
	Sample bool
	// ArrivalsScale, TasksScale and MemoryScale scale the times of submission, the number of tasks of each stage and
	// the memory of each task. 0 counts as 1.
	ArrivalsScale, TasksScale, MemoryScale float64
	// AtOnce submits all jobs at time 0, whatever ArrivalsScale is.
	AtOnce bool
	// Class, if not nil, is the class of all jobs instead of the one that the format gives them.
	Class *cluster.Class
	// Bandwidth says whether policies know of disk and network.
	Bandwidth Bandwidth
	// Node is the node of the suggested cluster; components that are 0 are those of the format.
	Node resource.Vector
	// Load is the demand on the suggested cluster, as a share of its capacity: at 1 the work of the most demanded
	// resource just fits into the time in which jobs are submitted. 0 means as many nodes as a file records, or else
	// DefaultLoad.
	Load float64
	// seed of all random draws
	Seed   uint64
	loaded bool // Load was given
	total  *total
	// Progress, if not nil, is called now and then with the number of bytes of the input read, after unpacking.
	Progress func(bytes int64)
}

// DefaultLoad makes queues form in busy hours, and lets them drain in quiet hours.
const DefaultLoad = 0.8

// Bandwidth says whether policies know the disk and network bandwidth that tasks need.
type Bandwidth uint8

const (
	// TruthOnly puts it into the truth only: requests to a scheduler name CPU and memory.
	TruthOnly Bandwidth = iota
	// Estimated makes it known to policies, too.
	Estimated
	// Ignored drops it.
	Ignored
)

// Result is an imported workload.
type Result struct {
	Workload *workload.Workload
	// Cluster is a suggested cluster for the workload.
	Cluster workload.ClusterShape
	// Asked is the work of all tasks, with their estimated needs and their true run times, over the capacity of Cluster
	// during Span: for the resources that every node states, CPU and memory.
	Asked [resource.NumKinds]float64
	// Span is the time over which jobs are submitted, or, if it is longer, the 90th percentile of the jobs' critical
	// paths.
	Span time.Duration
	// Ends are the ends without success, also of tasks that were left out, by what recurs: the process of a Nextflow
	// task, the owner and the name of a Slurm job. Other formats have none.
	Ends map[profile.App]Ends
	// Unasked is how many tasks have an estimate of memory that is what was used, because the file does not have what was
	// requested.
	Unasked int
	// Notes are sentences that say what was left out or repaired, and how often.
	Notes []string
}

// Import reads files of one format as one workload. Errors are a *fault.Fault if a file is wrong.
func Import(f Format, sources []Source, o Options) (*Result, error) {
	if err := o.settle(); err != nil {
		return nil, err
	}
	if err := f.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	w := &workload.Workload{}
	notes := &notes{}
	logs, growing := single(sources), false
	if l, ok := f.(logFormat); ok {
		logs, growing = l.logs(sources, notes), true
	}
	var in *input
	add := func(j workload.Job) error {
		j.After = -1
		if err := o.total.add(in, &j); err != nil {
			return err
		}
		w.Jobs = append(w.Jobs, j)
		return nil
	}
	for _, parts := range logs {
		var err error
		if in, err = open(parts, growing, &o, notes); err != nil {
			return nil, err
		}
		err = f.read(in, add)
		in.close()
		if err != nil {
			return nil, err
		}
	}
	if l, ok := f.(finisher); ok {
		if err := l.finish(notes, add); err != nil {
			return nil, err
		}
	}
	if len(w.Jobs) == 0 && len(sources) > 0 {
		return nil, fault.At(sources[0].Name, 0, "jobs: must be at least one, but the file holds none")
	}
	if m, ok := f.(merger); ok {
		m.merge(w.Jobs, notes)
	}
	if err := o.cut(w, notes); err != nil {
		return nil, err
	}
	o.scale(w)
	number(w)
	for i := range w.Jobs {
		if at := time.Duration(w.Jobs[i].Submitted); at > cluster.LongestTime {
			return nil, fmt.Errorf("job %q: submitted %v after the first: must be at most %v; choose with --from and --to, or "+
				"scale with --arrivals-scale", w.Jobs[i].Name, at, cluster.LongestTime)
		}
		if err := w.Jobs[i].Check(); err != nil {
			return nil, err
		}
		if err := w.Jobs[i].CheckTruth(); err != nil {
			return nil, err
		}
	}
	r := &Result{Workload: w, Ends: notes.ends, Unasked: notes.unasked, Notes: notes.sentences()}
	r.suggest(f, &o)
	return r, nil
}

// logFormat is a format of files to which a program appends while it runs: they may end anywhere, and several files may
// be one log.
type logFormat interface {
	// logs returns the files of each log, in their order.
	logs(sources []Source, n *notes) [][]Source
}

// single returns each source alone.
func single(sources []Source) (all [][]Source) {
	for s := range slices.Chunk(sources, 1) {
		all = append(all, s)
	}
	return all
}

// finisher is a format some of whose jobs are known when all files have been read.
type finisher interface {
	finish(n *notes, job func(workload.Job) error) error
}

// merger is a format that learns from all files together.
type merger interface {
	merge(jobs []workload.Job, n *notes)
}

// recorded is a format whose files record the number of nodes.
type recorded interface{ nodes() int }

// settle checks the options and fills in defaults.
func (o *Options) settle() error {
	o.loaded = o.Load != 0
	if o.total == nil {
		o.total = newTotal()
	}
	for _, s := range []struct {
		name  string
		value *float64
		usual float64
	}{{"arrivals scale", &o.ArrivalsScale, 1}, {"tasks scale", &o.TasksScale, 1}, {"memory scale", &o.MemoryScale, 1},
		{"load", &o.Load, DefaultLoad}} {
		if *s.value == 0 {
			*s.value = s.usual
		}
		if !(*s.value > 0 && *s.value <= 1_000_000) {
			return fmt.Errorf("%s %v: must be a number above 0, at most 1000000", s.name, *s.value)
		}
	}
	switch {
	case o.From < 0:
		return fmt.Errorf("from %v: must not be negative", o.From)
	case o.To != 0 && o.To <= o.From:
		return fmt.Errorf("to %v: must be after from, %v", o.To, o.From)
	case o.Jobs < 0:
		return fmt.Errorf("jobs %d: must not be negative", o.Jobs)
	}
	return nil
}

// random returns a separate source of random numbers for each use.
func (o *Options) random(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(o.Seed, stream)) }

// Streams of random numbers.
const (
	sampleStream = iota + 1
	arrivalStream
	drawStream
)

// cut sorts the jobs by submission, from time 0 on, and keeps the requested jobs.
func (o *Options) cut(w *workload.Workload, n *notes) error {
	jobs := w.Jobs
	sort.SliceStable(jobs, func(a, b int) bool { return jobs[a].Submitted < jobs[b].Submitted })
	read := len(jobs)
	if read > 0 {
		origin := jobs[0].Submitted
		keep := jobs[:0]
		for _, j := range jobs {
			at := j.Submitted.Sub(origin)
			if at >= o.From && (o.To == 0 || at < o.To) {
				j.Submitted = timeline.Time(at - o.From)
				keep = append(keep, j)
			}
		}
		jobs = keep
	}
	if o.Jobs > 0 && len(jobs) > o.Jobs {
		if o.Sample {
			jobs = sample(jobs, o.Jobs, o.random(sampleStream))
		}
		jobs = jobs[:o.Jobs]
	}
	if len(jobs) < read {
		n.add("jobs of the file were left out, by --from, --to or --jobs", read-len(jobs))
	}
	if len(jobs) == 0 {
		return fmt.Errorf("jobs: none of the %d in the file is left", read)
	}
	w.Jobs = jobs
	return nil
}

// sample returns n of the jobs in their order; each set is equally likely.
func sample(jobs []workload.Job, n int, r *rand.Rand) []workload.Job {
	kept := make([]workload.Job, 0, n)
	for i := range jobs {
		if r.IntN(len(jobs)-i) < n-len(kept) {
			kept = append(kept, jobs[i])
		}
	}
	return kept
}

// scale applies the scales and the choice of bandwidth.
func (o *Options) scale(w *workload.Workload) {
	for i := range w.Jobs {
		j := &w.Jobs[i]
		if o.Class != nil {
			j.Class = *o.Class
		}
		switch {
		case o.AtOnce:
			j.Submitted = 0
		case o.ArrivalsScale != 1:
			j.Submitted = timeline.Time(math.Round(float64(j.Submitted) * o.ArrivalsScale))
		}
		for s := range j.Stages {
			stage := &j.Stages[s]
			var truth *workload.StageTruth
			if s < len(j.Truth) {
				truth = &j.Truth[s]
			}
			if o.TasksScale != 1 {
				scaleTasks(stage, truth, o.TasksScale)
			}
			if o.MemoryScale != 1 {
				scaleMemory(stage, truth, o.MemoryScale)
			}
			o.Bandwidth.apply(j, s)
		}
		if !said(j.Truth) {
			j.Truth = nil
		}
	}
}

// apply puts disk and network where b says. Formats put them into the estimate and, if tasks or phases differ, into the
// phases of the truth.
func (b Bandwidth) apply(j *workload.Job, i int) {
	s := &j.Stages[i]
	told := s.Ideal
	if b != Estimated {
		s.Ideal = withoutRates(s.Ideal)
	}
	switch b {
	case TruthOnly:
		if told == s.Ideal || i < len(j.Truth) && j.Truth[i].Phases.Given() {
			return
		}
		if j.Truth == nil {
			j.Truth = make([]workload.StageTruth, len(j.Stages))
		}
		j.Truth[i].Phases = workload.ForAll([]cluster.Phase{{Duration: s.Duration, Demand: told}})
	case Ignored:
		if i < len(j.Truth) {
			j.Truth[i].MapPhases(func(p *cluster.Phase) { p.Demand = withoutRates(p.Demand) })
		}
	}
}

func withoutRates(v resource.Vector) resource.Vector {
	for _, k := range resource.KindsWhere(resource.Kind.IsRate) {
		v[k] = 0
	}
	return v
}

// scaleTasks changes the number of tasks of a stage. Known values of the tasks are spread evenly over the new tasks.
func scaleTasks(s *cluster.Stage, t *workload.StageTruth, by float64) {
	n := int(min(max(1, math.Round(float64(s.Tasks)*by)), 1<<30))
	if t != nil {
		t.Duration, t.IdealMemory, t.Phases = respread(t.Duration, n), respread(t.IdealMemory, n), respread(t.Phases, n)
	}
	s.Tasks = n
}

// respread returns n values taken evenly from those of the tasks.
func respread[T any](of workload.PerTask[T], n int) workload.PerTask[T] {
	if !of.Differs() {
		return of
	}
	list, spread := of.Values(), make([]T, n)
	for i := range spread {
		spread[i] = list[int(int64(i)*int64(len(list))/int64(n))]
	}
	return workload.ForEach(spread)
}

func scaleMemory(s *cluster.Stage, t *workload.StageTruth, by float64) {
	scaled := func(m resource.Amount) resource.Amount {
		if m == 0 {
			return 0
		}
		return max(1, resource.Amount(min(math.Round(float64(m)*by), float64(1000*resource.PB))))
	}
	points := func(e *cluster.Elasticity) {
		for i := range e.Points {
			e.Points[i].Memory = scaled(e.Points[i].Memory)
		}
	}
	s.Ideal[resource.Memory], s.MinMemory = scaled(s.Ideal[resource.Memory]), scaled(s.MinMemory)
	points(&s.Elasticity)
	if t == nil {
		return
	}
	t.MapMemory(scaled)
	if t.Elasticity != nil {
		points(t.Elasticity)
	}
	if t.Heap != nil {
		t.Heap.Size = scaled(t.Heap.Size)
	}
}

// said reports whether the truth contains anything.
func said(truth []workload.StageTruth) bool {
	for i := range truth {
		if !truth[i].IsZero() {
			return true
		}
	}
	return false
}

// number assigns ids to the jobs, in the order of submission.
func number(w *workload.Workload) {
	for i := range w.Jobs {
		w.Jobs[i].ID = cluster.JobID(i + 1)
	}
}

// suggest finds a cluster whose load from the workload is o.Load.
func (r *Result) suggest(f Format, o *Options) {
	s := workload.Summarise(r.Workload)
	node := f.Node()
	for k, a := range o.Node {
		if a > 0 {
			node[k] = a
		}
	}
	for k, a := range s.Largest {
		if a > node[k] {
			r.Notes = append(r.Notes,
				fmt.Sprintf("The nodes of the suggested cluster have more %v than usual, since a task needs %s.",
					resource.Kind(k), resource.Kind(k).Format(a)))
			node[k] = a
		}
	}
	r.Span = max(s.Span, time.Duration(s.PathOfJob.P90*float64(time.Second)), time.Millisecond)
	nodes, stated := 1.0, resource.KindsWhere(resource.Kind.Stated)
	for _, k := range stated {
		nodes = max(nodes, math.Ceil(s.Work[k]/(o.Load*r.Span.Seconds()*float64(node[k]))-1e-9))
	}
	if c, ok := f.(recorded); ok && !o.loaded && c.nodes() > 0 {
		nodes = float64(c.nodes())
	}
	r.Cluster = workload.ClusterShape{Nodes: int(min(nodes, 1<<20)), Node: node}
	for _, k := range stated {
		r.Asked[k] = s.Work[k] / (r.Span.Seconds() * float64(node[k]) * float64(r.Cluster.Nodes))
	}
	r.hint(&s, o)
}

// hint adds notes about options that show more of the workload.
func (r *Result) hint(s *workload.Summary, o *Options) {
	if s.Jobs > 1 && !o.AtOnce && max(r.Asked[resource.CPU], r.Asked[resource.Memory]) < 0.01 {
		r.Notes = append(r.Notes, "The jobs hardly overlap; --arrivals-scale 0 submits all of them at once.")
	}
	used := s.Used[resource.Memory] / s.Work[resource.Memory]
	regular := func(j workload.Job) bool { return j.Class == cluster.Regular }
	if used < 0.9 && o.Class == nil && slices.ContainsFunc(r.Workload.Jobs, regular) {
		r.Notes = append(r.Notes,
			fmt.Sprintf("Tasks use %.0f %% of the memory that is estimated for them. The jobs are of class "+
				"regular, whose memory stays fixed; --class flex imports them as jobs whose memory follows what they use.",
				100*used))
	}
}
