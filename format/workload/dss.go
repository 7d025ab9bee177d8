package workload

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
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/fault"
)

// leastDSSMemory is the least memory of a task in the YARN-ME authors' format, in MB.
const leastDSSMemory = 100

// dssJobFields and dssTaskFields are all fields of a trace. An unknown name is most likely a typing error that would
// change results silently.
var (
	dssJobFields  = []string{"am.type", "job.start.ms", "job.end.ms", "job.queue.name", "job.id", "job.user", "job.tasks"}
	dssTaskFields = []string{"c.host", "c.dur", "c.prio", "c.mem", "c.type", "c.nr", "c.cores", "c.penalty", "c.ib"}
)

// dssReader collects the jobs of one trace.
type dssReader struct {
	objects *objectReader
	jobs    []Job
	lines   []int                 // of each job
	after   []int64               // the number of the job that each job waits for; -1 if none
	index   map[cluster.JobID]int // of each job in jobs
}

// ReadDSS reads a trace of the YARN-ME authors' simulator: a sequence of JSON objects, one per job, with any line
// breaks; see docs/reference/simulation.md. The jobs of the workload are in the order of submission; jobs that wait
// for another job come last and after that job; the id of job_N is N. Name is used in errors, which are a
// *fault.Fault if the trace is wrong.
func ReadDSS(r io.Reader, name string) (*Workload, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read trace %s: %w", name, err)
	}
	d := dssReader{objects: newObjectReader(name, data), index: map[cluster.JobID]int{}}
	for {
		o, err := d.objects.next("job.tasks")
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := d.job(o); err != nil {
			return nil, err
		}
	}
	if len(d.jobs) == 0 {
		return nil, fault.At(name, 0, "jobs: must be at least one, but the file holds none")
	}
	if err := d.resolveAfter(); err != nil {
		return nil, err
	}
	w := &Workload{Jobs: d.jobs}
	if i, cycle := w.AfterCycle(); cycle != nil {
		return nil, d.objects.fault(d.lines[i], "%s job.start.ms: must not form a cycle, but %s", d.jobs[i].Name,
			cluster.ClipList(cycle, " waits for "))
	}
	w.Sort()
	return w, nil
}

func (d *dssReader) job(o object) error {
	v := dssValues{objects: d.objects, object: o}
	v.known(dssJobFields)
	name := v.text("job.id", "")
	number, isNumbered := jobNumber(name)
	if v.err == nil && !isNumbered {
		v.fail("job.id", "must be job_N with a whole number N of at least 0")
	}
	v.who = name + " "
	id := cluster.JobID(number)
	if first, twice := d.index[id]; twice && v.err == nil {
		v.fail("job.id", fmt.Sprintf("given twice, first in line %d", d.lines[first]))
	}
	start, after := v.start()
	j := Job{Job: cluster.Job{ID: id, Name: name, Queue: v.text("job.queue.name", "-"), Submitted: start}, After: -1}
	j.Owner = v.text("job.user", "-")
	tasks := v.objectsOf("job.tasks")
	if v.err != nil {
		return v.err
	}
	var err error
	if j.Stages, err = d.stages(name, tasks); err != nil {
		return err
	}
	if err := j.Check(); err != nil {
		return d.objects.fault(o.line, "%v", err)
	}
	d.index[id] = len(d.jobs)
	d.jobs, d.lines, d.after = append(d.jobs, j), append(d.lines, o.line), append(d.after, after)
	return nil
}

// stages turns the task classes of a job into stages, ordered by priority. They do not wait for each other.
func (d *dssReader) stages(job string, classes []object) ([]cluster.Stage, error) {
	type ranked struct {
		cluster.Stage
		priority int64
	}
	var all []ranked
	for _, o := range classes {
		v := dssValues{objects: d.objects, object: o, who: job + " "}
		v.known(dssTaskFields)
		s := cluster.Stage{
			Name:       v.text("c.type", "tasks"),
			Tasks:      int(v.whole("c.nr", 1, cluster.MostTasks)),
			Duration:   time.Duration(v.whole("c.dur", 1, cluster.LongestTime.Milliseconds())) * time.Millisecond,
			Elasticity: v.penalty(),
		}
		memory := resource.Amount(v.whole("c.mem", leastDSSMemory, int64(resource.MostMemory/resource.MB))) * resource.MB
		s.Ideal = resource.Of(resource.Amount(v.wholeOr("c.cores", 1, int64(resource.MostCPU/resource.Core),
			1))*resource.Core, memory)
		if s.Elasticity.Kind != cluster.NotElastic {
			s.MinMemory = leastMemory(memory, DefaultMinShare, DefaultGranularity)
		}
		priority := v.wholeOr("c.prio", math.MinInt32, math.MaxInt32, 0)
		if v.err != nil {
			return nil, v.err
		}
		all = append(all, ranked{s, priority})
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return int(a.priority - b.priority) })
	stages := make([]cluster.Stage, len(all))
	seen := map[string]bool{}
	for i := range all {
		stages[i] = all[i].Stage
		stages[i].Name = UnusedName(stages[i].Name, seen)
	}
	return stages, nil
}

// UnusedName returns name, or the first of name-2, name-3... that is not in seen, and adds it to seen.
func UnusedName(name string, seen map[string]bool) string {
	free := name
	for n := 2; seen[free]; n++ {
		free = fmt.Sprintf("%s-%d", name, n)
	}
	seen[free] = true
	return free
}

// resolveAfter converts the numbers of jobs that other jobs wait for to indexes.
func (d *dssReader) resolveAfter() error {
	for i, number := range d.after {
		if number < 0 {
			continue
		}
		at, known := d.index[cluster.JobID(number)]
		if !known {
			return d.objects.fault(d.lines[i],
				"%s job.start.ms \"job_%d\": must be milliseconds or the id of a job in the file", d.jobs[i].Name, number)
		}
		d.jobs[i].After = at
	}
	return nil
}

// jobNumber returns N of job_N.
func jobNumber(name string) (n int64, ok bool) {
	digits, found := strings.CutPrefix(name, "job_")
	if !found || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil
}

// dssValues reads the fields of one object and keeps the first error.
type dssValues struct {
	objects *objectReader
	object  object
	who     string // prefix of the field's name in an error
	err     error
}

func (v *dssValues) fail(name, must string) {
	if v.err != nil {
		return
	}
	f, given := v.object.fields[name]
	if !given {
		v.err = v.objects.fault(v.object.line, "%s%s is missing: %s", v.who, name, must)
		return
	}
	value := string(f.raw)
	if f.raw == nil {
		value = "[]"
	}
	v.err = v.objects.fault(f.line, "%s%s %s: %s", v.who, name, cluster.Clip(strings.Join(strings.Fields(value), " ")),
		must)
}

func (v *dssValues) known(names []string) {
	for _, name := range v.object.names {
		if !slices.Contains(names, name) {
			v.fail(name, "unknown field; must be one of "+strings.Join(names, ", "))
		}
	}
}

// text returns a string; if it is absent, otherwise, or an error if otherwise is empty. "-" stands for the empty
// string.
func (v *dssValues) text(name, otherwise string) string {
	f, given := v.object.fields[name]
	var s string
	switch {
	case !given && otherwise == "":
		v.fail(name, "must be a string")
	case !given && otherwise == "-":
	case !given:
		return otherwise
	case json.Unmarshal(f.raw, &s) != nil && otherwise == "":
		v.fail(name, "must be a string")
	}
	return s
}

func (v *dssValues) wholeOr(name string, least, most, otherwise int64) int64 {
	if _, given := v.object.fields[name]; !given {
		return otherwise
	}
	return v.whole(name, least, most)
}

func (v *dssValues) whole(name string, least, most int64) int64 {
	n, err := strconv.ParseInt(string(v.object.fields[name].raw), 10, 64)
	if err != nil || n < least || n > most {
		v.fail(name, fmt.Sprintf("must be a whole number from %d to %d", least, most))
		return least
	}
	return n
}

// start returns when a job is submitted, and the number of the job that it waits for, -1 if none.
func (v *dssValues) start() (at timeline.Time, after int64) {
	const name = "job.start.ms"
	var parent string
	if json.Unmarshal(v.object.fields[name].raw, &parent) == nil && parent != "" {
		n, ok := jobNumber(parent)
		if !ok {
			v.fail(name, "must be milliseconds or job_N, the job whose end starts this one")
		}
		return 0, n
	}
	return timeline.Milliseconds(v.whole(name, 0, cluster.LongestTime.Milliseconds())), -1
}

// penalty returns the elasticity of a task class; it is not elastic if the class has no penalty of its own.
func (v *dssValues) penalty() cluster.Elasticity {
	const shape, factor = "c.penalty", "c.ib"
	_, hasShape := v.object.fields[shape]
	f, hasFactor := v.object.fields[factor]
	if !hasShape && !hasFactor {
		return cluster.Elasticity{}
	}
	worst, ok := parseFactor(string(f.raw))
	if !ok {
		v.fail(factor, fmt.Sprintf("must be a number from 1 to %d", cluster.MostSlowdown))
	}
	e, known := elasticityOf(v.text(shape, ""), worst)
	if !known {
		v.fail(shape, "must be STEP or SAWTOOTH")
	}
	return e
}

// objectsOf returns a list of at least one object.
func (v *dssValues) objectsOf(name string) []object {
	f := v.object.fields[name]
	if len(f.list) == 0 {
		v.fail(name, "must be a list of at least one object")
	}
	return f.list
}
