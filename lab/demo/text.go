package demo

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// width is the width of a terminal.
const width = 80

// text is a report that is being written.
type text struct{ strings.Builder }

// say writes a paragraph.
func (t *text) say(format string, operands ...any) {
	line := ""
	for _, word := range strings.Fields(fmt.Sprintf(format, operands...)) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			t.WriteString(line + "\n")
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	t.WriteString(line + "\n")
}

// table writes rows and an empty line. The first row has the heads; all columns except the first are aligned to the
// right.
func (t *text) table(rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				t.WriteString(cell + pad)
			} else {
				t.WriteString("  " + pad + cell)
			}
		}
		t.WriteString("\n")
	}
	t.WriteString("\n")
}

// spread prints a figure with its minimum and maximum.
func (f Figure) spread(digits int, unit float64) string {
	text := func(v float64) string { return fmt.Sprintf("%.*f", digits, v/unit) }
	if f.Least == f.Most {
		return text(f.Median)
	}
	return fmt.Sprintf("%s (%s–%s)", text(f.Median), text(f.Least), text(f.Most))
}

func rounds(n int) string {
	if n == 1 {
		return "1 round"
	}
	return fmt.Sprintf("%d rounds", n)
}

// disturbing is the number of cores busy with other work from which the report mentions it.
const disturbing = 0.2

// others says how much other work on the machine disturbed the runs, if it did.
func (t *text) others(format string, cores []*Figure) {
	most := 0.0
	for _, f := range cores {
		if f != nil {
			most = max(most, f.Most)
		}
	}
	if most > disturbing {
		t.WriteString("\n")
		t.say(format, most)
	}
}
