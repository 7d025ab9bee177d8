package framework

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// Task is a task of a data-parallel framework whose settings determine how much it spills with how much memory:
// HadoopMapper, HadoopReducer, SparkSort or TezReducer (YARN-ME section 2). Memory is the heap of the task, in
// bytes, at least 1.
//
// With enough memory nothing is spilled; below that, spilled bytes may rise and fall with memory.
type Task interface {
	Name() string
	// Check returns an error that names the first setting that is out of range, with its value and its limit.
	Check() error
	// Buffer returns how much of the memory is filled before the first spill.
	Buffer(memory resource.Amount) resource.Amount
	// SpilledBytes returns the bytes that are written to disk because memory is too small. It is 0 for a well-sized
	// task.
	SpilledBytes(memory resource.Amount) resource.Amount
}

// Run is one profiling run.
type Run struct {
	Memory   resource.Amount // heap of the task
	Duration time.Duration
	// Spilled and Spills are the spilled bytes and the number of spills, 0 if unknown. Only a SparkSort without
	// expansion needs them, of the under-sized run.
	Spilled resource.Amount
	Spills  int
}

// Model is the run time of a task of a framework at every size:
// T(memory) = Ideal + spilled(memory)/SpillRate (YARN-ME section 2.3).
type Model struct {
	Task
	Ideal time.Duration // of the well-sized task
	// SpillRate is the paper's diskRate: spilled bytes per second by which the task takes longer, writing and reading back
	// included.
	SpillRate float64
}

// Fit fits a model to two runs, one well-sized, one under-sized, as the paper does. It returns an error if, by the
// settings of f, the first run spilled or the second did not, or if the second was not slower.
func Fit(f Task, well, under Run) (Model, error) {
	if err := f.Check(); err != nil {
		return Model{}, err
	}
	for _, r := range []struct {
		name string
		Run
	}{{"well-sized run", well}, {"under-sized run", under}} {
		if err := r.check(); err != nil {
			return Model{}, fmt.Errorf("%s: %w", r.name, err)
		}
	}
	if sort, ok := f.(SparkSort); ok {
		var err error
		if f, err = sort.Learn(under.Memory, under.Spilled, under.Spills); err != nil {
			return Model{}, err
		}
	}
	if n := f.SpilledBytes(well.Memory); n > 0 {
		return Model{}, fmt.Errorf("well-sized run: with %s it spills %s: %s", resource.FormatMemory(well.Memory),
			resource.FormatMemory(n), enough(f))
	}
	spilled := f.SpilledBytes(under.Memory)
	if spilled == 0 {
		return Model{}, fmt.Errorf("under-sized run: with %s it spills nothing: %s", resource.FormatMemory(under.Memory),
			enough(f))
	}
	lost := under.Duration - well.Duration
	if lost <= 0 {
		return Model{}, fmt.Errorf(
			"under-sized run: its duration %v must be longer than that of the well-sized one, %v, or spilling costs nothing",
			under.Duration, well.Duration)
	}
	return Model{Task: f, Ideal: well.Duration, SpillRate: float64(spilled) / lost.Seconds()}, nil
}

func (r Run) check() error {
	if r.Memory <= 0 || r.Memory > maxMemory {
		return fmt.Errorf("memory %d bytes: must be 1 to %d", r.Memory, maxMemory)
	}
	if r.Duration <= 0 || r.Duration.Seconds() > maxSeconds {
		return fmt.Errorf("duration %d: must be above 0 and at most %.0f s", r.Duration, maxSeconds)
	}
	return nil
}

// enough says with how much memory f is well-sized.
func enough(f Task) string {
	if ideal, ok := IdealMemory(f); ok {
		return "by its settings it is well-sized from " + resource.FormatMemory(ideal)
	}
	return "by its settings it is never well-sized, whatever its memory"
}

// IdealMemory returns the smallest memory with which f spills nothing. ok is false if there is none: a Hadoop reducer
// with default settings always writes all its input.
func IdealMemory(f Task) (memory resource.Amount, ok bool) {
	if f.SpilledBytes(maxMemory) > 0 {
		return 0, false
	}
	return 1 + resource.Amount(sort.Search(int(maxMemory), func(m int) bool {
		return f.SpilledBytes(resource.Amount(m)+1) == 0
	})), true
}

// Duration returns the predicted run time with memory bytes.
func (m Model) Duration(memory resource.Amount) time.Duration {
	seconds := m.Ideal.Seconds() + float64(m.SpilledBytes(memory))/m.SpillRate
	if seconds >= math.MaxInt64/1e9 {
		return math.MaxInt64
	}
	return time.Duration(math.Round(seconds * 1e9))
}

// Slowdown returns the predicted run time divided by the run time of the well-sized task.
func (m Model) Slowdown(memory resource.Amount) float64 {
	return 1 + float64(m.SpilledBytes(memory))/m.SpillRate/m.Ideal.Seconds()
}

// missedShare is the largest difference between slowdowns of the elasticity and of the model, as a share of the largest
// penalty.
const missedShare = 0.01

// Elasticity returns the model in the scheduler's form, from least, the smallest memory that a scheduler may grant, to
// the ideal memory, which it returns too. least is in bytes, at least 1 and below the ideal.
//
// A task with the same penalty at all sizes becomes cluster.Step. A task whose spilled bytes follow the paper's
// formula, with memory as the buffer and the ideal as the input, becomes cluster.SawTooth. Any other task becomes
// cluster.Points, with a point wherever the penalty jumps by more than one percent of the largest penalty.
func (m Model) Elasticity(least resource.Amount) (e cluster.Elasticity, ideal resource.Amount, err error) {
	ideal, ok := IdealMemory(m.Task)
	switch {
	case !ok:
		return e, 0, errors.New("elasticity: " + enough(m.Task))
	case least < 1 || least >= ideal:
		return e, 0, fmt.Errorf("least memory %s: must be at least 1 byte and below the ideal, %s",
			resource.FormatMemory(least), resource.FormatMemoryExact(ideal))
	}
	points := m.corners(least, ideal)
	whole := 1 + float64(m.largest())/m.SpillRate/m.Ideal.Seconds()
	for _, simple := range []cluster.Elasticity{
		{Kind: cluster.Step, Factor: points[0].Slowdown},
		{Kind: cluster.SawTooth, Factor: whole},
	} {
		if agrees(simple, ideal, points) {
			e = simple
			break
		}
	}
	if e.Kind == cluster.NotElastic {
		e = cluster.Elasticity{Kind: cluster.Points, Points: points}
	}
	for _, p := range points {
		e.DiskRate = max(e.DiskRate, m.DiskRate(p.Memory))
	}
	return e, ideal, nil
}

// largest returns the spilled bytes if all data are spilled.
func (m Model) largest() resource.Amount {
	switch f := m.Task.(type) {
	case HadoopReducer:
		return f.Input
	case TezReducer:
		return f.Input - resource.Amount(f.LocalShare*float64(f.Input))
	case SparkSort:
		return f.Input
	case HadoopMapper:
		return f.Output
	}
	return m.SpilledBytes(1)
}

// DiskRate returns the disk bandwidth that the task needs with memory bytes: the spilled bytes, each written once and
// read once, divided by the run time, in bytes per second.
func (m Model) DiskRate(memory resource.Amount) resource.Amount {
	return resource.Amount(2 * float64(m.SpilledBytes(memory)) / m.Duration(memory).Seconds())
}

// agrees reports whether e gives the slowdowns of points, and of the lines between them, within a tolerance. The place
// of a jump may differ by a thousandth of the ideal.
func agrees(e cluster.Elasticity, ideal resource.Amount, points []cluster.ElasticityPoint) bool {
	as := cluster.Elasticity{Kind: cluster.Points, Points: points}
	worst := 0.0
	for _, p := range points {
		worst = max(worst, p.Slowdown-1)
	}
	near := func(memory resource.Amount) bool {
		want := as.Slowdown(ideal, memory)
		return slices.ContainsFunc([]resource.Amount{0, -ideal / 1000, ideal / 1000}, func(beside resource.Amount) bool {
			return memory+beside > 0 && math.Abs(e.Slowdown(ideal, memory+beside)-want) <= 2*missedShare*worst
		})
	}
	for i, p := range points {
		if !near(p.Memory) || (i > 0 && !near((p.Memory+points[i-1].Memory)/2)) {
			return false
		}
	}
	return true
}

// grid is the number of equal steps that are searched for jumps; a step is halved where the penalty is not a straight
// line.
const grid = 256

// corners returns points such that straight lines between them differ from the model by at most missedShare of the
// largest penalty.
func (m Model) corners(least, ideal resource.Amount) []cluster.ElasticityPoint {
	worst := 0.0
	var at []resource.Amount
	for i := range resource.Amount(grid + 1) {
		memory := least + resource.Amount(float64(ideal-least)*float64(i)/grid)
		at = append(at, memory)
		worst = max(worst, m.Slowdown(memory)-1)
	}
	at = slices.Compact(at)
	var all []cluster.ElasticityPoint
	for i := 1; i < len(at); i++ {
		all = append(all, cluster.ElasticityPoint{Memory: at[i-1], Slowdown: m.Slowdown(at[i-1])})
		all = m.refine(all, at[i-1], at[i], missedShare*worst)
	}
	all = append(all, cluster.ElasticityPoint{Memory: ideal, Slowdown: 1})
	return straightened(all, missedShare*worst)
}

// refine adds the points between from and to at which the model leaves the straight line between them.
func (m Model) refine(all []cluster.ElasticityPoint, from, to resource.Amount, near float64) []cluster.ElasticityPoint {
	a, b := m.Slowdown(from), m.Slowdown(to)
	if to-from <= 1 || math.Abs(b-a) <= near {
		return all
	}
	quarter := func(i resource.Amount) bool { // on the line
		memory := from + (to-from)*i/4
		t := float64(memory-from) / float64(to-from)
		return math.Abs(m.Slowdown(memory)-a-t*(b-a)) <= near/4
	}
	if to-from > 4 && quarter(1) && quarter(2) && quarter(3) {
		return all
	}
	middle := from + (to-from)/2
	all = m.refine(all, from, middle, near)
	all = append(all, cluster.ElasticityPoint{Memory: middle, Slowdown: m.Slowdown(middle)})
	return m.refine(all, middle, to, near)
}

// straightened omits points that lie on the line between the remaining points.
func straightened(p []cluster.ElasticityPoint, near float64) []cluster.ElasticityPoint {
	kept := p[:1:1]
	for i := 1; i < len(p); {
		j := i
		for j+1 < len(p) && onLine(kept[len(kept)-1], p[j+1], p[i:j+1], near) {
			j++
		}
		kept = append(kept, p[j])
		i = j + 1
	}
	return kept
}

func onLine(a, b cluster.ElasticityPoint, between []cluster.ElasticityPoint, near float64) bool {
	for _, x := range between {
		t := float64(x.Memory-a.Memory) / float64(b.Memory-a.Memory)
		if math.Abs(a.Slowdown+t*(b.Slowdown-a.Slowdown)-x.Slowdown) > near {
			return false
		}
	}
	return true
}
