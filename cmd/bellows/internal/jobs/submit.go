package jobs

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/format/jobfile"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/node/inherited"
)

const submitLong = `Submit the jobs of files and print their ids, in the order of submission; of a
folder, all files that end in .yaml or .yml. All jobs are submitted, or none if
one is refused, up to 10000 at a time. Jobs with "at" or "after" are submitted
when their time has come, and bellows waits until then. docs/formats.md
describes the files, such as:

  bellows: 1
  name: sort-three
  stages:
    - {name: sort, tasks: 3, memory: 1GiB, min_memory: 200MiB, duration: 40s,
       elasticity: {sawtooth: 1.5},
       command: "sort -S {memory*0.8} -o out.{task} big.{task}"}`

type submitOptions struct {
	place  place.Place
	retry  retryOptions
	wait   bool
	asJSON bool
}

func submitCommand() *cobra.Command {
	var o submitOptions
	cmd := &cobra.Command{
		Use:        "submit FILE...",
		SuggestFor: []string{"sbatch", "qsub", "batch", "apply", "create", "add"},
		Short:      "Submit the jobs of files",
		Long:       submitLong,
		Example: `  bellows submit mix.yaml
  bellows submit --wait mix.yaml && echo all jobs succeeded
  bellows submit jobs.d more.yaml
  generate-jobs | bellows submit -`,
		Args: command.SomeArguments("file: must be one or more files of jobs, folders of them, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	cmd.Flags().BoolVar(&o.wait, "wait", false, "wait until all jobs have ended; exit code 1 if a job did not succeed")
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "print JSON when all jobs are submitted (with --wait: have ended)")
	o.retry.flags(cmd.Flags(), "a task of jobs that do not state it")
	o.place.Flags(cmd, false)
	return cmd
}

func (o *submitOptions) run(cmd *cobra.Command, args []string) error {
	client, err := o.place.Client()
	if err != nil {
		return err
	}
	files, err := jobFiles(args)
	if err != nil {
		return err
	}
	w := &workload.Workload{}
	for _, file := range files {
		more, err := readLiveJobs(cmd.Context(), client, file)
		if err != nil {
			return err
		}
		before := len(w.Jobs)
		for _, j := range more.Jobs {
			if j.After >= 0 {
				j.After += before
			}
			w.Jobs = append(w.Jobs, j)
		}
	}
	w.Sort()
	for i := range w.Jobs {
		if j := &w.Jobs[i]; j.MaxAttempts == 0 && !j.AtMostOnce {
			if err := o.retry.put(j); err != nil {
				return err
			}
		}
	}
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the working directory: %w", err)
	}
	for i := range w.Jobs {
		if !client.Remote() { // otherwise the programs are those of another machine
			if err := checkPrograms(&w.Jobs[i], dir); err != nil {
				return err
			}
		}
		for k := range w.Jobs[i].Stages {
			if s := &w.Jobs[i].Stages[k]; s.Input == 0 {
				s.Input = readsFiles(&s.Command, dir)
			}
		}
	}
	if err := fitMachine(cmd.Context(), client, w.Jobs, cmd.ErrOrStderr()); err != nil {
		return err
	}
	warnOfPeaks(cmd.Context(), client, w.Jobs, cmd.ErrOrStderr())
	own, err := ownSettings(client)
	if err != nil {
		return err
	}
	b := batch{client: client, err: cmd.ErrOrStderr(), jobs: w.Jobs, dir: dir, env: os.Environ(), own: own,
		ended: make([]chan struct{}, len(w.Jobs)), ids: make([]cluster.JobID, len(w.Jobs)),
		results: make([]api.Job, len(w.Jobs)), first: o.place.FirstTime}
	if !o.asJSON {
		b.out = cmd.OutOrStdout()
	}
	err = b.run(cmd.Context(), o.wait)
	if o.asJSON && err == nil {
		err = b.json(cmd.OutOrStdout(), o.wait)
	}
	if err != nil {
		return err
	}
	return b.verdict(cmd.ErrOrStderr(), o.wait)
}

// jobFiles returns the files of jobs that arguments name: those of a folder in place of the folder.
func jobFiles(args []string) (files []string, err error) {
	for _, arg := range args {
		info, err := os.Stat(arg)
		if arg == "-" || err != nil || !info.IsDir() { // an error shows when the file is read
			files = append(files, arg)
			continue
		}
		in, err := os.ReadDir(arg)
		if err != nil {
			return nil, command.Usagef("file: %w", err)
		}
		before := len(files)
		for _, entry := range in {
			if end := filepath.Ext(entry.Name()); end == ".yaml" || end == ".yml" {
				files = append(files, filepath.Join(arg, entry.Name()))
			}
		}
		if len(files) == before {
			return nil, command.Usagef("file: folder %s must have a file whose name ends in .yaml or .yml", arg)
		}
	}
	return files, nil
}

// readInput returns the content of a file, or of standard input.
func readInput(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(name)
}

// readLiveJobs reads a file of jobs that a machine can run.
func readLiveJobs(ctx context.Context, client *client.Client, file string) (*workload.Workload, error) {
	data, err := readInput(file)
	if err != nil {
		return nil, command.Usagef("file: %w", err)
	}
	var failed error
	known := place.Profiles{Client: client, Failed: &failed}
	w, err := jobfile.ReadToRun(bytes.NewReader(data), file, known.LookUp(ctx))
	switch {
	case failed != nil:
		return nil, failed
	case err != nil:
		return nil, command.Usage(err)
	}
	for i := range w.Jobs {
		j := &w.Jobs[i]
		if !j.HasCommands() {
			return nil, command.Usagef("%s: job %q command: must be given for a job that runs on a machine", file, j.Name)
		}
		j.Requeue = !j.AtMostOnce // batch work; who runs a single command says by --retry whether it may start twice
	}
	return w, nil
}

// checkPrograms returns an error if a program of the job is missing. A stage with its own PATH or directory is checked
// only when it starts.
func checkPrograms(j *workload.Job, dir string) error {
	for i := range j.Stages {
		c := &j.Stages[i].Command
		if _, own := c.Env["PATH"]; own || (c.Dir != "" && !filepath.IsAbs(c.Args[0])) {
			continue
		}
		if err := command.FindProgram(c.Args[0], dir); err != nil {
			return command.Usagef("job %q stage %q %w", j.Name, j.Stages[i].Name, err)
		}
	}
	return nil
}

// fitMachine says to the user what the largest node of the machine has not for jobs that may grow: see warnOfSize. It
// also says that a deadline has no effect. The daemon is asked once, if at all.
func fitMachine(ctx context.Context, client *client.Client, all []workload.Job, to io.Writer) error {
	if !slices.ContainsFunc(all, func(j workload.Job) bool { return j.Deadline > 0 || mayGrow(&j) }) {
		return nil
	}
	status, err := client.Status(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		j := &all[i]
		if j.Deadline > 0 && !status.Deadlines {
			fmt.Fprintf(to, "bellows: job %q deadline %s: has no effect, because policy %s lets no job come first for its "+
				"deadline\n", j.Name, terminal.Age(j.Deadline), status.Policy)
		}
		warnOfSize(j, status.LargestMemory(), to)
	}
	return nil
}

// mayGrow reports whether tasks of the job may grow, as far as that is decided, to what it states.
func mayGrow(j *workload.Job) bool {
	decided := j.AssumingDecided()
	return decided.Class == cluster.Flex &&
		slices.ContainsFunc(decided.Stages, func(s cluster.Stage) bool { return s.MaxMemory > 0 })
}

// warnOfSize warns if the maximum memory of a stage of a job that may grow exceeds the largest machine. largest is the
// memory for containers on that, 0 if it is unknown.
func warnOfSize(j *workload.Job, largest resource.Amount, to io.Writer) {
	if largest == 0 || !mayGrow(j) {
		return
	}
	decided := j.AssumingDecided()
	for i := range decided.Stages {
		s, what := &decided.Stages[i], "maximum memory"
		if j.Stages[i].MaxMemory == 0 {
			what = "memory" // what is reserved is learned, and this is the limit
		}
		// If its initial memory exceeds the machine, too, the job will be refused.
		if s.MaxMemory > largest && s.Ideal[resource.Memory] <= largest {
			fmt.Fprintf(to, "bellows: job %q stage %q %s %s: the largest machine has only %s for containers\n", j.Name, s.Name,
				what, resource.FormatMemory(s.MaxMemory), resource.FormatMemory(largest))
		}
	}
}

// batch is the jobs of a command that are being submitted.
type batch struct {
	client *client.Client
	jobs   []workload.Job
	dir    string
	env    []string
	own    cluster.Inherited
	out    io.Writer // for ids; nil for none
	err    io.Writer
	told   sync.Once // what the memory of jobs means
	first  func(what string) bool

	mu      sync.Mutex
	ids     []cluster.JobID
	results []api.Job
	ended   []chan struct{} // closed when that job has ended, or is never submitted
	never   []neverSubmitted
}

// neverSubmitted is a job that was to be submitted after another, which did not succeed.
type neverSubmitted struct {
	Name string `json:"name" doc:"its name"`
	Why  string `json:"why" doc:"why it was not submitted"`
}

// submitted is a job that was submitted.
type submitted struct {
	ID   cluster.JobID `json:"id" doc:"its id"`
	Name string        `json:"name" doc:"its name"`
}

// run submits every job at its time, and waits for the jobs to end if wait is set. The first error ends it.
func (b *batch) run(ctx context.Context, wait bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	waits := make([]bool, len(b.jobs)) // whether to wait for the end of the job
	for i := range b.jobs {
		b.ended[i] = make(chan struct{})
		waits[i] = waits[i] || wait
		if after := b.jobs[i].After; after >= 0 {
			waits[after] = true
		}
	}
	begun := time.Now()
	var all sync.WaitGroup
	now, err := b.submitAll(ctx)
	if err != nil {
		return err
	}
	for i := range b.jobs {
		// Due jobs are submitted one after the other, so that their ids are in the order of the file.
		if b.jobs[i].After < 0 && i >= now {
			if err := b.due(ctx, i, begun); err != nil {
				cancel(err)
				break
			}
		}
		all.Go(func() {
			if err := b.rest(ctx, i, waits[i]); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// due submits job i at its time.
func (b *batch) due(ctx context.Context, i int, begun time.Time) error {
	if at := time.Duration(b.jobs[i].Submitted) - time.Since(begun); at > 0 && !wait(ctx, at) {
		return context.Cause(ctx)
	}
	return b.submit(ctx, i)
}

// rest submits job i after the job that it waits for, if any, and waits for its end if wait is set.
func (b *batch) rest(ctx context.Context, i int, wait bool) error {
	if after := b.jobs[i].After; after >= 0 {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-b.ended[after]:
		}
		if b.skip(i, after) {
			return nil
		}
		if err := b.submit(ctx, i); err != nil {
			return err
		}
	}
	if !wait {
		return nil
	}
	a := attached{client: b.client, id: b.ids[i], err: io.Discard}
	job, err := a.wait(ctx)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.results[i] = job
	close(b.ended[i])
	return nil
}

// skip reports whether job i is not to be submitted, because the job before it did not succeed or was not submitted
// either.
func (b *batch) skip(i, after int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := &b.results[after]
	name := strconv.Quote(b.jobs[after].Name)
	switch {
	case before.Status == cluster.StatusSucceeded:
		return false
	case before.ID == 0:
		b.never = append(b.never,
			neverSubmitted{b.jobs[i].Name, fmt.Sprintf("it is after job %s, which was not submitted either", name)})
	default:
		b.never = append(b.never,
			neverSubmitted{b.jobs[i].Name, fmt.Sprintf("it is after job %d (%s), which did not succeed: %s", before.ID, name,
				cmp.Or(before.Detail, before.Status.String()))})
	}
	close(b.ended[i])
	return true
}

// submitAll submits the jobs that wait for nothing, all or none, and returns how many these are: the first. With more
// jobs than one request has, a later part can be refused.
func (b *batch) submitAll(ctx context.Context) (n int, err error) {
	for n < len(b.jobs) && b.jobs[n].After < 0 && b.jobs[n].Submitted <= 0 {
		n++
	}
	if n == 1 {
		return 0, nil // It is submitted by itself.
	}
	for done := 0; done < n; {
		bulk := api.Bulk{Env: cluster.EncodeTexts(b.env), Dir: cluster.EncodeText(b.dir), Inherited: &b.own}
		for i := done; i < min(n, done+api.MostInBulk); i++ {
			bulk.Jobs = append(bulk.Jobs, submissionOf(&b.jobs[i], nil, "", nil))
		}
		ids, err := b.client.SubmitAll(ctx, bulk)
		if err != nil {
			return done, err
		}
		for _, id := range ids {
			b.sayMeaning(ctx, done, id)
			b.ids[done] = id
			done++
			if b.out != nil {
				if _, err := fmt.Fprintln(b.out, id); err != nil {
					return done, err
				}
			}
		}
	}
	return n, nil
}

// ownSettings are the settings of this process that programs of a job inherit.
func ownSettings(client *client.Client) (own cluster.Inherited, err error) {
	if own, err = inherited.Read(); client.Remote() { // with CPUs of its own
		own.CPUs = nil
	}
	return own, err
}

// submissionOf is api.SubmissionOf for a job that may leave to the daemon what is undecided.
func submissionOf(j *workload.Job, env []string, dir string, own *cluster.Inherited) api.Submission {
	s := api.SubmissionOf(&j.Job, env, dir, own)
	if j.Undecided {
		s = s.Undecided()
	}
	return s
}

// sayMeaning says, once to a user, that the memory that a job states is its limit and not what is reserved, if that was
// decided for it.
func (b *batch) sayMeaning(ctx context.Context, i int, id cluster.JobID) {
	states := slices.ContainsFunc(b.jobs[i].Stages, func(s cluster.Stage) bool { return s.Ideal[resource.Memory] > 0 })
	if !b.jobs[i].Undecided || !states {
		return
	}
	b.told.Do(func() {
		job, err := b.client.Job(ctx, id, false)
		if err != nil || len(job.Stages) == 0 || job.Stages[0].Reserved == nil || !b.first("memory-meaning") {
			return // the daemon has not decided so, or its user knows it
		}
		fmt.Fprintln(b.err, "bellows: memory is the most that a task may use, and what earlier runs needed is reserved; "+
			"\"reserve: stated\" in the job reserves all of it")
	})
}

func (b *batch) submit(ctx context.Context, i int) error {
	id, err := b.client.Submit(ctx, submissionOf(&b.jobs[i], b.env, b.dir, &b.own))
	if err != nil {
		return err
	}
	b.sayMeaning(ctx, i, id)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ids[i] = id
	if b.out != nil {
		_, err = fmt.Fprintln(b.out, id)
	}
	return err
}

func (b *batch) json(w io.Writer, wait bool) error {
	doc := map[string]any{}
	if len(b.never) > 0 {
		doc["not_submitted"] = b.never
	}
	if wait {
		doc["jobs"] = slices.DeleteFunc(slices.Clone(b.results), func(j api.Job) bool { return j.ID == 0 })
		return terminal.WriteJSON(w, doc)
	}
	var list []submitted
	for i, id := range b.ids {
		if id != 0 {
			list = append(list, submitted{id, b.jobs[i].Name})
		}
	}
	doc["jobs"] = list
	return terminal.WriteJSON(w, doc)
}

// verdict says which jobs did not succeed, and which were not submitted because of them.
func (b *batch) verdict(w io.Writer, wait bool) error {
	failed := false
	for _, n := range b.never {
		failed = true
		fmt.Fprintf(w, "bellows: job %q is not submitted: %s\n", n.Name, cluster.Printable(n.Why))
	}
	for _, j := range b.results {
		if wait && j.ID != 0 && j.Status != cluster.StatusSucceeded {
			failed = true
			why := j.Detail
			if why == "" {
				why = j.Status.String()
			}
			fmt.Fprintf(w, "bellows: job %d (%s): %s\n", j.ID, cluster.Printable(j.Name), why)
		}
	}
	if failed {
		return command.Code(command.Failed)
	}
	return nil
}
