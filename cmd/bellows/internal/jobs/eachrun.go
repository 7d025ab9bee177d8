package jobs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/live/api"
)

// errGone is why a run ends whose reader is gone.
var errGone = errors.New("the reader of the output is gone")

// eachRun is one use of Each.
type eachRun struct {
	attached
	each     *Each
	job      *workload.Job
	numbers  []int // of the items among all, from 1, by task
	out      *bufio.Writer
	log      *os.File
	progress *terminal.Progress

	failures int          // after how many all are ended; 0 is never
	fails    map[int]int  // attempts that are known to have failed, by task
	newest   map[int]int  // the newest of them, by task
	printed  map[int]bool // tasks whose end was taken
	kept     []*endedItem // with --keep-order: taken, and not printed
	next     int          // with --keep-order: the first task that was not printed
	failed   []string     // what is said of tasks that failed
	stopped  bool
}

// endedItem is a task that has ended for good.
type endedItem struct {
	task        int
	run         api.Task
	out, errors []byte
}

// follow prints what tasks print as they end, and returns an error if one has failed.
func (r *eachRun) follow(ctx context.Context) error {
	all, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	interrupted := context.AfterFunc(ctx, func() { _ = r.kill(all) })
	defer interrupted()
	go sayWhyItWaits(all, r.err, func() (api.Job, error) { return r.client.Job(all, r.id, true) })
	r.progress.Set("", 0, len(r.numbers))
	defer r.progress.Clear()
	err := r.watch(all)
	if err == nil {
		err = r.rest(all)
	}
	r.progress.Clear()
	switch {
	case errors.Is(err, errGone):
		_ = r.kill(all)
		return command.Code(128 + int(syscall.SIGPIPE))
	case err != nil:
		return err
	case ctx.Err() != nil:
		return command.Code(command.Interrupted)
	}
	return r.result()
}

// watch takes the ends of tasks until the job has ended. A snapshot without the job says that it has.
func (r *eachRun) watch(ctx context.Context) error {
	snapshot, seen := false, false // whether the update is one, and has the job; it may come in several events
	for u, err := range r.client.Watch(ctx, 0) {
		if err != nil {
			return err
		}
		snapshot = snapshot || u.Snapshot
		for _, j := range u.Jobs {
			if j.ID != r.id {
				continue
			}
			for i := range j.Tasks {
				if err := r.take(ctx, j.Tasks[i], false); err != nil {
					return err
				}
			}
			if seen = true; j.Ended {
				return nil
			}
		}
		if !u.More {
			if snapshot && !seen {
				return nil
			}
			snapshot, seen = false, false
		}
	}
	return ctx.Err()
}

// rest takes the ends that watch has not seen.
func (r *eachRun) rest(ctx context.Context) error {
	job, err := r.wait(ctx)
	if err != nil {
		return err
	}
	for i := range job.Tasks {
		if err := r.take(ctx, job.Tasks[i], true); err != nil {
			return err
		}
	}
	for _, e := range r.kept { // others never ran
		if e != nil {
			if err := r.print(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// take prints what a task printed once it has ended for good. last says that it does not run again.
func (r *eachRun) take(ctx context.Context, t api.Task, last bool) error {
	i := int(t.Task.Index)
	if t.Outcome == 0 || r.printed[i] {
		return nil
	}
	switch t.Outcome {
	case cluster.Failed, cluster.OutOfMemory, cluster.Killed:
		if t.Run > r.newest[i] {
			r.newest[i], r.fails[i] = t.Run, r.fails[i]+1
		}
		if !last && r.fails[i] < r.job.MaxAttempts && r.job.RetryOn.After(t.Outcome) {
			return nil // it runs again
		}
	case cluster.Lost, cluster.Preempted:
		if !last {
			return nil
		}
	}
	r.printed[i] = true
	e := &endedItem{task: i, run: t}
	for _, stderr := range []bool{false, true} {
		var text bytes.Buffer
		err := place.UntilAnswered(ctx, nil, func() error {
			text.Reset()
			_, err := r.client.Output(ctx, &text, api.Output{Task: t.Task, Run: t.Run, Stderr: stderr, All: true})
			return err
		})
		if err != nil && api.KindOf(err) == 0 {
			return err
		}
		if stderr {
			e.errors = text.Bytes()
		} else {
			e.out = text.Bytes()
		}
	}
	if err := r.enterLog(e); err != nil {
		return err
	}
	if t.Outcome != cluster.Succeeded {
		r.failed = append(r.failed, r.failure(&t))
		if len(r.failed) == r.failures {
			r.stopped = true
			if err := r.kill(ctx); err != nil {
				return err
			}
		}
	}
	if !r.each.keep {
		return r.print(e)
	}
	if r.kept == nil {
		r.kept = make([]*endedItem, len(r.numbers))
	}
	for r.kept[i] = e; r.next < len(r.kept) && r.kept[r.next] != nil; r.next++ {
		if err := r.print(r.kept[r.next]); err != nil {
			return err
		}
		r.kept[r.next] = nil
	}
	return nil
}

func (r *eachRun) print(e *endedItem) error {
	r.progress.Clear()
	tag := ""
	if r.each.tag {
		tag = r.item(e.task) + "\t"
	}
	if err := errors.Join(writeTagged(r.out, e.out, tag), r.out.Flush()); err != nil {
		return errGone
	}
	_ = writeTagged(r.err, e.errors, tag)
	r.progress.Set("", len(r.printed), len(r.numbers))
	return nil
}

// writeTagged writes text with a tag before each of its lines.
func writeTagged(w io.Writer, text []byte, tag string) error {
	if tag == "" || len(text) == 0 {
		_, err := w.Write(text)
		return err
	}
	for line := range bytes.Lines(text) {
		if _, err := io.WriteString(w, tag+string(line)); err != nil {
			return err
		}
	}
	return nil
}

func (r *eachRun) item(task int) string { return r.job.Stages[0].Items[task] }

// failure says how a task failed.
func (r *eachRun) failure(t *api.Task) string {
	how := t.Outcome.String()
	if t.Exit != nil && t.Outcome == cluster.Failed {
		if how = "exit code " + strconv.Itoa(t.Exit.Code); t.Exit.Signal > 0 {
			how = "signal " + strconv.Itoa(t.Exit.Signal)
		}
	}
	return cluster.ClipLine(r.item(int(t.Task.Index))) + ": " + how
}

// mostFailuresShown bounds how many failures are listed.
const mostFailuresShown = 10

// result says what has failed.
func (r *eachRun) result() error {
	if len(r.failed) == 0 {
		return nil
	}
	fmt.Fprintf(r.err, "bellows: %d of %d commands failed", len(r.failed), len(r.numbers))
	if r.stopped {
		fmt.Fprintf(r.err, ", and all were ended then")
	}
	fmt.Fprintf(r.err, " (job %d):\n", r.id)
	for _, text := range r.failed[:min(len(r.failed), mostFailuresShown)] {
		fmt.Fprintf(r.err, "  %s\n", text)
	}
	if more := len(r.failed) - mostFailuresShown; more > 0 {
		fmt.Fprintf(r.err, "  and %d more\n", more)
	}
	return command.Code(command.Failed)
}

// logHead is the first line of a log, as GNU parallel writes it.
const logHead = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand"

// openLog opens the log, and leaves out what has succeeded in one that is resumed.
func (r *eachRun) openLog() (err error) {
	e := r.each
	name := e.log
	if e.Resume != "" {
		if name != "" && name != e.Resume {
			return command.Usagef("joblog: must be left out with --resume, which goes on with a log")
		}
		name = e.Resume
		if slices.ContainsFunc(r.job.Stages[0].Args, func(a string) bool { return strings.Contains(a, "{number}") }) {
			return command.Usagef("resume: must be left out with {#}, since what is left would be numbered anew")
		}
		if err := r.leaveOut(name); err != nil {
			return err
		}
	}
	if name == "" {
		return nil
	}
	how := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if e.Resume == "" {
		how |= os.O_TRUNC
	}
	if r.log, err = os.OpenFile(name, how, 0o666); err != nil {
		return command.Usagef("joblog: %w", err)
	}
	if info, err := r.log.Stat(); err == nil && info.Size() == 0 {
		_, err = fmt.Fprintln(r.log, logHead)
		return err
	}
	return nil
}

// leaveOut leaves out the items that have succeeded by a log. A log that does not exist has none.
func (r *eachRun) leaveOut(name string) error {
	text, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return command.Usagef("resume: %w", err)
	}
	done := map[int]bool{}
	stage := &r.job.Stages[0]
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		cells := strings.SplitN(line, "\t", 9)
		if i == 0 && line == logHead || line == "" {
			continue
		}
		number, err := strconv.Atoi(cells[0])
		switch {
		case len(cells) != 9 || err != nil:
			return command.Usagef("resume: %s:%d: must be a line of a log as --joblog writes it", name, i+1)
		case number < 1 || number > len(stage.Items) || cells[8] != r.commandOf(number-1):
			return command.Usagef("resume: %s:%d: is about another command, %s", name, i+1, cluster.ClipLine(cells[8]))
		}
		done[number] = cells[6] == "0" && cells[7] == "0"
	}
	var items []string
	r.numbers = r.numbers[:0]
	for i, item := range stage.Items {
		if !done[i+1] {
			items, r.numbers = append(items, item), append(r.numbers, i+1)
		}
	}
	stage.Items, stage.Tasks = items, len(items)
	return nil
}

// commandOf is the command of a task in one line.
func (r *eachRun) commandOf(task int) string {
	j := &r.job.Job
	filled, err := j.FillCommand(cluster.TaskID{Index: int32(task)}, resource.Of(resource.Core, resource.GiB))
	if err != nil {
		return strings.Join(j.Stages[0].Args, " ")
	}
	args := filled.Args
	if filled.ByShell() {
		args = args[2:]
	}
	return strings.Map(func(c rune) rune {
		if c == '\n' || c == '\t' {
			return ' '
		}
		return c
	}, strings.Join(args, " "))
}

// enterLog adds the line about a task.
func (r *eachRun) enterLog(e *endedItem) error {
	if r.log == nil {
		return nil
	}
	t := &e.run
	code, sign := 0, 0
	switch {
	case t.Exit != nil && t.Exit.Signal > 0:
		sign = t.Exit.Signal
	case t.Exit != nil:
		code = t.Exit.Code
	}
	if t.Outcome != cluster.Succeeded && code == 0 && sign == 0 {
		code = command.Failed
	}
	begin := t.Started
	if begin.IsZero() {
		begin = t.Booked
	}
	_, err := fmt.Fprintf(r.log, "%d\t:\t%.3f\t%10.3f\t0\t%d\t%d\t%d\t%s\n", r.numbers[e.task],
		float64(begin.UnixMilli())/1000, max(0, t.Ended.Sub(begin).Round(time.Millisecond).Seconds()), len(e.out), code, sign,
		r.commandOf(e.task))
	if err != nil {
		return fmt.Errorf("write the log: %w", err)
	}
	return nil
}

func (r *eachRun) closeLog() {
	if r.log != nil {
		_ = r.log.Close()
	}
}
