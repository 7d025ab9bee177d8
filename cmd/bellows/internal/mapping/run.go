package mapping

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/live/api"
)

// Limits of what is read before results can be printed, and of one message.
const (
	mostAhead  = 1 << 20   // inputs after the first without a result
	mostHeld   = 256 << 20 // bytes of results, and of what was printed, after those of that input
	mostInputs = 1000
	mostBytes  = 4 << 20
)

// run is one use of the command.
type run struct {
	*options
	function string
	out      *bufio.Writer
	seen     bool // out is a terminal, where the progress is, too
	err      io.Writer
	progress *terminal.Progress
	journal  *journal // nil without --resume
	app      *executor.Application
	stage    int

	mu       sync.Mutex
	freed    sync.Cond
	ctx      context.Context
	fail     context.CancelCauseFunc
	running  map[int]running // by the numbers of their tasks
	tasks    int
	ended    map[int]ended // that were not printed, by the numbers of their inputs
	held     int           // bytes in ended
	next     int           // the first input that was not printed
	read     int           // inputs
	whole    bool          // read is all of them
	done     int
	failures failures
}

// running is an input that has no result yet.
type running struct {
	input
	sum string // only with a journal
}

// ended is what became of an input.
type ended struct {
	result, printed []byte
	truncated       bool // printed is the end of it
	failed          bool
}

// size is how many bytes are kept.
func (e *ended) size() int { return len(e.result) + len(e.printed) }

// errStopped ends a run of --stop-on-failure.
var errStopped = errors.New("a call failed")

// functionFlags are the flags that only calls of functions have.
var functionFlags = []string{"path", "json", "bytes", "raw-output", "fresh", "weight"}

// runEach runs a command with each item.
func (o *options) runEach(cmd *cobra.Command, args []string) error {
	for _, name := range functionFlags {
		if cmd.Flags().Changed(name) {
			return command.Usagef("%s: needs --pool: a command gets its item as an argument", name)
		}
	}
	client, err := o.place.Client()
	if err != nil {
		return err
	}
	o.each.Name, o.each.Null, o.each.Quiet, o.each.Resume, o.each.Stop = o.name, o.null, o.quiet, o.resume, o.stop
	return o.each.Run(cmd.Context(), client, args, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
}

func (o *options) run(cmd *cobra.Command, args []string) error {
	if o.pool == "" && cmd.ArgsLenAtDash() == 0 {
		return o.runEach(cmd, args)
	}
	for _, name := range o.each.FlagNames() {
		if cmd.Flags().Changed(name) {
			return command.Usagef("%s: must be left out with --pool: its executors have a size", name)
		}
	}
	if err := o.check(args[0]); err != nil {
		return err
	}
	in := cmd.InOrStdin()
	if len(args) == 2 && args[1] != "-" {
		file, err := openInput(args[1])
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	client, err := o.place.Client()
	if err != nil {
		return err
	}
	if !client.Remote() { // otherwise the folder is on another machine
		if info, err := os.Stat(o.path); err != nil || !info.IsDir() {
			return command.Usagef("path %s: must be a folder", o.path)
		}
	}
	if err := awaitDaemon(cmd.Context(), client, cmd.ErrOrStderr()); err != nil {
		return err
	}
	r := &run{options: o, function: args[0], seen: terminal.Is(cmd.OutOrStdout()),
		out: bufio.NewWriter(cmd.OutOrStdout()), err: cmd.ErrOrStderr(), running: map[int]running{}, ended: map[int]ended{},
		next: 1}
	r.freed.L = &r.mu
	if !o.quiet {
		r.progress = terminal.NewProgress(cmd.ErrOrStderr(), "map")
	}
	if o.resume != "" {
		if r.journal, err = openJournal(o.resume, head{Function: args[0], Path: o.path, Form: o.form()}); err != nil {
			return err
		}
		defer func() { _ = r.journal.close() }()
	}
	return r.all(cmd.Context(), client, in)
}

// daemonPatience is how long map waits for the first answer of a daemon, which may be between two lives.
const daemonPatience = 30 * time.Second

// awaitDaemon returns once a daemon answers. It says that it waits for one.
func awaitDaemon(ctx context.Context, client *client.Client, say io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, daemonPatience)
	defer cancel()
	return place.UntilAnswered(ctx, func(err error) {
		fmt.Fprintf(say, "bellows: %v; map waits %v for one\n", err, daemonPatience)
	}, func() error {
		_, err := client.Status(ctx)
		return err
	})
}

func (r *run) all(ctx context.Context, client *client.Client, in io.Reader) (err error) {
	// When the reader of our output ends, a write must fail and not end this process, because the application has to be
	// cancelled.
	signal.Ignore(syscall.SIGPIPE)
	r.ctx, r.fail = context.WithCancelCause(ctx)
	defer r.fail(nil)
	if err := r.enrol(client); err != nil {
		return said(err)
	}
	stop := context.AfterFunc(r.ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.freed.Broadcast()
	})
	defer stop()
	inputs := make(chan input, mostInputs)
	go r.sayWhyItWaits(client)
	go func() {
		if err := r.readInputs(r.ctx, in, inputs); err != nil {
			r.fail(err)
		}
	}()
	go func() {
		if err := r.submit(inputs); err != nil {
			r.fail(err)
		}
	}()
	err = r.collect()
	r.progress.Clear()
	if err != nil {
		r.leave()
	}
	return r.report(ctx, err)
}

func (r *run) enrol(client *client.Client) (err error) {
	c := executor.ApplicationConfig{Enrolment: executor.Enrolment{Name: r.name, Weight: r.weight, Fresh: r.fresh}}
	c.HTTP, c.Base = client.Messages(r.pool)
	if r.journal != nil {
		c.Enrolment.Key = r.journal.head.Key
	}
	// It ends by Cancel: with the context it could not say so to the daemon.
	if r.app, err = executor.Enrol(context.WithoutCancel(r.ctx), c); err != nil {
		return err
	}
	r.stage = r.app.NewStage(executor.Stage{Function: r.function, Path: r.path})
	return nil
}

// sayWhyItWaits says after a while that the pool has no executor.
func (r *run) sayWhyItWaits(client *client.Client) {
	const patience = 3 * time.Second
	select {
	case <-time.After(patience):
	case <-r.ctx.Done():
		return
	}
	if d, err := client.Pool(r.ctx, "", r.pool); err == nil && d.Busy+d.Idle == 0 {
		r.progress.Clear()
		fmt.Fprintf(r.err, "bellows: pool %s has no executor yet; `bellows pool explain %s` says why\n", r.pool, r.pool)
	}
}

// submit submits the inputs that have no result.
func (r *run) submit(inputs <-chan input) error {
	for in := range inputs {
		some, size := []input{in}, len(in.arguments)
		for len(some) < mostInputs && size < mostBytes {
			more, ok := ready(inputs)
			if !ok {
				break
			}
			some, size = append(some, more), size+len(more.arguments)
		}
		arguments, err := r.admit(some)
		if err != nil {
			return err
		}
		if err := r.app.Grow(r.ctx, r.stage, arguments...); err != nil {
			return err
		}
	}
	if r.ctx.Err() != nil {
		return nil // The inputs are not complete.
	}
	r.mu.Lock()
	r.whole = true
	r.mu.Unlock()
	r.app.Close()
	return nil
}

// ready returns an input that has been read.
func ready(inputs <-chan input) (in input, ok bool) {
	select {
	case in, ok = <-inputs:
	default:
	}
	return in, ok
}

// admit takes inputs, once there is room for their results, and returns the arguments of those that have none.
func (r *run) admit(some []input) (arguments [][]byte, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for (r.held > mostHeld || some[0].number > r.next+mostAhead) && r.ctx.Err() == nil {
		r.freed.Wait()
	}
	for _, in := range some {
		r.read = in.number
		var s string
		if r.journal != nil {
			result, ok, err := r.journal.result(&in)
			if err != nil {
				return nil, err
			}
			if ok {
				r.end(in.number, ended{result: result})
				continue
			}
			s = sum(in.arguments)
		}
		r.running[r.tasks] = running{input{number: in.number, shown: in.shown}, s}
		r.tasks++
		arguments = append(arguments, in.arguments)
	}
	return arguments, r.print()
}

// collect collects results until there are no more.
func (r *run) collect() error {
	for {
		outcomes, err := r.app.Collect(r.ctx)
		switch {
		case err == io.EOF:
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.print()
		case r.ctx.Err() != nil:
			return context.Cause(r.ctx)
		case err != nil:
			return err
		}
		if err := r.take(outcomes); err != nil {
			return err
		}
	}
}

// take takes results: it keeps them first, and prints those that are next.
func (r *run) take(outcomes []executor.Outcome) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	stop := false
	for i := range outcomes {
		o := &outcomes[i]
		in := r.running[o.Task]
		delete(r.running, o.Task)
		if o.Failed {
			r.failures.add(failure{in.number, in.shown, o.Error})
			stop = r.stop
		} else if r.journal != nil {
			if err := r.journal.add(in.number, in.sum, o.Payload); err != nil {
				return err
			}
		}
		r.end(in.number, ended{o.Payload, o.Printed, o.Truncated, o.Failed})
	}
	if r.journal != nil {
		if err := r.journal.write(); err != nil {
			return err
		}
	}
	if err := r.print(); err != nil || !stop {
		return err
	}
	return errStopped
}

// end notes what became of an input. r.mu must be held.
func (r *run) end(number int, e ended) {
	r.done++
	if r.quiet {
		e.printed = nil
	}
	r.held += e.size()
	r.ended[number] = e
}

// print prints the results that are next. r.mu must be held.
func (r *run) print() error {
	for {
		e, ok := r.ended[r.next]
		if !ok {
			break
		}
		r.sayPrinted(&e)
		if !e.failed {
			if r.seen {
				r.progress.Clear() // before out writes by itself
			}
			_, _ = r.out.Write(r.formatted(e.result))
			_ = r.out.WriteByte('\n')
		}
		delete(r.ended, r.next)
		r.held -= e.size()
		r.next++
	}
	r.freed.Broadcast()
	if err := r.out.Flush(); err != nil {
		return fmt.Errorf("print results: %w", err)
	}
	if r.whole && r.read > 0 {
		r.progress.Set("", r.done, r.read)
	} else {
		r.progress.Show(fmt.Sprintf("%d of %d inputs that were read", r.done, r.read))
	}
	return nil
}

// sayPrinted shows what the next call printed, if that was kept.
func (r *run) sayPrinted(e *ended) {
	text := string(e.printed)
	if _, whole, found := strings.Cut(text, "\n"); e.truncated && found {
		text = "... (only the end is kept)\n" + whole
	}
	for line := range strings.Lines(text) {
		r.progress.Say(fmt.Sprintf("input %d: %s", r.next, strings.TrimSuffix(line, "\n")))
	}
}

// formatted returns a result as it is printed.
func (r *run) formatted(result []byte) []byte {
	var text string
	if r.text && json.Unmarshal(result, &text) == nil {
		return []byte(text)
	}
	return result
}

// leave cancels the application.
func (r *run) leave() {
	const patience = 5 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = r.app.Cancel(ctx, "bellows map ended")
}

// report lists what failed, and returns the error of the command.
func (r *run) report(ctx context.Context, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures.list(r.err, r.read)
	again := ""
	if r.resume != "" {
		again = "; the same command runs only those that have no result"
	}
	switch {
	case ctx.Err() != nil:
		fmt.Fprintf(r.err, "bellows: interrupted when %d of %d inputs had ended%s\n", r.done, r.read, again)
		return command.Code(command.Interrupted)
	case errors.Is(err, syscall.EPIPE):
		return command.Code(128 + int(syscall.SIGPIPE))
	case err == errStopped, err == nil && r.failures.count > 0:
		return command.Code(command.Failed)
	case err != nil && command.ExitCode(err) != command.WrongUsage && again != "":
		return fmt.Errorf("%w%s", said(err), again)
	}
	return said(err)
}

// said returns the error of a request as the daemon means it.
func said(err error) error {
	if refused, ok := errors.AsType[*executor.StatusError](err); ok {
		return api.Errorf(api.KindOfStatus(refused.Status), "%s", refused.Text)
	}
	return err
}
