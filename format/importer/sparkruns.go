package importer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// StageRun is what a log says of a stage of an application: the run of its mean task.
type StageRun struct {
	App   profile.App
	Tasks int
	Run   profile.Run
}

// Runs reads event logs as runs from which a profile.History can learn, in the order in which they ended. A stage of
// a log is one run, regardless of the number of its tasks, because its tasks are repeats of one execution of the
// application. app, if it is not empty, is the name of the application instead of the name in the logs. progress, if
// not nil, is called now and then with the bytes read.
//
// A log has totals of each task and not their course over time. A run therefore has one phase: the mean duration of the
// tasks, their demand of CPU, disk and network over all of that time, and the memory of the largest task. What the
// log does not have is unknown; notes say how often. Errors are a *fault.Fault if a file is wrong.
func (f *Spark) Runs(sources []Source, app string, progress func(bytes int64)) (runs []StageRun, said []string,
	err error) {
	if err := f.check(); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	o, n := &Options{Progress: progress, total: newTotal()}, &notes{}
	for _, parts := range f.logs(sources, n) {
		in, err := open(parts, true, o, n)
		if err != nil {
			return nil, nil, err
		}
		of, err := f.runsOf(in, app)
		in.close()
		if err != nil {
			return nil, nil, err
		}
		runs = append(runs, of...)
	}
	slices.SortStableFunc(runs, func(a, b StageRun) int { return cmp.Compare(a.Run.Ended, b.Run.Ended) })
	return runs, n.sentences(), nil
}

// runsOf returns the runs of the stages of a log that ran all their tasks.
func (f *Spark) runsOf(in *input, app string) ([]StageRun, error) {
	a, err := readSparkLog(in)
	if err != nil {
		return nil, err
	}
	x, err := a.executor(in)
	if err != nil {
		return nil, err
	}
	kept := a.ranStages(in)
	j := cluster.Job{Owner: plainName(a.user), App: cmp.Or(app, a.recurring())}
	if j.App == "" {
		return nil, in.fault("App Name: must be in the log, or be given")
	}
	for _, s := range kept {
		j.Stages = append(j.Stages, cluster.Stage{Name: s.label()})
	}
	var runs []StageRun
	for i, s := range kept {
		if len(s.tasks) < s.expected {
			in.notes.add("stages did not run all their tasks, and nothing is learned of them", 1)
			continue
		}
		of := profile.AppOf(&j, i)
		if !a.ended {
			of.Stage = j.StageName(i) // more stages may have followed
		}
		runs = append(runs, StageRun{of, len(s.tasks), f.runOf(s, &x, in.notes)})
	}
	if len(runs) == 0 {
		return nil, in.nothing("SparkListenerTaskEnd: must have at least one stage all of whose tasks succeeded")
	}
	return runs, nil
}

// input returns what the mean task of a stage, which has tasks, reads; 0 if that is unknown.
func (s *sparkStage) input() resource.Amount {
	read := 0.0
	for i := range s.tasks {
		t := &s.tasks[i]
		if t.lacks&(lacksInput|lacksShuffle) != 0 {
			return 0
		}
		read += float64(t.Input.Bytes + t.ShuffleRead.Local + t.ShuffleRead.Remote)
	}
	return amount(read / float64(len(s.tasks)))
}

// runOf returns the run of the mean task of a stage, which has tasks. n counts the stages with an unknown resource.
func (f *Spark) runOf(s *sparkStage, x *executor, n *notes) profile.Run {
	var lasting, cpu, disk, network float64 // seconds, bytes
	var peak, ended int64
	lacks, measured := sparkLacks(0), false
	for i := range s.tasks {
		t := &s.tasks[i]
		lasting += t.lasting().Seconds()
		cpu += (float64(t.CPUTime) + float64(t.DeserializeCPUTime)) / 1e9
		onDisk, overNetwork := f.transferred(t)
		// what is spilled is written, and read again
		disk, network = disk+float64(onDisk+2*t.DiskSpilled), network+float64(overNetwork)
		peak, ended = max(peak, t.PeakExecution), max(ended, t.finish)
		lacks |= t.lacks
		measured = measured || t.lacks&lacksMemory == 0
	}
	if cpu == 0 {
		lacks |= lacksCPU // every task computes: this Java does not tell the CPU time of threads
	}
	if measured {
		lacks &^= lacksMemory // Spark 2 leaves out the peak of tasks that had none
	}
	tasks := float64(len(s.tasks))
	r := profile.Run{Ended: timeline.Milliseconds(ended), Duration: seconds(lasting / tasks), Unknown: f.unknown(lacks),
		Features: profile.Features{Cores: x.taskCPU, Memory: x.perTask(), Input: s.input()}}
	demand := resource.Of(amount(cpu/lasting*float64(resource.Core)), f.outside(x)+resource.Amount(peak)).
		With(resource.Disk, amount(disk/lasting)).With(resource.Network, amount(network/lasting))
	r.Phases = []cluster.Phase{{Duration: r.Duration, Demand: r.Unknown.In(demand, 0)}}
	for k := range resource.NumKinds {
		if r.Unknown.Has(k) {
			n.add(fmt.Sprintf("stages have tasks whose %s is not in the log; it is unknown", k), 1)
		}
	}
	return r
}

// unknown returns the resources that a run cannot tell whose tasks lack some metrics.
func (f *Spark) unknown(lacks sparkLacks) (kinds resource.Kinds) {
	add := func(k resource.Kind, lacking bool) {
		if lacking {
			kinds |= resource.KindsOf(k)
		}
	}
	add(resource.CPU, lacks&lacksCPU != 0)
	add(resource.Memory, lacks&lacksMemory != 0)
	add(resource.Disk, lacks&lacksShuffle != 0 || lacks&lacksInput != 0 && !f.InputOverNetwork)
	add(resource.Network, lacks&lacksShuffle != 0 || lacks&lacksInput != 0 && f.InputOverNetwork)
	return kinds
}

// sparkLacks are the metrics that the log does not have of a task, because of its version.
type sparkLacks uint8

const (
	lacksCPU     sparkLacks = 1 << iota // before Spark 2.1
	lacksMemory                         // before Spark 1.6, and before 3.0 of tasks that had none
	lacksShuffle                        // before Spark 2.0, of tasks that shuffled nothing
	lacksInput                          // before Spark 2.0, of tasks that read or wrote no files
)

// lacking returns what the line about the end of a task does not have. Decoded, an absent metric would be 0.
func lacking(line string) (lacks sparkLacks) {
	for _, m := range []struct {
		lacks sparkLacks
		any   []string // of these fields
	}{
		{lacksCPU, []string{"Executor CPU Time"}}, {lacksMemory, []string{"Peak Execution Memory", peakAccumulable}},
		{lacksShuffle, []string{"Shuffle Read Metrics"}}, {lacksShuffle, []string{"Shuffle Write Metrics"}},
		{lacksInput, []string{"Input Metrics"}}, {lacksInput, []string{"Output Metrics"}},
	} {
		if !slices.ContainsFunc(m.any, func(field string) bool { return strings.Contains(line, `"`+field+`"`) }) {
			lacks |= m.lacks
		}
	}
	return lacks
}
