package simulate

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/sim/trial"
)

// printOneSeed prints the results as a table, each also as a multiple of its lower bound.
func printOneSeed(w io.Writer, doc simulationJSON) error {
	fmt.Fprintf(w, "%s: %s, %s on %s", doc.Workload.Name, terminal.Count(doc.Workload.Jobs, "job"),
		terminal.Count(doc.Workload.Tasks, "task"), doc.Cluster.nodesText())
	if doc.Cluster.Heartbeat > 0 {
		fmt.Fprintf(w, ", heartbeat %gs", doc.Cluster.Heartbeat)
	}
	fmt.Fprint(w, "\n\n")
	t := terminal.NewTable("POLICY", ">JOB RUNTIME", ">/LEAST", ">MAKESPAN", ">/LEAST", ">MEMORY", ">ELASTIC", ">CPU")
	t.Shrinks = 0
	for i := range doc.Results {
		t.Add(doc.Results[i].row()...)
	}
	var shown [][]string // most policies share their bounds
	for i := range doc.Results {
		row := doc.Results[i].leastRow()
		if !slices.ContainsFunc(shown, func(other []string) bool { return slices.Equal(other, row) }) {
			shown = append(shown, row)
			t.Add(row...)
		}
	}
	if err := t.Write(w); err != nil {
		return err
	}
	if slices.ContainsFunc(doc.Results, func(r resultJSON) bool { return r.Flex != nil || r.boxed() }) {
		fmt.Fprintln(w)
		t := terminal.NewTable("FLEX JOBS", ">SUSPENDED", ">WAITED", ">SWAPPED", ">KILLED", ">OUT OF MEMORY")
		t.Shrinks = 0
		for i := range doc.Results {
			t.Add(doc.Results[i].flexRow()...)
		}
		if err := t.Write(w); err != nil {
			return err
		}
	}
	for i := range doc.Results {
		r := &doc.Results[i]
		for _, note := range append(r.contenderJSON.notes(), r.steeringJSON.notes()...) {
			fmt.Fprintf(w, "%s: %s\n", r.name(), note)
		}
	}
	return nil
}

// notes say what a table does not.
func (c *contenderJSON) notes() (notes []string) {
	if c.Timeline != "" {
		notes = append(notes, "estimated ends of jobs by timeline "+c.Timeline)
	}
	return notes
}

func (s *steeringJSON) notes() (notes []string) {
	if s.Throttles > 0 {
		notes = append(notes, fmt.Sprintf("throttled tasks %s, for %s in total", terminal.Count(s.Throttles, "time"),
			secondsText(&s.Throttled)))
	}
	if s.Resizes > 0 {
		notes = append(notes, "resized running tasks "+terminal.Count(s.Resizes, "time"))
	}
	return notes
}

// PrintOverSeeds prints the results of several seeds as a table, with confidence intervals.
func (s *Study) PrintOverSeeds(w io.Writer, c *trial.Comparison) error {
	fmt.Fprintf(w, "%s\n\n", terminal.Fold(s.Headline(), terminal.Width, ""))
	heads, rows := c.Table()
	last := len(heads) - 1 // without the share of under-sized tasks, for which there is no space
	t := terminal.NewTable(heads[:last]...)
	for _, row := range rows {
		t.Add(row[:last]...)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, note := range append(c.Notes(), c.Method()) {
		if _, err := fmt.Fprintln(w, terminal.Fold(note, terminal.Width, "")); err != nil {
			return err
		}
	}
	return nil
}

// Headline describes the simulation in one line.
func (s *Study) Headline() string {
	doc := s.describe()
	text := fmt.Sprintf("%s: %s", doc.Workload.Name, terminal.Count(doc.Workload.Jobs, "job"))
	if s.Seeds > 1 && s.file == nil {
		text += " drawn by each of " + terminal.Count(s.Seeds, "seed")
	} else if s.Seeds > 1 {
		text += ", misjudged by each of " + terminal.Count(s.Seeds, "seed")
	}
	return text + ", on " + doc.Cluster.nodesText()
}

// About lists names and values that a page prints about the origin of its pictures.
func (s *Study) About() [][2]string {
	doc := s.describe()
	c := doc.Cluster
	return [][2]string{
		{"workload", fmt.Sprintf("%s, %s, %s on the first seed", doc.Workload.Name,
			terminal.Count(doc.Workload.Jobs, "job"), terminal.Count(doc.Workload.Tasks, "task"))},
		{"seeds", fmt.Sprintf("%d, from %d on", s.Seeds, s.SeedOf(0))},
		{"penalty", doc.Workload.Penalty},
		{"misjudged", s.cluster.Misjudge.Text},
		{"nodes", c.nodesText()},
		{"heartbeat", fmt.Sprintf("%gs, %d starts each (0: any number)", c.Heartbeat, c.StartsPerHeartbeat)},
		{"application masters", fmt.Sprintf("heartbeat %gs, memory %s", c.AMHeartbeat,
			resource.FormatMemory(resource.Amount(c.AMMemory)))},
		{"launch delay", fmt.Sprintf("%gs", c.LaunchDelay)},
	}
}

func (c *clusterJSON) nodesText() string {
	groups := c.Groups
	if len(groups) == 0 {
		groups = []groupJSON{{c.Nodes, c.NodeMemory, c.NodeCPU}}
	}
	var parts []string
	for _, g := range groups {
		cores := "1 core"
		if g.NodeCPU != 1 {
			cores = strconv.FormatFloat(g.NodeCPU, 'g', -1, 64) + " cores"
		}
		parts = append(parts, fmt.Sprintf("%s of %s, %s each", terminal.Count(g.Nodes, "node"),
			resource.FormatMemory(resource.Amount(g.NodeMemory)), cores))
	}
	return strings.Join(parts, ", and ")
}

func (r *resultJSON) row() []string {
	name, cpu := r.name(), fmt.Sprintf("%.2fs", r.Simulation.CPU)
	if r.Error != "" {
		return []string{name, "failed", "", "", "", "", "", cpu}
	}
	return []string{name, secondsText(r.Average), timesText(*r.Average, r.Bounds.Average), secondsText(r.Makespan),
		timesText(*r.Makespan, r.Bounds.Makespan), percentText(*r.Utilisation), percentText(*r.Elastic), cpu}
}

// leastRow is the row with the lower bounds for a kind of policy: one that under-sizes tasks, or one with containers of
// a fixed size.
func (r *resultJSON) leastRow() []string {
	name := r.leastName(r.underSizes)
	return []string{name, secondsText(&r.Bounds.Average), "", secondsText(&r.Bounds.Makespan), "", "", "", ""}
}

// leastName is what the row of the lower bounds is called.
func (c *contenderJSON) leastName(underSizes bool) string {
	name := "least"
	if underSizes {
		name += ", elastic"
	}
	if c.boxed() {
		name += ", " + c.Box
	}
	return name
}

// timesText prints a value as a multiple of its bound.
func timesText(value, least float64) string {
	if least <= 0 {
		return "-"
	}
	return strconv.FormatFloat(value/least, 'f', 2, 64)
}

func secondsText(s *float64) string {
	if s == nil {
		return "-"
	}
	return strconv.FormatFloat(*s, 'f', 2, 64) + "s"
}

func percentText(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }

// flexRow is a row of the table on FLEX jobs, also if they ran in containers of a fixed size.
func (r *resultJSON) flexRow() []string {
	if r.Error != "" {
		return []string{r.name(), "failed", "", "", "", ""}
	}
	killed := 0
	if r.Losses != nil {
		killed = r.Losses.OutOfMemory
	}
	f := r.Flex
	if f == nil {
		return []string{r.name(), "-", "-", "-", "-", fmt.Sprint(killed)}
	}
	return []string{r.name(), secondsText(&f.Suspended), secondsText(&f.Waited),
		resource.FormatMemory(resource.Amount(f.Swapped)), fmt.Sprint(f.ManagerKills), fmt.Sprint(killed)}
}
