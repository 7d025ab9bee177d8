package jobs

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/cli/picture"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/live/api"
)

// spansDrawn is how many spans of a run are requested for a table and a picture.
const spansDrawn = 300

func showUsage(cmd *cobra.Command, client *client.Client, arg string, asJSON bool) error {
	id, err := parseJob(arg)
	if err != nil {
		return err
	}
	if asJSON {
		runs, err := client.Usage(cmd.Context(), id, 0)
		if err != nil {
			return err
		}
		return terminal.WriteJSON(cmd.OutOrStdout(), terminal.OrEmpty(runs))
	}
	job, err := client.Job(cmd.Context(), id, true)
	if err != nil {
		return err
	}
	runs, err := client.Usage(cmd.Context(), id, spansDrawn)
	if err != nil {
		return err
	}
	s, err := client.Status(cmd.Context())
	if err != nil {
		return err
	}
	return printUsage(cmd.OutOrStdout(), &job, runs, s.NetworkUnknown)
}

// measure is a column of the table and a strip of the picture: how to read it from rates, and how to print it.
type measure struct {
	head, title string
	kind        string // for a list of what is unknown
	of          func(*api.Rates) *int64
	format      func(int64) string
	// always says that it has a column, and a strip, even if it was always 0.
	always bool
}

func inBytes(n int64) string   { return resource.FormatMemory(resource.Amount(n)) }
func perSecond(n int64) string { return resource.FormatRate(resource.Amount(n)) }
func inCores(n int64) string   { return strconv.FormatFloat(float64(n)/1000, 'f', 2, 64) }

var measures = []measure{
	{"CPU", "CPU, cores", "CPU", func(r *api.Rates) *int64 { return r.CPU }, inCores, true},
	{"MEMORY", "memory, without page cache", "memory", func(r *api.Rates) *int64 { return r.Memory }, inBytes, true},
	{"SWAP", "memory in swap", "swap", func(r *api.Rates) *int64 { return r.Swap }, inBytes, false},
	{"READ", "read from disks", "disk", func(r *api.Rates) *int64 { return r.Read }, perSecond, false},
	{"WRITTEN", "written to disks", "disk", func(r *api.Rates) *int64 { return r.Written }, perSecond, false},
	{"RECEIVED", "received from the network", "network", func(r *api.Rates) *int64 { return r.Received }, perSecond,
		false},
	{"SENT", "sent to the network", "network", func(r *api.Rates) *int64 { return r.Sent }, perSecond, false},
}

// printUsage prints two rows per run, with means and peaks, and a picture of all runs together. noNetwork says why this
// machine does not count what containers transfer over the network; empty if it does.
func printUsage(w io.Writer, j *api.Job, runs []api.TaskUsage, noNetwork string) error {
	head := fmt.Sprintf("job %d (%s) of %s: %s, submitted %s", j.ID, terminal.Cut(j.Name, 24), j.Owner,
		startedOf(j.Tasks).status(j), j.Submitted.Local().Format(time.DateTime))
	fmt.Fprintf(w, "%s\n\n", terminal.Fold(head, terminal.Width-2, "  "))
	if len(runs) == 0 {
		_, err := fmt.Fprintln(w, "none of its tasks has started")
		return err
	}
	shown, unknown := split(runs)
	heads := []string{"TASK", ">RUN", ">TIME", ""}
	for _, m := range shown {
		heads = append(heads, ">"+m.head)
	}
	noted := slices.ContainsFunc(runs, func(r api.TaskUsage) bool { return note(&r) != "" })
	if noted {
		heads = append(heads, "NOTE")
	}
	t := terminal.NewTable(heads...)
	t.Notes = noted
	for i := range runs {
		r := &runs[i]
		duration := time.Duration(r.DurationSeconds * float64(time.Second))
		mean, peak := []string{r.Task.String(), strconv.Itoa(r.Run), terminal.Age(duration), "mean"},
			[]string{"", "", "", "peak"}
		for _, m := range shown {
			mean, peak = append(mean, m.cell(&r.Mean)), append(peak, m.cell(&r.Peak))
		}
		if noted {
			mean, peak = append(mean, ""), append(peak, terminal.OneLine(note(r)))
		}
		t.Add(mean...)
		t.Add(peak...)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	if len(unknown) > 0 {
		text := "not measured: " + strings.Join(unknown, ", ")
		if noNetwork != "" && slices.Contains(unknown, "network") {
			text += "; the network cannot be measured here: " + noNetwork
		}
		fmt.Fprintf(w, "\n%s\n", terminal.Fold(text, terminal.Width-2, "  "))
	}
	return drawUsage(w, runs, shown)
}

// cell prints an amount; "-" is unknown.
func (m *measure) cell(r *api.Rates) string {
	if v := m.of(r); v != nil {
		return m.format(*v)
	}
	return "-"
}

// split returns the measures that have a column, and the kinds that were not measured. A measure that was always 0
// has no column.
func split(runs []api.TaskUsage) (shown []measure, unknown []string) {
	for _, m := range measures {
		known, some := false, m.always
		for i := range runs {
			if v := m.of(&runs[i].Peak); v != nil {
				known, some = true, some || *v > 0
			}
			if v := m.of(&runs[i].Mean); v != nil { // a gap has no peak
				known, some = true, some || *v > 0
			}
		}
		if some {
			shown = append(shown, m)
		}
		if !known && !slices.Contains(unknown, m.kind) {
			unknown = append(unknown, m.kind)
		}
	}
	return shown, unknown
}

// note says what was not measured of a run, and for how long it stood still.
func note(r *api.TaskUsage) string {
	gap, still := "", ""
	if r.GapSeconds > 0 && r.Missing == "" {
		gap = fmt.Sprintf("no samples for %s: peaks may be higher",
			terminal.Age(time.Duration(r.GapSeconds*float64(time.Second))))
	}
	if r.StillSeconds >= 1 {
		still = fmt.Sprintf("was stopped for %s", terminal.Age(r.Still()))
	}
	return join(r.Missing, gap, still)
}

// drawUsage draws what all runs together used over time.
func drawUsage(w io.Writer, runs []api.TaskUsage, shown []measure) error {
	from, to := runs[0].Started, runs[0].Started
	for i := range runs {
		r := &runs[i]
		if r.Started.Before(from) {
			from = r.Started
		}
		if end := r.Started.Add(time.Duration(r.MeasuredSeconds * float64(time.Second))); end.After(to) {
			to = end
		}
	}
	length := to.Sub(from).Seconds()
	if length <= 0 {
		return nil
	}
	const label = 9 // characters of the longest label
	columns := picture.Columns(terminal.Columns(w)-1, label)
	step := length / float64(columns)
	s := picture.Strips{Rows: 4, Time: func(column int) string {
		return terminal.Age(time.Duration(float64(column) * step * float64(time.Second)))
	}}
	for _, m := range shown {
		s.Strips = append(s.Strips, picture.Strip{Title: m.title + granted(runs, &m),
			Values: sum(runs, &m, from, step, columns), Format: func(v float64) string {
				return m.format(int64(math.Round(v)))
			}})
	}
	what := "its task"
	if len(runs) > 1 {
		what = "all its measured runs together"
	}
	about := fmt.Sprintf("%s over time, since %s; a column is the mean of %s, ? is unknown", what,
		from.Local().Format(time.TimeOnly), terminal.Age(time.Duration(step*float64(time.Second))))
	fmt.Fprintf(w, "\n%s\n\n", terminal.Fold(about, terminal.Width-2, ""))
	return s.Write(w)
}

// granted says what each run was granted, if that is the same for all of them.
func granted(runs []api.TaskUsage, m *measure) string {
	of := func(r *api.TaskUsage) int64 {
		switch m.kind {
		case "CPU":
			return r.CPUMillicores
		case "memory":
			return r.MemoryBytes
		}
		return 0
	}
	n := of(&runs[0])
	if n == 0 || slices.ContainsFunc(runs, func(r api.TaskUsage) bool { return of(&r) != n }) {
		return ""
	}
	if len(runs) > 1 {
		return fmt.Sprintf(" (each was granted %s)", m.format(n))
	}
	return fmt.Sprintf(" (granted %s)", m.format(n))
}

// sum returns the means of what all runs used in each column of step seconds. A column is unknown if a run was not
// measured for more than half of its time in the column.
func sum(runs []api.TaskUsage, m *measure, from time.Time, step float64, columns int) []float64 {
	values := make([]float64, columns)
	for i := range runs {
		r := &runs[i]
		known, unknown, used := make([]float64, columns), make([]float64, columns), make([]float64, columns)
		for k := range r.Spans {
			s := &r.Spans[k]
			begin := r.Started.Sub(from).Seconds() + s.FromSeconds
			end := begin + s.LengthSeconds
			v := m.of(&s.Rates)
			for c := max(0, int(begin/step)); c < columns && float64(c)*step < end; c++ {
				inside := max(0, min(end, float64(c+1)*step)-max(begin, float64(c)*step))
				if v == nil {
					unknown[c] += inside
					continue
				}
				known[c] += inside
				used[c] += inside * float64(*v)
			}
		}
		for c := range values {
			switch {
			case unknown[c] > known[c]:
				values[c] = math.NaN()
			case known[c] > 0:
				values[c] += used[c] / known[c] * (known[c] + unknown[c]) / step
			}
		}
	}
	return values
}
