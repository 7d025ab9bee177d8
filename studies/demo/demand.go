package demo

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/sandbox"
	"github.com/bellows-rm/bellows/node/agent"
	"github.com/bellows-rm/bellows/sim/trial"
	"github.com/bellows-rm/bellows/studies/boundeddisk"
)

// DemandResult is the result of the part demand.
type DemandResult struct {
	// Why says in one clause why the part was left out; empty if it was not.
	Why string `json:"why_left_out,omitempty"`

	Mix string `json:"mix,omitempty"` // its name; disk if it is empty
	// Build is the version of the program that did all runs, CPUs the number of processors of the machine.
	Build string          `json:"build"`
	CPUs  int             `json:"cpus"`
	Node  resource.Vector `json:"node"`
	// Speed is the stated speed of the disk, bytes per second, and Verified what it achieved before the first run.
	Speed    resource.Amount     `json:"disk_speed_bytes_per_s"`
	Verified []boundeddisk.Check `json:"verified"`
	// Tenths is how many tenths of their full size the inputs had: with less than 10, and with fewer rounds than the
	// comparison needs, everything is a trial.
	Tenths   int             `json:"tenths"`
	Repeats  int             `json:"repeats"` // runs of each program alone
	Programs []DemandProgram `json:"programs"`
	Runs     []DemandRun     `json:"runs"`      // in the order in which they ran
	Policies []DemandSummary `json:"summaries"` // one per policy
	// Least is a time below which no schedule can be: that of the job that takes longest alone, that of all programs at
	// a time that have cores, or of the cores for all CPU time, and that of the disk for all bytes.
	Least time.Duration `json:"lower_bound_ns"`
	Took  time.Duration `json:"took_ns"`
}

// DemandProgram is a program and what it does alone.
type DemandProgram struct {
	Name    string          `json:"name"` // with that of the stage, if the job has several
	Command string          `json:"command"`
	After   []string        `json:"after,omitempty"` // the programs of the job that end before it starts
	Alone   Figure          `json:"alone_s"`
	CPU     float64         `json:"cpu_s"`
	Bytes   float64         `json:"disk_bytes"`
	Peak    resource.Amount `json:"peak_disk_bytes_per_s"` // by its forecast
	// Cores is what it is granted, PeakCPU the most that its forecast demands in any of its phases, millicores.
	Cores   resource.Amount `json:"cpu_millicores,omitempty"`
	PeakCPU resource.Amount `json:"peak_cpu_millicores,omitempty"`
	Count   int             `json:"phases,omitempty"` // of its forecast
	Phases  curve           `json:"use"`              // over time, of the run whose time is the median
}

// DemandSummary is the result of one policy over all rounds.
type DemandSummary struct {
	Policy   string `json:"policy"`
	About    string `json:"about"`
	Rounds   int    `json:"rounds"`
	Makespan Figure `json:"makespan_s"`
	Wait     Figure `json:"mean_wait_s"`
	AtOnce   Figure `json:"running"`
	Slowdown Figure `json:"slowdown"` // of jobs, against their time alone
	Idle     Figure `json:"fragmentation_bytes"`
	Beyond   Figure `json:"over_allocation_bytes"`
	CPU      Figure `json:"cpu_s"` // of the programs
	Busy     Figure `json:"busy_s"`
	Stolen   Figure `json:"stolen_s"`
	Counted  Figure `json:"counted"`
	// Ratio is the makespan over that of the last policy in the same round: more than 1 is slower. nil for the last.
	Ratio *trial.Estimate `json:"makespan_ratio,omitempty"`
	// Sharing is nil if the mix is not about cores.
	Sharing *CoreSharing `json:"cores,omitempty"`
}

// CoreSharing is how a policy shared the cores, over all rounds.
type CoreSharing struct {
	JobTime   Figure          `json:"mean_job_time_s"` // from submission to end
	JobRatio  *trial.Estimate `json:"mean_job_time_ratio,omitempty"`
	Used      Figure          `json:"utilisation"` // CPU time of the programs / cores × makespan
	Over      Figure          `json:"over_allocated_s"`
	Stops     Figure          `json:"stops"`
	Suspended Figure          `json:"still_s"` // sum over the programs
	Resizes   Figure          `json:"resizes"`
}

// What the comparison needs to count.
const (
	fullTenths   = 10
	demandRounds = 9
	shortestRun  = 2 * time.Minute // on average of a round
	// The peaks of all programs, over the speed of the disk.
	leastPeaks, mostPeaks = 1.5, 3
)

// demandDisk is the size of the disk.
const demandDisk = 6 * resource.GiB

// Demand runs a mix of existing programs, one of DemandMixes, on a disk of the given speed, bytes per second, under
// the policies that the mix compares. Inputs have the given number of tenths of their full size. Every run is kept in
// dir, and is not run again. Before it returns, it removes everything else that it made, also after an error or when
// ctx ends.
func Demand(ctx context.Context, o Options, mix string, speed resource.Amount, tenths int, dir string) (*DemandResult,
	error) {
	d := &demandDemonstration{demonstration: begin(o), dir: dir, mix: demandMixOf(mix),
		result: &DemandResult{Mix: mix, Build: o.Build, CPUs: runtime.NumCPU(), Speed: speed, Tenths: tenths,
			Repeats: o.Repeats}}
	defer func() { d.result.Took = time.Since(d.begun) }()
	if err := d.real(ctx); err != nil {
		return nil, err
	}
	if d.result.Why != "" {
		d.say("the part demand is left out: %s", d.result.Why)
	}
	return d.result, nil
}

// demandDemonstration is a demonstration in progress.
type demandDemonstration struct {
	demonstration
	dir     string // where runs are kept
	mix     *demandMix
	jobs    []cluster.Job
	disk    *boundeddisk.Disk
	learned *learned
	result  *DemandResult
}

func (d *demandDemonstration) real(ctx context.Context) (err error) {
	if d.jobs, err = d.mix.jobs(); err != nil {
		return err
	}
	d.result.Node = d.mix.node(d.jobs, d.result.Speed)
	if d.result.Why = d.unfit(); d.result.Why != "" {
		return nil
	}
	if d.result.Why = sandbox.NoContainers(ctx, sandbox.Parent(d.Dir)); d.result.Why != "" || ctx.Err() != nil {
		return ctx.Err()
	}
	if d.disk, err = boundeddisk.New(sandbox.Parent(d.Dir), demandDisk, d.result.Speed); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.disk.Remove()) }()
	d.Dir = d.disk.Path()
	leave, err := d.enter(ctx, demandDisk/2)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave()) }()
	if err := d.verify(); err != nil {
		return err
	}
	d.say("making the inputs")
	if err := d.disk.Hasten(func() error {
		return d.mix.makeInputs(ctx, filepath.Join(d.work, sandbox.InputDir), d.result.Tenths)
	}); err != nil {
		return err
	}
	if err := d.learn(ctx); err != nil {
		return err
	}
	d.describe()
	if err := d.repeat(d.mix.policies, func(c *contender, round int) (time.Duration, error) {
		return d.runOne(ctx, c, round)
	}); err != nil {
		return err
	}
	d.result.summarise()
	return nil
}

// unfit says in one clause why the part is not possible here; empty if it may be.
func (d *demandDemonstration) unfit() string {
	if why := boundeddisk.Need(); why != "" {
		return why
	}
	if names := d.mix.lacking(); len(names) > 0 {
		return "there is no " + strings.Join(names, ", no ")
	}
	_, err := agent.Capacity(d.result.Node[resource.Memory], d.result.Node[resource.CPU])
	if err != nil {
		return err.Error()
	}
	return ""
}

// verify measures the disk before anything runs on it.
func (d *demandDemonstration) verify() (err error) {
	if d.result.Verified, err = d.disk.Verify(5 * time.Second); err != nil {
		return err
	}
	for _, c := range d.result.Verified {
		d.say("the disk of %s: %s under %s", rate(d.result.Speed), rate(c.Achieved), c.What)
		if !d.disk.Holds(c) {
			return fmt.Errorf("the disk of %s achieves %s under %s: the machine must be able to keep that speed; a lower "+
				"one may help", rate(d.result.Speed), rate(c.Achieved), c.What)
		}
	}
	return nil
}

// keep returns the path of the file in which something is kept.
func (d *demandDemonstration) keep(name string) string { return filepath.Join(d.dir, name+".json") }

// aloneIdentity returns what runs of programs alone must have in common with others, so that these can use them.
func (r *DemandResult) aloneIdentity() string {
	host, _ := os.Hostname()
	m := r.mix()
	return fmt.Sprintf("%x, %d tenths, %d times, %s, %d CPUs, %s, %s",
		sha256.Sum256([]byte(m.file(".yaml")+m.file(".sh"))), r.Tenths, r.Repeats, rate(r.Speed), r.CPUs, host, r.Build)
}

// identity returns what runs must have in common to be compared.
func (r *DemandResult) identity() string {
	return r.aloneIdentity() + ", " + resource.FormatCPU(r.Node[resource.CPU])
}

// describe records what the programs do alone.
func (d *demandDemonstration) describe() {
	for i := range d.jobs {
		for k := range d.jobs[i].Stages {
			d.result.Programs = append(d.result.Programs, d.describeOne(&d.jobs[i], k))
		}
	}
	d.say("peaks of the disk: %.2f times its speed; of the cores: %.2f times %s of %d", d.result.peaks(),
		d.result.corePeaks(), resource.FormatCPU(d.result.Node[resource.CPU]), d.result.CPUs)
}

func (d *demandDemonstration) describeOne(j *cluster.Job, stage int) DemandProgram {
	s, a := &j.Stages[stage], d.learned.by(j, stage)
	p := DemandProgram{Name: programName(j, stage), Command: s.Args[len(s.Args)-1], Peak: a.Peak,
		Cores: s.Ideal[resource.CPU], PeakCPU: a.PeakCPU, Count: a.Phases, Phases: a.Typical}
	for _, parent := range s.Parents {
		p.After = append(p.After, programName(j, int(parent)))
	}
	var took []float64
	for _, t := range a.Took {
		took = append(took, t.Seconds())
	}
	p.Alone = figure(took)
	p.Bytes, p.CPU = a.Typical.totals()
	return p
}

// mix returns the mix that was run.
func (r *DemandResult) mix() *demandMix { return demandMixOf(cmp.Or(r.Mix, demandMixes[0].name)) }

// program returns what a program does alone.
func (r *DemandResult) program(name string) *DemandProgram {
	return &r.Programs[slices.IndexFunc(r.Programs, func(p DemandProgram) bool { return p.Name == name })]
}

// peaks is the sum of the peaks of all programs over the speed of the disk.
func (r *DemandResult) peaks() (times float64) {
	for _, p := range r.Programs {
		times += float64(p.Peak) / float64(r.Speed)
	}
	return times
}

// corePeaks is the sum of the peaks of all programs over the cores.
func (r *DemandResult) corePeaks() (times float64) {
	for _, p := range r.Programs {
		times += float64(p.PeakCPU) / float64(r.Node[resource.CPU])
	}
	return times
}

// keptDemand is one file.
type keptDemand struct {
	Programs string     `json:"programs"`
	Run      *DemandRun `json:"run"`
}

func (k *keptDemand) of() string { return k.Programs }

// runOne runs the mix once, unless a kept run replaces it.
func (d *demandDemonstration) runOne(ctx context.Context, c *contender, round int) (time.Duration, error) {
	begun := time.Now()
	path := d.keep(fmt.Sprintf("%s-%d", c.Label, round))
	kept, how := keptDemand{}, "kept"
	found, err := readKept(path, d.result.identity(), &kept)
	if err == nil && !found {
		kept.Programs = d.result.identity()
		if kept.Run, err = d.runDemand(ctx, c); err == nil {
			kept.Run.Round, kept.Run.Took = round, time.Since(begun)
			how = fmt.Sprintf("%.0f s", kept.Run.Took.Seconds())
			err = writeKept(path, &kept)
		}
	}
	if err != nil {
		return 0, err
	}
	r := kept.Run
	d.result.Runs = append(d.result.Runs, *r)
	d.say("round %d of %d, %-8s makespan %5.1f s, CPU %.1f s of %.1f, stolen %.1f s (%s)", round, d.Rounds, c.Label+":",
		r.Makespan().Seconds(), r.CPU.Seconds(), r.Busy.Seconds(), r.Stolen.Seconds(), how)
	return r.Took, nil
}

// summarise sums up the runs of each policy.
func (r *DemandResult) summarise() {
	r.Policies, r.Least = nil, 0
	m := r.mix()
	for i := range m.policies {
		r.Policies = append(r.Policies, r.summaryOf(&m.policies[i]))
	}
	bytes, alone := 0.0, time.Duration(0)
	for i := range r.Programs {
		p := &r.Programs[i]
		r.Least, alone = max(r.Least, r.leastUntil(p)), alone+p.least()
	}
	if m.byCores() {
		cores := float64(r.Node[resource.CPU]) / float64(resource.Core)
		r.Least = max(r.Least,
			time.Duration(over(among(r.Runs, func(*DemandRun) bool { return true }), func(r *DemandRun) float64 {
				return float64(r.CPU)
			}).Least/cores))
	} else {
		r.Least = max(r.Least, alone/time.Duration(m.atOnce))
	}
	for i := range r.Runs { // what the disk transferred at least, with what is counted for no program
		all := 0.0
		for _, n := range r.Runs[i].Disk {
			all += float64(n)
		}
		if i == 0 || all < bytes {
			bytes = all
		}
	}
	r.Least = max(r.Least, time.Duration(bytes/float64(r.Speed)*float64(time.Second)))
}

func (p *DemandProgram) least() time.Duration {
	return time.Duration(p.Alone.Least * float64(time.Second))
}

// leastUntil is the least time until a program of a job ends, after those that must end before it starts.
func (r *DemandResult) leastUntil(p *DemandProgram) (t time.Duration) {
	for _, name := range p.After {
		t = max(t, r.leastUntil(r.program(name)))
	}
	return t + p.least()
}

func (r *DemandResult) of(c *contender) []*DemandRun {
	return among(r.Runs, func(r *DemandRun) bool { return r.Policy == c.Label })
}

func (r *DemandResult) summaryOf(c *contender) DemandSummary {
	runs := r.of(c)
	seconds := func(of func(*DemandRun) time.Duration) Figure {
		return over(runs, func(r *DemandRun) float64 { return of(r).Seconds() })
	}
	s := DemandSummary{Policy: c.Label, About: c.about, Rounds: len(runs),
		Makespan: seconds((*DemandRun).Makespan), Wait: seconds((*DemandRun).wait), AtOnce: over(runs, (*DemandRun).atOnce),
		Slowdown: over(runs, func(run *DemandRun) float64 { return run.slowdown(r) }),
		Idle:     over(runs, func(r *DemandRun) float64 { return r.Areas.Idle }),
		Beyond:   over(runs, func(r *DemandRun) float64 { return r.Areas.Beyond }),
		CPU:      seconds(func(r *DemandRun) time.Duration { return r.CPU }),
		Busy:     seconds(func(r *DemandRun) time.Duration { return r.Busy }),
		Stolen:   seconds(func(r *DemandRun) time.Duration { return r.Stolen }),
		Counted:  over(runs, func(r *DemandRun) float64 { return r.Counted })}
	last := r.of(r.mix().last())
	if r.mix().byCores() {
		s.Sharing = r.sharing(runs)
	}
	if c.Label != r.mix().last().Label {
		ratio := pairedRatio(runs, last, (*DemandRun).Makespan)
		s.Ratio = &ratio
		if s.Sharing != nil {
			times := pairedRatio(runs, last, (*DemandRun).jobTime)
			s.Sharing.JobRatio = &times
		}
	}
	return s
}

// sharing sums up how runs shared the cores.
func (r *DemandResult) sharing(runs []*DemandRun) *CoreSharing {
	cores := float64(r.Node[resource.CPU]) / float64(resource.Core)
	return &CoreSharing{
		JobTime:   over(runs, func(r *DemandRun) float64 { return r.jobTime().Seconds() }),
		Used:      over(runs, func(r *DemandRun) float64 { return r.CPU.Seconds() / (cores * r.Makespan().Seconds()) }),
		Over:      over(runs, func(r *DemandRun) float64 { return r.Over.Seconds() }),
		Stops:     over(runs, func(r *DemandRun) float64 { return float64(r.Stops) }),
		Suspended: over(runs, func(r *DemandRun) float64 { return r.Suspended.Seconds() }),
		Resizes:   over(runs, func(r *DemandRun) float64 { return float64(r.Resizes) }),
	}
}

// pairedRatio estimates a time of runs over that of the runs of the same rounds in others, with its confidence
// interval.
func pairedRatio(runs, others []*DemandRun, of func(*DemandRun) time.Duration) trial.Estimate {
	var ratios []float64
	for _, r := range runs {
		for _, o := range others {
			if o.Round == r.Round {
				ratios = append(ratios, of(r).Seconds()/of(o).Seconds())
			}
		}
	}
	return trial.GeometricMean(ratios)
}
