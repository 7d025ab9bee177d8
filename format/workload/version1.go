package workload

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/fault"
)

// These types are a job in a workload file of version 1, which is read but no longer written. An omitted field is zero,
// except where a comment says otherwise. Times are in the unit of the header.
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

// phaseColumns are the names of the columns, by resource.
var phaseColumns = [...]string{"cpu", "memory", "disk", "network"}

// jobDecoder turns a line into a job and keeps the first error.
type jobDecoder struct {
	unit time.Duration
	// listed counts the numbers of all lists of the job, so that a short line cannot allocate much memory.
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
	t := StageTruth{Duration: eachOrAll(listOf(d, "truth durations", l.Durations, d.unit), d.time("truth duration", l.Duration))}
	t.IdealMemory = eachOrAll(listOf(d, "truth memories", l.Memories, resource.Amount(1)), l.Memory)
	if l.Elasticity != nil {
		e := d.elasticity(l.Elasticity)
		t.Elasticity = &e
	}
	if l.Phases != nil {
		t.Phases = ForAll(d.phases(l.Phases))
	}
	if len(l.TaskPhases) > 0 {
		all := make([][]cluster.Phase, len(l.TaskPhases))
		for i := range all {
			all[i] = d.phases(&l.TaskPhases[i])
		}
		t.Phases = ForEach(all)
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

// listOf returns the numbers of a list, which are in the given unit.
func listOf[T ~int64](d *jobDecoder, name string, r *runs, unit T) []T {
	if r == nil || d.err != nil {
		return nil
	}
	if d.listed += r.total; d.listed > mostListed {
		d.failf("%s: the lists of a job must hold at most %d numbers together", name, mostListed)
		return nil
	}
	all := make([]T, 0, r.total)
	for _, one := range r.values {
		v, ok := inUnits(one.value, unit)
		if !ok {
			d.failf("%s: each must be at most %v", name, cluster.LongestTime)
			return nil
		}
		for range one.count {
			all = append(all, v)
		}
	}
	return all
}

func (d *jobDecoder) phases(l *phasesLine) []cluster.Phase {
	if l.Duration.total > mostListed/len(phaseColumns) {
		d.failf("phases: must be at most %d", mostListed/len(phaseColumns))
	}
	lasting := listOf(d, "phases duration", &l.Duration, d.unit)
	all := make([]cluster.Phase, len(lasting))
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
		for i, a := range listOf(d, "phases "+phaseColumns[k], column, resource.Amount(1)) {
			all[i].Demand[k] = a
		}
	}
	return all
}

// timeUnits are the units in which times may be written.
var timeUnits = map[string]time.Duration{"s": time.Second, "ms": time.Millisecond, "us": time.Microsecond, "ns": time.Nanosecond}

// fixedUnits are the units that a file cannot choose.
var fixedUnits = map[string]string{"cpu": "millicores", "memory": "bytes", "disk": "bytes/s", "network": "bytes/s"}

// timeUnit returns the unit of all times in a file of version 1.
func (h *headerLine) timeUnit() (time.Duration, error) {
	unit, known := timeUnits[h.Units["time"]]
	if !known {
		return 0, fmt.Errorf("units time %q: must be s, ms, us or ns", cluster.Clip(h.Units["time"]))
	}
	for name, unit := range h.Units {
		if name != "time" && fixedUnits[name] != unit {
			return 0, fmt.Errorf("units %q %q: must be %q", cluster.Clip(name), cluster.Clip(unit), fixedUnits[name])
		}
	}
	return unit, nil
}

// decodeVersion1 reads a job of a file of version 1.
func (r *Reader) decodeVersion1(text []byte) (*Job, error) {
	var l jobLine
	if err := fault.DecodeLine(text, &l); err != nil {
		return nil, r.fault("job %s", fault.OfJSON(err))
	}
	d := jobDecoder{unit: r.unit}
	j := d.job(&l, r.jobs)
	if d.err != nil {
		return nil, r.fault("%v", d.err)
	}
	return j, nil
}

// inUnits returns n units; ok is false on overflow.
func inUnits[T ~int64](n int64, unit T) (T, bool) {
	if n > math.MaxInt64/int64(unit) || n < math.MinInt64/int64(unit) {
		return 0, false
	}
	return T(n) * unit, true
}
