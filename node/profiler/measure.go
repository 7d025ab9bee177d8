package profiler

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
)

// Measurement is the measurements of one run.
type Measurement struct {
	Duration time.Duration
	// CPU is the CPU time of the program and of the children that it waited for.
	CPU time.Duration
	// Others is the mean CPU use of other programs on the whole machine during the run, in millicores; meaningful only
	// if OthersKnown. Time that a hypervisor took from the machine counts.
	Others      resource.Amount
	OthersKnown bool
	// Written is the bytes that the program wrote to files, into the page cache or past it.
	Written resource.Amount
	// Peak is the largest memory use of the container in bytes, page cache included; 0 means unknown.
	Peak resource.Amount
	// Resident is the largest resident memory of one process of the program in bytes; 0 means unknown.
	Resident resource.Amount
	// MajorFaults is the number of the program's page faults that waited for the disk.
	MajorFaults int64
	// Failure is one clause that says why the run does not count (it was killed for memory, or ended with an exit
	// code); empty if it counts.
	Failure string
}

// Runner runs the program once with the given memory in bytes. An error means that nothing was measured, and that
// another try would fail, too.
type Runner interface {
	Run(ctx context.Context, memory resource.Amount) (Measurement, error)
}

// Result is the measurements at all sizes.
type Result struct {
	Fitted, HeldOut []profile.Sample
	// Failed are the sizes at which a run failed, ascending; they are in neither list.
	Failed []Failure
	// Beside has further facts about the runs at each size.
	Beside map[resource.Amount]Beside
}

// Failure is a size at which the program does not work.
type Failure struct {
	Memory resource.Amount
	Why    string
}

// Beside is the facts about the runs at one size other than their run times.
type Beside struct {
	Peak   resource.Amount // largest memory use
	CPU    time.Duration   // median CPU time of the runs that count
	Others resource.Amount // largest CPU use of other programs during a run that counts, millicores; 0 if unknown
	// SetAside is the number of runs that do not count because other programs used much more CPU during them.
	SetAside int
}

func sortedBySize(s []profile.Sample) []profile.Sample {
	slices.SortFunc(s, func(a, b profile.Sample) int { return cmp.Compare(a.Memory, b.Memory) })
	return s
}

// Measure carries out a plan. A size whose run fails is not run again. seen, if not nil, is called with every run: done
// so far, and the number of all runs, which grows with sizes that are chosen on the way.
func Measure(ctx context.Context, r Runner, p *Plan, seen func(done, all int, run Run, m Measurement)) (*Result,
	error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	m := measuring{Plan: *p, runner: r, seen: seen, runs: map[resource.Amount][]Measurement{},
		failed: map[resource.Amount]string{}}
	m.Fitted, m.HeldOut = slices.Clone(p.Fitted), slices.Clone(p.HeldOut)
	m.all = 1 + p.Repeats*(len(p.Fitted)+p.Choose+len(p.HeldOut)+p.Try)
	for _, step := range []func(context.Context) error{m.warmUp, m.givenSizes, m.searchLeast, m.chooseFitted,
		m.chooseHeldOut, m.repeat, m.settle} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return m.result(), nil
}

// measuring is a plan in progress. Chosen sizes are added to its sizes.
type measuring struct {
	Plan
	runner    Runner
	seen      func(done, all int, run Run, m Measurement)
	done, all int
	runs      map[resource.Amount][]Measurement // runs that count, per size
	failed    map[resource.Amount]string        // reason, per size that does not work
}

// run runs the program once and reports whether it worked. It does not run a size that failed before.
func (m *measuring) run(ctx context.Context, run Run) (works bool, err error) {
	m.done++
	if _, failed := m.failed[run.Memory]; failed {
		return false, nil
	}
	got, err := m.runner.Run(ctx, run.Memory)
	if err != nil {
		return false, fmt.Errorf("run with %s: %w", resource.FormatMemory(run.Memory), err)
	}
	if got.Failure != "" {
		m.failed[run.Memory] = got.Failure
		delete(m.runs, run.Memory)
	} else if run.Round > 0 {
		m.runs[run.Memory] = append(m.runs[run.Memory], got)
	}
	if m.seen != nil {
		m.all = max(m.all, m.done)
		m.seen(m.done, m.all, run, got)
	}
	return got.Failure == "", nil
}

// warmUp runs the program with the most memory; the run does not count.
func (m *measuring) warmUp(ctx context.Context) error {
	_, err := m.run(ctx, Run{slices.Max(m.Fitted), 0})
	return err
}

// givenSizes runs each size of the plan once.
func (m *measuring) givenSizes(ctx context.Context) error { return m.round(ctx, 1, m.sizes()) }

func (m *measuring) round(ctx context.Context, round int, sizes []resource.Amount) error {
	for _, size := range sizes {
		if _, err := m.run(ctx, Run{size, round}); err != nil {
			return err
		}
	}
	return nil
}

// sizes are all sizes that are not known to fail, ascending.
func (m *measuring) sizes() []resource.Amount {
	sizes := slices.DeleteFunc(slices.Concat(m.Fitted, m.HeldOut), func(size resource.Amount) bool {
		return m.failed[size] != ""
	})
	slices.Sort(sizes)
	return sizes
}

// searchLeast bisects, geometrically, the range between the largest size that failed and the smallest size above it
// that works. The smallest size that works is added to the fitted sizes.
func (m *measuring) searchLeast(ctx context.Context) error {
	working := m.working(m.Fitted)
	if !m.Search || len(m.failed) == 0 || len(working) == 0 {
		return nil
	}
	high := working[0].Memory
	low := m.largestFailed(high)
	for range mostSearched {
		at, ok := middle(low, high)
		if !ok || low == 0 {
			break
		}
		m.all++
		works, err := m.run(ctx, Run{at, 1})
		switch {
		case err != nil:
			return err
		case !works:
			low = at
		default:
			high = at
		}
	}
	for size := range m.runs { // intermediate sizes are not repeated
		if size != high && !slices.Contains(m.Fitted, size) && !slices.Contains(m.HeldOut, size) {
			delete(m.runs, size)
		}
	}
	if !slices.Contains(m.Fitted, high) {
		m.Fitted = append(m.Fitted, high)
	}
	return nil
}

// largestFailed returns the largest size below limit that failed, 0 if there is none.
func (m *measuring) largestFailed(limit resource.Amount) resource.Amount {
	largest := resource.Amount(0)
	for size := range m.failed {
		if size < limit {
			largest = max(largest, size)
		}
	}
	return largest
}

// chooseFitted runs the program where its run time bends most, as often as the plan says, and adds these sizes to the
// fitted sizes.
func (m *measuring) chooseFitted(ctx context.Context) error {
	failed := func(size resource.Amount) bool { return m.failed[size] != "" || slices.Contains(m.HeldOut, size) }
	for range m.Choose {
		at, ok := bend(m.working(m.Fitted), failed)
		if !ok {
			break
		}
		if _, err := m.run(ctx, Run{at, 1}); err != nil {
			return err
		}
		m.Fitted = append(m.Fitted, at)
	}
	return nil
}

// chooseHeldOut runs the program in the widest gaps between the fitted sizes.
func (m *measuring) chooseHeldOut(ctx context.Context) error {
	chosen := gaps(m.sizes(), m.Try)
	m.HeldOut = append(m.HeldOut, chosen...)
	return m.round(ctx, 1, chosen)
}

// repeat runs the sizes round after round, every other round from the largest size down, so that a slowing or
// accelerating machine does not look like an effect of memory.
func (m *measuring) repeat(ctx context.Context) error {
	for round := 2; round <= m.Repeats; round++ {
		sizes := m.sizes()
		if round%2 == 0 {
			slices.Reverse(sizes)
		}
		if err := m.round(ctx, round, sizes); err != nil {
			return err
		}
	}
	return nil
}

// settle repeats the sizes whose repeats differ too much, or were disturbed, until that is no longer so or the plan's
// largest number of repeats is reached.
func (m *measuring) settle(ctx context.Context) error {
	for round := m.Repeats + 1; round <= m.MostRepeats; round++ {
		unsettled := slices.DeleteFunc(m.sizes(), func(size resource.Amount) bool { return settled(m.runs[size]) })
		if err := m.round(ctx, round, unsettled); err != nil {
			return err
		}
	}
	return nil
}

// settled reports whether two or more of the repeats were undisturbed and differ little.
func settled(runs []Measurement) bool {
	counting, quiet := undisturbed(runs)
	noise, known := profile.Sample{Repeats: durations(counting)}.Noise()
	return quiet && known && noise <= profile.MostNoise
}

// working returns samples of the sizes that work, ascending.
func (m *measuring) working(sizes []resource.Amount) []profile.Sample {
	least := leastWritten(m.runs)
	var samples []profile.Sample
	for _, size := range sizes {
		if runs := m.runs[size]; len(runs) > 0 {
			counting, _ := undisturbed(runs)
			samples = append(samples, sample(size, counting, least))
		}
	}
	return sortedBySize(samples)
}

func (m *measuring) result() *Result {
	res := &Result{Fitted: m.working(m.Fitted), HeldOut: m.working(m.HeldOut), Beside: map[resource.Amount]Beside{}}
	for _, size := range slices.Sorted(maps.Keys(m.failed)) {
		res.Failed = append(res.Failed, Failure{size, m.failed[size]})
	}
	for size, runs := range m.runs {
		counting, _ := undisturbed(runs)
		b := Beside{SetAside: len(runs) - len(counting)}
		var cpu []time.Duration
		for _, r := range counting {
			b.Peak = max(b.Peak, r.Peak)
			cpu = append(cpu, r.CPU)
			if r.OthersKnown {
				b.Others = max(b.Others, r.Others)
			}
		}
		b.CPU = profile.Median(cpu)
		res.Beside[size] = b
	}
	return res
}

// leastWritten is the bytes that the program writes when it does not spill: its results. It is a minimum of medians per
// size, so that a stray page of another program does not become the measure of all sizes.
func leastWritten(all map[resource.Amount][]Measurement) resource.Amount {
	least := resource.Amount(-1)
	for _, runs := range all {
		if w := medianWritten(runs); least < 0 || w < least {
			least = w
		}
	}
	return least
}

func medianWritten(runs []Measurement) resource.Amount {
	written := make([]resource.Amount, len(runs))
	for i := range runs {
		written[i] = runs[i].Written
	}
	slices.Sort(written)
	return written[(len(written)-1)/2]
}

// sample condenses the repeats at one size. The fastest run stands for the size: other programs on the machine only add
// time.
func sample(memory resource.Amount, runs []Measurement, least resource.Amount) profile.Sample {
	s := profile.Sample{Memory: memory, Spilled: max(0, medianWritten(runs)-least), SpilledKnown: true,
		Repeats: durations(runs)}
	s.Duration = profile.Fastest(s.Repeats)
	return s
}

func durations(runs []Measurement) []time.Duration {
	var d []time.Duration
	for _, m := range runs {
		d = append(d, m.Duration)
	}
	return d
}
