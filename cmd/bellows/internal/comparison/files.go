package comparison

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// columns of the CSV file, which docs/output.md describes.
var columns = []string{"policy", "seed", "jobs", "failed_jobs", "tasks", "retries", "average_job_runtime_s", "makespan_s",
	"memory_utilisation", "elastic_task_share", "bound_average_job_runtime_s", "bound_makespan_s"}

// WriteCSV writes a row per run, in their order. What is not known is an empty field.
func (c *Comparison) WriteCSV(to io.Writer) error {
	heads := slices.Clone(columns)
	timed := slices.ContainsFunc(c.Runs, func(r Run) bool { return r.CPU != nil })
	if timed {
		heads = append(heads, "cpu_s")
	}
	w := csv.NewWriter(to)
	if err := w.Write(append(heads, "error")); err != nil {
		return err
	}
	for _, r := range c.Runs {
		row := []string{c.Policies[r.Policy].Label, strconv.FormatUint(r.Seed, 10)}
		if r.Error != "" {
			row = append(row, make([]string, len(heads)-2)...)
		} else {
			for _, n := range []int{r.Jobs, r.FailedJobs, r.Tasks, r.Retries} {
				row = append(row, strconv.Itoa(n))
			}
			for _, v := range []float64{r.Average, r.Makespan, r.Utilisation, r.Elastic, r.BoundAverage, r.BoundMakespan} {
				row = append(row, strconv.FormatFloat(v, 'f', -1, 64))
			}
			if timed {
				row = append(row, strconv.FormatFloat(*r.CPU, 'f', -1, 64))
			}
		}
		if err := w.Write(append(row, r.Error)); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// MarshalJSON of a run that failed tells only why.
func (r Run) MarshalJSON() ([]byte, error) {
	if r.Error != "" {
		return json.Marshal(map[string]any{"seed": r.Seed, "error": r.Error})
	}
	type plain Run
	return json.Marshal(plain(r))
}

// Document is a policy for writing as JSON: its summary and its runs.
type Document struct {
	Summary
	PerSeed []Run `json:"per_seed"`
}

// Documents returns one per policy.
func (c *Comparison) Documents() []Document {
	var all []Document
	for p, s := range c.Summaries() {
		d := Document{Summary: s, PerSeed: []Run{}}
		for _, r := range c.Runs {
			if r.Policy == p {
				d.PerSeed = append(d.PerSeed, r)
			}
		}
		all = append(all, d)
	}
	return all
}

// Table returns heads and rows for people. Heads that begin with > stand to the right.
func (c *Comparison) Table() (heads []string, rows [][]string) {
	first := c.Policies[0].Label
	heads = []string{"POLICY", ">JOB RUNTIME", ">÷ BOUND", ">MAKESPAN", ">÷ BOUND", ">MEMORY", ">ELASTIC"}
	if len(c.Policies) > 1 {
		heads = slices.Insert(heads, 2, ">÷ "+strings.ToUpper(short(first)))
	}
	for p, s := range c.Summaries() {
		row := []string{s.Label, measured(s.Average), ratio(s.AverageOver), measured(s.Makespan), ratio(s.MakespanOver), percent(s.Utilisation), percent(s.Elastic)}
		if len(c.Policies) > 1 {
			against := ratioInterval(s.AverageRatio)
			if p == 0 {
				against = "1"
			}
			row = slices.Insert(row, 2, against)
		}
		rows = append(rows, row)
	}
	return heads, rows
}

// short cuts a label to its policy.
func short(label string) string { label, _, _ = strings.Cut(label, ":"); return label }

func measured(e Estimate) string {
	if !e.Known() {
		return "-"
	}
	digits := 1
	if e.Mean >= 1000 {
		digits = 0
	}
	text := strconv.FormatFloat(e.Mean, 'f', digits, 64)
	if e.Interval() {
		text += " ±" + strconv.FormatFloat(e.High-e.Mean, 'f', digits, 64)
	}
	return text + "s"
}

func ratio(e Estimate) string {
	if !e.Known() || math.IsInf(e.Mean, 0) {
		return "-"
	}
	return strconv.FormatFloat(e.Mean, 'f', 2, 64)
}

// ratioInterval prints a ratio with the longer side of its interval.
func ratioInterval(e Estimate) string {
	text := ratio(e)
	if e.Interval() && text != "-" {
		text += " ±" + strconv.FormatFloat(max(e.High-e.Mean, e.Mean-e.Low), 'f', 2, 64)
	}
	return text
}

func percent(e Estimate) string {
	if !e.Known() {
		return "-"
	}
	return strconv.FormatFloat(100*e.Mean, 'f', 0, 64) + "%"
}

// Notes are sentences on what the table does not show.
func (c *Comparison) Notes() []string {
	var notes []string
	for _, s := range c.Summaries() {
		if s.FailedJobs > 0 {
			notes = append(notes, fmt.Sprintf("%s: %d jobs failed over all runs; job runtimes leave them out.", s.Label, s.FailedJobs))
		}
	}
	return notes
}

// Method says in one sentence how the numbers were made.
func (c *Comparison) Method() string {
	if len(c.Runs) <= len(c.Policies) {
		return "One seed: no confidence intervals. ÷: over the lower bound, and over " + c.Policies[0].Label + "."
	}
	return "Means over " + c.seeds() + ", ±: 95 % confidence interval (Student's t). ÷: geometric means over seeds of the result over the lower bound, and over " +
		c.Policies[0].Label + " on the same seed, with its interval."
}
