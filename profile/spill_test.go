package profile

import (
	"testing"

	"github.com/bellows-rm/bellows/resource"
)

const mb = resource.MB

func TestReducerSpills(t *testing.T) {
	const input = 2010 * mb
	hadoop := Reducer{Segment: 10 * mb, MergePercent: 0.66, DirectAbove: 0.25}
	keeping := hadoop
	keeping.KeptPercent = 1
	buffers := []resource.Amount{500, 1000, 1500, 2000, 2500}
	for _, c := range []struct {
		name    string
		reducer Reducer
		want    []resource.Amount // MB, one per buffer
	}{
		{"as the paper reads it", PaperReducer(10 * mb), []resource.Amount{2000, 2000, 1500, 2000, 0}},
		{"merge at 0.66, rest kept", keeping, []resource.Amount{1980, 1980, 1980, 1320, 1650}},
		{"Hadoop's defaults: nothing is kept", hadoop, []resource.Amount{2010, 2010, 2010, 2010, 2010}},
		{"ten large segments", PaperReducer(201 * mb), []resource.Amount{2010, 2010, 1608, 2010, 0}},
	} {
		for i, b := range buffers {
			if got := c.reducer.Spilled(input, b*mb); got != c.want[i]*mb {
				t.Errorf("%s, buffer %d MB: spilled %d bytes, want %d MB", c.name, b, got, c.want[i])
			}
		}
	}
	if got := keeping.Spilled(input, 3050*mb); got != 0 {
		t.Errorf("merge at 0.66, buffer 3050 MB: spilled %d bytes, want 0 (input/0.66 fits)", got)
	}
}

// With segments of one byte the reducer has no rounding left and must agree with the formula.
func TestPaperReducerIsTheFormula(t *testing.T) {
	for input := resource.Amount(1); input < 60; input++ {
		for buffer := resource.Amount(4); buffer < 70; buffer++ {
			// The formula spills nothing when the input just fits; the manager merges as soon as its buffer is full.
			if input == buffer {
				continue
			}
			got, want := PaperReducer(1).Spilled(input, buffer), SpilledWhole(input, buffer)
			if got != want {
				t.Fatalf("input %d, buffer %d: spilled %d, formula says %d", input, buffer, got, want)
			}
		}
	}
}

func TestMapperSpills(t *testing.T) {
	for _, c := range []struct{ sortMiB, want resource.Amount }{{50, 6}, {100, 3}, {200, 2}, {300, 1}} {
		if got := MapperSpills(200*mb, 2_000_000, c.sortMiB*resource.MiB, 0.8); got != c.want {
			t.Errorf("sort buffer %d MiB: %d spills, want %d", c.sortMiB, got, c.want)
		}
	}
}

func TestSpilledExpanded(t *testing.T) {
	for _, c := range []struct {
		expansion    float64
		memory, want resource.Amount // MB
	}{
		{2, 500, 2000}, {2, 1500, 1500}, {2, 2000, 2000}, {2, 2500, 1250}, {2, 4500, 0},
		{3, 500, 2000}, {3, 1500, 2000}, {3, 2000, 2000}, {3, 2500, 1667}, {3, 4500, 1500}, {3, 7000, 0},
	} {
		got := SpilledExpanded(2010*mb, c.memory*mb, c.expansion)
		if (got+mb/2)/mb != c.want {
			t.Errorf("expansion %g, memory %d MB: spilled %d bytes, want %d MB", c.expansion, c.memory, got, c.want)
		}
	}
}

func TestSpilledRemote(t *testing.T) {
	for _, c := range []struct {
		local        float64
		buffer, want resource.Amount // MB
	}{{0.1, 500, 1500}, {0.1, 1500, 1500}, {0.1, 2000, 0}, {0.3, 500, 1000}, {0.3, 1500, 0}, {0.3, 2000, 0}} {
		if got := SpilledRemote(2010*mb, c.buffer*mb, c.local); got != c.want*mb {
			t.Errorf("local %g, buffer %d MB: spilled %d bytes, want %d MB", c.local, c.buffer, got, c.want)
		}
	}
}

// The slow twin fills a buffer one unit at a time.
func TestSpilledWholeIsFillingABuffer(t *testing.T) {
	for input := resource.Amount(1); input < 80; input++ {
		for buffer := resource.Amount(1); buffer < 90; buffer++ {
			var held, spilled resource.Amount
			for range input {
				if held++; held == buffer && input > buffer {
					spilled, held = spilled+held, 0
				}
			}
			if got := SpilledWhole(input, buffer); got != spilled {
				t.Fatalf("input %d, buffer %d: %d, filling it gives %d", input, buffer, got, spilled)
			}
		}
	}
}
