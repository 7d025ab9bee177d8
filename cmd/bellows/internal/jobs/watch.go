package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/cmd/internal/command"
	"github.com/bellows-rm/bellows/internal/terminal"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/server"
)

// watchJobs prints the jobs that have not ended whenever they change, until it is interrupted: as a table that stays on the terminal,
// or what has changed as a line of JSON.
func watchJobs(cmd *cobra.Command, client *server.Client, asJSON bool) error {
	out := cmd.OutOrStdout()
	switch {
	case asJSON:
		return writeUpdates(out, client.Watch(cmd.Context(), 0))
	case !terminal.Is(out):
		return command.Usagef("--watch: needs a terminal, or --json, which prints what changes as lines of JSON")
	}
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	updates, failed := make(chan live.Update), make(chan error, 1)
	go func() {
		for u, err := range client.Watch(ctx, 0) {
			if err != nil {
				failed <- err
				return
			}
			select {
			case updates <- u:
			case <-ctx.Done():
			}
		}
	}()
	w := watched{jobs: map[cluster.JobID]live.Job{}}
	w.measure(ctx, client)
	screen := terminal.NewScreen(out)
	defer fmt.Fprintln(out)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case u := <-updates:
			if u.Apply(w.jobs); u.More {
				continue
			}
		case <-tick.C:
			w.measure(ctx, client)
		case err := <-failed:
			return err
		}
		if err := w.show(screen, time.Now()); err != nil {
			return err
		}
	}
}

// writeUpdates prints updates as one JSON value per line.
func writeUpdates(w io.Writer, updates iter.Seq2[live.Update, error]) error {
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
	jobs    map[cluster.JobID]live.Job
	use     map[cluster.ContainerID]*cluster.Reading // of the running containers, when they were last measured
	trouble string                                   // of the daemon; empty if there is none
}

// measure finds out what the containers use, and whether the daemon is in trouble.
func (w *watched) measure(ctx context.Context, client *server.Client) {
	status, err := client.Status(ctx)
	if w.trouble = status.Trouble; err != nil {
		w.trouble = err.Error()
	}
	tasks, err := client.Tasks(ctx, true)
	if err != nil {
		return // Status says why.
	}
	w.use = map[cluster.ContainerID]*cluster.Reading{}
	for i := range tasks {
		w.use[cluster.ContainerID{Task: tasks[i].Task, Run: tasks[i].Run}] = tasks[i].Usage
	}
}

// show shows a row per job.
func (w *watched) show(to *terminal.Screen, now time.Time) error {
	var jobs []live.Job
	var tasks []live.Task
	for _, id := range slices.Sorted(maps.Keys(w.jobs)) {
		jobs = append(jobs, w.jobs[id])
		for _, t := range w.jobs[id].Tasks {
			t.Usage = w.use[cluster.ContainerID{Task: t.Task, Run: t.Run}]
			tasks = append(tasks, t)
		}
	}
	if err := printJobs(to, func(yield func([]live.Job, error) bool) { yield(jobs, nil) }, tasks, now); err != nil {
		return err
	}
	if w.trouble != "" {
		fmt.Fprintf(to, "trouble: %s\n", cluster.Printable(w.trouble))
	}
	return to.Show()
}
