package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/cmd/bellows/internal/comparison"
	"github.com/bellows-rm/bellows/cmd/internal/command"
	"github.com/bellows-rm/bellows/cmd/internal/terminal"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/timeline"
)

// measure takes the numbers of a result.
func measure(run *comparison.Run, res *sim.Result) {
	run.Jobs, run.FailedJobs = len(res.Jobs), len(res.Failures())
	run.Tasks, run.Retries = res.Started, res.Retries
	run.Average, run.Makespan = res.AverageJobRuntime.Seconds(), res.Makespan.Seconds()
	run.Utilisation, run.Elastic = res.MemoryUtilisation, res.ElasticShare()
	run.Runtimes = make([]float64, len(res.Jobs))
	for i := range res.Jobs {
		run.Runtimes[i] = math.NaN()
		if res.Jobs[i].Done {
			run.Runtimes[i] = res.Jobs[i].Runtime().Seconds()
		}
	}
}

// grantsOf makes a simulation tell what every task was granted.
func grantsOf(config *sim.Config) map[cluster.TaskID]resource.Vector {
	grants := map[cluster.TaskID]resource.Vector{}
	config.KeepTasks = true
	config.Observe = func(_ timeline.Time, _ []cluster.Event, decisions []cluster.Decision) {
		for i := range decisions {
			if decisions[i].Kind == cluster.Start {
				grants[decisions[i].Task] = decisions[i].Grant
			}
		}
	}
	return grants
}

// schedule takes what pictures need: what every task held, of the resources that the cluster bounds.
func schedule(config sim.Config, grants map[cluster.TaskID]resource.Vector, res *sim.Result) *comparison.Schedule {
	s := &comparison.Schedule{}
	var total resource.Vector
	for _, n := range config.Nodes {
		s.Nodes = append(s.Nodes, n.Name)
		total = total.Add(n.Capacity)
	}
	var kinds []resource.Kind
	for _, k := range []resource.Kind{resource.Memory, resource.CPU, resource.Disk, resource.Network} {
		if total[k] > 0 {
			kinds = append(kinds, k)
			s.Resources, s.Capacity = append(s.Resources, kindName(k)), append(s.Capacity, float64(total[k]))
		}
	}
	index := make(map[cluster.JobID]int, len(res.Jobs))
	for i := range res.Jobs {
		index[res.Jobs[i].ID] = i
	}
	for _, t := range res.Tasks {
		held := grants[t.ID]
		held[resource.Memory] = t.Memory // of this run of the task
		task := comparison.Task{Node: int(t.Node), Job: index[t.ID.Job], From: t.Launched.Seconds(), To: t.Finished.Seconds(), Faint: t.Elastic}
		for _, k := range kinds {
			task.Held = append(task.Held, float64(held[k]))
		}
		s.Tasks = append(s.Tasks, task)
		s.End = max(s.End, task.To)
	}
	return s
}

func kindName(k resource.Kind) string {
	if k == resource.CPU {
		return "CPU"
	}
	return k.String()
}

// comparisonJSON is what `bellows compare --json` prints.
type comparisonJSON struct {
	Workload   workloadJSON          `json:"workload"` // of the first seed
	Cluster    clusterJSON           `json:"cluster"`
	Seeds      int                   `json:"seeds"`
	Confidence float64               `json:"confidence"`
	Results    []comparison.Document `json:"results"`
}

// report prints the comparison, writes the files that were asked for, and returns the error that sets the exit code.
func (c *compared) report(out, errOut io.Writer) error {
	doc := (&simulation{options: &c.simulateOptions, config: c.config, workload: c.workload}).document()
	if err := c.writeFiles(doc); err != nil {
		return err
	}
	var err error
	if c.asJSON {
		err = terminal.WriteJSON(out, comparisonJSON{doc.Workload, doc.Cluster, c.seeds, 0.95, c.comparison.Documents()})
	} else {
		err = c.print(out, doc)
	}
	if err != nil {
		return fmt.Errorf("print the comparison: %w", err)
	}
	failures := c.comparison.Errors()
	for _, text := range failures {
		fmt.Fprintf(errOut, "bellows: %s\n", text)
	}
	if len(failures) > 0 {
		return command.Code(command.Failed)
	}
	return nil
}

// headline says what was compared.
func (c *compared) headline(doc simulationJSON) string {
	text := fmt.Sprintf("%s: %s", doc.Workload.Name, terminal.Count(doc.Workload.Jobs, "job"))
	if c.file == nil && c.seeds > 1 {
		text += " drawn by each of " + terminal.Count(c.seeds, "seed")
	} else if c.seeds > 1 {
		text += ", misjudged by each of " + terminal.Count(c.seeds, "seed")
	}
	return text + fmt.Sprintf(", on %s of %s, %s cores each", terminal.Count(doc.Cluster.Nodes, "node"),
		resource.FormatMemory(resource.Amount(doc.Cluster.NodeMemory)), strconv.FormatFloat(doc.Cluster.NodeCPU, 'g', -1, 64))
}

func (c *compared) print(out io.Writer, doc simulationJSON) error {
	fmt.Fprintf(out, "%s\n\n", terminal.Fold(c.headline(doc), terminal.Width, ""))
	heads, rows := c.comparison.Table()
	last := len(heads) - 1 // the share of under-sized tasks stands on the page; here there is no room
	t := terminal.NewTable(heads[:last]...)
	for _, row := range rows {
		t.Add(row[:last]...)
	}
	if err := t.Write(out); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, note := range append(c.comparison.Notes(), c.comparison.Method()) {
		if _, err := fmt.Fprintln(out, terminal.Fold(note, terminal.Width, "")); err != nil {
			return err
		}
	}
	return nil
}

// writeFiles writes all that flags ask for.
func (c *compared) writeFiles(doc simulationJSON) error {
	if c.csv != "" {
		if err := writeFile(c.csv, c.comparison.WriteCSV); err != nil {
			return err
		}
	}
	if !c.drawn() {
		return nil
	}
	figures := c.comparison.Figures()
	for _, f := range figures {
		for _, to := range []struct {
			dir, ending string
			draw        func() ([]byte, error)
		}{{c.svgDir, ".svg", f.Picture.SVG}, {c.pngDir, ".png", f.Picture.PNG}} {
			if to.dir == "" {
				continue
			}
			if err := writePicture(filepath.Join(to.dir, f.Name+to.ending), to.draw); err != nil {
				return err
			}
		}
	}
	if c.web == "" {
		return nil
	}
	return writeFile(c.web, func(w io.Writer) error {
		return c.comparison.WritePage(w, c.headline(doc), c.about(doc), figures)
	})
}

func writePicture(path string, draw func() ([]byte, error)) error {
	picture, err := draw()
	if err != nil {
		return fmt.Errorf("draw %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return fmt.Errorf("write pictures: %w", err)
	}
	return writeFile(path, func(w io.Writer) error { _, err := w.Write(picture); return err })
}

// writeFile writes what write writes, only if all of it is there.
func writeFile(path string, write func(io.Writer) error) error {
	var b bytes.Buffer
	err := write(&b)
	if err == nil {
		err = os.WriteFile(path, b.Bytes(), 0o666)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// about lists what the page tells of how it was made.
func (c *compared) about(doc simulationJSON) []comparison.Setting {
	w, nodes := &c.compareOptions.workload, doc.Cluster
	about := []comparison.Setting{
		{Name: "workload", Value: fmt.Sprintf("%s, %s, %s on the first seed", doc.Workload.Name, terminal.Count(doc.Workload.Jobs, "job"), terminal.Count(doc.Workload.Tasks, "task"))},
		{Name: "seeds", Value: fmt.Sprintf("%d, from %d on", c.seeds, c.seed(0))},
		{Name: "penalty", Value: w.penalty},
		{Name: "misjudged", Value: w.misjudged},
		{Name: "nodes", Value: fmt.Sprintf("%d, each of %v", nodes.Nodes, c.node)},
		{Name: "heartbeat", Value: fmt.Sprintf("%gs, %d starts each (0: any number)", nodes.Heartbeat, nodes.StartsPerHeartbeat)},
		{Name: "application masters", Value: fmt.Sprintf("heartbeat %gs, memory %s", nodes.AMHeartbeat, resource.FormatMemory(resource.Amount(nodes.AMMemory)))},
		{Name: "launch delay", Value: fmt.Sprintf("%gs", nodes.LaunchDelay)},
	}
	return append(about, comparison.Setting{Name: "bellows", Value: command.VersionText() + ", " + runtime.Version()})
}
