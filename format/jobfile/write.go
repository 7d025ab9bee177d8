package jobfile

import (
	"fmt"
	"io"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/form"
	"github.com/bellows-rm/bellows/format/workload"
)

// Parts of the documents that Write writes. The order of their fields is the order for readers.
type (
	elasticityDoc struct {
		Step     float64    `yaml:"step,omitempty"`
		SawTooth float64    `yaml:"sawtooth,omitempty"`
		Table    float64    `yaml:"sawtooth_table,omitempty"`
		Points   []pointDoc `yaml:"points,omitempty,flow"`
		DiskRate string     `yaml:"disk_rate,omitempty"`
	}
	pointDoc struct {
		Memory   string  `yaml:"memory"`
		Slowdown float64 `yaml:"slowdown"`
	}
	truthDoc struct {
		Duration   string   `yaml:"duration,omitempty"`
		Durations  []string `yaml:"durations,omitempty,flow"`
		Fresh      []string `yaml:"fresh,omitempty,flow"`
		First      []string `yaml:"first,omitempty,flow"`
		Memory     string   `yaml:"memory,omitempty"`
		Memories   []string `yaml:"memories,omitempty,flow"`
		Elasticity any      `yaml:"elasticity,omitempty"`

		Phases     []*yaml.Node   `yaml:"phases,omitempty"`
		TaskPhases [][]*yaml.Node `yaml:"task_phases,omitempty"`
		Heap       *yaml.Node     `yaml:"heap,omitempty"`
	}
)

// Write writes w as a job file. Read returns the same workload, except that it numbers the jobs anew and that the
// format has no owners, which a live machine learns from the connection. Jobs must have different names; stages without
// a name get one.
func Write(out io.Writer, w *workload.Workload) error {
	enc := yaml.NewEncoder(out)
	enc.SetIndent(2)
	seen := map[string]bool{}
	for i := range w.Jobs {
		j := &w.Jobs[i]
		if seen[j.Name] || !cluster.IsName(j.Name) {
			return fmt.Errorf("job name %q: must be printable and different from those of the other jobs", cluster.Clip(j.Name))
		}
		seen[j.Name] = true
		node, err := jobNode(w, j)
		if err == nil {
			err = enc.Encode(node)
		}
		if err != nil {
			return fmt.Errorf("write job %q: %w", j.Name, err)
		}
	}
	if err := enc.Close(); err != nil {
		return fmt.Errorf("write jobs: %w", err)
	}
	return nil
}

// jobNode returns a job as a YAML node. The order of its fields is the order for readers.
func jobNode(all *workload.Workload, j *workload.Job) (*yaml.Node, error) {
	w := form.NewWriter(0)
	w.Put("bellows", jobFileVersion, 0)
	w.Write(&j.Job, nil)
	if j.MaxAttempts > 1 {
		w.Put("retry", j.MaxAttempts-1, 0)
	}
	if j.RetryDelay == 0 && (j.MaxAttempts > 1 || j.KeepsRetryDelay) { // otherwise it would be read with the usual pause
		w.Put("retry_delay", "0s", 0)
	}
	if j.RetryOn == cluster.RetryOnAny && j.KeepsRetryOn {
		w.Put("retry_on", j.RetryOn.String(), 0)
	}
	if j.After >= 0 {
		w.Put("after", all.Jobs[j.After].Name, 0)
	} else if j.Submitted > 0 {
		w.Put("at", time.Duration(j.Submitted).String(), 0)
	}
	names := stageNames(j)
	stages := &yaml.Node{Kind: yaml.SequenceNode}
	for s := range j.Stages {
		node, err := stageNode(j, s, names)
		if err != nil {
			return nil, err
		}
		stages.Content = append(stages.Content, node)
	}
	w.Put("stages", stages, 0)
	return w.Node, w.Err
}

// stageNames returns a distinct name for every stage of j.
func stageNames(j *workload.Job) []string {
	all := make([]string, len(j.Stages))
	seen := map[string]bool{}
	for i := range j.Stages {
		name := j.Stages[i].Name
		if name == "" {
			name = fmt.Sprintf("stage-%d", i+1)
		}
		all[i] = workload.UnusedName(name, seen)
	}
	return all
}

// stageNode returns a stage as a YAML node; names are the names of all stages of the job.
func stageNode(j *workload.Job, i int, names []string) (*yaml.Node, error) {
	s := j.Stages[i]
	s.Name = names[i]
	w := form.NewWriter(0)
	w.Write(&s, func(field string) {
		if value, style := specialFields[field].value(&s, names); value != nil {
			w.Put(field, value, style)
		}
	})
	if i < len(j.Truth) && !j.Truth[i].IsZero() {
		w.Put("truth", truthText(&j.Truth[i]), 0)
	}
	return w.Node, w.Err
}

func elasticityText(e *cluster.Elasticity) *elasticityDoc {
	doc := &elasticityDoc{DiskRate: rateText(e.DiskRate)}
	switch e.Kind {
	case cluster.Step:
		doc.Step = e.Factor
	case cluster.SawTooth:
		doc.SawTooth = e.Factor
	case cluster.SawToothTable:
		doc.Table = e.Factor
	case cluster.Points:
		for _, p := range e.Points {
			doc.Points = append(doc.Points, pointDoc{memoryText(p.Memory), p.Slowdown})
		}
	}
	return doc
}

func truthText(t *workload.StageTruth) *truthDoc {
	doc := &truthDoc{}
	doc.Duration, doc.Durations = perTaskText(t.Duration, time.Duration.String)
	_, doc.Fresh = perTaskText(workload.ForEach(t.Fresh), time.Duration.String)
	_, doc.First = perTaskText(workload.ForEach(t.First), time.Duration.String)
	doc.Memory, doc.Memories = perTaskText(t.IdealMemory, resource.FormatMemoryExact)
	doc.Phases, doc.TaskPhases = perTaskText(t.Phases, phaseNodes)
	if t.Heap != nil {
		w := form.NewWriter(yaml.FlowStyle)
		w.Write(t.Heap, nil)
		doc.Heap = w.Node
	}
	switch {
	case t.Elasticity == nil:
	case t.Elasticity.Kind == cluster.NotElastic:
		doc.Elasticity = cluster.NotElastic.String()
	default:
		doc.Elasticity = elasticityText(t.Elasticity)
	}
	return doc
}

// perTaskText returns one value for all tasks, or a list with one for each.
func perTaskText[T, U any](p workload.PerTask[T], text func(T) U) (all U, each []U) {
	for _, v := range p.Values() {
		each = append(each, text(v))
	}
	if len(each) > 0 && !p.Differs() {
		return each[0], nil
	}
	return all, each
}

// phaseNodes returns phases as YAML nodes, one per line.
func phaseNodes(phases []cluster.Phase) []*yaml.Node {
	var all []*yaml.Node
	for i := range phases {
		w := form.NewWriter(yaml.FlowStyle)
		w.Write(&phases[i], nil)
		if phases[i].Duration == 0 { // the field is required
			w.Put("duration", "0s", 0)
		}
		all = append(all, w.Node)
	}
	return all
}

func memoryText(a resource.Amount) string {
	if a == 0 {
		return ""
	}
	return resource.FormatMemoryExact(a)
}

func rateText(a resource.Amount) string {
	if a == 0 {
		return ""
	}
	return resource.FormatRateExact(a)
}
