package framework

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
)

// alone makes all memory the shuffle buffer, as the tables below assume.
func alone(r HadoopReducer) HadoopReducer {
	r.InputBufferPercent = 1
	return r
}

func TestHadoopReducerSpills(t *testing.T) {
	const input = 2010 * mb
	defaults := alone(HadoopReducerDefaults(input, 10*mb))
	keeping := defaults
	keeping.ReduceInputBufferPercent, keeping.SortFactor = 1, 0
	buffers := []resource.Amount{500, 1000, 1500, 2000, 2500}
	for _, c := range []struct {
		name string
		r    HadoopReducer
		want []resource.Amount // MB, one per buffer
	}{
		{"as the paper reads it", alone(HadoopReducerPaper(input, 10*mb)), []resource.Amount{2000, 2000, 1500, 2000, 0}},
		{"merge at 0.66, rest kept", keeping, []resource.Amount{1980, 1980, 1980, 1320, 1650}},
		{"Hadoop's defaults: nothing is kept", defaults, []resource.Amount{2010, 2010, 2010, 2010, 2010}},
		{"ten large segments", alone(HadoopReducerPaper(input, 201*mb)), []resource.Amount{2010, 2010, 1608, 2010, 0}},
	} {
		for i, b := range buffers {
			if got := c.r.SpilledBytes(b * mb); got != c.want[i]*mb {
				t.Errorf("%s, buffer %d MB: spilled %d bytes, want %d MB", c.name, b, got, c.want[i])
			}
		}
	}
	if got := keeping.SpilledBytes(3050 * mb); got != 0 {
		t.Errorf("merge at 0.66, buffer 3050 MB: spilled %d bytes, want 0 (input/0.66 fits)", got)
	}
}

// With Hadoop's default no input may stay in memory: there is no saw-tooth, and no well-sized reducer at any size.
func TestHadoopDefaultsHaveNoSawTooth(t *testing.T) {
	r := HadoopReducerDefaults(2010*mb, 10*mb)
	r.SortFactor = 0
	for memory := 10 * mb; memory < 10_000*mb; memory += 7 * mb {
		if got := r.SpilledBytes(memory); got != r.Input {
			t.Fatalf("%d MB: spilled %d bytes, want all %d", memory/mb, got, r.Input)
		}
	}
	if ideal, ok := IdealMemory(HadoopReducerDefaults(2010*mb, 10*mb)); ok {
		t.Errorf("an ideal memory of %d bytes, want none", ideal)
	}
}

// With segments of one byte the reducer has no rounding left and must agree with the formula.
func TestHadoopReducerPaperIsTheFormula(t *testing.T) {
	for input := resource.Amount(1); input < 60; input++ {
		for buffer := resource.Amount(4); buffer < 70; buffer++ {
			// The formula spills nothing when the input just fits; the manager merges as soon as its buffer is full.
			if input == buffer {
				continue
			}
			got, want := alone(HadoopReducerPaper(input, 1)).SpilledBytes(buffer), profile.SpilledWhole(input, buffer)
			if got != want {
				t.Fatalf("input %d, buffer %d: spilled %d, formula says %d", input, buffer, got, want)
			}
		}
	}
}

// mergeManager is the slow twin: it simulates segments that arrive one by one.
type mergeManager struct {
	threshold, limit, mayStay resource.Amount
	factor                    int
	held                      []resource.Amount // in memory, the oldest first
	files                     []resource.Amount
	written                   resource.Amount
}

func sum(s []resource.Amount) (total resource.Amount) {
	for _, x := range s {
		total += x
	}
	return total
}

// file writes a file to disk, and merges the smallest files in the background when there are too many.
func (m *mergeManager) file(size resource.Amount) {
	m.files, m.written = append(m.files, size), m.written+size
	if m.factor == 0 || len(m.files) < 2*m.factor-1 {
		return
	}
	slices.Sort(m.files)
	merged := sum(m.files[:m.factor])
	m.files, m.written = append(m.files[m.factor:], merged), m.written+merged
}

func (m *mergeManager) arrive(segment resource.Amount) {
	if segment > m.limit {
		m.file(segment)
		return
	}
	if m.held = append(m.held, segment); sum(m.held) >= m.threshold {
		m.file(sum(m.held))
		m.held = nil
	}
}

// finish evicts data that may not stay in memory, and merges the files.
func (m *mergeManager) finish() resource.Amount {
	var evicted resource.Amount
	for sum(m.held) > m.mayStay {
		evicted += m.held[0]
		m.held = m.held[1:]
	}
	if evicted > 0 && (m.factor == 0 || len(m.files) < m.factor) {
		m.files, m.written = append(m.files, evicted), m.written+evicted
	}
	if m.factor > 0 {
		m.written += rewrittenSlowly(m.files, m.factor)
	}
	return m.written
}

func reducers() *rapid.Generator[HadoopReducer] {
	return rapid.Custom(func(t *rapid.T) HadoopReducer {
		percent := func(name string, least int) float64 {
			return float64(rapid.IntRange(least, 100).Draw(t, name)) / 100
		}
		r := HadoopReducer{
			Input:                    resource.Amount(rapid.IntRange(1, 3000).Draw(t, "input")),
			Segment:                  resource.Amount(rapid.IntRange(1, 200).Draw(t, "segment")),
			InputBufferPercent:       percent("input buffer", 1),
			MemoryLimitPercent:       percent("limit", 1),
			MergePercent:             1,
			ReduceInputBufferPercent: percent("kept", 0),
			SortFactor:               rapid.SampledFrom([]int{0, 2, 3, 5, 10}).Draw(t, "factor"),
		}
		if r.MemoryLimitPercent == 1 {
			r.MemoryLimitPercent = 0.5
		}
		r.MergePercent = max(percent("merge", 1), r.MemoryLimitPercent+0.01)
		return r
	})
}

func TestHadoopReducerIsTheMergeManager(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := reducers().Draw(t, "reducer")
		if err := r.Check(); err != nil {
			t.Fatal(err)
		}
		// A buffer is too small if two of its shares are the same byte.
		memory := resource.Amount(100/r.InputBufferPercent) + resource.Amount(rapid.IntRange(1, 8000).Draw(t, "memory"))
		buffer := r.Buffer(memory)
		m := mergeManager{threshold: shareOf(r.MergePercent, buffer), limit: shareOf(r.MemoryLimitPercent, buffer),
			mayStay: shareOf(r.ReduceInputBufferPercent, buffer), factor: r.SortFactor}
		for left := r.Input; left > 0; left -= r.Segment {
			m.arrive(min(r.Segment, left))
		}
		want := m.finish()
		got := r.SpilledBytes(memory)
		if got != want {
			t.Fatalf("%+v with %d: spilled %d, one by one gives %d", r, memory, got, want)
		}
		// Merges read only existing data, and every merge on disk leaves fewer files.
		if got < 0 || (r.SortFactor == 0 && got > r.Input) || got > r.Input*(1+r.Input/r.Segment) {
			t.Fatalf("%+v with %d: spilled %d of %d", r, memory, got, r.Input)
		}
	})
}
