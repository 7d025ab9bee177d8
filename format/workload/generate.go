package workload

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Distribution is how a generator draws tasks per job, memory and duration (YARN-ME section 6.1). Arrivals are always
// uniform.
type Distribution uint8

const (
	Uniform     Distribution = iota // all values of the range are equally likely; Max itself is never drawn
	Exponential                     // small values are more likely; scaled so that the largest draw is Max
	Flex                            // uniform; jobs are FLEX, start small, and turn out to need the memory that was drawn
)

var distributionNames = [...]string{"uniform", "exponential", "flex"}

func (d Distribution) String() string { return cluster.NameOf(distributionNames[:], d, "distribution") }

// ParseDistribution reads "uniform", "exponential" or "flex".
func ParseDistribution(text string) (Distribution, error) {
	for i, name := range distributionNames {
		if name == text {
			return Distribution(i), nil
		}
	}
	return 0, fmt.Errorf("distribution %q: must be uniform, exponential or flex", cluster.Clip(text))
}

// mostJobs is the most jobs that a generator generates.
const mostJobs = 1_000_000

// GenerateOptions are the ranges from which Generate draws. All tasks of a job are alike, as in the paper.
type GenerateOptions struct {
	Jobs     int                    // 1 to 1,000,000
	Tasks    Range[int]             // per job, at least 1
	Memory   Range[resource.Amount] // ideal memory of a task, drawn in steps of 100 MB above Min
	Duration Range[time.Duration]   // of a task with ideal memory, drawn in steps of 1 s above Min
	Arrivals Range[time.Duration]   // submission of a job, drawn in steps of 1 s above Min
	Seed     uint64
}

// DefaultGenerateOptions returns the workload of the paper's section 6.1: 100 jobs that arrive in 1000 s, with the
// ranges of Table 2. Where the paper sweeps a maximum, the default is the middle of the sweep for tasks, and its end
// for memory and duration. The default of Flex is small, and our own.
func DefaultGenerateOptions(d Distribution) GenerateOptions {
	o := GenerateOptions{
		Jobs:     100,
		Tasks:    Range[int]{1, 300},
		Memory:   Range[resource.Amount]{resource.GB, 10 * resource.GB},
		Duration: Range[time.Duration]{time.Second, 500 * time.Second},
		Arrivals: Range[time.Duration]{0, 1000 * time.Second},
		Seed:     1,
	}
	switch d {
	case Exponential:
		o.Tasks.Max = 120
		o.Duration.Min = 50 * time.Second
	case Flex:
		return GenerateOptions{Jobs: 20, Tasks: Range[int]{1, 6},
			Memory:   Range[resource.Amount]{2 * resource.GB, 8 * resource.GB},
			Duration: Range[time.Duration]{time.Minute, 5 * time.Minute}, Arrivals: Range[time.Duration]{0, 5 * time.Minute},
			Seed: 1}
	}
	return o
}

// Generate returns a workload of jobs with one stage each, one core per task and no elasticity, in the order of
// submission. The same distribution and options give the same workload. Each range has its own stream of random
// numbers, so that changing one range does not change the draws from the others.
func Generate(d Distribution, o GenerateOptions) (*Workload, error) {
	if err := o.check(d); err != nil {
		return nil, err
	}
	tasks := shares(d, o, 1)
	memory := shares(d, o, 2)
	duration := shares(d, o, 3)
	arrivals := shares(Uniform, o, 4)
	w := &Workload{Jobs: make([]Job, o.Jobs)}
	for i := range w.Jobs {
		w.Jobs[i] = Job{After: -1, Job: cluster.Job{
			Submitted: timeline.Time(o.Arrivals.at(arrivals[i], time.Second)),
			Stages: []cluster.Stage{{
				Name:     "tasks",
				Tasks:    o.Tasks.at(tasks[i], 1),
				Ideal:    resource.Of(resource.Core, o.Memory.at(memory[i], DefaultGranularity)),
				Duration: o.Duration.at(duration[i], time.Second),
			}},
		}}
	}
	w.Sort()
	for i := range w.Jobs {
		if d == Flex {
			flexJob(&w.Jobs[i])
		}
		w.Jobs[i].ID = cluster.JobID(i + 1)
		w.Jobs[i].Name = "job_" + strconv.Itoa(i+1)
	}
	return w, nil
}

// shares returns, per job, where its draw lies between the ends of a range, 0 to 1. Each range has its own stream.
func shares(d Distribution, o GenerateOptions, stream uint64) []float64 {
	random := rand.New(rand.NewPCG(o.Seed, stream))
	all := make([]float64, o.Jobs)
	largest := 0.0
	for i := range all {
		if d == Exponential {
			all[i] = random.ExpFloat64()
		} else {
			all[i] = random.Float64()
		}
		largest = max(largest, all[i])
	}
	if d == Exponential && largest > 0 {
		for i := range all {
			all[i] /= largest
		}
	}
	return all
}

func (o *GenerateOptions) check(d Distribution) error {
	if int(d) >= len(distributionNames) {
		return fmt.Errorf("%v: must be uniform, exponential or flex", d)
	}
	if o.Jobs < 1 || o.Jobs > mostJobs {
		return fmt.Errorf("jobs %d: must be 1 to %d", o.Jobs, mostJobs)
	}
	if err := o.Tasks.check("tasks", 1, cluster.MostTasks, strconv.Itoa); err != nil {
		return err
	}
	if err := o.Memory.check("task memory", 1, resource.MostMemory, resource.FormatMemoryExact); err != nil {
		return err
	}
	if err := o.Duration.check("task duration", time.Millisecond, cluster.LongestTime, time.Duration.String); err != nil {
		return err
	}
	return o.Arrivals.check("arrivals", 0, cluster.LongestTime, time.Duration.String)
}
