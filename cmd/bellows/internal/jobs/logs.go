package jobs

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/connector/spark"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/live/api"
)

// mostFollowed is the largest number of tasks that are followed at once.
const mostFollowed = 64

type logsOptions struct {
	place       place.Place
	follow      bool
	stderr      bool
	run         int
	application string // of Spark, whose lines alone are shown; empty shows all
}

func logsCommand() *cobra.Command {
	var o logsOptions
	cmd := &cobra.Command{
		Use:        "logs JOB[.STAGE.INDEX] | pool/POOL",
		SuggestFor: []string{"attach", "tail", "output"},
		Short:      "Show what a job printed",
		Long: `Show what a job, or one of its tasks, printed on its standard output, or with
--stderr on its standard error; pool/POOL stands for the executors that a pool
has now. For a task that ran more than once, the newest run is shown. If there
are several tasks, the output of each follows a line with the name of the task;
with -f, each line begins with this name. For a failed job, a last line names
the command that shows its standard error.

The beginning and the end of each output are kept: see --output-limit of
"bellows up". A line between them says how many bytes were left out. Output is
also left out while less than a tenth of the disk, and less than 256 MiB, is
free.`,
		Example: `  bellows logs 7
  bellows logs -f 7.0.2
  bellows logs --stderr 7
  bellows logs --stderr --application etl pool/sp`,
		Args:              command.OneArgument("job: must be one JOB, JOB.STAGE.INDEX or pool/POOL"),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.show(cmd, args[0]) },
		ValidArgsFunction: completeJobs(&o.place),
	}
	f := cmd.Flags()
	f.BoolVarP(&o.follow, "follow", "f", false, "follow the output until the job has ended")
	f.BoolVar(&o.stderr, "stderr", false, "show standard error instead of standard output")
	f.Var(flags.Count(&o.run, 0, 1<<20), "run", "run of the task to show; 0: the newest")
	f.StringVar(&o.application, "application", "",
		"show the lines of one application of Spark alone, by its `name` or the id that Spark has for it")
	o.place.Flags(cmd, false)
	return cmd
}

func (o *logsOptions) show(cmd *cobra.Command, arg string) error {
	client, err := o.place.Client()
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if pool, is := strings.CutPrefix(arg, "pool/"); is {
		if pool == "" {
			return command.Usagef("%s: must have the name of a pool after pool/", arg)
		}
		return o.showPool(ctx, client, cmd.OutOrStdout(), pool)
	}
	id, err := api.ParseTask(arg)
	if err != nil {
		return command.Usage(err)
	}
	job, err := client.Job(ctx, id.Job, false)
	if err != nil {
		return err
	}
	tasks, err := o.choose(&job, id, strings.Count(arg, ".") == 2)
	if err != nil {
		return err
	}
	if err := o.showAll(ctx, client, cmd.OutOrStdout(), &job, tasks); err != nil {
		return err
	}
	if !o.stderr && job.Status == cluster.StatusFailed {
		fmt.Fprintf(cmd.ErrOrStderr(), "bellows: job %d: failed; `bellows logs --stderr %s` shows its standard error\n",
			job.ID, arg)
	}
	return nil
}

// showPool shows what the executors of a pool have printed that have not ended.
func (o *logsOptions) showPool(ctx context.Context, client *client.Client, w io.Writer, name string) error {
	pool, err := client.Pool(ctx, "", name)
	if err != nil {
		return err
	}
	var tasks []cluster.TaskID
	for i := range pool.Members {
		if e := &pool.Members[i]; e.Job != 0 && e.State != api.ExecutorQueued {
			tasks = append(tasks, cluster.TaskID{Job: e.Job})
		}
	}
	if !o.follow {
		return o.printAll(ctx, client, w, tasks)
	}
	if len(tasks) > mostFollowed {
		return command.Usagef("pool/%s: must have at most %d executors to be followed as a whole, but has %d: name the job "+
			"of one, such as %d", name, mostFollowed, len(tasks), tasks[0].Job)
	}
	return interrupted(ctx, o.followAll(ctx, client, w, tasks))
}

func (o *logsOptions) showAll(ctx context.Context, client *client.Client, w io.Writer, job *api.Job,
	tasks []cluster.TaskID) error {
	switch {
	case len(tasks) == 1:
		err := o.copy(ctx, client, w, tasks[0])
		if api.KindOf(err) == api.NotFound && job.Ended && len(job.Tasks) == 0 {
			return nil // it never ran, so it printed nothing
		}
		return interrupted(ctx, err)
	case o.follow:
		return interrupted(ctx, o.followAll(ctx, client, w, tasks))
	}
	return o.printAll(ctx, client, w, tasks)
}

// copy copies what is to be shown of the output of a task.
func (o *logsOptions) copy(ctx context.Context, client *client.Client, w io.Writer, id cluster.TaskID) error {
	if o.application == "" {
		_, err := client.Output(ctx, w, o.output(id))
		return err
	}
	lines := &lineWriter{mu: new(sync.Mutex), w: w, shows: spark.Belongs(o.application)}
	_, err := client.Output(ctx, lines, o.output(id))
	return cmp.Or(err, lines.rest())
}

func (o *logsOptions) output(id cluster.TaskID) api.Output {
	return api.Output{Task: id, Run: o.run, Stderr: o.stderr, Follow: o.follow}
}

// interrupted returns an error without a message if the user has interrupted the command.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return command.Code(command.Interrupted)
	}
	return err
}

// choose returns the tasks to show: one, or all of a job; without follow, only those that have started.
func (o *logsOptions) choose(job *api.Job, id cluster.TaskID, one bool) ([]cluster.TaskID, error) {
	if one {
		if int(id.Stage) >= len(job.Stages) || int(id.Index) >= job.Stages[id.Stage].Tasks {
			return nil, command.Usagef("task %s: job %d has no such task; `bellows ps %d` lists those that have started", id,
				id.Job, id.Job)
		}
		return []cluster.TaskID{id}, nil
	}
	var all []cluster.TaskID
	for s, stage := range job.Stages {
		for i := range stage.Tasks {
			all = append(all, cluster.TaskID{Job: job.ID, Stage: int32(s), Index: int32(i)})
		}
	}
	if len(all) == 1 {
		return all, nil
	}
	if o.follow {
		if len(all) > mostFollowed {
			return nil, command.Usagef(
				"job %d: must have at most %d tasks to be followed as a whole, but has %d: name one, such as %s", job.ID,
				mostFollowed, len(all), all[0])
		}
		return all, nil
	}
	started := make([]cluster.TaskID, 0, len(job.Tasks))
	for _, t := range job.Tasks {
		started = append(started, t.Task)
	}
	return started, nil
}

// printAll prints one task after the other.
func (o *logsOptions) printAll(ctx context.Context, client *client.Client, w io.Writer, tasks []cluster.TaskID) error {
	for i, id := range tasks {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "==> %s <==\n", id)
		if err := o.copy(ctx, client, w, id); err != nil {
			return err
		}
	}
	return nil
}

// followAll follows all tasks at once; every line begins with its task.
func (o *logsOptions) followAll(ctx context.Context, client *client.Client, w io.Writer, tasks []cluster.TaskID) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, id := range tasks {
		all.Go(func() {
			lines := &lineWriter{mu: &mu, w: w, before: id.String() + "  "}
			err := o.copy(ctx, client, lines, id)
			err = cmp.Or(err, lines.rest())
			if err != nil && api.KindOf(err) != api.NotFound {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// longestLine is the largest number of bytes of an incomplete line that are kept; a longer line is broken there.
const longestLine = 1 << 20

// lineWriter writes whole lines with a prefix, so that the lines of several tasks do not mix, or some lines alone.
type lineWriter struct {
	mu      *sync.Mutex // held while a line is written
	w       io.Writer
	before  string
	shows   func(line []byte) bool // of a longer line its beginning decides; nil shows all
	pending []byte                 // an incomplete line
	broken  bool                   // the last line was too long, and the next bytes belong to it
	hides   bool                   // the last line was not shown
}

func (l *lineWriter) Write(p []byte) (int, error) {
	rest := p
	for len(rest) > 0 {
		if l.broken && len(l.pending) == 0 && rest[0] == '\n' { // the end of a line that is already written
			l.broken, rest = false, rest[1:]
			continue
		}
		n := bytes.IndexByte(rest, '\n') + 1
		whole := n > 0
		if !whole {
			n = len(rest)
		}
		if most := longestLine - len(l.pending); n > most {
			n, whole = most, false
		}
		l.pending = append(l.pending, rest[:n]...)
		rest = rest[n:]
		if !whole && len(l.pending) < longestLine {
			break
		}
		if err := l.line(!whole); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// line writes the pending bytes as a line, if it is to be shown. broken says that the next bytes belong to it.
func (l *lineWriter) line(broken bool) (err error) {
	if !l.broken {
		l.hides = l.shows != nil && !l.shows(bytes.TrimSuffix(l.pending, []byte("\n")))
	}
	l.broken = broken
	if text := append([]byte(l.before), l.pending...); !l.hides {
		if text[len(text)-1] != '\n' {
			text = append(text, '\n')
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		_, err = l.w.Write(text)
	}
	l.pending = l.pending[:0]
	return err
}

// rest writes a last line that has no line break.
func (l *lineWriter) rest() error {
	if len(l.pending) == 0 {
		return nil
	}
	return l.line(false)
}
