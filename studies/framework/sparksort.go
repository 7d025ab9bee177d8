package framework

import (
	"errors"
	"fmt"

	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
)

// SparkSort is a Spark task that sorts by key (ExternalSorter; YARN-ME section 2.4). Records take more space in memory
// than serialised. When they fill the memory of the task, all of them are spilled, serialised again; the last records
// stay in memory.
type SparkSort struct {
	Input resource.Amount // bytes of input, serialised
	// Expansion is the bytes in memory per serialised byte, at least 1. 0 means unknown: it is learned from the
	// under-sized run.
	Expansion float64
	// MemoryFraction is spark.memory.fraction, and Reserved is the part of the heap that Spark reserves first, bytes:
	// execution memory is MemoryFraction*(heap-Reserved), if nothing is cached.
	MemoryFraction float64
	Reserved       resource.Amount
	// Tasks is the number of tasks that share the heap evenly; at least 1.
	Tasks int
}

// SparkSortDefaults is a task alone in an executor with the default settings of Spark since 2.0.
func SparkSortDefaults(input resource.Amount) SparkSort {
	return SparkSort{Input: input, MemoryFraction: 0.6, Reserved: 300 * resource.MiB, Tasks: 1}
}

// Name is the name of Spark's sort among frameworks.
func (s SparkSort) Name() string { return "spark-sort" }

// Check returns an error that names the first setting that is out of range, with its value and its limit.
func (s SparkSort) Check() error {
	switch {
	case s.Input < 1 || s.Input > maxMemory:
		return fmt.Errorf("input %d bytes: must be 1 to %d", s.Input, maxMemory)
	case !(s.MemoryFraction > 0 && s.MemoryFraction <= 1):
		return fmt.Errorf("memory-fraction %v: must be above 0 and at most 1", s.MemoryFraction)
	case s.Reserved < 0 || s.Reserved > maxMemory:
		return fmt.Errorf("reserved %d: must be 0 to %d", s.Reserved, maxMemory)
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

// Buffer returns the execution memory of one task, at least 1 byte; memory is the heap.
func (s SparkSort) Buffer(memory resource.Amount) resource.Amount {
	execution := max(memory-s.Reserved, 1)
	if s.MemoryFraction < 1 {
		execution = resource.Amount(s.MemoryFraction * float64(execution))
	}
	return max(execution/resource.Amount(s.Tasks), 1)
}

// SpilledBytes returns the bytes written to disk for lack of memory; memory is the heap. Expansion must be known.
func (s SparkSort) SpilledBytes(memory resource.Amount) resource.Amount {
	inMemory := resource.Amount(s.Expansion * float64(s.Input))
	return min(s.Input, resource.Amount(float64(profile.SpilledWhole(inMemory, s.Buffer(memory)))/s.Expansion))
}

// Learn returns s with its expansion; an unknown expansion is learned from an under-sized run: with a heap of memory
// bytes the run filled its buffer spills times, and wrote spilled bytes.
func (s SparkSort) Learn(memory, spilled resource.Amount, spills int) (SparkSort, error) {
	if s.Expansion != 0 {
		return s, nil
	}
	if spills < 1 || spilled < 1 {
		return s, errors.New(
			"expansion: must be given, or the number of spills and the spilled bytes of the under-sized run, from which " +
				"it is learned")
	}
	s.Expansion = float64(spills) * float64(s.Buffer(memory)) / float64(spilled)
	if err := s.Check(); err != nil {
		return s, fmt.Errorf("learned from the under-sized run: %w", err)
	}
	return s, nil
}
