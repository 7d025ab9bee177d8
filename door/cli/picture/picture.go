// Package picture draws small pictures of characters: values over time, one column of characters for each step of time,
// for a terminal and for files.
package picture

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Strip is values over time, above a line at 0.
type Strip struct {
	Title string
	// Values are one per column, 0 or more; NaN is unknown.
	Values []float64
	// Format prints a value on the axis, with its unit.
	Format func(float64) string
}

// Strips are drawn one below the other, above one axis of time.
type Strips struct {
	Strips []Strip
	// Rows is the height of each strip, at least 1.
	Rows int
	// Time prints the time at a border of columns: 0 is the left border of the first column.
	Time func(column int) string
}

// axis is the width of everything except values and labels.
const axis = 2

// labelWidth returns the width of the longest label of the values.
func (s *Strips) labelWidth() int {
	most := 0
	for i := range s.Strips {
		strip := &s.Strips[i]
		top := strip.top()
		for _, v := range []float64{0, top / 2, top} {
			most = max(most, utf8.RuneCountInString(strip.Format(v)))
		}
	}
	return most
}

// Columns returns how many columns of values fit into width characters, if no label of a value is longer than label
// characters.
func Columns(width, label int) int { return max(1, width-label-axis) }

// top returns the largest known value; 0 if there is none.
func (s *Strip) top() float64 {
	top := 0.0
	for _, v := range s.Values {
		if v > top {
			top = v
		}
	}
	return top
}

var blocks = []rune(" ▁▂▃▄▅▆▇█")

const unknown = '?'

// Write draws the strips. The top of each is its largest value. A value that is not 0 has at least an eighth of a
// row, and an unknown one is a question mark.
func (s *Strips) Write(w io.Writer) error {
	var out strings.Builder
	width := s.labelWidth()
	columns := 0
	for i := range s.Strips {
		strip := &s.Strips[i]
		columns = max(columns, len(strip.Values))
		fmt.Fprintf(&out, "%s\n", strip.Title)
		for row := range s.Rows {
			label, tick := strip.label(row, s.Rows), "┤"
			if label == "" {
				tick = "│"
			}
			line := fmt.Sprintf("%*s %s%s", width, label, tick, strip.row(row, s.Rows))
			fmt.Fprintf(&out, "%s\n", strings.TrimRight(line, " "))
		}
		fmt.Fprintf(&out, "%*s └%s\n", width, strip.Format(0), strings.Repeat("─", len(strip.Values)))
	}
	fmt.Fprintf(&out, "%s\n", strings.TrimRight(strings.Repeat(" ", width+axis-1)+s.times(columns), " "))
	_, err := io.WriteString(w, out.String())
	return err
}

// label returns the label of a row: the values at the top of the highest row, and in the middle if there is a row for
// it.
func (s *Strip) label(row, rows int) string {
	top := s.top()
	switch {
	case top == 0:
		return ""
	case row == 0:
		return s.Format(top)
	case rows >= 4 && rows%2 == 0 && row == rows/2:
		return s.Format(top / 2)
	}
	return ""
}

// row returns one row of characters; row 0 is the highest.
func (s *Strip) row(row, rows int) string {
	top := s.top()
	below := 8 * (rows - 1 - row) // eighths
	return string(slices.Collect(func(yield func(rune) bool) {
		for _, v := range s.Values {
			c := ' '
			switch {
			case math.IsNaN(v) && row == rows-1:
				c = unknown
			case v > 0:
				eighths := max(1, int(math.Round(v/top*float64(8*rows))))
				c = blocks[min(8, max(0, eighths-below))]
			}
			if !yield(c) {
				return
			}
		}
	}))
}

// times returns the labels of the axis of time: at the begin, at the end, and between where there is room.
func (s *Strips) times(columns int) string {
	line := []rune(strings.Repeat(" ", columns+1))
	put := func(at int, text string) {
		for len(line) < at+utf8.RuneCountInString(text) {
			line = append(line, ' ')
		}
		copy(line[at:], []rune(text))
	}
	first, last := s.Time(0), s.Time(columns)
	put(0, first)
	from := max(utf8.RuneCountInString(first)+1, columns+1-utf8.RuneCountInString(last))
	put(from, last)
	for quarter := 1; quarter < 4; quarter++ {
		at := columns * quarter / 4
		text := s.Time(at)
		end := at + utf8.RuneCountInString(text)
		if free(line, at-2, end+2) {
			put(at, text)
		}
	}
	return string(line)
}

// free reports whether a line has only spaces between two places.
func free(line []rune, from, to int) bool {
	if from < 0 || to > len(line) {
		return false
	}
	return !slices.ContainsFunc(line[from:to], func(c rune) bool { return c != ' ' })
}
