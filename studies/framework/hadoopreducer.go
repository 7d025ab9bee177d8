package framework

import (
	"fmt"

	"github.com/bellows-rm/bellows/core/resource"
)

// HadoopReducer is the input side of a Hadoop reducer (MergeManagerImpl; YARN-ME section 2.3). Map outputs are fetched
// into a shuffle buffer. When the buffer is full enough, all of it is merged into a file on disk. Before the reduce
// function starts, data that may not stay in memory are written, too.
//
// Percentages are shares, 0 to 1, under Hadoop's names for them.
type HadoopReducer struct {
	Input   resource.Amount // bytes in memory of all map outputs for this reducer
	Segment resource.Amount // bytes of one map's output for this reducer
	// InputBufferPercent is mapreduce.reduce.shuffle.input.buffer.percent: the share of the heap that is shuffle buffer.
	InputBufferPercent float64
	// MergePercent is mapreduce.reduce.shuffle.merge.percent: the share of the buffer at which it is spilled. Above
	// MemoryLimitPercent.
	MergePercent float64
	// MemoryLimitPercent is mapreduce.reduce.shuffle.memory.limit.percent: a segment larger than this share of the buffer
	// goes straight to disk.
	MemoryLimitPercent float64
	// ReduceInputBufferPercent is mapreduce.reduce.input.buffer.percent: how much, as a share of the shuffle buffer,
	// may stay in memory for the reduce function. With Hadoop's default, 0, all input is written to disk with any
	// buffer: such a reducer is never well-sized and has no saw-tooth.
	ReduceInputBufferPercent float64
	// SortFactor is mapreduce.task.io.sort.factor: how many files one merge reads. With more files, some are written
	// again, which counts as spilled too. 0 is no limit; otherwise at least 2.
	SortFactor int
}

// HadoopReducerDefaults returns a reducer with Hadoop's default settings (mapred-default.xml).
func HadoopReducerDefaults(input, segment resource.Amount) HadoopReducer {
	return HadoopReducer{Input: input, Segment: segment, InputBufferPercent: 0.70, MergePercent: 0.66,
		MemoryLimitPercent: 0.25, SortFactor: 10}
}

// HadoopReducerPaper returns a reducer in the reading for which the formula of YARN-ME is exact: the buffer is spilled
// only when it is completely full, the rest stays in memory, and no file is written twice.
func HadoopReducerPaper(input, segment resource.Amount) HadoopReducer {
	return HadoopReducer{Input: input, Segment: segment, InputBufferPercent: 0.70, MergePercent: 1,
		MemoryLimitPercent: 0.25, ReduceInputBufferPercent: 1}
}

// Name implements Task.
func (r HadoopReducer) Name() string { return "hadoop-reducer" }

// Check implements Task.
func (r HadoopReducer) Check() error {
	if err := checkBytes("input", r.Input); err != nil {
		return err
	}
	if err := checkBytes("segment", r.Segment); err != nil {
		return err
	}
	for _, s := range []struct {
		name  string
		value float64
		least bool // 0 is allowed
	}{
		{"input-buffer-percent", r.InputBufferPercent, false}, {"merge-percent", r.MergePercent, false},
		{"memory-limit-percent", r.MemoryLimitPercent, false}, {"reduce-input-buffer-percent", r.ReduceInputBufferPercent,
			true},
	} {
		if err := checkShare(s.name, s.value, s.least); err != nil {
			return err
		}
	}
	if r.MergePercent <= r.MemoryLimitPercent {
		return fmt.Errorf("merge-percent %v: must be above memory-limit-percent, %v, or Hadoop refuses it", r.MergePercent,
			r.MemoryLimitPercent)
	}
	return checkFactor(r.SortFactor)
}

// Buffer implements Task: the shuffle buffer.
func (r HadoopReducer) Buffer(memory resource.Amount) resource.Amount {
	return shareOf(r.InputBufferPercent, memory)
}

// SpilledBytes implements Task.
func (r HadoopReducer) SpilledBytes(memory resource.Amount) resource.Amount {
	buffer := r.Buffer(memory)
	spilled, whole, rest := r.fetched(buffer)
	evicted := r.evicted(buffer, rest)
	if r.SortFactor == 0 || whole.count+1 <= resource.Amount(r.SortFactor) {
		return spilled + evicted
	}
	return spilled + r.merged(whole, evicted)
}

// spills are count files of size bytes each, except for one of last bytes if last is above 0.
type spills struct{ count, size, last resource.Amount }

// fetched returns the bytes and files on disk, and the bytes in memory, when all input has been fetched.
func (r HadoopReducer) fetched(buffer resource.Amount) (spilled resource.Amount, files spills, rest resource.Amount) {
	part := r.Input % r.Segment // the last segment, if it is smaller
	limit := shareOf(r.MemoryLimitPercent, buffer)
	if r.Segment > limit {
		files = spills{count: r.Input / r.Segment, size: r.Segment}
		if part > limit {
			files.last, part = part, 0
		}
	} else {
		threshold := shareOf(r.MergePercent, buffer)
		size := (threshold + r.Segment - 1) / r.Segment * r.Segment
		files = spills{count: r.Input / size, size: size}
		part = r.Input % size
		if part >= threshold { // the last, smaller segment filled the buffer
			files.last, part = part, 0
		}
	}
	if files.last > 0 {
		files.count++
	}
	return r.Input - part, files, part
}

// evicted returns how much of the rest in memory has to be written to disk: whole segments, the oldest first.
func (r HadoopReducer) evicted(buffer, rest resource.Amount) resource.Amount {
	mayStay := shareOf(r.ReduceInputBufferPercent, buffer)
	if rest <= mayStay {
		return 0
	}
	part := rest % r.Segment // the newest segment
	if part > mayStay {
		return rest
	}
	return rest - part - (mayStay-part)/r.Segment*r.Segment
}

// merged returns the bytes that are written in addition to the first spills: evicted data, unless the number of files
// is so large that they are merged from memory, and files merged on disk, while fetching and before the reduce
// function starts.
func (r HadoopReducer) merged(s spills, evicted resource.Amount) resource.Amount {
	if s.count > mostFiles {
		s.size, s.count = s.size*(s.count/mostFiles), mostFiles
	}
	var total resource.Amount
	var disk sizes
	background := 2*r.SortFactor - 1
	for i := range s.count {
		size := s.size
		if i == s.count-1 && s.last > 0 {
			size = s.last
		}
		disk.push(size)
		if disk.len() < background {
			continue
		}
		var merged resource.Amount
		for range r.SortFactor {
			merged += disk.pop()
		}
		disk.push(merged)
		total += merged
	}
	if evicted > 0 && disk.len() < r.SortFactor {
		disk.push(evicted)
		total += evicted
	}
	return total + rewritten(disk, r.SortFactor)
}
