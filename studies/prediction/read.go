package prediction

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// folder has the data, below the folder of recorded data.
const folder = "nextflow-sizey"

// task is a task of a workflow. Amounts are bytes, and times milliseconds.
type task struct {
	process              string
	input, peak, request float64
	start, lasts         int64
	// selected are the tasks that Sizey's authors would evaluate: of processes with at least 34 tasks, none of which ran
	// for 0 ms, those after the first 30 %.
	selected bool
}

// workflow is its tasks in order of their start.
type workflow struct {
	name    string
	tasks   []task
	skipped int
}

const (
	authorsFewest   = 34
	authorsTraining = 0.3
)

// readWorkflows reads the file of recorded tasks, as it is below the folder of data.
func readWorkflows(data string) ([]workflow, error) {
	file, err := os.Open(filepath.Join(data, folder, "tasks-merged.csv.gz"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	return parse(text)
}

// parse reads a table of tasks, in the order of the workflows in it.
func parse(text io.Reader) (all []workflow, err error) {
	in := csv.NewReader(text)
	head, err := in.Read()
	if err != nil {
		return nil, err
	}
	column := map[string]int{}
	for i, name := range head {
		column[name] = i
	}
	for _, name := range []string{"workflow", "process", "status", "memory_req_bytes", "start_ms", "realtime_ms",
		"peak_rss", "rchar"} {
		if _, ok := column[name]; !ok {
			return nil, fmt.Errorf("column %s: is missing", name)
		}
	}
	brief := map[string]bool{} // processes with a task of 0 ms
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		number := func(name string) float64 {
			v, err := strconv.ParseFloat(row[column[name]], 64)
			if err != nil || !(v > 0) || v > 1e18 {
				return 0
			}
			return v
		}
		name := row[column["workflow"]]
		at := slices.IndexFunc(all, func(w workflow) bool { return w.name == name })
		if at < 0 {
			at, all = len(all), append(all, workflow{name: name})
		}
		w := &all[at]
		t := task{process: row[column["process"]], input: number("rchar"), peak: number("peak_rss"),
			request: number("memory_req_bytes"), start: int64(number("start_ms")), lasts: int64(number("realtime_ms"))}
		if row[column["status"]] == "COMPLETED" && t.lasts == 0 {
			brief[name+" "+t.process] = true
		}
		if row[column["status"]] != "COMPLETED" || t.peak == 0 || t.request == 0 || t.start == 0 || t.lasts == 0 {
			w.skipped++
			continue
		}
		w.tasks = append(w.tasks, t)
	}
	for i := range all {
		all[i].prepare(brief)
	}
	return all, nil
}

// prepare sorts the tasks and selects those of the authors.
func (w *workflow) prepare(brief map[string]bool) {
	slices.SortStableFunc(w.tasks, func(a, b task) int { return int(a.start - b.start) })
	count, seen := map[string]int{}, map[string]int{}
	for i := range w.tasks {
		count[w.tasks[i].process]++
	}
	for i := range w.tasks {
		t := &w.tasks[i]
		n := count[t.process]
		t.selected = n >= authorsFewest && !brief[w.name+" "+t.process] &&
			float64(seen[t.process]) >= authorsTraining*float64(n)
		seen[t.process]++
	}
}
