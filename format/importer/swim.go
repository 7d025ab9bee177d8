package importer

import (
	"fmt"
	"math"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

// SWIM reads the workload samples of SWIM: one MapReduce job per line, with the bytes that it reads, shuffles and
// writes. The number, run times and memory of its tasks are assumed.
type SWIM struct {
	Split        resource.Amount // bytes of input per map: HDFS's dfs.blocksize
	ReducerInput resource.Amount // bytes of shuffle per reducer: Hive's hive.exec.reducers.bytes.per.reducer
	MostReducers int             // hive.exec.reducers.max
	MapRate      resource.Amount // bytes of input per second and map
	ReduceRate   resource.Amount // bytes of shuffle per second and reducer
	Startup      time.Duration   // of every task
	MapMemory    resource.Amount // mapreduce.map.memory.mb
	// mapreduce.reduce.memory.mb; reducers whose input exceeds their buffer have a larger ideal memory
	ReduceMemory resource.Amount
	// of a reducer's memory that buffers its input: heap share times shuffle.input.buffer.percent
	BufferShare   float64
	SpillSlowdown float64 // of a reducer that spills all of its input (YARN-ME section 6.1)
}

// DefaultSWIM returns the defaults of Hadoop and Hive where they exist.
func DefaultSWIM() *SWIM {
	return &SWIM{Split: 128 * resource.MiB, ReducerInput: 256 * resource.MB, MostReducers: 1009, MapRate: 10 * resource.MB,
		ReduceRate: 10 * resource.MB, Startup: 2 * time.Second, MapMemory: resource.GiB, ReduceMemory: resource.GiB,
		BufferShare: 0.56, SpillSlowdown: 1.5}
}

// Name implements Format.
func (f *SWIM) Name() string { return "swim" }

// Node implements Format: a Hadoop node of the time, two gigabytes per core.
func (f *SWIM) Node() resource.Vector {
	return resource.Of(16*resource.Core, 32*resource.GiB).With(resource.Disk, 400*resource.MB).With(resource.Network,
		1250*resource.MB)
}

func (f *SWIM) check() error {
	for _, a := range []struct {
		name string
		v    resource.Amount
	}{{"split", f.Split}, {"reducer input", f.ReducerInput}, {"map rate", f.MapRate}, {"reduce rate", f.ReduceRate},
		{"map memory", f.MapMemory}, {"reduce memory", f.ReduceMemory}, {"most reducers", resource.Amount(f.MostReducers)}} {
		if a.v < 1 {
			return fmt.Errorf("%s %d: must be above 0", a.name, a.v)
		}
	}
	switch {
	case f.Startup < time.Millisecond:
		return fmt.Errorf("startup %v: must be at least 1ms, since jobs without data run too", f.Startup)
	case !(f.BufferShare > 0 && f.BufferShare <= 1):
		return fmt.Errorf("buffer share %v: must be above 0, at most 1", f.BufferShare)
	case !(f.SpillSlowdown >= 1 && f.SpillSlowdown <= 1e6):
		return fmt.Errorf("spill slowdown %v: must be at least 1", f.SpillSlowdown)
	}
	return nil
}

var swimColumns = []string{"job_id", "submit_time_s", "inter_arrival_s", "map_input_bytes", "shuffle_bytes",
	"reduce_output_bytes"}

func (f *SWIM) read(in *input, job func(workload.Job) error) error {
	first := map[string]int{}
	width := func(cells int) error {
		// Files with the paths of input have three more columns.
		if cells != len(swimColumns) && cells != len(swimColumns)+3 {
			return in.fault("columns: must be %d or %d, separated by tabs, but are %d", len(swimColumns), len(swimColumns)+3,
				cells)
		}
		return nil
	}
	return in.cells("\t", swimColumns, width, func(r *row) error {
		j := workload.Job{Job: cluster.Job{Name: r.once("job_id", first, "")}}
		j.Submitted = timeline.Time(seconds(r.number("submit_time_s", 0, mostSeconds)))
		r.number("inter_arrival_s", 0, mostSeconds)
		read, shuffled, written := r.number("map_input_bytes", 0, mostBytes), r.number("shuffle_bytes", 0, mostBytes),
			r.number("reduce_output_bytes", 0, mostBytes)
		if maps := math.Ceil(read / float64(f.Split)); maps > mostTasks {
			r.fail("map_input_bytes", "makes %.0f maps of %s, more than %d", maps, resource.FormatMemory(f.Split), mostTasks)
		}
		if r.err != nil {
			return r.err
		}
		if read+shuffled+written == 0 {
			in.notes.add("jobs move no bytes and are one map that only starts", 1)
		}
		j.Stages = f.stages(read, shuffled, written)
		return job(j)
	})
}

// stages makes maps and, if anything is shuffled, reducers.
func (f *SWIM) stages(read, shuffled, written float64) []cluster.Stage {
	maps := max(1, math.Ceil(read/float64(f.Split)))
	mapped := shuffled // bytes that maps write
	if shuffled == 0 {
		mapped = written
	}
	stage := func(name string, tasks, rate, moved float64, memory resource.Amount, disk, network float64) cluster.Stage {
		lasting := f.Startup + seconds(moved/tasks/rate)
		per := func(bytes float64) resource.Amount { return amount(bytes / tasks / lasting.Seconds()) }
		return cluster.Stage{Name: name, Tasks: int(tasks), Duration: lasting,
			Ideal: resource.Of(resource.Core, memory).With(resource.Disk, per(disk)).With(resource.Network, per(network))}
	}
	// The work of a map is its input or its output, whichever is larger.
	all := []cluster.Stage{stage("map", maps, float64(f.MapRate), max(read, mapped), f.MapMemory, read+mapped, 0)}
	if shuffled == 0 {
		return all
	}
	reducers := min(max(1, math.Ceil(shuffled/float64(f.ReducerInput))), float64(f.MostReducers))
	fits := amount(math.Ceil(shuffled / reducers / f.BufferShare))
	reduce := stage("reduce", reducers, float64(f.ReduceRate), max(shuffled, written), max(f.ReduceMemory, fits),
		written, shuffled)
	reduce.Parents = []int{0}
	if fits > f.ReduceMemory && f.SpillSlowdown > 1 {
		reduce.MinMemory = f.ReduceMemory
		reduce.Elasticity = cluster.Elasticity{Kind: cluster.SawTooth, Factor: f.SpillSlowdown}
	}
	return append(all, reduce)
}
