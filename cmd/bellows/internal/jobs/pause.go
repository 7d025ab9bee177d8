package jobs

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/live/api"
)

func pauseCommand() *cobra.Command {
	var pageOut bool
	cmd := pausing(&cobra.Command{
		Use:        "pause JOB|TASK...",
		SuggestFor: []string{"suspend", "hold"},
		Short:      "Pause jobs or tasks",
		Long: `Pause jobs, or single tasks: their programs are stopped, with all their
children, until "bellows resume", and no further task of a paused job starts. A
pause outlives the daemon, and applies to tasks that run again.

A paused program keeps its memory, open files and connections, and lends its
cores. Its peers may take it for dead: if its job has a --heartbeat-timeout, it
runs briefly from time to time. Its time limit does not stop.

With --page-out, the memory of the programs goes to swap as far as swap has
room, and others may be granted what has left; the command says how much, and
why the rest has not. After resume, programs continue once their memory has been
restored. --page-out can be added to a pause.`,
		Example: `  bellows pause 7
  bellows pause 7.0.2 7.0.3
  bellows pause --page-out 7
  bellows resume 7`,
	}, func(cmd *cobra.Command, client *client.Client, id cluster.JobID, task cluster.TaskID) error {
		if err := client.Pause(cmd.Context(), id, task, pageOut); err != nil || !pageOut {
			return err
		}
		return awaitPageOut(cmd, client, id, task)
	})
	cmd.Flags().BoolVar(&pageOut, "page-out", false,
		"page out the memory of the programs, and grant what has left to others")
	return cmd
}

func resumeCommand() *cobra.Command {
	return pausing(&cobra.Command{
		Use:        "resume JOB|TASK...",
		SuggestFor: []string{"unpause", "continue"},
		Short:      "Resume paused jobs or tasks",
		Long: `Resume jobs, with all tasks that were paused one by one, or single tasks. A
program that the memory manager has suspended meanwhile, or whose memory was
paged out, runs again when there is memory for it, and one that the policy holds
for a while when that time is over.`,
		Example: `  bellows resume 7
  bellows resume 7.0.2`,
	}, func(cmd *cobra.Command, client *client.Client, id cluster.JobID, task cluster.TaskID) error {
		return client.Resume(cmd.Context(), id, task)
	})
}

// pausing completes a command that pauses or resumes each of its arguments.
func pausing(cmd *cobra.Command, do func(*cobra.Command, *client.Client, cluster.JobID,
	cluster.TaskID) error) *cobra.Command {
	var p place.Place
	cmd.Args = command.SomeArguments("job: must be the id of at least one job or task")
	cmd.RunE = p.Run(func(cmd *cobra.Command, client *client.Client, args []string) error {
		ids := make([]cluster.TaskID, len(args))
		for i, text := range args {
			var err error
			if ids[i], err = parseJobOrTask(text); err != nil {
				return err
			}
		}
		return eachOf(cmd, ids, func(id cluster.TaskID) error {
			task := id
			if id.Stage < 0 {
				task = cluster.TaskID{} // the whole job
			}
			return do(cmd, client, id.Job, task)
		})
	})
	cmd.ValidArgsFunction = completeJobs(&p)
	p.Flags(cmd, false)
	return cmd
}

// awaitPageOut waits until the memory of the paused programs of a job, or of one of its tasks if task is not zero,
// has left as far as it can, and prints how much has left.
func awaitPageOut(cmd *cobra.Command, client *client.Client, id cluster.JobID, task cluster.TaskID) error {
	for {
		j, err := client.Job(cmd.Context(), id, false)
		if err != nil {
			return err
		}
		words, done := pageOutWords(&j, task)
		if done {
			_, err := fmt.Fprint(cmd.OutOrStdout(), words)
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-cmd.Context().Done():
			return cmd.Context().Err()
		}
	}
}

// pageOutWords says, in a line for each running task, how much of its memory has left; done is false while that is
// not known of one of the tasks.
func pageOutWords(j *api.Job, task cluster.TaskID) (words string, done bool) {
	for i := range j.Tasks {
		t := &j.Tasks[i]
		switch {
		case t.State != api.TaskRunning || t.Paused == nil || task != (cluster.TaskID{}) && t.Task != task:
		case t.Paused.Failed != "":
			words += fmt.Sprintf("%s: %s\n", t.Task, pausedWords(t))
		case t.PagedOut == nil:
			return "", false
		default:
			words += fmt.Sprintf("%s: %s\n", t.Task, outWords(t))
		}
	}
	if words == "" {
		words = fmt.Sprintf("job %d: no program runs whose memory could leave\n", j.ID)
	}
	return words, true
}

// outWords says how much memory has left a task, and why not all of it.
func outWords(t *api.Task) string {
	out := t.PagedOut
	if out.Bytes == 0 {
		return strings.TrimSuffix("no memory has left: "+out.Stays, ": ")
	}
	text := fmt.Sprintf("%s of its %s of memory has left, and may be granted to others",
		resource.FormatMemory(resource.Amount(out.Bytes)), resource.FormatMemory(resource.Amount(t.MemoryBytes)))
	return join(text, out.Stays)
}

// parseJobOrTask reads the id of a task, which has all its three numbers, or that of a job: then Stage is -1.
func parseJobOrTask(text string) (cluster.TaskID, error) {
	id, err := api.ParseTask(text)
	if !strings.Contains(text, ".") {
		id.Stage = -1
	}
	if err != nil || id.Job < 1 || strings.Count(text, ".") == 1 {
		return id, command.Usagef(
			"job %q: must be the id of a job, such as 7, or of a task, such as 7.0.2; `bellows ps` lists them", text)
	}
	return id, nil
}

// pausedWords says who paused a task, or that this was not possible.
func pausedWords(t *api.Task) string {
	if t.Paused.Failed != "" {
		return fmt.Sprintf("%s paused it, but it still runs: %s", t.Paused.By, t.Paused.Failed)
	}
	text := fmt.Sprintf("paused by %s since %s", t.Paused.By, t.Paused.Since.Local().Format("15:04:05"))
	if t.PagedOut != nil {
		text += ", " + outWords(t)
	}
	return text
}
