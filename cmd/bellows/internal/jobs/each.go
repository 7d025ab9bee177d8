package jobs

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/format/workload"
)

// Each runs a command once with each item of its input, as a job with a task per item. Its habits are those of GNU
// parallel.
type Each struct {
	Name   string // of the job; empty: the program's
	Null   bool   // items of the input end with a zero byte
	Quiet  bool   // no progress
	Resume string // a log of an earlier run; what succeeded there is left out
	Stop   bool   // end all when a task has failed

	stage  cluster.Stage
	retry  retryOptions
	atOnce int
	keep   bool
	tag    bool
	log    string
	halt   string
}

// Flags adds the flags that only commands have.
func (e *Each) Flags(f *pflag.FlagSet) {
	f.Var(flags.Of(resource.Memory, &e.stage.Ideal[resource.Memory]).OrZero(), "memory",
		"most memory that one command may use; default: the node's")
	f.Var(flags.Of(resource.CPU, &e.stage.Ideal[resource.CPU]).OrZero(), "cpus",
		"cores that are reserved for one command; default: learned, at most 1")
	f.Var(flags.Duration(&e.stage.Timeout, time.Millisecond), "timeout", "longest run time of one command")
	e.retry.flags(f, "a command")
	f.VarP(flags.Count(&e.atOnce, 0, cluster.MostTasks), "jobs", "j",
		"most commands that run at once; default: as many as have room")
	f.BoolVarP(&e.keep, "keep-order", "k", false, "print output in the order of the items, not of the ends")
	f.BoolVar(&e.tag, "tag", false, "begin each line of output with its item")
	f.StringVar(&e.log, "joblog", "", "`file` for a line about each command, as GNU parallel writes it")
	f.StringVar(&e.halt, "halt", "never", "`when` to end all: never, or now,fail=N after N failures")
}

// FlagNames are the names of these flags.
func (e *Each) FlagNames() (names []string) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&Each{}).Flags(f)
	f.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	return names
}

// Run runs the command in words, which may end with ::: and items, or with :::: and files of items; otherwise in has
// the items. It returns once all have ended.
func (e *Each) Run(ctx context.Context, client *client.Client, words []string, in io.Reader, out,
	say io.Writer) error {
	failures, err := e.failures()
	if err != nil {
		return err
	}
	words, items, err := e.split(words, in)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the working directory: %w", err)
	}
	job, err := e.job(words, items, client.Remote(), dir)
	if err != nil {
		return err
	}
	if !client.Remote() {
		if err := command.FindProgram(job.Stages[0].Args[0], dir); err != nil {
			return err
		}
	}
	r := &eachRun{each: e, attached: attached{client: client, err: say}, job: job, out: bufio.NewWriter(out),
		failures: failures, printed: map[int]bool{}, fails: map[int]int{}, newest: map[int]int{},
		numbers: make([]int, len(items))}
	for i := range r.numbers {
		r.numbers[i] = i + 1
	}
	if err := r.openLog(); err != nil {
		return err
	}
	defer r.closeLog()
	if len(job.Stages[0].Items) == 0 {
		return nil
	}
	if err := check(job); err != nil {
		return err
	}
	if err := fitMachine(ctx, client, []workload.Job{*job}, say); err != nil {
		return err
	}
	own, err := ownSettings(client)
	if err != nil {
		return err
	}
	ctx, stop := command.Heed(ctx, syscall.SIGHUP)
	defer stop()
	// When the reader of our output ends, a write must fail and not end this process, because the job has to be killed.
	signal.Ignore(syscall.SIGPIPE)
	r.id, err = client.Submit(context.WithoutCancel(ctx), submissionOf(job, os.Environ(), dir, &own))
	if err != nil {
		return err
	}
	if !e.Quiet {
		r.progress = terminal.NewProgress(say, "map")
		sayReserved(ctx, client, r.id, say)
	}
	return r.follow(ctx)
}

// failures is after how many failures all are ended; 0 is never.
func (e *Each) failures() (int, error) {
	if e.Stop {
		return 1, nil
	}
	if e.halt == "never" {
		return 0, nil
	}
	count, is := strings.CutPrefix(e.halt, "now,fail=")
	if n, err := strconv.Atoi(count); is && err == nil && n > 0 {
		return n, nil
	}
	return 0, command.Usagef("halt %q: must be never, or now,fail=N", e.halt)
}

// split separates the command from its items.
func (e *Each) split(words []string, in io.Reader) (program, items []string, err error) {
	at := slices.IndexFunc(words, func(w string) bool { return w == ":::" || w == "::::" })
	switch {
	case at < 0:
		if file, is := in.(*os.File); is && terminal.Is(file) {
			return nil, nil, command.Usagef(
				"items: must be given after :::, in files after ::::, or as lines of the standard input")
		}
		program = words
		items, err = e.read(in, "the standard input")
	case slices.ContainsFunc(words[at+1:], func(w string) bool { return w == ":::" || w == "::::" }):
		return nil, nil, command.Usagef("items: must be given by one ::: or ::::")
	case words[at] == ":::":
		program, items = words[:at], words[at+1:]
	default:
		program = words[:at]
		for _, name := range words[at+1:] {
			file, wrong := os.Open(name)
			if wrong != nil {
				return nil, nil, command.Usagef("items: %w", wrong)
			}
			more, wrong := e.read(file, name)
			_ = file.Close()
			if items = append(items, more...); wrong != nil {
				return nil, nil, wrong
			}
		}
	}
	if err == nil && (len(program) == 0 || program[0] == "") {
		err = command.Usagef("command: must be given, as in `bellows map -- gzip {} ::: *.txt`")
	}
	return program, items, err
}

func (e *Each) read(in io.Reader, name string) (items []string, err error) {
	all, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("read items from %s: %w", name, err)
	}
	end := []byte{'\n'}
	if e.Null {
		end = []byte{0}
	}
	for item := range bytes.SplitSeq(bytes.TrimSuffix(all, end), end) {
		if len(all) > 0 {
			items = append(items, string(item))
		}
	}
	return items, nil
}

// parts of a command in braces: those of GNU parallel, those of bellows, and braces that mean themselves.
var (
	ofParallel = map[string]string{"{}": "{item}", "{.}": "{item:stem}", "{/}": "{item:name}", "{//}": "{item:folder}",
		"{/.}": "{item:base}", "{#}": "{number}"}
	braces = regexp.MustCompile(`\{(|\.|/|//|/\.|#)\}|\{(memory|cpus)[^{}]*\}|\{`)
)

// job is a job with a task per item.
func (e *Each) job(words, items []string, remote bool, dir string) (*workload.Job, error) {
	stage := e.stage
	named := false
	for _, w := range words {
		stage.Args = append(stage.Args, braces.ReplaceAllStringFunc(w, func(part string) string {
			ours, is := ofParallel[part]
			switch {
			case is:
				named = true
				return ours
			case part == "{":
				return "{{"
			}
			return part
		}))
	}
	line, shell := shellLine(stage.Args, remote, dir)
	if shell {
		stage.Args = line
	}
	switch {
	case named:
	case shell:
		stage.Args[2] += " {item}"
	default:
		stage.Args = append(stage.Args, "{item}")
	}
	stage.Items, stage.Tasks, stage.AtOnce = items, len(items), e.atOnce
	stage.Name = cmp.Or(e.Name, nameOfLine(words[0]))
	job := &workload.Job{Undecided: true, Job: cluster.Job{Name: stage.Name, KeepGoing: true, Requeue: true,
		Stages: []cluster.Stage{stage}}}
	return job, e.retry.put(job)
}
