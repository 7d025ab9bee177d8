package jobfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/form"
	"github.com/bellows-rm/bellows/format/workload"
)

// stageReader reads one stage of a job file.
type stageReader struct {
	*form.Mapping
	learns bool // what is reserved of memory may be learned
	stage  cluster.Stage
	after  []string
	truth  *workload.StageTruth
}

func (f *jobFile) stage(job *form.Mapping, n *yaml.Node, learns bool) *stageReader {
	s := &stageReader{learns: learns, Mapping: job.Child("stage", n, append(form.Names(&cluster.Stage{}), "truth")...)}
	s.stage.Name = s.Name("name")
	s.Who = fmt.Sprintf("%sstage %q ", job.Who, s.stage.Name)
	s.stage.Tasks = 1
	if learns {
		s.Auto("memory")
	}
	s.Read(&s.stage)
	if !s.stage.Coordinator && !s.Has("cpus") && !f.runs { // what runs reserves what is learned
		s.stage.Ideal[resource.CPU] = s.stage.UsualCPU()
	}
	for _, name := range form.Special(&s.stage) {
		if s.Has(name) {
			specialFields[name].read(s)
		}
	}
	if s.stage.Profile != "" && f.profiles != nil {
		s.fillIn(f.profiles)
	}
	s.checkNeeds()
	if s.Has("truth") {
		s.readTruth()
	}
	for _, name := range form.Names(&cluster.Command{}) {
		if s.Has(name) && !s.Has("command") {
			s.Fail(name, "must be left out without command")
		}
	}
	return s
}

// specialFields say how the special fields of a stage are read and written. value returns nil for a field that is left
// out; names are the names of all stages of the job.
var specialFields = map[string]struct {
	read  func(s *stageReader)
	value func(s *cluster.Stage, names []string) (value any, style yaml.Style)
}{
	"after": {
		func(s *stageReader) { s.after = s.Texts("after", "stage name") },
		func(s *cluster.Stage, names []string) (any, yaml.Style) {
			var after []string
			for _, parent := range s.Parents {
				after = append(after, names[parent])
			}
			return orNil(after, len(after) > 0), yaml.FlowStyle
		},
	},
	"elasticity": {
		func(s *stageReader) { s.stage.Elasticity = readElasticity(s.Mapping, s.stage.Ideal[resource.Memory]) },
		func(s *cluster.Stage, _ []string) (any, yaml.Style) {
			return orNil(elasticityText(&s.Elasticity), s.Elasticity.Kind != cluster.NotElastic), yaml.FlowStyle
		},
	},
	"phases": {
		func(s *stageReader) { s.stage.Phases = readPhases(s.Mapping, "", s.List("phases", "phase")) },
		func(s *cluster.Stage, _ []string) (any, yaml.Style) {
			return orNil(phaseNodes(s.Phases), len(s.Phases) > 0), 0
		},
	},
	"command": {(*stageReader).readCommand, commandValue},
	"each": {
		(*stageReader).readItems,
		func(s *cluster.Stage, _ []string) (any, yaml.Style) {
			return orNil(s.Items, len(s.Items) > 0), yaml.FlowStyle
		},
	},
	"env": {
		func(s *stageReader) { s.stage.Env = s.environment() },
		func(s *cluster.Stage, _ []string) (any, yaml.Style) { return orNil(s.Env, len(s.Env) > 0), 0 },
	},
}

func orNil(value any, given bool) any {
	if given {
		return value
	}
	return nil
}

// fillIn sets the missing fields of the stage from its profile.
func (s *stageReader) fillIn(profiles Profiles) {
	p, known := profiles(s.stage.Profile)
	if !known {
		s.Fail("profile", "must be the name of a stored profile")
	}
	s.stage.Profile = ""
	if s.learns && p.MinMemory == 0 && p.Elasticity.Kind == cluster.NotElastic {
		p.Ideal = 0 // what runs needed is no limit
	}
	p.Fill(&s.stage)
}

// checkNeeds checks that what must be given is in the file, or comes from a profile.
func (s *stageReader) checkNeeds() {
	if s.stage.Profile != "" {
		return
	}
	states := !s.learns || s.stage.MinMemory > 0 || s.stage.Elasticity.Kind != cluster.NotElastic
	if s.stage.Ideal[resource.Memory] == 0 && !s.stage.Coordinator && states {
		s.Memory("memory") // reports the missing field
	}
	if s.stage.Elasticity.Kind != cluster.NotElastic && s.stage.MinMemory == 0 {
		s.Fail("min_memory", "must be given together with elasticity")
	}
}

// elasticityShapes are the fields that exclude each other: an elasticity has exactly one of them.
var elasticityShapes = []string{"step", "sawtooth", "sawtooth_table", "points"}

// readElasticity reads the field elasticity of a stage or of its truth. ideal is 0 if it is not yet known.
func readElasticity(in *form.Mapping, ideal resource.Amount) cluster.Elasticity {
	var e cluster.Elasticity
	m := in.Open("elasticity", append(elasticityShapes, "disk_rate")...)
	shapes := 0
	for _, shape := range elasticityShapes {
		if m.Has(shape) {
			shapes++
		}
	}
	if !m.Failed() && shapes != 1 {
		m.FailAt(m.Line, "%shas %d of %s: must have exactly one", m.Who, shapes, strings.Join(elasticityShapes, ", "))
	}
	if m.Failed() {
		return e
	}
	switch {
	case m.Has("step"):
		e = cluster.Elasticity{Kind: cluster.Step, Factor: m.Number("step", 1, cluster.MostSlowdown)}
	case m.Has("sawtooth"):
		e = cluster.Elasticity{Kind: cluster.SawTooth, Factor: m.Number("sawtooth", 1, cluster.MostSlowdown)}
	case m.Has("sawtooth_table"):
		e = cluster.Elasticity{Kind: cluster.SawToothTable, Factor: m.Number("sawtooth_table", 1, cluster.MostSlowdown)}
	default:
		e = cluster.Elasticity{Kind: cluster.Points, Points: readPoints(m, ideal)}
	}
	if m.Has("disk_rate") {
		e.DiskRate = m.Amount("disk_rate", resource.Disk, 1)
	}
	return e
}

func readPoints(m *form.Mapping, ideal resource.Amount) []cluster.ElasticityPoint {
	var points []cluster.ElasticityPoint
	for i, n := range m.List("points", "point") {
		p := m.Child(fmt.Sprintf("point %d", i+1), n, "memory", "slowdown")
		if m.Failed() {
			return nil
		}
		point := cluster.ElasticityPoint{Memory: p.Memory("memory"), Slowdown: p.Number("slowdown", 0, cluster.MostSlowdown)}
		if i > 0 && point.Memory <= points[i-1].Memory {
			p.Fail("memory", "must be more than that of the point before, %s", resource.FormatMemoryExact(points[i-1].Memory))
		}
		if ideal > 0 && point.Memory > ideal {
			p.Fail("memory", "must be at most ideal memory, which is %s", resource.FormatMemoryExact(ideal))
		}
		points = append(points, point)
	}
	return points
}

// truthFields are the fields of a stage's truth.
var truthFields = []string{"duration", "durations", "fresh", "first", "memory", "memories", "elasticity", "phases",
	"task_phases", "heap"}

func (s *stageReader) readTruth() {
	m := s.Open("truth", truthFields...)
	t := &workload.StageTruth{}
	if m.Has("duration") {
		t.Duration = workload.ForAll(m.Duration("duration", 1))
	}
	if m.Has("durations") {
		t.Duration = readEach(s, m, "durations", "duration", "duration", form.ParseDuration, cluster.LongestTime,
			time.Duration.String)
	}
	for _, list := range []struct {
		name string
		to   *[]time.Duration
	}{{"fresh", &t.Fresh}, {"first", &t.First}} {
		if m.Has(list.name) {
			*list.to = readList(m, list.name, "duration", form.ParseDuration, cluster.LongestTime, time.Duration.String)
		}
	}
	ideal := s.stage.Ideal[resource.Memory]
	if m.Has("memory") {
		ideal = m.Memory("memory")
		t.IdealMemory = workload.ForAll(ideal)
	}
	if m.Has("memories") {
		t.IdealMemory = readEach(s, m, "memories", "memory", "size", resource.ParseMemory, resource.Memory.Most(),
			resource.FormatMemoryExact)
	}
	if text, _ := m.Scalar("elasticity"); text == cluster.NotElastic.String() {
		t.Elasticity = &cluster.Elasticity{}
	} else if m.Has("elasticity") {
		e := readElasticity(m, ideal)
		t.Elasticity = &e
	}
	if m.Has("phases") {
		t.Phases = workload.ForAll(readPhases(m, "", m.List("phases", "phase")))
	}
	if m.Has("task_phases") {
		t.Phases = workload.ForEach(s.readTaskPhases(m))
	}
	if m.Has("heap") {
		t.Heap = &workload.Heap{}
		m.Fill("heap", t.Heap)
	}
	if err := t.Check(s.stage.Tasks); err != nil {
		m.FailAt(m.Line, "%s%v", m.Who, err)
	}
	if !t.IsZero() {
		s.truth = t
	}
}

// readEach reads a list with a value from 1 to most for each task. element is what a value is, and other the field
// for a value that all tasks share.
func readEach[T ~int64](s *stageReader, m *form.Mapping, name, other, element string, parse func(string) (T, error),
	most T, show func(T) string) workload.PerTask[T] {
	if m.Has(other) {
		m.Fail(name, "cannot be combined with %s", other)
	}
	all := readList(m, name, element, parse, most, show)
	if !m.Failed() {
		s.onePerTask(m, name, len(all))
	}
	return workload.ForEach(all)
}

// readList reads a list of values from 1 to most.
func readList[T ~int64](m *form.Mapping, name, element string, parse func(string) (T, error), most T,
	show func(T) string) (all []T) {
	for _, text := range m.Texts(name, element) {
		v, err := parse(text)
		if err != nil || v < 1 || v > most {
			m.Fail(name, "each must be a %s with its unit, up to %s, but one is %s", element, show(most), cluster.ClipLine(text))
			return nil
		}
		all = append(all, v)
	}
	return all
}

func (s *stageReader) onePerTask(m *form.Mapping, name string, given int) {
	if given != s.stage.Tasks {
		m.Fail(name, "must be one for each task, %d, but are %d", s.stage.Tasks, given)
	}
}

// readPhases reads the phases of a task; of names the task in an error.
func readPhases(m *form.Mapping, of string, list []*yaml.Node) []cluster.Phase {
	var phases []cluster.Phase
	for i, n := range list {
		p := m.Child(fmt.Sprintf("%sphase %d", of, i+1), n, form.Names(&cluster.Phase{})...)
		if m.Failed() {
			return nil
		}
		if !p.Has("duration") {
			p.Duration("duration", 0) // reports the missing field
		}
		var phase cluster.Phase
		p.Read(&phase)
		phases = append(phases, phase)
	}
	return phases
}

func (s *stageReader) readTaskPhases(m *form.Mapping) [][]cluster.Phase {
	if m.Has("phases") {
		m.Fail("task_phases", "cannot be combined with phases")
	}
	var all [][]cluster.Phase
	for i, n := range m.List("task_phases", "list of phases") {
		if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
			m.FailAt(n.Line, "%stask_phases: must be a list of at least one phase for each task, but one is %s", m.Who,
				form.Kind(n))
			return nil
		}
		all = append(all, readPhases(m, fmt.Sprintf("task %d ", i), n.Content))
	}
	s.onePerTask(m, "task_phases", len(all))
	return all
}

// readCommand reads the field command: a list of words, or a text for the shell.
func (s *stageReader) readCommand() {
	if text, ok := s.Scalar("command"); ok {
		s.stage.Args = []string{"sh", "-c", text}
	} else {
		s.stage.Args = s.Texts("command", "word")
	}
}

func commandValue(s *cluster.Stage, _ []string) (any, yaml.Style) {
	if s.ByShell() {
		return s.Args[2], 0
	}
	return orNil(s.Args, len(s.Args) > 0), yaml.FlowStyle
}

// readItems reads the field each: a list, or a folder or pattern of files, of which each file is an item. Relative
// names are as the command would read them.
func (s *stageReader) readItems() {
	pattern, ok := s.Scalar("each")
	if !ok {
		s.stage.Items = s.Texts("each", "item")
	} else if items, err := filesOf(s.stage.Dir, pattern); err != nil {
		s.Fail("each", "%v", err)
	} else {
		s.stage.Items = items
	}
	if !s.Has("tasks") {
		s.stage.Tasks = len(s.stage.Items)
	}
}

// filesOf returns the files of a folder, or those that match a pattern, without hidden ones.
func filesOf(dir, pattern string) (files []string, err error) {
	in := func(name string) string {
		if filepath.IsAbs(name) {
			return name
		}
		return filepath.Join(dir, name)
	}
	if info, err := os.Stat(in(pattern)); err == nil && info.IsDir() {
		pattern = filepath.Join(pattern, "*")
	}
	found, err := filepath.Glob(in(pattern))
	for _, name := range found {
		if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() || strings.HasPrefix(filepath.Base(name), ".") {
			continue
		}
		if !filepath.IsAbs(pattern) && dir != "" {
			if name, err = filepath.Rel(dir, name); err != nil {
				return nil, err
			}
		}
		files = append(files, cluster.EncodeText(name))
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", cluster.ClipLine(pattern), err)
	case len(files) == 0:
		return nil, fmt.Errorf("%s: must be a list, or a folder or pattern that names at least one file",
			cluster.ClipLine(pattern))
	}
	return files, nil
}

func (s *stageReader) environment() map[string]string {
	n := s.Node("env")
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		s.Fail("env", "must be a mapping of at least one variable to its value")
		return nil
	}
	env := map[string]string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		_, twice := env[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode || !isVariable(key.Value):
			s.FailAt(key.Line, "%senv %s: must be the name of an environment variable", s.Who, cluster.ClipLine(key.Value))
		case value.Kind != yaml.ScalarNode || value.Tag == "!!null":
			s.FailAt(value.Line, "%senv %s: must be a text, but is %s", s.Who, cluster.ClipLine(key.Value), form.Kind(value))
		case twice:
			s.FailAt(key.Line, "%senv %s: written twice", s.Who, cluster.ClipLine(key.Value))
		}
		env[key.Value] = value.Value
	}
	return env
}

// isVariable reports whether name can be the name of an environment variable.
func isVariable(name string) bool { return name != "" && !strings.ContainsAny(name, "=\x00") }
