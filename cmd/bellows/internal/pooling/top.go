package pooling

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/cmd/internal/command"
	"github.com/bellows-rm/bellows/internal/terminal"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/pool"
	"github.com/bellows-rm/bellows/pools"
	"github.com/bellows-rm/bellows/server"
)

const topLong = `Show a pool, its executors and its applications, again each second until Ctrl-C.

The states of an executor:

  queued      its job waits for its start: "bellows explain JOB" says why
  starting    its program has begun
  registered  it has run nothing yet, and belongs to no application
  assigned    it belongs to the application APP, and runs nothing
  attached    it runs a task of APP; TASK is STAGE.TASK
  parked      it has run tasks, and belongs to no application
  draining    it ends when its task has ended
  expired     it has not been heard of; if it lives, it registers again
  lost        its process has ended

FOR is for how long it has run the task, has run nothing, or is gone; DONE how
many tasks it has run; JOB the job that it is. Of an application, HELD are the
executors that belong to it, WAITING and RUNNING the tasks that have not ended,
and RESULTS those that it has not collected yet.`

func topCommand() *cobra.Command {
	var p place.Place
	var user string
	var asText, asJSON bool
	cmd := &cobra.Command{
		Use:   "top POOL",
		Short: "Watch the executors and applications of a pool",
		Long:  topLong,
		Example: `  bellows pool top sums
  bellows pool top sums --once
  bellows pool top sums --once --json`,
		Args: onePool,
		RunE: p.Run(func(cmd *cobra.Command, client *server.Client, args []string) error {
			out := cmd.OutOrStdout()
			switch {
			case asJSON && !asText:
				return command.Usagef("--json: needs --once")
			case !asText && !terminal.Is(out):
				return command.Usagef("pool top: needs a terminal; --once prints the screen as text")
			case !asText:
				return watch(cmd.Context(), out, func(ctx context.Context) (pools.Detail, error) { return client.Pool(ctx, user, args[0]) })
			}
			d, err := client.Pool(cmd.Context(), user, args[0])
			switch {
			case err != nil:
				return err
			case asJSON:
				return terminal.WriteJSON(out, d)
			}
			return printPool(out, &d)
		}),
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&asText, "once", false, "print it once, as text")
	cmd.Flags().BoolVar(&asJSON, "json", false, "with --once: print JSON")
	userFlag(cmd, &user)
	p.Flags(cmd, false)
	return cmd
}

// watchPace is the time between two looks at a pool.
const watchPace = time.Second

// watch shows a pool on a terminal until the user ends it, or the pool is gone.
func watch(ctx context.Context, out io.Writer, ask func(context.Context) (pools.Detail, error)) error {
	ctx, stop := signal.NotifyContext(ctx, unix.SIGHUP)
	defer stop()
	screen := terminal.NewScreen(out)
	defer fmt.Fprintln(out)
	for reached := false; ; {
		d, err := ask(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			reached = true
			err = printPool(screen, &d)
		case reached && live.KindOf(err) == live.Unavailable: // It is asked again.
			_, err = fmt.Fprintln(screen, err)
		}
		if err == nil {
			err = screen.Show()
		}
		if err != nil {
			return err
		}
		select {
		case <-time.After(watchPace):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// printPool prints a pool, its applications and its executors.
func printPool(w io.Writer, d *pools.Detail) error {
	if _, err := fmt.Fprint(w, head(d, terminal.Columns(w))); err != nil {
		return err
	}
	if len(d.Enrolled) > 0 {
		fmt.Fprintln(w)
		if err := applicationTable(d.Enrolled).Write(w); err != nil {
			return err
		}
	}
	if len(d.Members) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	return executorTable(d.Members).Write(w)
}

// head returns the lines about the pool itself.
func head(d *pools.Detail, columns int) string {
	var text strings.Builder
	say := func(format string, values ...any) {
		text.WriteString(fold(fmt.Sprintf(format, values...), columns) + "\n")
	}
	say("pool %s of %s: %s, policy %s", d.Name, d.User, sizeWords(&d.Summary), d.Spec.Policy)
	if d.Why != "" {
		say("%s", d.Why)
	}
	switch {
	case d.Broken != "":
		say("broken: %s", d.Broken)
	case !d.Synced:
		say("it waits for executors of an earlier daemon")
	}
	c := &d.Counters
	say("%d runs since the daemon began, %d of them after a task of another application; %d lost", c.Started, c.Switched, c.Lost)
	return text.String()
}

// sizeWords says how many executors there are, and should be.
func sizeWords(s *pools.Summary) string {
	return fmt.Sprintf("%s (%d busy, %d idle, %d starting), %d wanted, from %d to %d", terminal.Count(s.Executors, "executor"), s.Busy, s.Idle, s.Starting, s.Wanted, s.Spec.Min, s.Spec.Max)
}

func applicationTable(all []pool.Application) *terminal.Table {
	t := terminal.NewTable(">APP", "NAME", "STATE", ">HELD", ">WAITING", ">RUNNING", ">DONE", ">RESULTS", "WHY")
	t.Shrinks, t.Notes = 1, true
	for i := range all {
		a := &all[i]
		t.Add(strconv.FormatInt(a.Application, 10), a.Name, a.State, strconv.Itoa(a.Executors), strconv.Itoa(a.Waiting), strconv.Itoa(a.Running),
			strconv.FormatInt(a.Ended, 10), strconv.Itoa(a.Results), terminal.OneLine(a.Why))
	}
	return t
}

func executorTable(all []pools.Executor) *terminal.Table {
	t := terminal.NewTable(">EXECUTOR", "STATE", ">APP", ">TASK", ">FOR", ">DONE", ">MEMORY", ">JOB", "WHY")
	t.Notes = true
	for i := range all {
		e := &all[i]
		app, task, job := "-", "-", "-"
		if e.Application != 0 {
			app = strconv.FormatInt(e.Application, 10)
		}
		if e.Running > 0 {
			task = fmt.Sprintf("%d.%d", e.Stage, e.Task)
		}
		if e.Job != 0 {
			job = strconv.FormatInt(int64(e.Job), 10)
		}
		t.Add(strconv.Itoa(e.Executor.Executor), string(e.State), app, task, since(e), strconv.FormatInt(e.Tasks, 10), terminal.MemoryOrDash(e.Memory), job, terminal.OneLine(e.Why))
	}
	return t
}

// since says for how long an executor has done what it does.
func since(e *pools.Executor) string {
	for _, d := range []time.Duration{e.Gone, e.Running, e.Idle} {
		if d > 0 {
			return terminal.Age(d)
		}
	}
	return "-"
}
