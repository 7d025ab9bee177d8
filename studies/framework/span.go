package framework

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/studies/chart"
)

// Span is the range of memory sizes over which a task is studied.
type Span struct {
	Task         Task
	Model        *Model // nil if no runs were given
	Least, Ideal resource.Amount
	Elasticity   cluster.Elasticity // only with a model
}

// NewSpan returns the sizes from least to the ideal memory of the task; if least is 0, from a tenth of the ideal. model
// may be nil.
func NewSpan(task Task, model *Model, least resource.Amount) (*Span, error) {
	if s, ok := task.(SparkSort); ok && s.Expansion == 0 {
		return nil, errors.New("expansion: must be given without runs")
	}
	ideal, ok := IdealMemory(task)
	if !ok {
		why := "its output is too much for the largest sort buffer"
		if _, mapper := task.(HadoopMapper); !mapper {
			why = "nothing may stay in memory; --preset paper lets it"
		}
		return nil, fmt.Errorf("%s: by these settings it spills at every size: %s", task.Name(), why)
	}
	r := &Span{Task: task, Model: model, Ideal: inMiB(ideal), Least: least}
	if r.Least == 0 {
		r.Least = inMiB(r.Ideal / 10)
	}
	if r.Least >= r.Ideal {
		return nil, fmt.Errorf("min-memory %s: must be below the ideal, %s", resource.FormatMemory(r.Least),
			resource.FormatMemory(r.Ideal))
	}
	if model == nil {
		return r, nil
	}
	var err error
	r.Elasticity, _, err = model.Elasticity(r.Least)
	return r, err
}

// Sizes returns tenths from the smallest to the ideal size.
func (r *Span) Sizes() []resource.Amount {
	var all []resource.Amount
	const steps = 10
	for i := range resource.Amount(steps + 1) {
		all = append(all, inMiB(r.Least+(r.Ideal-r.Least)*i/steps))
	}
	return slices.Compact(all)
}

// inMiB rounds up to whole MiB.
func inMiB(memory resource.Amount) resource.Amount {
	return (memory + resource.MiB - 1) / resource.MiB * resource.MiB
}

// Best returns the size below the ideal with the smallest slowdown, to a MiB; of several, the smallest size.
func (r *Span) Best() resource.Amount {
	best := r.Least
	step := max((r.Ideal-r.Least)/4096, 1)
	for memory := r.Least; memory < r.Ideal; memory += step {
		if r.Model.SpilledBytes(memory) > 0 && r.Model.Slowdown(memory) < r.Model.Slowdown(best) {
			best = memory
		}
	}
	return min(inMiB(best), r.Ideal)
}

// JobFields returns the fields of a stage in a job file.
func (r *Span) JobFields() string {
	var b strings.Builder
	number := func(x float64) string { return strconv.FormatFloat(math.Round(x*1e4)/1e4, 'g', -1, 64) }
	fmt.Fprintf(&b, "memory: %s\nmin_memory: %s\nduration: %s\nelasticity:\n", resource.FormatMemoryExact(r.Ideal),
		resource.FormatMemoryExact(r.Least), r.Model.Ideal)
	e := r.Elasticity
	switch e.Kind {
	case cluster.Step:
		fmt.Fprintf(&b, "  step: %s\n", number(e.Factor))
	case cluster.SawTooth:
		fmt.Fprintf(&b, "  sawtooth: %s\n", number(e.Factor))
	default:
		b.WriteString("  points:\n")
		for i, p := range e.Points {
			if i == len(e.Points)-1 {
				p.Memory = r.Ideal // in whole MiB
			}
			fmt.Fprintf(&b, "    - {memory: %s, slowdown: %s}\n", resource.FormatMemoryExact(p.Memory), number(p.Slowdown))
		}
	}
	fmt.Fprintf(&b, "  disk_rate: %dMB/s\n", max(1, int64(math.Round(float64(e.DiskRate)/1e6))))
	return b.String()
}

// Picture draws the slowdown over the sizes; it needs a model.
func (r *Span) Picture() *chart.Plot {
	var line chart.Series
	const steps = 2000
	for i := range resource.Amount(steps + 1) {
		memory := r.Least + (r.Ideal-r.Least)*i/steps
		line.X = append(line.X, 100*float64(memory)/float64(r.Ideal))
		line.Y = append(line.Y, r.Model.Slowdown(memory))
	}
	least := 1.0
	return &chart.Plot{
		Title:    "What less memory costs: " + r.Task.Name(),
		Subtitle: fmt.Sprintf("model from two runs; ideal %s, %v there", resource.FormatMemory(r.Ideal), r.Model.Ideal),
		X:        "memory (% of ideal)", Y: "run time (times that with ideal memory)",
		Series: []chart.Series{line}, YMin: &least,
	}
}
