package jobfile

import (
	"fmt"
	"io"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/workload"
)

// The documents that Write writes; the fields stand in the order in which people read them.
type (
	jobDoc struct {
		Bellows     int        `yaml:"bellows"`
		Name        string     `yaml:"name"`
		Queue       string     `yaml:"queue,omitempty"`
		Weight      float64    `yaml:"weight,omitempty"`
		Class       string     `yaml:"class,omitempty"`
		MaxAttempts int        `yaml:"max_attempts,omitempty"`
		AtMostOnce  bool       `yaml:"at_most_once,omitempty"`
		At          string     `yaml:"at,omitempty"`
		After       string     `yaml:"after,omitempty"`
		Stages      []stageDoc `yaml:"stages"`
	}
	stageDoc struct {
		Name        string            `yaml:"name"`
		Coordinator bool              `yaml:"coordinator,omitempty"`
		Tasks       int               `yaml:"tasks"`
		After       []string          `yaml:"after,omitempty,flow"`
		CPUs        string            `yaml:"cpus,omitempty"`
		Memory      string            `yaml:"memory,omitempty"`
		MinMemory   string            `yaml:"min_memory,omitempty"`
		MaxMemory   string            `yaml:"max_memory,omitempty"`
		Heartbeat   string            `yaml:"heartbeat_timeout,omitempty"`
		Disk        string            `yaml:"disk,omitempty"`
		Network     string            `yaml:"network,omitempty"`
		DataOn      []string          `yaml:"data_on,omitempty,flow"`
		Duration    string            `yaml:"duration,omitempty"`
		Elasticity  *elasticityDoc    `yaml:"elasticity,omitempty,flow"`
		Profile     string            `yaml:"profile,omitempty"`
		Command     any               `yaml:"command,omitempty"`
		Env         map[string]string `yaml:"env,omitempty"`
		Dir         string            `yaml:"dir,omitempty"`
		Stdin       string            `yaml:"stdin,omitempty"`
		Timeout     string            `yaml:"timeout,omitempty"`
		Runtime     string            `yaml:"runtime,omitempty"`
		Truth       *truthDoc         `yaml:"truth,omitempty"`
	}
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
		Memory     string   `yaml:"memory,omitempty"`
		Memories   []string `yaml:"memories,omitempty,flow"`
		Elasticity any      `yaml:"elasticity,omitempty"`

		Phases     []phaseDoc   `yaml:"phases,omitempty"`
		TaskPhases [][]phaseDoc `yaml:"task_phases,omitempty"`
		Heap       *heapDoc     `yaml:"heap,omitempty,flow"`
	}
	phaseDoc struct {
		Name     string `yaml:"name,omitempty"`
		Duration string `yaml:"duration"`
		CPUs     string `yaml:"cpus,omitempty"`
		Memory   string `yaml:"memory,omitempty"`
		Disk     string `yaml:"disk,omitempty"`
		Network  string `yaml:"network,omitempty"`
	}
	heapDoc struct {
		Live string `yaml:"live,omitempty"`
		Size string `yaml:"size,omitempty"`
	}
	// words is a list on one line.
	words struct{ list []string }
)

// MarshalYAML implements yaml.Marshaler.
func (w words) MarshalYAML() (any, error) {
	var n yaml.Node
	err := n.Encode(w.list)
	n.Style = yaml.FlowStyle
	return &n, err
}

// MarshalYAML implements yaml.Marshaler: a phase stands on one line.
func (p phaseDoc) MarshalYAML() (any, error) {
	type plain phaseDoc
	var n yaml.Node
	err := n.Encode(plain(p))
	n.Style = yaml.FlowStyle
	return &n, err
}

// Write writes w in the project's own format; Read reads the same workload back, except that it numbers the jobs
// anew and that owners, which a live machine learns from the connection, are not in the format. Jobs must have different
// names; stages without a name get one.
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
		doc := jobDoc{Bellows: jobFileVersion, Name: j.Name, Queue: j.Queue, Weight: j.Weight, MaxAttempts: j.MaxAttempts, AtMostOnce: j.AtMostOnce,
			Stages: stageDocs(j)}
		if j.Class != cluster.Regular {
			doc.Class = j.Class.String()
		}
		if j.After >= 0 {
			doc.After = w.Jobs[j.After].Name
		} else {
			doc.At = durationText(time.Duration(j.Submitted))
		}
		if err := enc.Encode(&doc); err != nil {
			return fmt.Errorf("write job %q: %w", j.Name, err)
		}
	}
	if err := enc.Close(); err != nil {
		return fmt.Errorf("write jobs: %w", err)
	}
	return nil
}

func stageDocs(j *workload.Job) []stageDoc {
	names := make([]string, len(j.Stages))
	seen := map[string]bool{}
	for i := range j.Stages {
		name := j.Stages[i].Name
		if name == "" {
			name = fmt.Sprintf("stage-%d", i+1)
		}
		names[i] = workload.UnusedName(name, seen)
	}
	docs := make([]stageDoc, len(j.Stages))
	for i := range j.Stages {
		s := &j.Stages[i]
		docs[i] = stageDoc{Name: names[i], Coordinator: s.Coordinator, Tasks: s.Tasks,
			Memory: memoryText(s.Ideal[resource.Memory]), MinMemory: memoryText(s.MinMemory),
			MaxMemory: memoryText(s.MaxMemory), Heartbeat: durationText(s.HeartbeatTimeout),
			Disk: rateText(s.Ideal[resource.Disk]), Network: rateText(s.Ideal[resource.Network]),
			DataOn: s.DataOn, Duration: durationText(s.Duration)}
		if s.Ideal[resource.CPU] > 0 {
			docs[i].CPUs = resource.FormatCPU(s.Ideal[resource.CPU])
		}
		for _, parent := range s.Parents {
			docs[i].After = append(docs[i].After, names[parent])
		}
		if s.Elasticity.Kind != cluster.NotElastic {
			docs[i].Elasticity = elasticityText(&s.Elasticity)
		}
		docs[i].Profile = s.Profile
		if c := &s.Command; len(c.Args) > 0 {
			docs[i].Command, docs[i].Env, docs[i].Dir, docs[i].Runtime = words{c.Args}, c.Env, c.Dir, c.Runtime
			docs[i].Stdin, docs[i].Timeout = c.Stdin, durationText(c.Timeout)
			if len(c.Args) == 3 && c.Args[0] == "sh" && c.Args[1] == "-c" {
				docs[i].Command = c.Args[2]
			}
		}
		if i < len(j.Truth) {
			docs[i].Truth = truthText(&j.Truth[i])
		}
	}
	return docs
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

// truthText returns nil if all is as estimated.
func truthText(t *workload.StageTruth) *truthDoc {
	if t.IsZero() {
		return nil
	}
	doc := &truthDoc{Phases: phaseTexts(t.Phases)}
	if t.Durations == nil {
		doc.Duration = durationText(t.Duration)
	}
	for _, d := range t.Durations {
		doc.Durations = append(doc.Durations, d.String())
	}
	if t.IdealMemories == nil {
		doc.Memory = memoryText(t.IdealMemory)
	}
	for _, m := range t.IdealMemories {
		doc.Memories = append(doc.Memories, memoryText(m))
	}
	if t.TaskPhases != nil {
		doc.Phases = nil
	}
	for _, phases := range t.TaskPhases {
		doc.TaskPhases = append(doc.TaskPhases, phaseTexts(phases))
	}
	if t.Heap != nil {
		doc.Heap = &heapDoc{memoryText(t.Heap.Live), memoryText(t.Heap.Size)}
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

func phaseTexts(phases []workload.Phase) []phaseDoc {
	var docs []phaseDoc
	for i := range phases {
		p := &phases[i]
		doc := phaseDoc{Name: p.Name, Duration: p.Duration.String(), Memory: memoryText(p.Demand[resource.Memory]),
			Disk: rateText(p.Demand[resource.Disk]), Network: rateText(p.Demand[resource.Network])}
		if p.Demand[resource.CPU] > 0 {
			doc.CPUs = resource.FormatCPU(p.Demand[resource.CPU])
		}
		docs = append(docs, doc)
	}
	return docs
}

func durationText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
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
