package trial

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Table returns heads and rows for people. A head that begins with > is right-aligned.
func (c *Comparison) Table() (heads []string, rows [][]string) {
	first := c.Contenders[0].Label
	heads = []string{"POLICY", ">JOB RUNTIME", ">÷ BOUND", ">MAKESPAN", ">÷ BOUND", ">MEMORY", ">ELASTIC"}
	if len(c.Contenders) > 1 {
		heads = slices.Insert(heads, 2, ">÷ "+strings.ToUpper(short(first)))
	}
	for p, s := range c.Summaries() {
		row := []string{c.Contenders[p].Label, measured(s.Average), ratio(s.AverageOver), measured(s.Makespan),
			ratio(s.MakespanOver), percent(s.Utilisation), percent(s.Elastic)}
		if len(c.Contenders) > 1 {
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

// short cuts off the settings of a label.
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

// Notes are sentences about what the table does not show.
func (c *Comparison) Notes() []string {
	var notes []string
	for p, s := range c.Summaries() {
		if s.FailedJobs > 0 {
			notes = append(notes, fmt.Sprintf("%s: %d jobs failed over all runs; job runtimes leave them out.",
				c.Contenders[p].Label, s.FailedJobs))
		}
	}
	return notes
}

// Seeds returns the number of seeds in words.
func (c *Comparison) Seeds() string {
	if n := c.seeds(); n != 1 {
		return fmt.Sprintf("%d seeds", n)
	}
	return "1 seed"
}

// Method describes in one sentence how the numbers were computed.
func (c *Comparison) Method() string {
	if len(c.Outcomes) <= len(c.Contenders) {
		return "One seed: no confidence intervals. ÷: over the lower bound, and over " + c.Contenders[0].Label + "."
	}
	return "Means over " + c.Seeds() +
		", ±: 95 % confidence interval (Student's t). ÷: geometric means over seeds of the result over the lower " +
		"bound, and over " +
		c.Contenders[0].Label + " on the same seed, with its interval."
}
