// Package jobfile reads and writes job files, the YAML in which people describe jobs, both for a machine and for the
// simulator; see docs/formats.md.
package jobfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/fault"
	"github.com/bellows-rm/bellows/format/form"
	"github.com/bellows-rm/bellows/format/workload"
)

// The YAML library is go.yaml.in/yaml/v3: the YAML organisation maintains it, it has no dependencies, and its nodes
// know their lines.

// jobFileVersion is the version of the format that is read and written.
const jobFileVersion = 1

// Profiles looks up a profile; ok is false if no profile has that name.
type Profiles func(name string) (p cluster.Profile, ok bool)

// ReadToRun is Read for jobs that a machine is to run. It leaves to the machine what a job does not state: whether what
// is reserved of memory is learned, and how much CPU is reserved. Stages of such a job need not state their memory.
func ReadToRun(r io.Reader, name string, profiles Profiles) (*workload.Workload, error) {
	return read(r, &jobFile{file: name, profiles: profiles, runs: true})
}

// Read reads a job file; see docs/formats.md. The jobs of the workload are numbered from 1 in the order of submission;
// jobs that wait for another job come last and after that job. If profiles is nil, the profiles that stages name remain
// to be filled in: see cluster.Stage.Profile. Name is used in errors, which are a *fault.Fault if the file is wrong.
func Read(r io.Reader, name string, profiles Profiles) (*workload.Workload, error) {
	return read(r, &jobFile{file: name, profiles: profiles})
}

func read(r io.Reader, f *jobFile) (*workload.Workload, error) {
	name := f.file
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read jobs %s: %w", name, err)
	}
	f.lines = map[string]int{}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fault.OfYAML(name, err)
		}
		if len(doc.Content) != 1 || (doc.Content[0].Kind == yaml.ScalarNode && doc.Content[0].Tag == "!!null") {
			continue // empty document between two separators
		}
		f.job(doc.Content[0])
		if f.err != nil {
			return nil, f.err
		}
	}
	if len(f.jobs) == 0 {
		return nil, fault.At(name, 0, "jobs: must be at least one, but the file holds none")
	}
	return f.workload()
}

// jobFields are the fields of a job.
var jobFields = slices.Concat([]string{"bellows"}, form.Names(&cluster.Job{}), []string{"retry", "at",
	"after", "stages"})

// jobFile collects the jobs of one file.
type jobFile struct {
	file     string
	profiles Profiles
	runs     bool // the jobs are to be run
	jobs     []workload.Job
	after    []string       // the name of the job that each job waits for
	lines    map[string]int // of each job, by name
	err      error
}

// sayRetry puts what files of bellows 0.1 call max_attempts, which is one more, as retry.
func sayRetry(n *yaml.Node) {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if key, value := n.Content[i], n.Content[i+1]; key.Value == "max_attempts" {
			if attempts, err := strconv.Atoi(value.Value); err == nil {
				key.Value, value.Value = "retry", strconv.Itoa(attempts-1)
			}
		}
	}
}

func (f *jobFile) job(n *yaml.Node) {
	sayRetry(n)
	m := form.Open(f.file, "job ", n, &f.err, jobFields...)
	if v, _ := m.Scalar("bellows"); v != strconv.Itoa(jobFileVersion) {
		m.Fail("bellows", "must be %d, the version of the format", jobFileVersion)
	}
	j := workload.Job{Job: cluster.Job{Name: m.Name("name")}, After: -1}
	m.Who = fmt.Sprintf("job %q ", j.Name)
	if first, twice := f.lines[j.Name]; twice {
		m.Fail("name", "given twice, first in line %d", first)
	}
	m.Read(&j.Job)
	if m.Has("retry") {
		j.MaxAttempts = 1 + m.Whole("retry", 0, cluster.MostRetries, 0)
	} else {
		j.KeepsRetryOn, j.KeepsRetryDelay = m.Has("retry_on"), m.Has("retry_delay")
	}
	if !m.Has("retry_delay") {
		j.RetryByDefault()
	}
	if j.Undecided = f.runs && !m.Has("class") && !m.Has("reserve"); !m.Has("class") &&
		j.Reserve == cluster.ReserveLearned {
		j.Class = cluster.Flex
	}
	var after string
	if m.Has("at") {
		j.Submitted = timeline.Time(m.Duration("at", 0))
	}
	if m.Has("after") {
		after = m.Name("after")
		if m.Has("at") {
			m.Fail("after", "cannot be combined with at, because the end of the other job says when this one is submitted")
		}
	}
	f.stages(m, &j)
	if f.err != nil {
		return
	}
	f.lines[j.Name] = m.Line
	f.jobs, f.after = append(f.jobs, j), append(f.after, after)
}

func (f *jobFile) stages(m *form.Mapping, j *workload.Job) {
	var all []*stageReader
	index := map[string]int{}
	for i, n := range m.List("stages", "stage") {
		s := f.stage(m, n, f.runs && (j.Undecided || j.Reserve == cluster.ReserveLearned))
		if f.err != nil {
			return
		}
		if _, twice := index[s.stage.Name]; twice {
			s.Fail("name", "must not be that of another stage of the job")
		}
		index[s.stage.Name] = i
		all = append(all, s)
	}
	commands := false // at least one stage has a command
	for _, s := range all {
		commands = commands || len(s.stage.Args) > 0
		for _, parent := range s.after {
			at, known := index[parent]
			if !known {
				s.Fail("after", "%s must be the name of a stage of the job", strconv.Quote(cluster.Clip(parent)))
			}
			s.stage.Parents = append(s.stage.Parents, at)
		}
		j.Stages = append(j.Stages, s.stage)
		if s.truth != nil && j.Truth == nil {
			j.Truth = make([]workload.StageTruth, len(all))
		}
	}
	for i, s := range all {
		if s.truth != nil {
			j.Truth[i] = *s.truth
		}
		if (len(s.stage.Args) > 0) != commands {
			s.Fail("command", "must be given for every stage of a job or for none")
		}
	}
	if f.err != nil {
		return
	}
	j.Undecided = j.Undecided && j.MayLearn()
	filled := j.AssumingProfiles()
	if f.runs {
		filled = j.AssumingDecided()
	}
	if wrong, ok := errors.AsType[*cluster.WrongField](filled.Check()); ok {
		at := m
		if wrong.Stage >= 0 {
			at = all[wrong.Stage].Mapping
		}
		if _, isText := at.Scalar("command"); isText && wrong.Field == "runtime" {
			wrong.Must += " (a command that is one text is for the shell: write a list)"
		}
		at.FailAt(at.LineOf(wrong.Field), "%v", wrong)
	}
	if !j.HasCommands() {
		return
	}
	for i, s := range all {
		if err := filled.CheckCommand(i); err != nil {
			s.FailAt(s.Node("command").Line, "%s%v", s.Who, err)
		}
	}
}

// workload puts the jobs in order.
func (f *jobFile) workload() (*workload.Workload, error) {
	index := map[string]int{}
	for i := range f.jobs {
		index[f.jobs[i].Name] = i
	}
	for i, parent := range f.after {
		if parent == "" {
			continue
		}
		at, known := index[parent]
		if !known {
			name := f.jobs[i].Name
			return nil, fault.At(f.file, f.lines[name], "job %q after %q: must be the name of a job in the file", name,
				cluster.Clip(parent))
		}
		f.jobs[i].After = at
	}
	w := &workload.Workload{Jobs: f.jobs}
	if i, cycle := w.AfterCycle(); cycle != nil {
		name := w.Jobs[i].Name
		return nil, fault.At(f.file, f.lines[name], "job %q after: must not form a cycle, but %s", name,
			cluster.ClipList(cycle, " waits for "))
	}
	w.Sort()
	for i := range w.Jobs {
		w.Jobs[i].ID = cluster.JobID(i + 1)
	}
	return w, nil
}
