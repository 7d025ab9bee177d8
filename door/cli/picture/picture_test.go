package picture

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

func draw(t *testing.T, s *Strips) string {
	t.Helper()
	var b strings.Builder
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWrite(t *testing.T) {
	nan := math.NaN()
	plain := func(v float64) string { return fmt.Sprintf("%.0f", v) }
	s := &Strips{Rows: 2, Time: func(c int) string { return fmt.Sprintf("%ds", c) }, Strips: []Strip{
		{"rises, and is unknown for a while", []float64{0, 0.01, 4, 8, 12, 16, 16, nan, nan, 8, 0, 0, 0, 0, 0, 0}, plain},
		{"nothing", []float64{0, 0, nan}, plain},
	}}
	want := `rises, and is unknown for a while
16 ┤    ▄██
   │ ▁▄████??█
 0 └────────────────
nothing
   │
   │  ?
 0 └───
   0s  4s  8s    16s
`
	if got := draw(t, s); got != want {
		t.Errorf("drew\n%swant\n%s", got, want)
	}
	s = &Strips{Rows: 4, Time: func(int) string {
		return "a long time"
	}, Strips: []Strip{{"one column", []float64{3}, plain}}}
	want = `one column
3 ┤█
  │█
2 ┤█
  │█
0 └─
  a long time a long time
`
	if got := draw(t, s); got != want {
		t.Errorf("drew\n%swant\n%s", got, want)
	}
}

func TestColumns(t *testing.T) {
	if n := Columns(80, 8); n != 70 {
		t.Errorf("%d columns", n)
	}
	if n := Columns(5, 8); n != 1 {
		t.Errorf("%d columns", n)
	}
}
