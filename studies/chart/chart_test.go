package chart

import (
	"bytes"
	"image"
	_ "image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/internal/testfile"
)

// examples are one picture of each kind, as in testdata.
func examples() map[string]Picture {
	var steps Series
	for i := range 40 {
		steps.X = append(steps.X, float64(i*30))
		steps.Y = append(steps.Y, 50+40*math.Round(math.Sin(float64(i)/5)*4)/4)
	}
	steps.Name, steps.Step = "yarn-me", true
	top := 100.0
	zero := 0.0
	a := []float64{12, 30, 31, 45, 60, 61, 90, 140, 180, 600}
	b := []float64{15, 42, 50, 51, 70, 95, 120, 200, 410, 900}
	return map[string]Picture{
		"cdf": &Plot{Title: "Job runtimes", Subtitle: "10 jobs, 2 policies; further left is better", X: "runtime (s)",
			Y: "share of jobs", Series: []Series{CDF("fair", b), CDF("yarn-me", a)}, Lines: []Rule{{100, true, "lower bound"}}},
		"steps": &Plot{Title: "Memory granted", X: "time (s)", Y: "memory (% of all nodes)", Series: []Series{steps},
			YMin: &zero, YMax: &top, Lines: []Rule{{At: 95, Label: "capacity for tasks"}}},
		"points": &Plot{Title: "Measured against predicted", X: "memory (bytes)", Y: "time (s)", LogX: true, LogY: true,
			Series: []Series{
				{Name: "measured", Points: true, X: []float64{1e6, 1e7, 1e8, 1e9}, Y: []float64{300, 120, 40, 22}},
				{Name: "model", X: []float64{1e6, 1e7, 1e8, 1e9}, Y: []float64{320, 115, 42, 21}}}},
		"bars": &Bars{Title: "Mean job runtime by workload", Subtitle: "bars: 95 % confidence", Y: "runtime (s)",
			Groups: []string{"uniform", "exponential", "heavy tailed mixture"},
			Series: []BarSeries{{Name: "fair", Values: []float64{100, 250, 330}, Low: []float64{90, 220, 300},
				High: []float64{110, 280, 360}}, {Name: "yarn-me", Values: []float64{70, 150, math.NaN()},
				Low: []float64{60, 130, 0}, High: []float64{80, 170, 0}}, {Name: "srjf", Values: []float64{60, 120, 210}}},
			Lines: []Rule{{At: 55, Label: "bound"}}},
		"gantt": &Gantt{Title: "Tasks on nodes", Rows: []string{"n1", "n2", "node-three"},
			Legend: []string{"job A", "job B", "job C"}, Faint: "under-sized", Spans: []Span{
				{0, 0, 100, "A1", 0, false}, {0, 0, 60, "B1", 1, true}, {0, 60, 150, "B2", 1, false}, {1, 10, 90, "A2", 0, false},
				{1, 95, 300, "C1", 2, true}, {2, 20, 21, "", 1, false}, {2, 40, 220, "C2", 2, false}}},
		"tracks": &Tracks{Title: "Two containers", Subtitle: "a run", X: "seconds since the beginning", Shade: "suspended",
			To: 10, Rows: []Track{
				{Name: "node", Notes: []string{"of 8 GiB", "half used"}, Top: 8, X: []float64{0, 2, 6, 12},
					Areas: []Area{{"held", []float64{1, 3, 6, 9}, 1}},
					Lines: []Series{{Name: "limit", X: []float64{0, 6, 10}, Y: []float64{4, 7, 7}, Step: true}}},
				{Name: "one", Top: 8, High: 80, X: []float64{0, 2, 4, 7}, Areas: []Area{{"held", []float64{1, 3, 0, 2}, 1},
					{"in swap", []float64{0, 1, 3, math.NaN()}, 2}}, Shaded: []bool{false, false, true, false},
					Lines: []Series{{Name: "waits", X: []float64{8, 9}, Y: []float64{1, 1}, Dashed: true, Color: 3}}}}},
		"empty": &Plot{Title: "Nothing happened", X: "time (s)", Y: "tasks", Series: []Series{{Name: "none"}}},
		"one": &Plot{Title: "One point", X: "time (s)", Y: "tasks",
			Series: []Series{{Name: "once", X: []float64{3}, Y: []float64{7}}}},
	}
}

// TestPictures compares with testdata: documents by bytes, images by pixels, because their compression may change with
// Go.
func TestPictures(t *testing.T) {
	for name, p := range examples() {
		t.Run(name, func(t *testing.T) {
			for format, draw := range map[string]func() ([]byte, error){"svg": p.SVG, "png": p.PNG} {
				got, err := draw()
				if err != nil {
					t.Fatal(err)
				}
				again, _ := draw()
				if !bytes.Equal(got, again) {
					t.Errorf("%s: the same picture gave other bytes", format)
				}
				path := filepath.Join("testdata", name+"."+format)
				if testfile.Rewriting() {
					if err := os.WriteFile(path, got, 0o644); err != nil {
						t.Fatal(err)
					}
					continue
				}
				want, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if format == "svg" && !bytes.Equal(got, want) || format == "png" && !alike(t, got, want) {
					t.Errorf("%s is not what it was: look at it, and run this test with -rewrite", path)
				}
			}
		})
	}
}

// alike reports whether two images have the same pixels.
func alike(t *testing.T, a, b []byte) bool {
	t.Helper()
	var pixels [2]image.Image
	for i, data := range [][]byte{a, b} {
		var err error
		if pixels[i], _, err = image.Decode(bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
	}
	if pixels[0].Bounds() != pixels[1].Bounds() {
		return false
	}
	for y := range pixels[0].Bounds().Dy() {
		for x := range pixels[0].Bounds().Dx() {
			r, g, bl, al := pixels[0].At(x, y).RGBA()
			r2, g2, bl2, al2 := pixels[1].At(x, y).RGBA()
			if r != r2 || g != g2 || bl != bl2 || al != al2 {
				return false
			}
		}
	}
	return true
}

func TestCannotBeMeant(t *testing.T) {
	one, two, bad := 1.0, 2.0, math.NaN()
	for want, p := range map[string]Picture{
		`series "a": 2 values of x, but 1 of y`: &Plot{Series: []Series{{Name: "a", X: []float64{1, 2},
			Y: []float64{1}}}},
		`range of x: from 2 to 1`:                      &Plot{XMin: &two, XMax: &one},
		`range of y: NaN cannot be an end of the axis`: &Plot{YMin: &bad},
		`width 1e+06: must be from 80 to 8000 pixels`:  &Plot{Width: 1e6},
		`series "a": 1 lower ends of error bars, but 2 groups`: &Bars{Groups: []string{"x", "y"},
			Series: []BarSeries{{Name: "a", Values: []float64{1, 2}, Low: []float64{1}, High: []float64{1}}}},
		`series "a": error bars have only one end`: &Bars{Groups: []string{"x"},
			Series: []BarSeries{{Name: "a", Values: []float64{1}, Low: []float64{1}}}},
		`track "t": upper edge 0: must be above 0`: &Tracks{Rows: []Track{{Name: "t"}}},
		`track "t": 0 values of "a", but 1 times`: &Tracks{Rows: []Track{{Name: "t", Top: 1, X: []float64{1},
			Areas: []Area{{Name: "a"}}}}},
		`track "t": 2 shades, but 1 times`: &Tracks{Rows: []Track{{Name: "t", Top: 1, X: []float64{1},
			Shaded: []bool{true, true}}}},
		`series "b": 1 values, but 2 groups`: &Bars{Groups: []string{"x", "y"},
			Series: []BarSeries{{Name: "b", Values: []float64{1}}}},
		`span 0: row 1, but there are 1 rows`: &Gantt{Rows: []string{"n"}, Spans: []Span{{Row: 1}}},
		`span 0: from 2 to 1`:                 &Gantt{Rows: []string{"n"}, Spans: []Span{{From: 2, To: 1}}},
	} {
		if _, err := p.SVG(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
