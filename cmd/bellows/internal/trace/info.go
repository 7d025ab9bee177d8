package trace

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/door/cli/workloadfile"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/format/workload"
)

// summaryJSON is a summary of a workload.
type summaryJSON struct {
	Jobs        int                      `json:"jobs" doc:"number of jobs"`
	Stages      int                      `json:"stages" doc:"number of stages"`
	Edges       int                      `json:"edges" doc:"dependencies between stages"`
	Tasks       int64                    `json:"tasks" doc:"number of tasks, without coordinators"`
	Elastic     int64                    `json:"elastic_tasks" doc:"tasks that may be under-sized"`
	Phased      int64                    `json:"phased_tasks" doc:"tasks whose demand changes over time"`
	Span        float64                  `json:"span_s" doc:"from the first to the last submission"`
	LongestPath float64                  `json:"longest_path_s" doc:"the longest chain of stages of one job, as tasks really run"`
	Estimated   workJSON                 `json:"estimated_work" doc:"sum over tasks of estimated need × true duration: cpu_core_s, memory_byte_s, disk_bytes, network_bytes"`
	Used        workJSON                 `json:"used_work" doc:"the same with true use"`
	Quantiles   map[string]quantilesJSON `json:"quantiles" doc:"over jobs, tasks_per_job, stages_per_job, longest_path_s and between_submissions_s; over tasks, task_duration_s, task_cpu_millicores, task_memory_bytes and task_peak_memory_bytes"`
}

// workJSON is an amount × time of every resource. Its fields name the resource and the unit, such as cpu_core_s.
type workJSON [resource.NumKinds]float64

// MarshalJSON implements json.Marshaler.
func (w workJSON) MarshalJSON() ([]byte, error) {
	var text []byte
	for k, v := range w {
		unit, size := resource.Kind(k).WorkUnit()
		text = fmt.Appendf(text, ",%q:", resource.Kind(k).String()+"_"+unit)
		number, err := json.Marshal(v / float64(size))
		if err != nil {
			return nil, err
		}
		text = append(text, number...)
	}
	text[0] = '{'
	return append(text, '}'), nil
}

type quantilesJSON struct {
	Count int64   `json:"count" doc:"number of values"`
	Min   float64 `json:"min" doc:"the least"`
	P25   float64 `json:"p25" doc:"25 % are at most this"`
	P50   float64 `json:"p50" doc:"the median"`
	P75   float64 `json:"p75" doc:"75 % are at most this"`
	P90   float64 `json:"p90" doc:"90 % are at most this"`
	P99   float64 `json:"p99" doc:"99 % are at most this"`
	Max   float64 `json:"max" doc:"the largest"`
	Mean  float64 `json:"mean" doc:"the mean"`
}

// distribution is a row of the table.
type distribution struct {
	name, key string
	of        *workload.Quantiles
	print     func(float64) string
}

func distributions(s *workload.Summary) []distribution {
	return []distribution{
		{"tasks per job", "tasks_per_job", &s.TasksOfJob, shortNumber},
		{"stages per job", "stages_per_job", &s.StagesOfJob, shortNumber},
		{"longest path of a job", "longest_path_s", &s.PathOfJob, shortSeconds},
		{"between submissions", "between_submissions_s", &s.Gap, shortSeconds},
		{"task duration", "task_duration_s", &s.Duration, shortSeconds},
		{"task CPU, cores", "task_cpu_millicores", &s.CPU, func(v float64) string {
			return shortNumber(v / float64(resource.Core))
		}},
		{"task memory", "task_memory_bytes", &s.Memory, shortBytes},
		{"task memory, true peak", "task_peak_memory_bytes", &s.MemoryUsed, shortBytes},
	}
}

func summaryOf(s *workload.Summary) summaryJSON {
	doc := summaryJSON{Jobs: s.Jobs, Stages: s.Stages, Edges: s.Edges, Tasks: s.Tasks, Elastic: s.Elastic,
		Phased: s.Phased, Span: s.Span.Seconds(), LongestPath: s.LongestPath.Seconds(), Estimated: workJSON(s.Work),
		Used: workJSON(s.Used), Quantiles: map[string]quantilesJSON{}}
	for _, d := range distributions(s) {
		if d.of.Known() {
			doc.Quantiles[d.key] = quantilesJSON(*d.of)
		}
	}
	return doc
}

func infoCommand() *cobra.Command {
	format, asJSON := workloadfile.Auto, false
	cmd := &cobra.Command{
		Use:   "info FILE",
		Short: "Describe a workload",
		Long: `Describe a workload: its jobs, tasks and work, and the distributions of sizes
and times. In a distribution each job, or each task, counts once. FILE may be -
for standard input.`,
		Example: `  bellows trace info day.jsonl.zst
  bellows trace info u100.trace --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := workloadfile.Open(args[0], format)
			if err != nil {
				return err
			}
			w, err := f.Read(nil)
			if err != nil {
				return err
			}
			s := workload.Summarise(w)
			if asJSON {
				return terminal.WriteJSON(cmd.OutOrStdout(), summaryOf(&s))
			}
			var c *workload.ClusterShape
			if f.Jobs != nil {
				c = f.Jobs.Header.Cluster
			}
			return printSummary(cmd.OutOrStdout(), args[0], &s, c)
		},
	}
	cmd.Flags().Var(flags.Choice(&format, workloadfile.Formats...), "format",
		"format of the file: bellows (a job file), workload or dss; auto: by its content")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printSummary(w io.Writer, name string, s *workload.Summary, c *workload.ClusterShape) error {
	fmt.Fprintf(w, "%s: %s, %s, %s, %s over %s\n", name, terminal.Count(s.Jobs, "job"),
		terminal.Count(s.Stages, "stage"), terminal.Count(s.Edges, "edge"), terminal.Count(int(s.Tasks), "task"),
		terminal.Span(s.Span))
	fmt.Fprintln(w, terminal.Fold(fmt.Sprintf("estimated work: %s core-hours, %s of memory for an hour",
		shortNumber(s.Work[resource.CPU]/3.6e6), shortBytes(s.Work[resource.Memory]/3600)), terminal.Width, "  "))
	used := fmt.Sprintf("really used: %s core-hours, %s of memory for an hour", shortNumber(s.Used[resource.CPU]/3.6e6),
		shortBytes(s.Used[resource.Memory]/3600))
	if s.Used[resource.Disk]+s.Used[resource.Network] > 0 {
		used += fmt.Sprintf(", %s over disks, %s over the network", shortBytes(s.Used[resource.Disk]),
			shortBytes(s.Used[resource.Network]))
	}
	fmt.Fprintln(w, terminal.Fold(used, terminal.Width, "  "))
	if s.Elastic+s.Phased > 0 {
		fmt.Fprintf(w, "%s may be under-sized; the demand of %d changes over time\n",
			terminal.Count(int(s.Elastic), "task"), s.Phased)
	}
	if c != nil {
		fmt.Fprintln(w, terminal.Fold(fmt.Sprintf("suggested cluster: %s of %s and %s", terminal.Count(c.Nodes, "node"),
			countCores(c.Node[resource.CPU]), resource.FormatMemory(c.Node[resource.Memory])), terminal.Width, "  "))
	}
	fmt.Fprintln(w)
	t := terminal.NewTable("", ">MIN", ">P25", ">P50", ">P75", ">P90", ">P99", ">MAX", ">MEAN")
	for _, d := range distributions(s) {
		if q := d.of; q.Count > 0 {
			t.Add(d.name, d.print(q.Min), d.print(q.P25), d.print(q.P50), d.print(q.P75), d.print(q.P90), d.print(q.P99),
				d.print(q.Max), d.print(q.Mean))
		}
	}
	return t.Write(w)
}

// shortNumber prints a number in at most five characters.
func shortNumber(v float64) string {
	for _, u := range []struct {
		from float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e4, "k"}} {
		if v >= u.from {
			unit := u.from
			if u.name == "k" {
				unit = 1e3
			}
			return digits(v/unit) + u.name
		}
	}
	return digits(v)
}

// digits prints three significant digits, or a whole number.
func digits(v float64) string {
	switch {
	case v == math.Trunc(v) || v >= 100:
		return strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

func shortSeconds(v float64) string {
	switch {
	case v >= 48*3600:
		return digits(v/86400) + "d"
	case v >= 2*3600:
		return digits(v/3600) + "h"
	case v >= 120:
		return digits(v/60) + "m"
	case v >= 1 || v == 0:
		return digits(v) + "s"
	}
	return digits(float64(time.Duration(v*1e9).Microseconds())/1000) + "ms"
}

func shortBytes(v float64) string {
	for _, u := range []struct {
		size resource.Amount
		name string
	}{{resource.PB, "P"}, {resource.TB, "T"}, {resource.GB, "G"}, {resource.MB, "M"}, {resource.KB, "k"}} {
		if v >= float64(u.size) {
			return digits(v/float64(u.size)) + u.name + "B"
		}
	}
	return digits(v) + "B"
}
