package workload

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// A job in a workload file. What is left out is zero, apart from what is said here. Times are in the unit of the header.
type (
	jobLine struct {
		ID       *int64      `json:"id"` // left out: the number of the job in the file, from 1
		Name     string      `json:"name"`
		Owner    string      `json:"owner"`
		Queue    string      `json:"queue"`
		Weight   float64     `json:"weight"`
		Class    string      `json:"class"`
		Attempts int         `json:"max_attempts"`
		Once     bool        `json:"at_most_once"`
		At       int64       `json:"at"`
		After    *int        `json:"after"` // index in the file, from 0; left out: submitted at At
		Stages   []stageLine `json:"stages"`
	}
	stageLine struct {
		Name        string           `json:"name"`
		Tasks       *int             `json:"tasks"` // left out: 1
		Parents     []int            `json:"parents"`
		Coordinator bool             `json:"coordinator"`
		Needs       amounts          `json:"needs"` // CPU, memory, disk, network; zeros at its end are left out
		MinMemory   resource.Amount  `json:"min_memory"`
		MaxMemory   resource.Amount  `json:"max_memory"`
		Heartbeat   int64            `json:"heartbeat_timeout"`
		DataOn      []string         `json:"data_on"`
		Duration    int64            `json:"duration"`
		Elasticity  *elasticityLine  `json:"elasticity"`
		Truth       *truthLine       `json:"truth"`
		Profile     string           `json:"profile"`
		Command     *cluster.Command `json:"command"`
	}
	elasticityLine struct {
		Kind     string          `json:"kind"`
		Factor   float64         `json:"factor"`
		Points   [][]json.Number `json:"points"` // memory, slowdown
		DiskRate int64           `json:"disk_rate"`
	}
	truthLine struct {
		Duration   int64             `json:"duration"`
		Durations  *runs             `json:"durations"`
		Memory     resource.Amount   `json:"memory"`
		Memories   *runs             `json:"memories"`
		Elasticity *elasticityLine   `json:"elasticity"`
		Phases     *phasesLine       `json:"phases"`
		TaskPhases []phasesLine      `json:"task_phases"`
		Heap       []resource.Amount `json:"heap"` // live, size
	}
	// phasesLine holds phases column by column; a column of zeros is left out.
	phasesLine struct {
		Names    []string `json:"names"`
		Duration runs     `json:"duration"`
		CPU      *runs    `json:"cpu"`
		Memory   *runs    `json:"memory"`
		Disk     *runs    `json:"disk"`
		Network  *runs    `json:"network"`
	}
	amounts []resource.Amount
)

// jobEncoder writes one job and keeps the first error.
type jobEncoder struct {
	unit time.Duration
	line []byte
	err  error
}

func (e *jobEncoder) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

// key begins a field.
func (e *jobEncoder) key(name string) {
	if last := e.line[len(e.line)-1]; last != '{' {
		e.line = append(e.line, ',')
	}
	e.line = append(e.line, '"')
	e.line = append(e.line, name...)
	e.line = append(e.line, '"', ':')
}

func (e *jobEncoder) open(c byte)  { e.line = append(e.line, c) }
func (e *jobEncoder) close(c byte) { e.line = append(e.line, c) }

func (e *jobEncoder) whole(name string, n int64) {
	if n != 0 {
		e.key(name)
		e.line = strconv.AppendInt(e.line, n, 10)
	}
}

func (e *jobEncoder) number(name string, f float64) {
	if f != 0 {
		e.key(name)
		e.value(f)
	}
}

// value writes anything that package json writes in its one canonical way.
func (e *jobEncoder) value(v any) {
	text, err := json.Marshal(v)
	if err != nil {
		e.fail(err)
		return
	}
	e.line = append(e.line, text...)
}

func (e *jobEncoder) text(name, s string) {
	if s != "" {
		e.key(name)
		e.quoted(s)
	}
}

func (e *jobEncoder) quoted(s string) {
	if !utf8.ValidString(s) {
		e.fail(fmt.Errorf("text %q: must be UTF-8", cluster.Clip(s)))
	}
	e.value(s)
}

// units returns a time in units.
func (e *jobEncoder) units(d time.Duration) int64 {
	if d%e.unit != 0 {
		e.fail(fmt.Errorf("time %v: must be a whole number of the unit of the file, %v", d, e.unit))
	}
	return int64(d / e.unit)
}

func (e *jobEncoder) job(j *Job, index int) {
	e.open('{')
	if j.ID != cluster.JobID(index+1) {
		e.key("id")
		e.line = strconv.AppendInt(e.line, int64(j.ID), 10)
	}
	e.text("name", j.Name)
	e.text("owner", j.Owner)
	e.text("queue", j.Queue)
	e.number("weight", j.Weight)
	if j.Class != cluster.Regular {
		e.text("class", j.Class.String())
	}
	e.whole("max_attempts", int64(j.MaxAttempts))
	if j.AtMostOnce {
		e.key("at_most_once")
		e.line = append(e.line, "true"...)
	}
	e.whole("at", e.units(time.Duration(j.Submitted)))
	if j.After >= 0 {
		e.key("after")
		e.line = strconv.AppendInt(e.line, int64(j.After), 10)
	}
	e.key("stages")
	e.open('[')
	for i := range j.Stages {
		if i > 0 {
			e.line = append(e.line, ',')
		}
		e.stage(j, i)
	}
	e.close(']')
	e.close('}')
}

func (e *jobEncoder) stage(j *Job, i int) {
	s := &j.Stages[i]
	e.open('{')
	e.text("name", s.Name)
	if s.Tasks != 1 {
		e.whole("tasks", int64(s.Tasks))
	}
	if len(s.Parents) > 0 {
		e.key("parents")
		e.value(s.Parents)
	}
	if s.Coordinator {
		e.key("coordinator")
		e.value(true)
	}
	if !s.Ideal.IsZero() {
		e.key("needs")
		e.needs(s.Ideal)
	}
	e.whole("min_memory", int64(s.MinMemory))
	e.whole("max_memory", int64(s.MaxMemory))
	e.whole("heartbeat_timeout", e.units(s.HeartbeatTimeout))
	if len(s.DataOn) > 0 {
		e.key("data_on")
		e.value(s.DataOn)
	}
	e.whole("duration", e.units(s.Duration))
	if y := &s.Elasticity; y.Kind != cluster.NotElastic || y.Factor != 0 || y.Points != nil || y.DiskRate != 0 {
		e.elasticity(&s.Elasticity)
	}
	if i < len(j.Truth) && !j.Truth[i].IsZero() {
		e.truth(&j.Truth[i])
	}
	e.text("profile", s.Profile)
	if len(s.Args) > 0 {
		e.key("command")
		e.value(&s.Command)
		for _, a := range s.Args {
			if !utf8.ValidString(a) {
				e.fail(fmt.Errorf("command %q: must be UTF-8", cluster.Clip(a)))
			}
		}
	}
	e.close('}')
}

func (e *jobEncoder) needs(v resource.Vector) {
	n := len(v)
	for n > 0 && v[n-1] == 0 {
		n--
	}
	e.open('[')
	for i := range n {
		if i > 0 {
			e.line = append(e.line, ',')
		}
		e.line = strconv.AppendInt(e.line, int64(v[i]), 10)
	}
	e.close(']')
}

func (e *jobEncoder) elasticity(y *cluster.Elasticity) {
	e.key("elasticity")
	e.open('{')
	e.text("kind", y.Kind.String())
	e.number("factor", y.Factor)
	if len(y.Points) > 0 {
		e.key("points")
		e.open('[')
		for i, p := range y.Points {
			if i > 0 {
				e.line = append(e.line, ',')
			}
			e.open('[')
			e.line = strconv.AppendInt(e.line, int64(p.Memory), 10)
			e.line = append(e.line, ',')
			e.value(p.Slowdown)
			e.close(']')
		}
		e.close(']')
	}
	e.whole("disk_rate", int64(y.DiskRate))
	e.close('}')
}

func (e *jobEncoder) truth(t *StageTruth) {
	e.key("truth")
	e.open('{')
	e.whole("duration", e.units(t.Duration))
	if t.Durations != nil {
		e.list("durations", len(t.Durations), func(i int) int64 { return e.units(t.Durations[i]) })
	}
	e.whole("memory", int64(t.IdealMemory))
	if t.IdealMemories != nil {
		e.list("memories", len(t.IdealMemories), func(i int) int64 { return int64(t.IdealMemories[i]) })
	}
	if t.Elasticity != nil {
		e.elasticity(t.Elasticity)
	}
	if t.Phases != nil {
		e.key("phases")
		e.phases(t.Phases)
	}
	if t.TaskPhases != nil {
		e.key("task_phases")
		e.open('[')
		for i, p := range t.TaskPhases {
			if i > 0 {
				e.line = append(e.line, ',')
			}
			e.phases(p)
		}
		e.close(']')
	}
	if t.Heap != nil {
		e.key("heap")
		e.value([]resource.Amount{t.Heap.Live, t.Heap.Size})
	}
	e.close('}')
}

func (e *jobEncoder) list(name string, n int, value func(int) int64) {
	if n > mostListed {
		e.fail(fmt.Errorf("%s: must hold at most %d numbers, not %d", name, mostListed, n))
		return
	}
	e.key(name)
	e.line = appendRuns(e.line, n, value)
}

// phaseColumns are the names of the columns, by resource.
var phaseColumns = [...]string{"cpu", "memory", "disk", "network"}

func (e *jobEncoder) phases(all []Phase) {
	e.open('{')
	named, demanded := false, resource.Vector{}
	for i := range all {
		named = named || all[i].Name != ""
		demanded = demanded.Max(all[i].Demand)
	}
	if named {
		names := make([]string, len(all))
		for i := range all {
			names[i] = all[i].Name
		}
		e.key("names")
		e.value(names)
	}
	e.list("duration", len(all), func(i int) int64 { return e.units(all[i].Duration) })
	for k, name := range phaseColumns {
		if demanded[k] > 0 {
			e.list(name, len(all), func(i int) int64 { return int64(all[i].Demand[k]) })
		}
	}
	e.close('}')
}

// jobDecoder turns a line into a job and keeps the first error.
type jobDecoder struct {
	unit time.Duration
	// listed counts the numbers of all lists of the job, so that a short line cannot ask for much memory.
	listed int
	who    string
	err    error
}

func (d *jobDecoder) failf(format string, operands ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%s%s", d.who, fmt.Sprintf(format, operands...))
	}
}

func (d *jobDecoder) time(name string, n int64) time.Duration {
	t, ok := inUnits(n, d.unit)
	if !ok {
		d.failf("%s %d: must be at most %v", name, n, cluster.LongestTime)
	}
	return t
}

func (d *jobDecoder) job(l *jobLine, index int) *Job {
	j := &Job{After: -1, Job: cluster.Job{ID: cluster.JobID(index + 1), Name: l.Name, Owner: l.Owner, Queue: l.Queue, Weight: l.Weight,
		MaxAttempts: l.Attempts, AtMostOnce: l.Once, Stages: make([]cluster.Stage, len(l.Stages))}}
	d.who = fmt.Sprintf("job %q ", cluster.Clip(l.Name))
	if l.ID != nil {
		j.ID = cluster.JobID(*l.ID)
	}
	if l.After != nil {
		if j.After = *l.After; j.After < 0 {
			d.failf("after %d: must be the index of a job", j.After)
		}
	}
	if err := j.Class.UnmarshalText([]byte(l.Class)); err != nil {
		d.failf("%v", err)
	}
	j.Submitted = timeline.Time(d.time("at", l.At))
	who := d.who
	for i := range l.Stages {
		d.who = fmt.Sprintf("%sstage %d ", who, i)
		d.stage(j, i, &l.Stages[i])
	}
	d.who = who
	return j
}

func (d *jobDecoder) stage(j *Job, i int, l *stageLine) {
	s := &j.Stages[i]
	s.Name, s.Tasks, s.Coordinator, s.MinMemory = l.Name, 1, l.Coordinator, l.MinMemory
	if l.Tasks != nil {
		s.Tasks = *l.Tasks
	}
	if len(l.Parents) > 0 {
		s.Parents = l.Parents
	}
	if copy(s.Ideal[:], l.Needs) != len(l.Needs) {
		d.failf("needs: must be %d numbers at most", resource.NumKinds)
	}
	s.MaxMemory, s.HeartbeatTimeout = l.MaxMemory, d.time("heartbeat_timeout", l.Heartbeat)
	if len(l.DataOn) > 0 {
		s.DataOn = l.DataOn
	}
	s.Duration = d.time("duration", l.Duration)
	if l.Elasticity != nil {
		s.Elasticity = d.elasticity(l.Elasticity)
	}
	if l.Truth != nil {
		if t := d.truth(l.Truth); !t.IsZero() {
			if j.Truth == nil {
				j.Truth = make([]StageTruth, len(j.Stages))
			}
			j.Truth[i] = t
		}
	}
	s.Profile = l.Profile
	if l.Command != nil {
		s.Command = *l.Command
	}
	if i > 0 && (l.Command != nil) != j.HasCommands() {
		d.failf("command: must be given for every stage of a job or for none")
	}
}

func (d *jobDecoder) elasticity(l *elasticityLine) cluster.Elasticity {
	e := cluster.Elasticity{Factor: l.Factor, DiskRate: resource.Amount(l.DiskRate)}
	if err := e.Kind.UnmarshalText([]byte(l.Kind)); err != nil {
		d.failf("%v", err)
	}
	for i, p := range l.Points {
		if len(p) != 2 {
			d.failf("elasticity point %d: must be [memory,slowdown]", i+1)
			return e
		}
		memory, err := p[0].Int64()
		slowdown, err2 := p[1].Float64()
		if err != nil || err2 != nil {
			d.failf("elasticity point %d [%s,%s]: must be whole bytes and a number", i+1, cluster.Clip(p[0].String()), cluster.Clip(p[1].String()))
		}
		e.Points = append(e.Points, cluster.ElasticityPoint{Memory: resource.Amount(memory), Slowdown: slowdown})
	}
	return e
}

func (d *jobDecoder) truth(l *truthLine) StageTruth {
	t := StageTruth{Duration: d.time("truth duration", l.Duration), IdealMemory: l.Memory}
	t.Durations = d.durations("truth durations", l.Durations)
	t.IdealMemories = d.amounts("truth memories", l.Memories)
	if l.Elasticity != nil {
		e := d.elasticity(l.Elasticity)
		t.Elasticity = &e
	}
	if l.Phases != nil {
		t.Phases = d.phases(l.Phases)
	}
	for i := range l.TaskPhases {
		t.TaskPhases = append(t.TaskPhases, d.phases(&l.TaskPhases[i]))
	}
	switch {
	case l.Heap == nil:
	case len(l.Heap) == 2:
		t.Heap = &Heap{Live: l.Heap[0], Size: l.Heap[1]}
	default:
		d.failf("truth heap: must be [live,size]")
	}
	return t
}

// room reports whether a list of r fits beside the others.
func (d *jobDecoder) room(name string, r *runs) bool {
	if r == nil || d.err != nil {
		return false
	}
	if d.listed += r.total; d.listed > mostListed {
		d.failf("%s: the lists of a job must hold at most %d numbers together", name, mostListed)
		return false
	}
	return true
}

func (d *jobDecoder) durations(name string, r *runs) []time.Duration {
	if !d.room(name, r) {
		return nil
	}
	all, ok := expand(r, func(n int64) (time.Duration, bool) { return inUnits(n, d.unit) })
	if !ok {
		d.failf("%s: each must be at most %v", name, cluster.LongestTime)
	}
	return all
}

func (d *jobDecoder) amounts(name string, r *runs) []resource.Amount {
	if !d.room(name, r) {
		return nil
	}
	all, _ := expand(r, func(n int64) (resource.Amount, bool) { return resource.Amount(n), true })
	return all
}

func (d *jobDecoder) phases(l *phasesLine) []Phase {
	if l.Duration.total > mostListed/len(phaseColumns) {
		d.failf("phases: must be at most %d", mostListed/len(phaseColumns))
	}
	lasting := d.durations("phases duration", &l.Duration)
	all := make([]Phase, len(lasting))
	for i := range all {
		all[i].Duration = lasting[i]
	}
	if l.Names != nil && len(l.Names) != len(all) {
		d.failf("phases names: must be one for each phase, %d, but are %d", len(all), len(l.Names))
		return nil
	}
	for i, name := range l.Names {
		all[i].Name = name
	}
	for k, column := range []*runs{l.CPU, l.Memory, l.Disk, l.Network} {
		if column != nil && column.total != len(all) {
			d.failf("phases %s: must be one for each phase, %d, but are %d", phaseColumns[k], len(all), column.total)
			return nil
		}
		for i, a := range d.amounts("phases "+phaseColumns[k], column) {
			all[i].Demand[k] = a
		}
	}
	return all
}
