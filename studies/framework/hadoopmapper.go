package framework

import "github.com/bellows-rm/bellows/core/resource"

// HadoopMapper is the output side of a Hadoop mapper (MapTask; YARN-ME section 2.2). Output is collected in a sort
// buffer, which is spilled when it is full enough. A single spill is the output itself and costs nothing; with more
// spills, in any number, all output is read and written once more: a step.
type HadoopMapper struct {
	Output  resource.Amount // bytes of output, after a combiner if there is one
	Records resource.Amount // records of output
	// SortBufferPercent is mapreduce.task.io.sort.mb as a share of the heap: 100 MB of 200 MB by default. The buffer is at
	// most 2047 MiB.
	SortBufferPercent float64
	// SpillPercent is mapreduce.map.sort.spill.percent: how full the buffer gets before it is spilled.
	SpillPercent float64
	// RecordBytes is the buffer space of a record besides its data.
	RecordBytes resource.Amount
	// SortFactor is mapreduce.task.io.sort.factor: how many spills one merge reads. 0 is no limit; otherwise at least
	// 2.
	SortFactor int
}

// HadoopMapperDefaults returns a mapper with Hadoop's default settings (mapred-default.xml).
func HadoopMapperDefaults(output, records resource.Amount) HadoopMapper {
	return HadoopMapper{Output: output, Records: records, SortBufferPercent: 0.5, SpillPercent: 0.8, RecordBytes: 16,
		SortFactor: 10}
}

// HadoopMapperPaper returns a mapper in the reading of YARN-ME: a step, because any number of spills is merged in one
// pass.
func HadoopMapperPaper(output, records resource.Amount) HadoopMapper {
	m := HadoopMapperDefaults(output, records)
	m.SortFactor = 0
	return m
}

// mostSortBuffer is the largest mapreduce.task.io.sort.mb that Hadoop accepts.
const mostSortBuffer = 2047 * resource.MiB

// Name implements Task.
func (m HadoopMapper) Name() string { return "hadoop-mapper" }

// Check implements Task.
func (m HadoopMapper) Check() error {
	if err := checkBytes("output", m.Output); err != nil {
		return err
	}
	if err := checkCount("records", m.Records); err != nil {
		return err
	}
	if err := checkCount("record-bytes", m.RecordBytes); err != nil {
		return err
	}
	if err := checkShare("sort-buffer-percent", m.SortBufferPercent, false); err != nil {
		return err
	}
	if err := checkShare("spill-percent", m.SpillPercent, false); err != nil {
		return err
	}
	return checkFactor(m.SortFactor)
}

// Buffer implements Task: the sort buffer.
func (m HadoopMapper) Buffer(memory resource.Amount) resource.Amount {
	return min(shareOf(m.SortBufferPercent, memory), mostSortBuffer)
}

// Spills returns how often the buffer is spilled, including the spill at the end: at least 1.
func (m HadoopMapper) Spills(memory resource.Amount) resource.Amount {
	soft := shareOf(m.SpillPercent, m.Buffer(memory))
	return max((m.Output+m.RecordBytes*m.Records+soft-1)/soft, 1)
}

// SpilledBytes implements Task. The output itself, which is written in any case, does not count.
func (m HadoopMapper) SpilledBytes(memory resource.Amount) resource.Amount {
	n := m.Spills(memory)
	if n == 1 {
		return 0
	}
	return m.Output + m.passes(n)
}

// passes returns the bytes that are written again because n spills are more than one merge reads.
func (m HadoopMapper) passes(n resource.Amount) resource.Amount {
	if m.SortFactor == 0 || n <= resource.Amount(m.SortFactor) {
		return 0
	}
	n = min(n, mostFiles)
	var files sizes
	files.push(m.Output/n + m.Output%n)
	for range n - 1 {
		files.push(m.Output / n)
	}
	return rewritten(files, m.SortFactor)
}
