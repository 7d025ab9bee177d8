package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/live/api"
)

const runLong = `Run a command as a job of one task. It starts when there is room for what
earlier runs of it needed, and grows up to --memory, or to the memory of its
node. With --reserve stated all of --memory is reserved, and with --min-memory
less, if its job then ends no later; --profile or --penalty says what that
costs. {memory} in the arguments becomes the memory that it may have less what
a program needs beside its buffer; {memory*0.8} and {memory-64MiB:M} compute.

Without -d, the command reads the standard input of bellows, and bellows shows
its output and returns its exit code, or 128 + n after signal n. Ctrl-C ends it.
In a loop of a shell that reads the same input, add --stdin /dev/null. See
docs/getting-started.md, docs/formats.md and docs/flex-containers.md.`

const runExample = `  bellows run -- python3 train.py
  bellows run --memory 4GiB -- ./train      (at most that)
  bellows run --memory 1GiB --min-memory 200MiB --duration 40s \
      -- sort -S {memory*0.8} -o out.txt big.txt
  bellows run --class flex --memory 256MiB --max-memory 8GiB -- ./train
  bellows run --class flex --memory 256MiB --max-memory 8GiB \
      -- java -jar train.jar
  zcat log.gz | bellows run --memory 1GiB -- sort -S {memory*0.8} > sorted
  bellows run -d 'zcat log.gz | sort > sorted'      (by the shell)
  bellows run --profile sort-big -d -- sort -S {memory*0.8} big.txt`

// runOptions are the flags of run.
type runOptions struct {
	place       place.Place
	stage       cluster.Stage // except for its name and its arguments
	penalty     string
	name, queue string
	app         string
	deadline    time.Duration
	class       string // empty if it is not stated
	reserve     string // empty if it is not stated
	retry       retryOptions
	atMostOnce  bool
	detach      bool
	asJSON      bool
}

func runCommand() *cobra.Command {
	o := runOptions{stage: cluster.Stage{Tasks: 1},
		penalty: "sawtooth:1.5"}
	cmd := &cobra.Command{
		Use:        "run [flags] -- COMMAND [ARGUMENT...]",
		SuggestFor: []string{"exec", "srun"},
		Short:      "Run a command",
		Long:       runLong,
		Example:    runExample,
		Args:       command.SomeArguments("command: must be given, as in `bellows run -- sort big.txt`"),
		RunE:       func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	f := cmd.Flags()
	f.SetInterspersed(false) // arguments after the command are the command's
	o.requestFlag(f, resource.Memory)
	f.Var(flags.Memory(&o.stage.MinMemory), "min-memory",
		"least memory that the command may start with, if --memory is what it needs to be fast; default: --memory")
	f.Var(flags.Memory(&o.stage.MaxMemory), "max-memory", "largest memory of a flex container; default: the node's memory")
	for k := range resource.NumKinds {
		if k != resource.Memory { // its flag is above, with its bounds
			o.requestFlag(f, k)
		}
	}
	f.Var(flags.CPU(&o.stage.MaxCPU), "max-cpus",
		"most cores that the command may use where others leave them, at least --cpus; default: all of the node")
	f.Var(flags.Duration(&o.stage.Duration, time.Millisecond), "duration",
		"estimated run time with the ideal memory, such as 90s")
	f.StringVar(&o.stage.Profile, "profile", "",
		"`name` of bellows profile list to take memory, duration and elasticity from")
	_ = cmd.RegisterFlagCompletionFunc("profile", o.place.CompleteApps())
	f.StringVar(&o.penalty, "penalty", o.penalty,
		"`shape` of the slowdown with less memory, unless a profile has it: none, step:FACTOR or sawtooth:FACTOR")
	f.StringVar(&o.name, "name", "", "`name` of the job; default: the program's name")
	f.StringVar(&o.queue, "queue", "", "`name` of the job's queue")
	_ = cmd.RegisterFlagCompletionFunc("queue", o.place.CompleteQueues())
	f.StringVar(&o.app, "app", "",
		"`name` of the application whose history the run belongs to; default: derived from name and command")
	f.Var(dataFlag{&o.stage.Input}, "input",
		"what the command reads: a file or folder, or a size such as 3GiB; may be repeated; default: the files among "+
			"its arguments")
	f.Var(flags.Duration(&o.deadline, time.Millisecond), "deadline",
		"longest wait for the start, such as 10m, under a policy that observes deadlines; default: the policy chooses")
	f.Var(flags.Choice(&o.reserve, "learned", "stated"), "reserve",
		"what is reserved of memory: `learned`, what earlier runs needed, or stated, what --memory says; default: "+
			"learned, unless --class or --min-memory is given")
	f.Var(flags.Choice(&o.class, "regular", "flex"), "class",
		"container class: regular or flex; default: flex if what is reserved is learned")
	f.Var(flags.Duration(&o.stage.HeartbeatTimeout, time.Millisecond), "heartbeat-timeout",
		fmt.Sprintf("time without heartbeats after which peers take the programs for dead; at least %v",
			cluster.LeastHeartbeatTimeout))
	o.retry.flags(f, "the command")
	f.Var(flags.Duration(&o.stage.Timeout, time.Millisecond), "timeout",
		"longest run time, such as 1h, suspensions included; then the command is ended, with exit code 124")
	f.BoolVar(&o.atMostOnce, "at-most-once", false, "never run the command a second time once it may have started")
	f.StringVar(&o.stage.Stdin, "stdin", "", "`file` that the command reads as its standard input")
	f.BoolVar(&o.stage.PrivateTmp, "private-tmp", false,
		"folders of its own in place of /tmp and /var/tmp, removed after the end; needs a daemon of root")
	f.BoolVar(&o.stage.NoNetwork, "no-network", false,
		"no network, except to programs of the same task; needs a daemon of root")
	f.BoolVarP(&o.detach, "detach", "d", false, "print the job's id and return")
	f.BoolVar(&o.asJSON, "json", false, "with -d: print JSON")
	o.place.Flags(cmd, false)
	return cmd
}

// requestFlag adds the flag that requests a resource, if there is one.
func (o *runOptions) requestFlag(f *pflag.FlagSet, k resource.Kind) {
	usage, ok := k.Usage()
	if !ok {
		return
	}
	flag := flags.Of(k, &o.stage.Ideal[k])
	if !k.Stated() {
		flag = flag.OrZero()
	}
	f.Var(flag, k.Field(), usage)
}

func (o *runOptions) run(cmd *cobra.Command, args []string) error {
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the working directory: %w", err)
	}
	client, err := o.place.Client()
	if err != nil {
		return err
	}
	if line, is := shellLine(args, client.Remote(), dir); is {
		o.name = cmp.Or(o.name, nameOfLine(args[0]))
		if args = line; terminal.Is(cmd.ErrOrStderr()) {
			fmt.Fprintf(cmd.ErrOrStderr(), "bellows: no program has that name, so that a shell runs it: %s\n",
				cluster.ClipLine("sh -c '"+args[2]+"'"))
		}
	}
	job, err := o.job(args, dir)
	if err != nil {
		return err
	}
	if !client.Remote() { // otherwise the files are those of another machine
		if err := o.checkFiles(args[0], dir); err != nil {
			return err
		}
	}
	ctx := cmd.Context()
	if err := fitMachine(ctx, client, []workload.Job{*job}, cmd.ErrOrStderr()); err != nil {
		return err
	}
	warnOfPeaks(ctx, client, []workload.Job{*job}, cmd.ErrOrStderr())
	in, err := o.input(cmd.InOrStdin())
	if err != nil {
		return err
	}
	own, err := ownSettings(client)
	if err != nil {
		return err
	}
	submission := submissionOf(job, os.Environ(), dir, &own)
	submission.Input = in != nil
	// A closed terminal counts as an interrupt: the user can no longer see the output of the job.
	ctx, stop := command.Heed(ctx, syscall.SIGHUP)
	defer stop()
	// An interrupt must not leave a job behind whose id the user does not know.
	id, err := client.Submit(context.WithoutCancel(ctx), submission)
	if err != nil {
		return err
	}
	sayReserved(ctx, client, id, cmd.ErrOrStderr())
	if o.detach {
		if o.asJSON {
			return terminal.WriteJSON(cmd.OutOrStdout(), map[string]any{"id": id})
		}
		_, err := fmt.Fprintln(cmd.OutOrStdout(), id)
		return err
	}
	a := attached{client: client, id: id, again: o.retry.times > 0, in: in, out: cmd.OutOrStdout(),
		err: cmd.ErrOrStderr()}
	return a.follow(ctx)
}

// job returns the job that the flags describe, or an error for mistakes that can be found without the daemon.
func (o *runOptions) job(args []string, dir string) (*workload.Job, error) {
	undecided := o.class == "" && o.reserve == "" && o.stage.MinMemory == 0
	if o.stage.Ideal[resource.Memory] == 0 && o.stage.Profile == "" && !undecided && o.reserve != "learned" {
		return nil, command.Usagef("memory: must be given, by --memory or --profile, unless what is reserved is learned")
	}
	stage, name := o.stage, o.name
	stage.Args = args
	if stage.Input == 0 {
		stage.Input = readsFiles(&stage.Command, dir)
	}
	if name == "" {
		name = nameOf(args[0])
	}
	stage.Name = name
	if stage.MinMemory > 0 && stage.Profile == "" {
		var err error
		if stage.Elasticity, err = workload.ParsePenalty(o.penalty); err != nil {
			return nil, command.Usage(err)
		}
	}
	job := &workload.Job{Job: cluster.Job{Name: name, Queue: o.queue,
		AtMostOnce: o.atMostOnce, App: o.app, Deadline: o.deadline, Stages: []cluster.Stage{stage}}}
	if err := cmp.Or(job.Class.UnmarshalText([]byte(o.class)), job.Reserve.UnmarshalText([]byte(o.reserve))); err != nil {
		return nil, command.Usage(err)
	}
	if o.class == "" && job.Reserve == cluster.ReserveLearned {
		job.Class = cluster.Flex
	}
	job.Undecided = undecided
	if err := o.retry.put(job); err != nil {
		return nil, err
	}
	if err := check(job); err != nil {
		return nil, err
	}
	return job, nil
}

// shellSigns are what makes a command of one word a text for the shell.
const shellSigns = " \t\n|&;<>()$`\"'*?"

// shellLine returns the command that runs a text by the shell, if args are such a text: one word that no program here
// is called.
func shellLine(args []string, remote bool, dir string) (line []string, is bool) {
	if len(args) != 1 || strings.TrimSpace(args[0]) == "" || !strings.ContainsAny(args[0], shellSigns) ||
		!remote && command.FindProgram(args[0], dir) == nil && !strings.Contains(args[0], "{") {
		return nil, false
	}
	return []string{"sh", "-c", args[0]}, true
}

// checkFiles returns an error if the program or the input file of the job is missing, or cannot be read.
func (o *runOptions) checkFiles(program, dir string) error {
	if err := command.FindProgram(program, dir); err != nil {
		return err
	}
	return checkStdin(o.stage.Stdin, dir)
}

// nameOf returns the name of a job, after its program. A file may have any name; the name of a job must be readable for
// people.
func nameOf(program string) string { return cmp.Or(cluster.NameFor(filepath.Base(program)), "job") }

// nameOfLine returns the name of a job that runs a text by the shell, after its first word.
func nameOfLine(text string) string { return nameOf(strings.Fields(text + " job")[0]) }

// check returns an error for a request that every front door refuses. It names the flag.
func check(job *workload.Job) error {
	filled := job.AssumingDecided()
	err := filled.CheckRuns()
	if wrong, ok := errors.AsType[*cluster.WrongField](err); ok {
		return command.Usagef("%s", wrong.Named(strings.ReplaceAll(wrong.Field, "_", "-")))
	}
	return command.Usage(err)
}

// attached is a job of one task whose output is shown until it ends.
type attached struct {
	client   *client.Client
	id       cluster.JobID
	again    bool      // it may run several times, also without an attempt that failed: it may make room for others
	in       io.Reader // nil for none
	out, err io.Writer
}

// follow shows the output of the job, and returns an error that makes the job's exit code the exit code of this
// command. When ctx ends, follow kills the job.
func (a *attached) follow(ctx context.Context) error {
	// When the reader of our output ends, a write must fail and not end this process, because the job has to be killed.
	signal.Ignore(syscall.SIGPIPE)
	all, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	broken := make(chan struct{}, 2)
	var copies sync.WaitGroup
	for _, stderr := range []bool{false, true} {
		copies.Go(func() {
			if a.copy(all, stderr) != nil {
				broken <- struct{}{}
			}
		})
	}
	ended := make(chan struct{})
	killer := make(chan bool, 1)
	go func() {
		defer close(killer)
		select {
		case <-ended:
			return
		case <-ctx.Done():
		case <-broken:
			killer <- true
		}
		_ = a.kill(all)
		select {
		case <-ended:
		case <-time.After(time.Second):
			if ctx.Err() != nil {
				fmt.Fprintf(a.err, "bellows: job %d was asked to end, and is killed if it has not ended within %v\n", a.id,
					cluster.DefaultGrace)
			}
		}
	}()
	go sayWhyItWaits(all, a.err, func() (api.Job, error) { return a.client.Job(all, a.id, true) })
	if a.in != nil {
		go a.feed(all, a.in)
	}
	job, err := a.wait(all)
	close(ended)
	if err != nil {
		return err
	}
	copies.Wait()
	if unread := <-killer; unread {
		return command.Code(128 + int(syscall.SIGPIPE))
	}
	err = a.result(&job, ctx.Err() != nil)
	a.sayRemedies(all, &job)
	return err
}

// sayRemedies says what helps a job that has failed for want of memory.
func (a *attached) sayRemedies(ctx context.Context, job *api.Job) {
	if job.Status != cluster.StatusFailed ||
		!slices.ContainsFunc(job.Tasks, func(t api.Task) bool { return t.Outcome == cluster.OutOfMemory }) {
		return
	}
	e, err := a.client.Explain(ctx, a.id)
	if err != nil {
		return
	}
	for _, words := range e.Remedies {
		fmt.Fprintf(a.err, "bellows: %s\n", words)
	}
}

// result prints the cause of a failure, unless the user knows it, and returns the exit code as an error.
func (a *attached) result(job *api.Job, interrupted bool) error {
	code := command.Failed
	if interrupted {
		code = command.Interrupted
	}
	if job.ExitCode != nil {
		code = *job.ExitCode
	}
	if job.Status == cluster.StatusSucceeded {
		code = 0
	}
	switch {
	case job.Status == cluster.StatusCancelled && !interrupted:
		fmt.Fprintf(a.err, "bellows: job %d: was killed\n", a.id)
	case job.Status == cluster.StatusSucceeded && len(job.Tasks) == 1 && job.Tasks[0].Exit != nil &&
		job.Tasks[0].Exit.Left > 0:
		fmt.Fprintf(a.err, "bellows: job %d: %s\n", a.id, job.Tasks[0].Detail)
	case job.Detail != "" && !plainFailure(job):
		fmt.Fprintf(a.err, "bellows: job %d: %s\n", a.id, cluster.Printable(job.Detail))
	}
	if code == 0 {
		return nil
	}
	return command.Code(code)
}

// plainFailure reports whether a job failed only because its program ended with an exit code.
func plainFailure(job *api.Job) bool {
	if job.Status != cluster.StatusFailed || len(job.Tasks) != 1 {
		return false
	}
	t := &job.Tasks[0]
	return t.Outcome == cluster.Failed && t.Exit != nil && t.Exit.Signal == 0 && t.Exit.TimeLimit == 0 &&
		t.Exit.Left == 0 && t.Exit.Code < 126
}

// copy copies one stream of every run. An error means that output could not be written.
func (a *attached) copy(ctx context.Context, stderr bool) error {
	w := a.out
	if stderr {
		w = a.err
	}
	for run := 1; run == 1 || a.again; run++ {
		o := api.Output{Task: cluster.TaskID{Job: a.id}, Run: run, Stderr: stderr, Follow: true, All: true}
		err := place.UntilAnswered(ctx, nil, func() error {
			n, err := a.client.Output(ctx, w, o)
			o.From += n
			return err
		})
		switch {
		case api.KindOf(err) != 0 || ctx.Err() != nil:
			return nil // there is no such run
		case err != nil:
			return err
		}
	}
	return nil
}

// wait returns the job once it has ended. If the daemon ends, wait waits for the next daemon: the job runs on without a
// daemon.
func (a *attached) wait(ctx context.Context) (job api.Job, err error) {
	told := false
	err = place.UntilAnswered(ctx, nil, func() (err error) {
		job, err = a.client.Wait(ctx, a.id)
		if api.KindOf(err) == api.Unavailable && !told {
			fmt.Fprintf(a.err, "bellows: the daemon is gone; job %d continues, and bellows waits for the next daemon\n", a.id)
			told = true
		}
		return err
	})
	return job, err
}

// kill kills the job; without a daemon, as soon as a daemon runs again.
func (a *attached) kill(ctx context.Context) error {
	return place.UntilAnswered(ctx, nil, func() error { return a.client.Kill(ctx, a.id) })
}

// wait sleeps for d; it returns false if ctx ends first.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
