package pooling

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/connector/spark"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/node/inherited"
	"github.com/bellows-rm/bellows/pool/fleet"
)

const createLong = `Make a pool, or change the pool of that name: executors that no longer match are
replaced after their current task.

Without COMMAND, executors run functions of Python, in the first python3 of
PATH, or COMMAND: if it is called neither python nor pypy, or has arguments,
state --language python. With --language go, COMMAND calls executor.Main; else
it speaks the protocol itself. With --spark, executors run tasks of Spark.

A pool has as many executors as there are tasks that could run. One beyond --min
ends when it has run nothing for --idle, and earlier while other users wait. You
pay for idle executors as for busy ones. See docs/pools.md.`

const createExample = `  bellows pool create sums --memory 256MiB --max 8
  bellows pool create plots --memory 1GiB --min 1 --max 4 --recycle 800MiB \
      -- venv/bin/python
  bellows pool create hash --memory 64MiB --max 16 --language go -- ./hasher
  bellows pool create sp --spark auto --memory 2GiB --max 4`

const flexClass = "flex"

// createOptions are the flags of create.
type createOptions struct {
	place  place.Place
	spec   api.PoolSpec
	class  string
	spark  string // an installation of Spark, if executors are to be of that
	asJSON bool

	connector spark.Compiled // to that Spark
	sizes     []string       // what is said of those that were not stated
}

func createCommand() *cobra.Command {
	o := createOptions{spec: api.PoolSpec{Idle: api.DefaultPoolIdle, Policy: api.DefaultPoolPolicy,
		Settings: map[string]string{}}, class: "regular"}
	cmd := &cobra.Command{
		Use:     "create POOL [flags] [-- COMMAND [ARGUMENT...]]",
		Short:   "Make a pool, or change it",
		Long:    createLong,
		Example: createExample,
		Args:    command.SomeArguments("pool: must have a name, as in `bellows pool create sums --memory 256MiB --max 8`"),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	f := cmd.Flags()
	f.Var(flags.Choice(&o.spec.Language, api.PoolPython, api.PoolGo), "language",
		"what functions of tasks are written in: python or go; default: python for no COMMAND and for an interpreter")
	f.StringVar(&o.spark, "spark", "",
		"run tasks of the Spark in a `folder`, or with auto in SPARK_HOME or python3's pyspark; see docs/spark.md")
	f.Var(flags.Count(&o.spec.Min, 0, api.MostPoolExecutors), "min",
		"number of executors that stay while no task needs them")
	f.Var(flags.Count(&o.spec.Max, 1, api.MostPoolExecutors), "max",
		"largest number of executors; required without --spark")
	f.Var(flags.CPU(&o.spec.CPU), "cpus", "CPU of an executor; default: 1")
	f.Var(flags.Memory(&o.spec.Memory), "memory", "memory of an executor; required without --spark")
	f.Var(flags.Memory(&o.spec.MaxMemory), "max-memory", "largest memory of a flex executor; default: the node's memory")
	f.Var(flags.Choice(&o.class, "regular", flexClass), "class", "container class of executors: regular or flex")
	f.Var(flags.Duration(&o.spec.Idle, time.Second), "idle",
		"time after which an executor beyond --min ends if it has run nothing")
	f.Var(flags.Memory(&o.spec.Recycle), "recycle",
		"replace an executor whose memory exceeds this after a task; default: never")
	f.StringVar(&o.spec.Policy, "policy", o.spec.Policy,
		"`name` of the policy that divides the executors among applications")
	f.Var(flags.Settings(o.spec.Settings), "set", "setting of the policy; may be repeated")
	f.StringVar(&o.spec.Queue, "queue", "", "`name` of the queue in which executors wait for their start")
	_ = cmd.RegisterFlagCompletionFunc("queue", o.place.CompleteQueues())
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	o.place.Flags(cmd, false)
	return cmd
}

func (o *createOptions) run(cmd *cobra.Command, args []string) error {
	o.spec.Name, o.spec.Command = args[0], args[1:]
	if len(args) > 1 && cmd.ArgsLenAtDash() != 1 {
		return command.Usagef("pool: must be one name; the command of executors stands after --")
	}
	client, err := o.place.Client()
	if err != nil {
		return err
	}
	if o.spark != "" {
		if client.Remote() {
			return command.Usagef("spark: needs a daemon of this machine, where the installation is")
		}
		if err := o.prepareSpark(cmd.Context(), cmd.ErrOrStderr()); err != nil {
			return err
		}
	}
	if err := o.complete(); err != nil {
		return err
	}
	if client.Remote() { // the files and CPUs are those of another machine
		o.spec.Inherited.CPUs = nil
	} else if err := command.FindProgram(cmp.Or(first(o.spec.Command), api.DefaultPoolPython), o.spec.Dir); err != nil {
		return err
	}
	created, err := client.PutPool(cmd.Context(), "", encoded(o.spec))
	switch {
	case err != nil:
		return err
	case o.asJSON:
		return terminal.WriteJSON(cmd.OutOrStdout(), o.made(created))
	}
	for _, line := range o.sizes {
		fmt.Fprintln(cmd.ErrOrStderr(), "bellows:", line)
	}
	done := "created"
	if !created {
		done = "changed"
	}
	_, err = fmt.Fprintf(cmd.ErrOrStderr(), "bellows: pool %s %s\n", o.spec.Name, done)
	if o.spark != "" && err == nil {
		_, err = fmt.Fprintln(cmd.OutOrStdout(), o.sparkSubmit())
	}
	return err
}

// made is what is printed for programs.
func (o *createOptions) made(created bool) map[string]any {
	all := map[string]any{"name": o.spec.Name, "created": created}
	if o.spark != "" {
		all["spark_master"], all["spark_jar"] = "spark-bellows://"+o.spec.Name, o.connector.Jar
	}
	return all
}

// interpreter matches the names of interpreters of Python. Without arguments, none of them speaks the protocol of
// executors.
var interpreter = regexp.MustCompile(`^(python|pypy)[0-9.]*$`)

// complete adds what flags do not say, and checks what can be checked without the daemon.
func (o *createOptions) complete() (err error) {
	s := &o.spec
	if s.Language == "" &&
		(len(s.Command) == 0 || len(s.Command) == 1 && interpreter.MatchString(filepath.Base(s.Command[0]))) {
		s.Language = api.PoolPython
	}
	switch {
	case s.Max == 0:
		return command.Usagef("max: must be given, the greatest number of executors")
	case s.Memory == 0:
		return command.Usagef("memory: must be given, that of one executor")
	case s.Language == api.PoolGo && len(s.Command) == 0:
		return command.Usagef("command: must be given for --language go, the program that calls executor.Main")
	}
	if err := s.Class.UnmarshalText([]byte(o.class)); err != nil {
		return command.Usage(err)
	}
	if s.Dir, err = os.Getwd(); err != nil {
		return fmt.Errorf("find the working directory: %w", err)
	}
	own, err := inherited.Read()
	if err != nil {
		return err
	}
	s.Env, s.Inherited = os.Environ(), &own
	return command.Usage(fleet.Check(encoded(*s)))
}

// encoded returns s with texts that are not UTF-8 encoded, as the API has them.
func encoded(s api.PoolSpec) api.PoolSpec {
	s.Command, s.Env, s.Dir = cluster.EncodeTexts(s.Command), cluster.EncodeTexts(s.Env), cluster.EncodeText(s.Dir)
	return s
}

func first(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	return texts[0]
}
