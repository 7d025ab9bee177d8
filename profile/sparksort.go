package profile

import (
	"errors"
	"fmt"

	"github.com/bellows-rm/bellows/resource"
)

// SparkSort is a Spark task that sorts by key (ExternalSorter; YARN-ME section 2.4). Records take more room in memory than
// serialised; when they fill the memory of the task all are spilled, in their serialised size again, and the rest stays.
type SparkSort struct {
	Input resource.Amount // bytes of input, serialised
	// Expansion is the bytes in memory that one serialised byte becomes. 0 is unknown: it is learned from the under-sized
	// run. Else at least 1.
	Expansion float64
	// MemoryFraction is spark.memory.fraction, and Reserved what Spark keeps from the heap before: execution memory is
	// MemoryFraction*(heap-Reserved), if nothing is cached.
	MemoryFraction float64
	Reserved       resource.Amount
	// Tasks is how many tasks share the heap evenly; at least 1.
	Tasks int
}

// SparkSortDefaults is a task alone in an executor with the settings Spark comes with since 2.0.
func SparkSortDefaults(input resource.Amount) SparkSort {
	return SparkSort{Input: input, MemoryFraction: 0.6, Reserved: 300 * resource.MiB, Tasks: 1}
}

// SparkSortPaper is the reading of YARN-ME: memory is what the sort fills.
func SparkSortPaper(input resource.Amount) SparkSort {
	return SparkSort{Input: input, MemoryFraction: 1, Tasks: 1}
}

// Name implements Framework.
func (s SparkSort) Name() string { return "spark-sort" }

// Check implements Framework.
func (s SparkSort) Check() error {
	if err := checkBytes("input", s.Input); err != nil {
		return err
	}
	if err := checkShare("memory-fraction", s.MemoryFraction, false); err != nil {
		return err
	}
	if err := checkCount("reserved", s.Reserved); err != nil {
		return err
	}
	switch {
	case s.Expansion != 0 && !(s.Expansion >= 1 && s.Expansion <= mostExpansion):
		return fmt.Errorf("expansion %v: must be 1 to %d, or 0 if it is to be learned", s.Expansion, mostExpansion)
	case s.Tasks < 1 || s.Tasks > mostTasks:
		return fmt.Errorf("tasks %d: must be 1 to %d", s.Tasks, mostTasks)
	}
	return nil
}

const (
	mostExpansion = 1000
	mostTasks     = 10000
)

// Buffer implements Framework: the execution memory of one task.
func (s SparkSort) Buffer(memory resource.Amount) resource.Amount {
	return max(shareOf(s.MemoryFraction, max(memory-s.Reserved, 1))/resource.Amount(s.Tasks), 1)
}

// SpilledBytes implements Framework. Expansion must be known.
func (s SparkSort) SpilledBytes(memory resource.Amount) resource.Amount {
	inMemory := resource.Amount(s.Expansion * float64(s.Input))
	return min(s.Input, resource.Amount(float64(SpilledWhole(inMemory, s.Buffer(memory)))/s.Expansion))
}

// learn returns s with the expansion that an under-sized run shows: it filled its memory so often, and wrote so much.
func (s SparkSort) learn(under FrameworkRun) (Framework, error) {
	if s.Expansion != 0 {
		return s, nil
	}
	if under.Spills < 1 || under.Spilled < 1 {
		return nil, errors.New("expansion: must be given, or the number of spills and the spilled bytes of the under-sized run, from which it is learned")
	}
	s.Expansion = float64(under.Spills) * float64(s.Buffer(under.Memory)) / float64(under.Spilled)
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("learned from the under-sized run: %w", err)
	}
	return s, nil
}
