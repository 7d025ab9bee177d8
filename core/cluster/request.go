package cluster

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// What a job may request is said here once, for every front door: job files, flags, the API, recordings and the engine
// call Check or CheckRuns, and then add the position or the name of their flag to the WrongField.

// WrongField is the error of Check and CheckRuns: a field of a job or of one of its stages requests what no job may.
type WrongField struct {
	Job string // name of the job
	// Stage is the index of the stage, -1 for a field of the job itself; StageName is how messages call the stage.
	Stage     int
	StageName string
	Field     string // its name in job files, such as max_memory
	Value     string // as people write it; empty if the value says nothing
	Must      string // what the value must be, or why it is wrong
}

// Error names the job, the stage, the field and its value.
func (w *WrongField) Error() string {
	where := "job "
	if w.Stage >= 0 || w.Field != "name" {
		where += strconv.Quote(w.Job) + " "
	}
	if w.Stage >= 0 {
		where += "stage " + strconv.Quote(w.StageName) + " "
	}
	return where + w.Named(w.Field)
}

// Named is Error without job and stage, for a front door that calls the field by another name.
func (w *WrongField) Named(name string) string {
	if w.Value != "" {
		name += " " + w.Value
	}
	return name + ": " + w.Must
}

// Path returns where the field stands in its job, such as stages[0].max_memory.
func (w *WrongField) Path() string {
	if w.Stage < 0 {
		return w.Field
	}
	return fmt.Sprintf("stages[%d].%s", w.Stage, w.Field)
}

// wrong returns a WrongField of the job itself; stages add their place to it.
func wrong(field string, value any, must string, operands ...any) *WrongField {
	return &WrongField{Stage: -1, Field: field, Value: fmt.Sprint(value), Must: fmt.Sprintf(must, operands...)}
}

// WrongIn returns a *WrongField of a stage of j.
func (j *Job) WrongIn(stage int, field string, value any, must string, operands ...any) error {
	return wrong(field, value, must, operands...).in(j, stage)
}

// in completes an error of a stage.
func (w *WrongField) in(j *Job, stage int) error {
	w.Job, w.Stage, w.StageName = j.Name, stage, j.StageName(stage)
	return w
}

// of completes an error of a job.
func (w *WrongField) of(j *Job) error {
	w.Job = j.Name
	return w
}

// Check returns a *WrongField for the first field of j that is out of range. It does not know the cluster: see
// book.Snapshot.CheckFits for jobs that fit on no node, and CheckRuns for the additional bounds of a job that is run.
func (j *Job) Check() error { return j.check(j.Open) }

// CheckGrown is Check for a job that may have grown and closed: even then it may have no stages, and stages without
// tasks.
func (j *Job) CheckGrown() error { return j.check(true) }

// check is Check. empty says that the job may have no stages, and stages without tasks.
func (j *Job) check(empty bool) error {
	least := 1
	if empty {
		least = 0
	}
	switch {
	case len(j.Stages) < least:
		return wrong("stages", "", "must be at least one").of(j)
	case j.Class > Flex:
		return wrong("class", uint8(j.Class), "must be regular or flex").of(j)
	case j.RetryOn > RetryOnError:
		return wrong("retry_on", j.RetryOn, "must be oom, error or any").of(j)
	case j.Reserve > ReserveLearned:
		return wrong("reserve", j.Reserve, "must be stated or learned").of(j)
	case j.Reserve == ReserveLearned && j.Class != Flex:
		return wrong("reserve", j.Reserve, "needs class flex: a regular container keeps its memory").of(j)
	case j.MaxAttempts < 0 || j.MaxAttempts > MostAttempts:
		return wrong("retry", j.MaxAttempts-1, "must be 0 to %d", MostRetries).of(j)
	case j.AtMostOnce && j.MaxAttempts > 1:
		return wrong("retry", j.MaxAttempts-1, "must be 0 for a job that runs at most once").of(j)
	case j.Drives && j.AtMostOnce:
		return wrong("at_most_once", true, "must be false for a job that starts its own tasks").of(j)
	case j.Open && j.KeepGoing:
		return wrong("keep_going", true, "must be false for a job that may still grow").of(j)
	case j.Drives && !j.Open:
		return wrong("drives", true, "must be false unless the job is open").of(j)
	case !(j.Weight >= 0 && j.Weight <= MostWeight):
		return wrong("weight", j.Weight, "must be a number from 0 to %d", MostWeight).of(j)
	}
	if w := checkRange("deadline", j.Deadline, LongestTime, time.Duration.String); w != nil {
		return w.of(j)
	}
	if w := checkRange("retry_delay", j.RetryDelay, LongestTime, time.Duration.String); w != nil {
		return w.of(j)
	}
	for i := range j.Stages {
		s := &j.Stages[i]
		if w := s.checkClass(j.Class); w != nil {
			return w.in(j, i)
		}
		if w := s.check(least); w != nil {
			return w.in(j, i)
		}
		if w := j.checkReserve(s); w != nil {
			return w.in(j, i)
		}
		if w := s.checkDriven(); w != nil && j.Drives {
			return w.in(j, i)
		}
		for _, p := range s.Parents {
			if p < 0 || p >= len(j.Stages) {
				return wrong("after", p, "must be the index of a stage, 0 to %d", len(j.Stages)-1).in(j, i)
			}
		}
		if w := s.checkStart(j.Open, j.KeepGoing); w != nil {
			return w.in(j, i)
		}
	}
	if cycle := j.cycle(); cycle != nil {
		return wrong("parents", "", "must not form a cycle, but %s", ClipList(cycle, " waits for ")).of(j)
	}
	return nil
}

// CheckRuns is Check for a job that is to be run: it also checks the bounds of such jobs.
func (j *Job) CheckRuns() error {
	if err := j.CheckNames(); err != nil {
		return err
	}
	if len(j.Stages) > MostRunStages {
		return wrong("stages", len(j.Stages), "must be at most %d", MostRunStages).of(j)
	}
	if err := j.Check(); err != nil {
		return err
	}
	tasks := 0
	for i := range j.Stages {
		if w := j.Stages[i].checkRuns(); w != nil {
			return w.in(j, i)
		}
		tasks += j.Stages[i].Tasks // no overflow: there are few stages
	}
	if tasks > MostRunTasks {
		return wrong("tasks", tasks, "must be at most %d", MostRunTasks).of(j)
	}
	return nil
}

// CheckNames returns a *WrongField for the first name in j that is neither empty nor a name that people can read.
func (j *Job) CheckNames() error {
	const must = "must be at most %d bytes of printable characters, with no space at either end"
	bad := func(text string) bool { return text != "" && !IsName(text) }
	switch {
	case bad(j.Name):
		return wrong("name", clipName(j.Name), must, LongestName)
	case bad(j.Owner):
		return wrong("owner", clipName(j.Owner), must, LongestName).of(j)
	case bad(j.Queue):
		return wrong("queue", clipName(j.Queue), must, LongestName).of(j)
	case bad(j.App):
		return wrong("app", clipName(j.App), must, LongestName).of(j)
	}
	for i := range j.Stages {
		s := &j.Stages[i]
		if bad(s.Name) {
			return &WrongField{Job: j.Name, Stage: i, StageName: strconv.Itoa(i), Field: "name", Value: clipName(s.Name),
				Must: fmt.Sprintf(must, LongestName)}
		}
		if k := slices.IndexFunc(s.DataOn, bad); k >= 0 {
			return wrong("data_on", clipName(s.DataOn[k]), must, LongestName).in(j, i)
		}
	}
	return nil
}

// check checks what does not depend on the job, but for the least number of its tasks.
func (s *Stage) check(least int) *WrongField {
	memory := s.Ideal[resource.Memory]
	switch {
	case s.Tasks < least || s.Tasks > MostTasks:
		return wrong("tasks", s.Tasks, "must be %d to %d", least, MostTasks)
	case len(s.Items) > 0 && s.Tasks != len(s.Items):
		return wrong("tasks", s.Tasks, "must be %d, as many as each lists, or be left out", len(s.Items))
	case s.AtOnce < 0 || s.AtOnce > MostTasks:
		return wrong("at_once", s.AtOnce, "must be 0 to %d", MostTasks)
	case s.AtOnce > 0 && s.Together:
		return wrong("at_once", s.AtOnce, "must be left out for tasks that start together")
	case s.Coordinator && s.Tasks != 1:
		return wrong("tasks", s.Tasks, "a coordinator is 1 task")
	case len(s.DataOn) > MostDataOn:
		return wrong("data_on", fmt.Sprintf("%d nodes", len(s.DataOn)), "must be at most %d", MostDataOn)
	case slices.Contains(s.DataOn, ""):
		return wrong("data_on", "", "must be names of nodes")
	case !s.Coordinator && memory <= 0:
		return wrong("memory", resource.FormatMemoryExact(memory), "must be above 0")
	}
	for k, a := range s.Ideal {
		kind := resource.Kind(k)
		if w := checkRange(kind.Field(), a, kind.Most(), kind.Format); w != nil {
			return w
		}
	}
	size := resource.FormatMemoryExact
	switch {
	case s.MinMemory < 0 || s.MinMemory > memory:
		return wrong("min_memory", size(s.MinMemory), "must be at most memory, which is %s", size(memory))
	case s.MaxMemory != 0 && s.MaxMemory < memory:
		return wrong("max_memory", size(s.MaxMemory), "must be at least memory, which is %s", size(memory))
	case s.MaxCPU > 0 && s.MaxCPU < s.Ideal[resource.CPU]:
		return wrong("max_cpus", resource.FormatCPU(s.MaxCPU), "must be at least cpus, which is %s",
			resource.FormatCPU(s.Ideal[resource.CPU]))
	case s.HeartbeatTimeout > 0 && s.HeartbeatTimeout < LeastHeartbeatTimeout:
		return wrong("heartbeat_timeout", s.HeartbeatTimeout,
			"must be at least %v, because a suspended container is silent for a while", LeastHeartbeatTimeout)
	}
	v := reflect.ValueOf(s).Elem()
	for _, f := range measures {
		if w := checkRange(f.name, v.FieldByIndex(f.index).Int(), f.most, f.show); w != nil {
			return w
		}
	}
	if w := s.Elasticity.check(); w != nil {
		return w
	}
	if len(s.Phases) > MostPhases {
		return wrong("phases", len(s.Phases), "must be at most %d", MostPhases)
	}
	if w := checkPhases(s.Phases); w != nil {
		return w
	}
	return s.checkRuntime()
}

// checkRange returns an error unless 0 <= a <= most.
func checkRange[T ~int64](field string, a, most T, show func(T) string) *WrongField {
	switch {
	case a < 0:
		return wrong(field, show(a), "must not be negative")
	case a > most:
		return wrong(field, show(a), "must be at most %s", show(most))
	}
	return nil
}

// measure is a field of a stage that is a time or an amount of a resource, of memory unless its tag form names
// another. Its bounds follow from that: 0 to LongestTime, or to the most of the resource. The amounts in Ideal have
// the bounds of their kinds.
type measure struct {
	name  string
	index []int
	most  int64
	show  func(int64) string
}

var measures = measuresOf(reflect.TypeFor[Stage]())

func measuresOf(t reflect.Type) (all []measure) {
	for _, f := range reflect.VisibleFields(t) {
		m := measure{name: f.Tag.Get("yaml"), index: f.Index}
		switch f.Type {
		case reflect.TypeFor[time.Duration]():
			m.most, m.show = int64(LongestTime), func(d int64) string { return time.Duration(d).String() }
		case reflect.TypeFor[resource.Amount]():
			kind := resource.Memory
			for k := range resource.NumKinds {
				if f.Tag.Get("form") == k.Field() {
					kind = k
				}
			}
			m.most, m.show = int64(kind.Most()), func(a int64) string { return kind.FormatExact(resource.Amount(a)) }
		default:
			continue
		}
		all = append(all, m)
	}
	return all
}

// checkClass returns an error if a stage of a REGULAR job requests what only a container with changing memory can have.
func (s *Stage) checkClass(class Class) *WrongField {
	const needs = "needs class flex: a regular container keeps its memory"
	switch {
	case class == Flex:
		return nil
	case s.MaxMemory > 0:
		return wrong("max_memory", resource.FormatMemoryExact(s.MaxMemory), needs)
	case s.Runtime != "":
		return wrong("runtime", s.Runtime, needs)
	}
	return nil
}

// checkRuns checks the additional bounds of a stage that is run.
func (s *Stage) checkRuns() *WrongField {
	cpu, field, least := s.Ideal[resource.CPU], "memory", s.Ideal[resource.Memory]
	if s.MinMemory > 0 {
		field, least = "min_memory", s.MinMemory
	}
	switch {
	case s.Coordinator:
	case cpu < LeastRunCPU:
		return wrong("cpus", resource.FormatCPU(cpu), "must be at least %s", resource.FormatCPU(LeastRunCPU))
	case least < LeastRunMemory:
		return wrong(field, resource.FormatMemoryExact(least), "must be at least %s",
			resource.FormatMemoryExact(LeastRunMemory))
	}
	return nil
}

// BringIntoBounds changes a job that was recorded under laxer rules as little as needed to satisfy the present rules,
// so that one old record does not block all other jobs. It reports whether anything changed.
func (j *Job) BringIntoBounds() (changed bool) {
	attempts, weight := min(j.MaxAttempts, MostAttempts), min(j.Weight, MostWeight)
	changed = attempts != j.MaxAttempts || weight != j.Weight
	j.MaxAttempts, j.Weight = attempts, weight
	for i := range j.Stages {
		s := &j.Stages[i]
		before := *s
		for k := range s.Ideal {
			s.Ideal[k] = min(s.Ideal[k], resource.Kind(k).Most())
		}
		v := reflect.ValueOf(s).Elem()
		for _, f := range measures {
			v.FieldByIndex(f.index).SetInt(min(v.FieldByIndex(f.index).Int(), f.most))
		}
		s.MinMemory = min(s.MinMemory, s.Ideal[resource.Memory])
		s.Elasticity.DiskRate = min(s.Elasticity.DiskRate, resource.MostRate)
		if s.HeartbeatTimeout > 0 {
			s.HeartbeatTimeout = max(s.HeartbeatTimeout, LeastHeartbeatTimeout)
		}
		if s.Elasticity.Worst() > MostSlowdown || slices.ContainsFunc(s.Elasticity.Points,
			func(p ElasticityPoint) bool { return p.Memory > resource.MostMemory }) {
			s.Elasticity = Elasticity{} // of no use: nothing gains from it
		}
		if j.Class != Flex {
			s.MaxMemory, s.Runtime = 0, ""
		}
		if s.MaxCPU > 0 {
			s.MaxCPU = max(s.MaxCPU, s.Ideal[resource.CPU])
		}
		if j.Class != Flex || j.Reserve > ReserveLearned || j.checkReserve(s) != nil {
			changed = changed || j.Reserve != ReserveStated
			j.Reserve = ReserveStated // which satisfies every rule, and books what is booked now
		}
		changed = changed || !reflect.DeepEqual(&before, s)
	}
	for i := range j.Stages {
		if s := &j.Stages[i]; j.Reserve == ReserveStated && s.Reserved != nil {
			s.Reserved, changed = nil, true
		}
	}
	return changed
}

// checkStart returns an error if tasks of a stage cannot start before its parents have ended.
func (s *Stage) checkStart(open, keepGoing bool) *WrongField {
	switch {
	case s.StartShare == 0:
		return nil
	case !(s.StartShare > 0 && s.StartShare < 1):
		return wrong("start_share", s.StartShare, "must be above 0 and below 1")
	case open:
		return wrong("start_share", s.StartShare, "must not be in a job that is open: its stages may get more tasks")
	case keepGoing:
		return wrong("start_share", s.StartShare, "must not be in a job that keeps going: a stage could lack what failed")
	case len(s.Parents) == 0:
		return wrong("start_share", s.StartShare, "needs stages in after")
	}
	return nil
}

// checkDriven returns an error if a stage cannot be one of a job that starts its own tasks.
func (s *Stage) checkDriven() *WrongField {
	switch {
	case s.Coordinator:
		return wrong("coordinator", true, "must not be in a job that starts its own tasks")
	case s.Together:
		return wrong("together", true, "must not be in a job that starts its own tasks")
	case s.AtOnce > 0:
		return wrong("at_once", s.AtOnce, "must not be in a job that starts its own tasks")
	}
	return nil
}

// CheckNew returns an error if j cannot get a stage at an index.
func (j *Job) CheckNew(s *Stage, index int) error {
	w := s.checkClass(j.Class)
	if w == nil {
		w = s.check(0)
	}
	if w == nil {
		w = j.checkReserve(s)
	}
	if w == nil && j.Drives {
		w = s.checkDriven()
	}
	if w == nil && s.Coordinator {
		w = wrong("coordinator", true, "must not be added to a job")
	}
	if w == nil {
		w = s.checkStart(true, false)
	}
	for _, p := range s.Parents {
		if w == nil && (p < 0 || p >= index) {
			w = wrong("after", p, "must be the index of an earlier stage, 0 to %d", index-1)
		}
	}
	if w == nil {
		return nil
	}
	if w.Job, w.Stage, w.StageName = j.Name, index, s.Name; s.Name == "" {
		w.StageName = fmt.Sprint(index)
	}
	return w
}
