package importer

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/fault"
)

// sparkEvent is a line of an event log, with only the fields that are used.
type sparkEvent struct {
	Event     string
	Timestamp int64
	AppName   string            `json:"App Name"`
	AppID     string            `json:"App ID"`
	User      string            `json:"User"`
	Conf      map[string]string `json:"Spark Properties"`

	ExecutorID string `json:"Executor ID"`
	Executor   *struct {
		Cores int64 `json:"Total Cores"`
	} `json:"Executor Info"`

	JobID      int64   `json:"Job ID"`
	Submission int64   `json:"Submission Time"`
	Completion int64   `json:"Completion Time"`
	StageIDs   []int64 `json:"Stage IDs"`
	// Announced are the stages of a job that starts.
	Announced []sparkStageInfo `json:"Stage Infos"`

	Stage *sparkStageInfo `json:"Stage Info"`

	StageID int64 `json:"Stage ID"`
	Task    *struct {
		ID           int64  `json:"Task ID"`
		Index        int64  `json:"Index"`
		Launch       int64  `json:"Launch Time"`
		Finish       int64  `json:"Finish Time"`
		Failed       bool   `json:"Failed"`
		Killed       bool   `json:"Killed"`
		Executor     string `json:"Executor ID"`
		Accumulables []struct {
			Name   string
			Update json.RawMessage
		}
	} `json:"Task Info"`
	End     *sparkEnd     `json:"Task End Reason"`
	Metrics *sparkMetrics `json:"Task Metrics"`
}

// sparkEnd says how a task ended. Class is that of its exception, and Loss says why its executor was lost.
type sparkEnd struct {
	Reason string
	Class  string `json:"Class Name"`
	Loss   string `json:"Loss Reason"`
}

// failed reports whether the task failed, and whether that was for want of memory, as far as the log says so. A task
// that was killed, or whose input or result was lost, has not failed by itself.
func (e *sparkEnd) failed() (failed, forMemory bool) {
	switch e.Reason {
	case "ExceptionFailure":
		return true, strings.HasSuffix(e.Class, "OutOfMemoryError")
	case "ExecutorLostFailure":
		return true, killedForMemory().MatchString(e.Loss)
	}
	return false, false
}

// killedForMemory is in what Spark says of an executor that a resource manager or the kernel killed for want of memory:
// it exceeded its limits, or ended by SIGKILL.
var killedForMemory = pattern(`(?i)memory limit|physical memory|out of memory|oom|\b137\b`)

// sparkStageInfo describes a stage.
type sparkStageInfo struct {
	ID      int64   `json:"Stage ID"`
	Attempt int64   `json:"Stage Attempt ID"`
	Name    string  `json:"Stage Name"`
	Tasks   int64   `json:"Number of Tasks"`
	Parents []int64 `json:"Parent IDs"`
}

// sparkMetrics are the metrics of one task. Times are in ms, CPU time in ns, the rest in bytes.
type sparkMetrics struct {
	CPUTime            int64 `json:"Executor CPU Time"`
	DeserializeCPUTime int64 `json:"Executor Deserialize CPU Time"`
	GCTime             int64 `json:"JVM GC Time"`
	PeakExecution      int64 `json:"Peak Execution Memory"`
	MemorySpilled      int64 `json:"Memory Bytes Spilled"`
	DiskSpilled        int64 `json:"Disk Bytes Spilled"`
	ShuffleRead        struct {
		Remote       int64 `json:"Remote Bytes Read"`
		RemoteToDisk int64 `json:"Remote Bytes Read To Disk"`
		Local        int64 `json:"Local Bytes Read"`
	} `json:"Shuffle Read Metrics"`
	ShuffleWrite struct {
		Bytes int64 `json:"Shuffle Bytes Written"`
	} `json:"Shuffle Write Metrics"`
	Input struct {
		Bytes int64 `json:"Bytes Read"`
	} `json:"Input Metrics"`
	Output struct {
		Bytes int64 `json:"Bytes Written"`
	} `json:"Output Metrics"`
}

// check returns the name of a metric that is out of range.
func (m *sparkMetrics) check() (name string, value int64, bad bool) {
	for _, f := range []struct {
		name  string
		value int64
	}{{"Executor CPU Time", m.CPUTime}, {"Executor Deserialize CPU Time", m.DeserializeCPUTime}, {"JVM GC Time", m.GCTime},
		{"Peak Execution Memory", m.PeakExecution}, {"Memory Bytes Spilled", m.MemorySpilled},
		{"Disk Bytes Spilled", m.DiskSpilled},
		{"Remote Bytes Read", m.ShuffleRead.Remote}, {"Remote Bytes Read To Disk", m.ShuffleRead.RemoteToDisk},
		{"Local Bytes Read", m.ShuffleRead.Local}, {"Shuffle Bytes Written", m.ShuffleWrite.Bytes},
		{"Bytes Read", m.Input.Bytes},
		{"Bytes Written", m.Output.Bytes}} {
		if f.value < 0 || f.value > 1e15 {
			return f.name, f.value, true
		}
	}
	return "", 0, false
}

// sparkTask is a task that succeeded.
type sparkTask struct {
	launch, finish int64
	lacks          sparkLacks
	sparkMetrics
}

// lasting is the measured duration.
func (t *sparkTask) lasting() time.Duration {
	return max(time.Duration(t.finish-t.launch)*time.Millisecond, time.Millisecond)
}

type sparkStage struct {
	id       int64
	name     string
	expected int // number of tasks, in the attempt with most; 0 if the log does not have it
	parents  []int64
	line     int
	attempts map[int64]bool
	tasks    []sparkTask
	index    map[int64]bool // of tasks that succeeded
	failed   Ends
}

type sparkJob struct {
	id, submitted, completed int64
	stages                   []int64
}

// sparkApp is the content of a log about one application.
type sparkApp struct {
	name, id, user string
	started        int64
	ended          bool
	conf           map[string]string
	jobs           []*sparkJob
	job            map[int64]*sparkJob
	stages         map[int64]*sparkStage
	announced      map[int64]*sparkStageInfo // stages of jobs that started
	order          []*sparkStage             // in the order of submission
	tasks          map[int64]bool

	alive         map[string]bool
	cores         int64 // of an executor, the largest number
	mostExecutors int
}

// readSparkLog reads a whole event log. The log of an application that still runs, or was killed, may end anywhere.
// Spark drops events when it has too many; a record that contradicts the others, perhaps because of that, is left out.
func readSparkLog(in *input) (*sparkApp, error) {
	a := &sparkApp{conf: map[string]string{}, job: map[int64]*sparkJob{}, stages: map[int64]*sparkStage{},
		announced: map[int64]*sparkStageInfo{}, tasks: map[int64]bool{}, alive: map[string]bool{}}
	known := false
	err := in.lines(func(text string) error {
		kind := sparkKind(text)
		if kind != "" && !sparkEvents[kind] {
			known = true
			return nil
		}
		var e sparkEvent
		err := json.Unmarshal([]byte(text), &e)
		if err != nil {
			if _, more := in.in.Peek(1); more == io.EOF && known {
				in.notes.add("lines were cut off at the end of a log", 1)
				return nil
			}
			err = in.fault("event: must be a JSON object: %s", fault.OfJSON(err))
		} else if e.Event == "" {
			err = in.fault("Event: must be the name of an event of Spark")
		} else {
			known = true
			err = a.event(in, &e, text)
		}
		if err != nil && known {
			in.leaveOut(err)
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if !a.ended {
		in.notes.add("logs do not tell the end of their application; what had ended is imported", 1)
	}
	return a, nil
}

// sparkEvents are the events that are decoded.
var sparkEvents = map[string]bool{
	"SparkListenerApplicationStart": true, "SparkListenerApplicationEnd": true, "SparkListenerEnvironmentUpdate": true,
	"SparkListenerExecutorAdded": true, "SparkListenerExecutorRemoved": true, "SparkListenerJobStart": true,
	"SparkListenerJobEnd":         true,
	"SparkListenerStageSubmitted": true, "SparkListenerTaskEnd": true,
}

// sparkKind returns the name of the event of a line in Spark's own form, "" for a line in another form.
func sparkKind(line string) string {
	rest, ok := strings.CutPrefix(line, `{"Event":"`)
	name, rest, whole := strings.Cut(rest, `"`)
	if !ok || !whole || !strings.HasPrefix(rest, ",") || !strings.HasSuffix(line, "}") {
		return ""
	}
	return name
}

func (a *sparkApp) event(in *input, e *sparkEvent, line string) error {
	for _, t := range []struct {
		name  string
		value int64
	}{{"Timestamp", e.Timestamp}, {"Submission Time", e.Submission}, {"Completion Time", e.Completion}} {
		if t.value < 0 || t.value > mostMilliseconds {
			return in.fault("%s %d: must be milliseconds from 0 to %d", t.name, t.value, int64(mostMilliseconds))
		}
	}
	switch e.Event {
	case "SparkListenerApplicationStart":
		a.name, a.id, a.user, a.started = e.AppName, e.AppID, e.User, e.Timestamp
	case "SparkListenerApplicationEnd":
		a.ended = true
	case "SparkListenerEnvironmentUpdate":
		for k, v := range e.Conf {
			a.conf[k] = v
		}
	case "SparkListenerExecutorAdded":
		a.alive[e.ExecutorID] = true
		a.mostExecutors = max(a.mostExecutors, len(a.alive))
		if e.Executor != nil && e.Executor.Cores <= mostCores {
			a.cores = max(a.cores, e.Executor.Cores)
		}
	case "SparkListenerExecutorRemoved":
		delete(a.alive, e.ExecutorID)
	case "SparkListenerJobStart":
		if a.job[e.JobID] != nil {
			return in.fault("Job ID %d: started twice", e.JobID)
		}
		j := &sparkJob{id: e.JobID, submitted: e.Submission, completed: mostMilliseconds, stages: e.StageIDs}
		a.job[e.JobID] = j
		a.jobs = append(a.jobs, j)
		for i := range e.Announced {
			a.announced[e.Announced[i].ID] = &e.Announced[i]
		}
	case "SparkListenerJobEnd":
		j := a.job[e.JobID]
		if j == nil {
			return in.fault("Job ID %d: ended, but did not start", e.JobID)
		}
		if e.Completion < j.submitted {
			return in.fault("Completion Time %d: must not be before Submission Time, %d", e.Completion, j.submitted)
		}
		j.completed = e.Completion
	case "SparkListenerStageSubmitted":
		return a.submitted(in, e)
	case "SparkListenerTaskEnd":
		return a.taskEnded(in, e, lacking(line))
	}
	return nil
}

func (a *sparkApp) submitted(in *input, e *sparkEvent) error {
	if e.Stage == nil {
		return in.fault("Stage Info: must be given")
	}
	s := a.stages[e.Stage.ID]
	if s == nil {
		s = a.begin(in, e.Stage)
	}
	if s.attempts[e.Stage.Attempt] {
		return in.fault("Stage ID %d: submitted twice in attempt %d", s.id, e.Stage.Attempt)
	}
	s.attempts[e.Stage.Attempt] = true
	s.expect(e.Stage)
	return nil
}

// begin adds a stage.
func (a *sparkApp) begin(in *input, info *sparkStageInfo) *sparkStage {
	s := &sparkStage{id: info.ID, name: info.Name, parents: info.Parents, line: in.line,
		attempts: map[int64]bool{}, index: map[int64]bool{}}
	a.stages[s.id] = s
	a.order = append(a.order, s)
	return s
}

func (s *sparkStage) expect(info *sparkStageInfo) {
	s.expected = max(s.expected, int(min(max(info.Tasks, 0), mostTasks)))
}

// ran is the time in which the tasks of a stage ran, of which there is at least one.
func (s *sparkStage) ran() interval {
	all := interval{math.MaxInt64, 0}
	for i := range s.tasks {
		all.begin, all.end = min(all.begin, s.tasks[i].launch), max(all.end, s.tasks[i].finish)
	}
	return all
}

// peakAccumulable is the name of the accumulated value that has the peak of execution memory before Spark 3.0.
const peakAccumulable = "internal.metrics.peakExecutionMemory"

func (a *sparkApp) taskEnded(in *input, e *sparkEvent, lacks sparkLacks) error {
	s := a.stages[e.StageID]
	if info := a.announced[e.StageID]; s == nil && info != nil {
		s = a.begin(in, info)
		s.expect(info)
		in.notes.add("stages have no record of their submission, and are as their jobs announced them", 1)
	}
	switch {
	case s == nil:
		return in.fault("Stage ID %d: must be of a stage that was submitted", e.StageID)
	case e.Task == nil || e.End == nil:
		return in.fault("Task Info, Task End Reason: must be given")
	case a.tasks[e.Task.ID]:
		return in.fault("Task ID %d: ended twice", e.Task.ID)
	case e.Task.Launch < 0 || e.Task.Finish > mostMilliseconds || e.Task.Finish < e.Task.Launch ||
		e.Task.Finish-e.Task.Launch > mostSeconds*1000:
		return in.fault("Finish Time %d: must not be before Launch Time, %d, nor negative", e.Task.Finish, e.Task.Launch)
	}
	a.tasks[e.Task.ID] = true
	if e.End.Reason != "Success" || e.Task.Failed || e.Task.Killed || e.Metrics == nil {
		in.notes.add("tasks failed or were killed and were left out", 1)
		if failed, forMemory := e.End.failed(); failed {
			s.failed = s.failed.And(forMemory)
		}
		return nil
	}
	if s.index[e.Task.Index] {
		in.notes.add("tasks succeeded again, in another attempt, and were left out", 1)
		return nil
	}
	if name, value, bad := e.Metrics.check(); bad {
		return in.fault("%s %d: must be from 0 to 1e15", name, value)
	}
	t := sparkTask{launch: e.Task.Launch, finish: e.Task.Finish, lacks: lacks, sparkMetrics: *e.Metrics}
	// Before Spark 3.0 the peak is only among the accumulated values.
	for _, acc := range e.Task.Accumulables {
		if acc.Name == peakAccumulable {
			if v, err := strconv.ParseInt(strings.Trim(string(acc.Update), `"`), 10, 64); err == nil && v >= 0 && v <= 1e15 {
				t.PeakExecution = max(t.PeakExecution, v)
			}
		}
	}
	s.index[e.Task.Index] = true
	s.tasks = append(s.tasks, t)
	return nil
}

// sparkBytes reads a size in the form of Spark's settings: 40G, 512m, or 1024 in the given unit.
func sparkBytes(text string, unit resource.Amount) (resource.Amount, bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	digits := strings.TrimRight(text, "kmgtpib")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 {
		return 0, false
	}
	switch suffix := strings.TrimRight(strings.TrimPrefix(text, digits), "ib"); suffix {
	case "k":
		unit = resource.KiB
	case "m":
		unit = resource.MiB
	case "g":
		unit = resource.GiB
	case "t":
		unit = resource.TiB
	case "p":
		unit = resource.PiB
	case "":
		if strings.HasSuffix(text, "b") {
			unit = 1
		}
	default:
		return 0, false
	}
	if n > mostBytes/int64(unit) {
		return 0, false
	}
	return resource.Amount(n) * unit, true
}

// executor is the shape of the executors of an application.
type executor struct {
	slots    int64           // tasks at a time
	taskCPU  resource.Amount // millicores
	cpu      resource.Amount
	heap     resource.Amount
	overhead resource.Amount
	fraction float64 // of the heap without its reserved part, shared by execution and storage
}

// executor returns the executor that the settings describe, with Spark's own defaults.
func (a *sparkApp) executor(in *input) (executor, error) {
	x := executor{heap: resource.GiB, fraction: 0.6}
	get := func(name string, unit resource.Amount, to *resource.Amount) error {
		if text, given := a.conf[name]; given {
			v, ok := sparkBytes(text, unit)
			if !ok || v < 1 {
				return in.fault("%s %q: must be a size, such as 4g", name, cluster.Clip(text))
			}
			*to = v
		}
		return nil
	}
	memory := "spark.executor.memory"
	if strings.HasPrefix(a.conf["spark.master"], "local") {
		memory = "spark.driver.memory" // in local mode the driver is the executor
	}
	if err := get(memory, resource.MiB, &x.heap); err != nil {
		return x, err
	}
	factor := 0.1
	if v, ok := parseNumber(a.conf["spark.executor.memoryOverheadFactor"], 0, 100); ok {
		factor = v
	}
	x.overhead = max(384*resource.MiB, amount(math.Ceil(factor*float64(x.heap)/float64(resource.MiB)))*resource.MiB)
	if err := get("spark.executor.memoryOverhead", resource.MiB, &x.overhead); err != nil {
		return x, err
	}
	if v, ok := parseNumber(a.conf["spark.memory.fraction"], 0, 1); ok {
		x.fraction = v
	}
	cores, taskCPUs := max(a.cores, 1), int64(1)
	if v, ok := parseNumber(a.conf["spark.task.cpus"], 1, mostCores); ok {
		taskCPUs = int64(v)
	}
	x.slots = max(cores/taskCPUs, 1)
	x.taskCPU = resource.Amount(taskCPUs) * resource.Core
	x.cpu = resource.Amount(max(cores, taskCPUs)) * resource.Core
	return x, nil
}

// sparkReserved is the part of a heap that Spark reserves for itself, bytes.
const sparkReserved = 300 * resource.MiB

// perTask returns the memory of an executor for each task at a time, bytes.
func (x *executor) perTask() resource.Amount {
	return max((x.heap+x.overhead)/resource.Amount(x.slots), resource.MiB)
}

// outside returns the memory of each task outside of execution memory, bytes: its share of user memory and overhead.
func (x *executor) outside() resource.Amount {
	managed := amount(x.fraction * float64(max(x.heap-sparkReserved, 0)))
	return max((x.heap-managed+x.overhead)/resource.Amount(x.slots), resource.MiB)
}

// ranStages returns the stages that have tasks, in the order of submission.
func (a *sparkApp) ranStages(in *input) []*sparkStage {
	kept := slices.DeleteFunc(slices.Clone(a.order), func(s *sparkStage) bool { return len(s.tasks) == 0 })
	in.notes.add("stages had no task that succeeded and were left out", len(a.order)-len(kept))
	return kept
}

// label is the name of a stage.
func (s *sparkStage) label() string { return plainName(fmt.Sprintf("%d %s", s.id, s.name)) }

// recurring is the name of an application that all its runs have; empty if the log has none.
func (a *sparkApp) recurring() string { return cluster.NameFor(plainName(a.name)) }

// label is the name of a run of an application.
func (a *sparkApp) label(file string) string {
	name := a.name
	if name == "" {
		name = file
	}
	if a.id != "" {
		name = fmt.Sprintf("%s (%s)", name, a.id)
	}
	return plainName(name)
}
