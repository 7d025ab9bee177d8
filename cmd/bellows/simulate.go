package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/cmd/internal/command"
	"github.com/bellows-rm/bellows/cmd/internal/flags"
	"github.com/bellows-rm/bellows/cmd/internal/terminal"
	"github.com/bellows-rm/bellows/policy"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/timeline"
	"github.com/bellows-rm/bellows/workload"
)

const simulateLong = `Run a workload under one or more policies on a simulated cluster and print what
came of each: the mean time from submission to end of a job and the makespan,
each also as a multiple of the least, which no policy of its kind, elastic or
not, can beat; the share of memory that was granted; and the share of tasks that
were under-sized.

A workload is a file (--format bellows, or dss for the YARN-ME authors' traces)
or is generated: uniform and exponential draw jobs as section 6 of that paper,
flex draws jobs of class FLEX whose memory grows while they run.

Nodes work by heartbeats, as in YARN, or at once, as bellows does on one machine
(--heartbeat 0). --am-heartbeat is how often the application master of a job
collects what the job was granted. Unless given, both are 1s for dss traces and
generated workloads, and 0 for bellows workloads.

A policy given as NAME@pool runs on one node as large as all together, where no
memory is fragmented and any number of tasks starts per heartbeat: srjf@pool is
the idealised Meganode of section 6.2 of that paper. --pool does so for all.

NAME@SIZE, such as fair@8GB, puts the tasks of FLEX jobs into containers of that
size for life instead, and NAME@peak into containers of the most that they will
hold, which nobody knows in advance. A second table tells how long FLEX
containers were suspended and waited for memory to start in, what went to swap,
and how many were killed by the memory manager or for lack of memory.

Policies run at the same time on all cores; the results do not depend on that.
simulation.cpu_s is the CPU time of one policy: that of the whole process if it
runs alone, else that of its thread, which leaves out most garbage collection.`

const simulateExample = `  bellows simulate --workload uniform --jobs 50 --nodes 50 --policy fair,yarn-me
  bellows simulate --workload uniform --penalty sawtooth:1.5 \
      --policy fair,yarn-me,srjf@pool
  bellows simulate --workload flex --policy pufferfish,fair@4GB,fair@peak
  bellows simulate --workload mix.yaml --node-memory 4GiB --node-cpus 2
  bellows simulate --workload u100.trace --format dss --nodes 100 \
      --policy fair,yarn-me --set fair.reservations=true \
      --penalty sawtooth:1.5 --json`

// simulateOptions are the flags of simulate.
type simulateOptions struct {
	workload workloadOptions

	nodes        int
	node         resource.Vector
	heartbeat    time.Duration
	perHeartbeat int
	amHeartbeat  time.Duration
	am           resource.Vector
	launchDelay  time.Duration
	truth        truthOptions
	flex         flexOptions

	policies []string // as given: NAME[@pool][@SIZE|@peak]
	pool     bool     // all of them run on one node as large as all
	settings map[string]string
	parallel int

	asJSON, perJob bool
	intervals      bool // work out the interval bound too
	jobsFile       string
	quiet          bool
}

func simulateCommand() *cobra.Command {
	o := simulateDefaults()
	cmd := &cobra.Command{
		Use:     "simulate --workload FILE|uniform|exponential|flex",
		Short:   "Simulate a workload under several policies",
		Long:    simulateLong,
		Example: simulateExample,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.workload.name == "" {
				return command.Usagef("workload: must be given: a file, or uniform, exponential or flex")
			}
			if err := o.workload.open(); err != nil {
				return err
			}
			o.settle(cmd)
			return o.run(cmd)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.workload.flags(f)
	o.clusterFlags(f)
	f.BoolVar(&o.pool, "pool", false, "run every policy on one node as large as all: the Meganode of YARN-ME")
	f.StringSliceVar(&o.policies, "policy", o.policies, "`names` of policies to compare, with @pool on one node as large as all, with @SIZE or @peak FLEX jobs in fixed containers: "+strings.Join(policy.Names(), ", "))
	f.Var(flags.Settings(o.settings), "set", "a policy's setting; may be given again")
	f.Var(flags.Count(&o.parallel, 0, 1<<10), "parallel", "policies that run at the same time; 0: one per core")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	f.BoolVar(&o.intervals, "bounds", false, "with the interval bound, a better least job runtime; takes seconds")
	f.BoolVar(&o.perJob, "per-job", false, "with every job's times")
	f.StringVar(&o.jobsFile, "jobs-json", "", "`file` to write every job's times to, as JSON")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show no progress")
	o.profileFlags(cmd)
	_ = cmd.RegisterFlagCompletionFunc("policy", cobra.FixedCompletions(policy.Names(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// settle fills the defaults that depend on other flags.
func (o *simulateOptions) settle(cmd *cobra.Command) {
	changed := cmd.Flags().Changed
	o.workload.settle(changed)
	if o.workload.ours() {
		if !changed("nodes") {
			o.nodes = 1
		}
		o.takeCluster(changed)
		if !changed("heartbeat") {
			o.heartbeat = 0
		}
	}
	if o.workload.breathes() {
		o.takeFlexCluster(changed)
	}
	o.truth.settle(o, changed)
	o.flex.settle(changed)
	if o.parallel == 0 {
		o.parallel = runtime.NumCPU()
	}
	// Jobs of our own format bring the coordinators that they want along.
	if !changed("am-heartbeat") && (o.heartbeat == 0 || o.workload.ours() && o.truth.acquire == "") {
		o.amHeartbeat = 0
	}
	if !changed("starts-per-heartbeat") && o.heartbeat == 0 {
		o.perHeartbeat = 0
	}
}

// takeFlexCluster takes a cluster that is short of memory for the generated FLEX jobs where no flag says otherwise.
func (o *simulateOptions) takeFlexCluster(changed func(string) bool) {
	if !changed("nodes") {
		o.nodes = 4
	}
	if !changed("node-memory") {
		o.node[resource.Memory] = 24 * resource.GB
	}
	if !changed("node-cpus") {
		o.node[resource.CPU] = 8 * resource.Core
	}
	if !changed("machine") {
		o.truth.machine = "ssd"
	}
	if !changed("swap") && o.truth.machine != "ideal" {
		o.truth.swap = 64 * resource.GB
	}
	if !changed("heartbeat") {
		o.heartbeat = 0
	}
}

// takeCluster takes the cluster that a workload file suggests where no flag says otherwise.
func (o *simulateOptions) takeCluster(changed func(string) bool) {
	c := o.workload.cluster()
	if c == nil {
		return
	}
	if !changed("nodes") {
		o.nodes = c.Nodes
	}
	flags := [resource.NumKinds]string{"node-cpus", "node-memory", "node-disk", "node-network"}
	for k, flag := range flags {
		if !changed(flag) {
			o.node[k] = c.Node[k]
		}
	}
}

func (o *simulateOptions) config() (sim.Config, error) {
	c := sim.Config{
		Nodes: sim.Uniform(o.nodes, o.node), Heartbeat: o.heartbeat, StartsPerHeartbeat: o.perHeartbeat,
		CoordinatorHeartbeat: o.amHeartbeat, Coordinator: o.am, LaunchDelay: o.launchDelay,
	}
	if o.amHeartbeat > 0 && o.heartbeat == 0 {
		return c, command.Usagef("am-heartbeat %v: needs a node heartbeat, but heartbeat is 0", o.amHeartbeat)
	}
	if err := o.truth.apply(&c); err != nil {
		return c, command.Usage(err)
	}
	if err := o.flex.apply(&c); err != nil {
		return c, err
	}
	return c, command.Usage(c.Check())
}

func (o *simulateOptions) run(cmd *cobra.Command) error {
	// A run keeps most of what it allocates and ends soon: collecting garbage a quarter as often saves a tenth of the time.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	config, err := o.config()
	if err != nil {
		return err
	}
	contenders, err := o.contenders(config)
	if err != nil {
		return err
	}
	w, err := o.workload.load(cmd.Context())
	if err != nil {
		return err
	}
	w = o.sized(w)
	for _, c := range contenders {
		if err := c.checkFits(c.box.fill(w)); err != nil {
			return command.Usage(err)
		}
	}
	r := &simulation{options: o, config: config, workload: w, contenders: contenders}
	if !o.quiet {
		r.progress = terminal.NewProgress(cmd.ErrOrStderr(), "jobs ended")
	}
	r.run(cmd.Context())
	return r.report(cmd.OutOrStdout(), cmd.ErrOrStderr())
}

// contender is a policy with the cluster that it runs on.
type contender struct {
	policy policy.Policy
	pooled bool // on one node as large as all
	box    box  // for FLEX jobs
	config sim.Config
}

// poolSuffix marks a policy that runs on one node as large as all.
const poolSuffix = "@pool"

// title is the policy's name with its suffixes.
func (c *contender) title() string { return titleOf(c.policy.Name(), c.pooled, c.box.String()) }

func titleOf(name string, pooled bool, box string) string {
	if pooled {
		name += poolSuffix
	}
	if box != "" {
		name += "@" + box
	}
	return name
}

// parseContender reads NAME[@pool][@SIZE|@peak].
func parseContender(text string) (c contender, name string, err error) {
	parts := strings.Split(text, "@")
	for _, suffix := range parts[1:] {
		if "@"+suffix == poolSuffix {
			c.pooled = true
		} else if c.box, err = parseBox(suffix); err != nil {
			return c, parts[0], command.Usagef("policy %q: what follows @ %w", text, err)
		}
	}
	return c, parts[0], nil
}

// contenders returns the policies that were asked for. A pooled node does at once what its nodes would have done: it starts
// any number of tasks per heartbeat.
func (o *simulateOptions) contenders(config sim.Config) ([]contender, error) {
	pooled := config
	pooled.Nodes, pooled.StartsPerHeartbeat = sim.Pool(config.Nodes), 0
	var all []contender
	for _, text := range o.policies {
		c, name, err := parseContender(text)
		if err != nil {
			return nil, err
		}
		p, err := newPolicies([]string{name}, o.settings)
		if err != nil {
			return nil, err
		}
		c.policy, c.pooled, c.config = p[0], o.pool || c.pooled, config
		if c.pooled {
			c.config.Nodes, c.config.StartsPerHeartbeat = pooled.Nodes, pooled.StartsPerHeartbeat
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, command.Usagef("policy: must name at least one of %s", strings.Join(policy.Names(), ", "))
	}
	return all, nil
}

// sized lets FLEX containers of w start with what the flags say.
func (o *simulateOptions) sized(w *workload.Workload) *workload.Workload {
	if o.flex.minContainer == 0 {
		return w
	}
	return workload.StartWith(w, o.flex.minContainer)
}

// checkFits returns an error if the policy could never start some task, before anything runs.
func (c *contender) checkFits(w *workload.Workload) error {
	s := cluster.NewSnapshot()
	for i := range c.config.Nodes {
		if err := s.Apply(0, &cluster.Event{Kind: cluster.NodeJoined, NewNode: &c.config.Nodes[i]}); err != nil {
			return err
		}
	}
	for i := range w.Jobs {
		if err := policy.CheckRuns(c.policy, s, &w.Jobs[i].Job); err != nil {
			return err
		}
	}
	return nil
}

// simulation is one call of simulate: the same workload under several policies.
type simulation struct {
	options    *simulateOptions
	config     sim.Config // of contenders that are not pooled
	workload   *workload.Workload
	contenders []contender
	progress   *terminal.Progress
	outcomes   []outcome
}

// outcome is what came of one policy.
type outcome struct {
	result    *sim.Result
	err       error
	cpu, wall time.Duration
}

// run runs all policies, some of them at the same time.
func (s *simulation) run(ctx context.Context) {
	s.outcomes = make([]outcome, len(s.contenders))
	slots := make(chan struct{}, s.options.parallel)
	var all sync.WaitGroup
	for i := range s.contenders {
		slots <- struct{}{}
		if ctx.Err() != nil {
			s.outcomes[i].err = fmt.Errorf("interrupted")
			<-slots
			continue
		}
		all.Go(func() {
			defer func() { <-slots }()
			s.outcomes[i] = s.one(ctx, i)
		})
	}
	all.Wait()
	s.progress.Clear()
}

// alone reports whether policies run one after the other.
func (s *simulation) alone() bool { return s.options.parallel == 1 || len(s.contenders) == 1 }

// one runs one policy on its own copy of the jobs. An interrupt ends the process where the simulation cannot be told.
func (s *simulation) one(ctx context.Context, i int) outcome {
	c := s.contenders[i].config
	if s.progress != nil {
		title := s.contenders[i].title()
		c.Progress = func(ended, jobs int, _ timeline.Time) { s.progress.Set(title, ended, jobs) }
	}
	w := workload.Workload{Jobs: slices.Clone(s.contenders[i].box.fill(s.workload).Jobs)}
	done := make(chan outcome, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		clock := int32(unix.CLOCK_THREAD_CPUTIME_ID)
		if s.alone() {
			clock = unix.CLOCK_PROCESS_CPUTIME_ID
		}
		cpu, begin := cpuTime(clock), time.Now()
		var o outcome
		o.result, o.err = sim.Run(c, &w, s.contenders[i].policy)
		o.wall, o.cpu = time.Since(begin), cpuTime(clock)-cpu
		done <- o
	}()
	select {
	case o := <-done:
		return o
	case <-ctx.Done():
		return outcome{err: fmt.Errorf("interrupted")}
	}
}

// cpuTime returns the CPU time that a clock has counted so far.
func cpuTime(clock int32) time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(clock, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
