package jobs

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/live/api"
)

// watchJobs prints the jobs that have not ended whenever they change, until it is interrupted: as a table that stays
// on the terminal, or what has changed as a line of JSON.
func watchJobs(cmd *cobra.Command, client *client.Client, asJSON bool) error {
	out := cmd.OutOrStdout()
	switch {
	case asJSON:
		return writeUpdates(out, client.Watch(cmd.Context(), 0))
	case !terminal.Is(out):
		return command.Usagef("--watch: needs a terminal, or --json, which prints what changes as lines of JSON")
	}
	w := watched{jobs: map[cluster.JobID]api.Job{}}
	screen := terminal.NewScreen(out)
	defer fmt.Fprintln(out)
	for seen, err := range client.WatchMachine(cmd.Context(), 0) {
		if err != nil {
			return err
		}
		if w.see(&seen) {
			continue
		}
		if err := w.show(screen, time.Now()); err != nil {
			return err
		}
	}
	return nil
}

// writeUpdates prints updates as one JSON value per line.
func writeUpdates(w io.Writer, updates iter.Seq2[api.Update, error]) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for u, err := range updates {
		if err != nil {
			return err
		}
		if err := e.Encode(&u); err != nil {
			return fmt.Errorf("print JSON: %w", err)
		}
	}
	return nil
}

// watched are the jobs that have not ended.
type watched struct {
	jobs    map[cluster.JobID]api.Job
	use     map[cluster.ContainerID]*cluster.Reading // of the running containers, when they were last measured
	trouble string                                   // of the daemon; empty if there is none
}

// see brings w up to date, and returns whether more about the same revision follows.
func (w *watched) see(seen *client.Seen) (more bool) {
	switch {
	case seen.Lost != nil:
		w.trouble = seen.Lost.Error()
	case seen.Update != nil:
		seen.Update.Apply(w.jobs)
		return seen.Update.More
	case seen.Machine != nil:
		w.trouble, w.use = seen.Machine.Status.Trouble, map[cluster.ContainerID]*cluster.Reading{}
		for _, t := range seen.Machine.Tasks {
			w.use[cluster.ContainerID{Task: t.Task, Run: t.Run}] = t.Usage
		}
	}
	return false
}

// show shows a row per job.
func (w *watched) show(to *terminal.Screen, now time.Time) error {
	var jobs []api.Job
	var tasks []api.Task
	for _, id := range slices.Sorted(maps.Keys(w.jobs)) {
		jobs = append(jobs, w.jobs[id])
		for _, t := range w.jobs[id].Tasks {
			t.Usage = w.use[cluster.ContainerID{Task: t.Task, Run: t.Run}]
			tasks = append(tasks, t)
		}
	}
	if err := printJobs(to, func(yield func([]api.Job, error) bool) { yield(jobs, nil) }, tasks, now); err != nil {
		return err
	}
	if w.trouble != "" {
		fmt.Fprintf(to, "trouble: %s\n", cluster.Printable(w.trouble))
	}
	return to.Show()
}
