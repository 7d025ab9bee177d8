package profile

import "github.com/bellows-rm/bellows/resource"

// SpilledWhole returns the bytes of input that go to disk when a buffer is spilled whole each time it is full and the rest
// stays in memory: floor(input/buffer)*buffer, and nothing if the input fits (YARN-ME section 2.3). Both are in bytes,
// buffer at least 1.
//
// 2010 MB of input spill 2000 MB with a buffer of 2000 MB, but only 1500 MB with one of 1500 MB: less memory can be
// faster. The best under-sized buffers lie just above input/k.
func SpilledWhole(input, buffer resource.Amount) resource.Amount {
	if input <= buffer {
		return 0
	}
	return input / buffer * buffer
}

// Reducer describes how a Hadoop reducer (MergeManagerImpl) buffers its input. Percentages are shares of the shuffle
// buffer, which is mapreduce.reduce.shuffle.input.buffer.percent of the heap.
type Reducer struct {
	Segment      resource.Amount // bytes of one map's output for this reducer, above 0
	MergePercent float64         // shuffle.merge.percent: how full the buffer gets before it is spilled
	KeptPercent  float64         // reduce.input.buffer.percent: how much may stay in memory for the reduce function
	DirectAbove  float64         // shuffle.memory.limit.percent: a segment larger than this goes straight to disk
}

// PaperReducer is the reading under which the formula of YARN-ME holds exactly: the buffer is filled to the brim and what
// is left stays in memory. With Hadoop's own default of KeptPercent, 0, everything goes to disk at every size.
func PaperReducer(segment resource.Amount) Reducer {
	return Reducer{Segment: segment, MergePercent: 1, KeptPercent: 1, DirectAbove: 0.25}
}

// Spilled returns the bytes written to disk for input bytes and a shuffle buffer of buffer bytes. Merges that rewrite
// spilled files (more files than the sort factor) are not counted.
func (r Reducer) Spilled(input, buffer resource.Amount) resource.Amount {
	if float64(r.Segment) > r.DirectAbove*float64(buffer) {
		return input
	}
	threshold := resource.Amount(r.MergePercent * float64(buffer))
	spill := max((threshold+r.Segment-1)/r.Segment, 1) * r.Segment
	written := input / spill * spill
	rest := input - written
	if mayStay := resource.Amount(r.KeptPercent * float64(buffer)); rest > mayStay {
		written += rest - mayStay/r.Segment*r.Segment
	}
	return written
}

// MapperSpills returns how many times a Hadoop mapper (MapTask) spills: its sort buffer of sortBuffer bytes is spilled at
// the share spillPercent, and each record costs 16 bytes beside its data. One spill is the output itself and costs
// nothing extra; with more, output is written and read once more whatever their number: a step.
func MapperSpills(output, records, sortBuffer resource.Amount, spillPercent float64) resource.Amount {
	soft := max(resource.Amount(spillPercent*float64(sortBuffer)), 1)
	return max((output+16*records+soft-1)/soft, 1)
}

// SpilledExpanded returns the bytes written by Spark's sortByKey (ExternalSorter): input bytes take expansion times as
// many in memory, are spilled whole when they fill memory, and are written in their serialised size again.
func SpilledExpanded(input, memory resource.Amount, expansion float64) resource.Amount {
	inMemory := resource.Amount(expansion * float64(input))
	return resource.Amount(float64(SpilledWhole(inMemory, memory)) / expansion)
}

// SpilledRemote returns the bytes spilled by a Tez reducer, of whose input the share local (0 to 1) lies on its own node
// and is read from there without passing through memory.
func SpilledRemote(input, buffer resource.Amount, local float64) resource.Amount {
	return SpilledWhole(input-resource.Amount(local*float64(input)), buffer)
}
