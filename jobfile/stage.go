package jobfile

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/workload"
)

// stageReader reads one stage of a job file.
type stageReader struct {
	*mapping
	stage cluster.Stage
	after []string
	truth *workload.StageTruth
}

// The fields of a stage, of a phase of its truth and of a heap.
var (
	stageFields   = fieldsOf(reflect.TypeFor[cluster.Stage]())
	phaseFields   = fieldsOf(reflect.TypeFor[workload.Phase]())
	commandFields = fieldsOf(reflect.TypeFor[cluster.Command]())
	heapFields    = fieldsOf(reflect.TypeFor[workload.Heap]())
)

func readStage(job *mapping, n *yaml.Node, profiles Profiles) *stageReader {
	s := &stageReader{mapping: openMapping(job.file, job.who+"stage ", n, job.err, append(names(stageFields), "truth")...)}
	s.stage.Name = s.name("name")
	s.who = fmt.Sprintf("%sstage %q ", job.who, s.stage.Name)
	s.stage.Tasks = 1
	s.read(&s.stage, stageFields)
	if !s.stage.Coordinator && !s.has("cpus") {
		s.stage.Ideal[resource.CPU] = resource.Core
	}
	if s.has("after") {
		s.after = s.texts("after", "stage name")
	}
	if s.has("elasticity") {
		s.stage.Elasticity = readElasticity(s.mapping, s.stage.Ideal[resource.Memory])
	}
	if s.stage.Profile != "" && profiles != nil {
		s.fillIn(profiles)
	}
	s.checkNeeds()
	if s.has("truth") {
		s.readTruth()
	}
	s.readCommand()
	return s
}

// fillIn sets the missing fields of the stage from its profile.
func (s *stageReader) fillIn(profiles Profiles) {
	p, known := profiles(s.stage.Profile)
	if !known {
		s.fail("profile", "must be the name of a stored profile")
	}
	s.stage.Profile = ""
	p.Fill(&s.stage)
}

// checkNeeds checks that what must be given is in the file, or comes from a profile.
func (s *stageReader) checkNeeds() {
	if s.stage.Profile != "" {
		return
	}
	if s.stage.Ideal[resource.Memory] == 0 && !s.stage.Coordinator {
		s.memory("memory") // reports the missing field
	}
	if s.stage.Elasticity.Kind != cluster.NotElastic && s.stage.MinMemory == 0 {
		s.fail("min_memory", "must be given beside elasticity")
	}
}

// elasticityShapes are the fields that exclude each other: an elasticity has exactly one of them.
var elasticityShapes = []string{"step", "sawtooth", "sawtooth_table", "points"}

// readElasticity reads the field elasticity of a stage or of its truth. ideal is 0 if it is not yet known.
func readElasticity(in *mapping, ideal resource.Amount) cluster.Elasticity {
	var e cluster.Elasticity
	m := in.open("elasticity", append(elasticityShapes, "disk_rate")...)
	shapes := 0
	for _, shape := range elasticityShapes {
		if m.has(shape) {
			shapes++
		}
	}
	if *m.err == nil && shapes != 1 {
		m.failAt(m.line, "%shas %d of %s: must have exactly one", m.who, shapes, strings.Join(elasticityShapes, ", "))
	}
	if *m.err != nil {
		return e
	}
	switch {
	case m.has("step"):
		e = cluster.Elasticity{Kind: cluster.Step, Factor: m.number("step", 1, cluster.MostSlowdown)}
	case m.has("sawtooth"):
		e = cluster.Elasticity{Kind: cluster.SawTooth, Factor: m.number("sawtooth", 1, cluster.MostSlowdown)}
	case m.has("sawtooth_table"):
		e = cluster.Elasticity{Kind: cluster.SawToothTable, Factor: m.number("sawtooth_table", 1, cluster.MostSlowdown)}
	default:
		e = cluster.Elasticity{Kind: cluster.Points, Points: readPoints(m, ideal)}
	}
	if m.has("disk_rate") {
		e.DiskRate = m.amount("disk_rate", resource.Disk)
	}
	return e
}

func readPoints(m *mapping, ideal resource.Amount) []cluster.ElasticityPoint {
	var points []cluster.ElasticityPoint
	for i, n := range m.list("points", "point") {
		p := openMapping(m.file, fmt.Sprintf("%spoint %d ", m.who, i+1), n, m.err, "memory", "slowdown")
		if *m.err != nil {
			return nil
		}
		point := cluster.ElasticityPoint{Memory: p.memory("memory"), Slowdown: p.number("slowdown", 0, cluster.MostSlowdown)}
		if i > 0 && point.Memory <= points[i-1].Memory {
			p.fail("memory", "must be more than that of the point before, %s", resource.FormatMemoryExact(points[i-1].Memory))
		}
		if ideal > 0 && point.Memory > ideal {
			p.fail("memory", "must be at most ideal memory, which is %s", resource.FormatMemoryExact(ideal))
		}
		points = append(points, point)
	}
	return points
}

// truthFields are the fields of a stage's truth.
var truthFields = []string{"duration", "durations", "memory", "memories", "elasticity", "phases", "task_phases", "heap"}

// readTruth reads the truth of the tasks.
func (s *stageReader) readTruth() {
	m := s.open("truth", truthFields...)
	t := &workload.StageTruth{}
	if m.has("duration") {
		t.Duration = workload.ForAll(m.duration("duration", 1))
	}
	if m.has("durations") {
		t.Duration = workload.ForEach(s.readDurations(m))
	}
	ideal := s.stage.Ideal[resource.Memory]
	if m.has("memory") {
		ideal = m.memory("memory")
		t.IdealMemory = workload.ForAll(ideal)
	}
	if m.has("memories") {
		t.IdealMemory = workload.ForEach(s.readMemories(m))
	}
	if text, _ := m.scalar("elasticity"); text == cluster.NotElastic.String() {
		t.Elasticity = &cluster.Elasticity{}
	} else if m.has("elasticity") {
		e := readElasticity(m, ideal)
		t.Elasticity = &e
	}
	if m.has("phases") {
		t.Phases = workload.ForAll(readPhases(m, m.who, m.list("phases", "phase")))
	}
	if m.has("task_phases") {
		t.Phases = workload.ForEach(s.readTaskPhases(m))
	}
	if m.has("heap") {
		t.Heap = readHeap(m)
	}
	if err := t.Check(s.stage.Tasks); err != nil {
		m.failAt(m.line, "%s%v", m.who, err)
	}
	if !t.IsZero() {
		s.truth = t
	}
}

func (s *stageReader) readDurations(m *mapping) []time.Duration {
	if m.has("duration") {
		m.fail("durations", "cannot stand beside duration")
	}
	var all []time.Duration
	for _, text := range m.texts("durations", "duration") {
		d, err := parseDuration(text)
		if err != nil || d < 1 || d > cluster.LongestTime {
			m.fail("durations", "each must be a duration with its unit, up to %v, but one is %s", cluster.LongestTime, cluster.ClipLine(text))
			return nil
		}
		all = append(all, d)
	}
	s.onePerTask(m, "durations", len(all))
	return all
}

func (s *stageReader) readMemories(m *mapping) []resource.Amount {
	if m.has("memory") {
		m.fail("memories", "cannot stand beside memory")
	}
	var all []resource.Amount
	for _, text := range m.texts("memories", "size") {
		a, err := resource.ParseMemory(text)
		if err != nil || a < 1 || a > resource.MostMemory {
			m.fail("memories", "each must be a size with its unit, up to %s, but one is %s", resource.FormatMemoryExact(resource.MostMemory), cluster.ClipLine(text))
			return nil
		}
		all = append(all, a)
	}
	s.onePerTask(m, "memories", len(all))
	return all
}

func (s *stageReader) onePerTask(m *mapping, name string, given int) {
	if given != s.stage.Tasks {
		m.fail(name, "must be one for each task, %d, but are %d", s.stage.Tasks, given)
	}
}

// readPhases reads the phases of a task.
func readPhases(m *mapping, who string, list []*yaml.Node) []workload.Phase {
	var phases []workload.Phase
	for i, n := range list {
		p := openMapping(m.file, fmt.Sprintf("%sphase %d ", who, i+1), n, m.err, names(phaseFields)...)
		if *m.err != nil {
			return nil
		}
		if !p.has("duration") {
			p.duration("duration", 0) // reports the missing field
		}
		var phase workload.Phase
		p.read(&phase, phaseFields)
		phases = append(phases, phase)
	}
	return phases
}

func (s *stageReader) readTaskPhases(m *mapping) [][]workload.Phase {
	if m.has("phases") {
		m.fail("task_phases", "cannot stand beside phases")
	}
	var all [][]workload.Phase
	for i, n := range m.list("task_phases", "list of phases") {
		if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
			m.failAt(n.Line, "%stask_phases: must be a list of at least one phase for each task, but one is %s", m.who, kindName(n))
			return nil
		}
		all = append(all, readPhases(m, fmt.Sprintf("%stask %d ", m.who, i), n.Content))
	}
	s.onePerTask(m, "task_phases", len(all))
	return all
}

func readHeap(m *mapping) *workload.Heap {
	h := &workload.Heap{}
	m.open("heap", names(heapFields)...).read(h, heapFields)
	return h
}

// readCommand reads the fields of a command, and rejects them in a stage without one.
func (s *stageReader) readCommand() {
	for _, f := range commandFields {
		if s.has(f.name) && !s.has("command") {
			s.fail(f.name, "must stand beside command only")
		}
	}
	if !s.has("command") {
		return
	}
	if text, ok := s.scalar("command"); ok {
		s.stage.Args = []string{"sh", "-c", text}
	} else {
		s.stage.Args = s.texts("command", "word")
	}
	if s.has("env") {
		s.stage.Env = s.environment()
	}
}

func (s *stageReader) environment() map[string]string {
	n := s.fields["env"]
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		s.fail("env", "must be a mapping of at least one variable to its value")
		return nil
	}
	env := map[string]string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		_, twice := env[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode || !isVariable(key.Value):
			s.failAt(key.Line, "%senv %s: must be the name of an environment variable", s.who, cluster.ClipLine(key.Value))
		case value.Kind != yaml.ScalarNode || value.Tag == "!!null":
			s.failAt(value.Line, "%senv %s: must be a text, but is %s", s.who, cluster.ClipLine(key.Value), kindName(value))
		case twice:
			s.failAt(key.Line, "%senv %s: written twice", s.who, cluster.ClipLine(key.Value))
		}
		env[key.Value] = value.Value
	}
	return env
}

// isVariable reports whether name can be the name of an environment variable.
func isVariable(name string) bool { return name != "" && !strings.ContainsAny(name, "=\x00") }
