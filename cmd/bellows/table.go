package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/cluster"
)

// width is what help texts are laid out for, and tables that are not written to a wider terminal; in columns.
const width = 80

// columns is how wide a table may be.
func columns(w io.Writer) int {
	f, ok := w.(interface{ Fd() uintptr })
	if !ok {
		return width
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return width
	}
	return max(width, int(size.Col))
}

// table prints rows below heads. Columns whose head begins with ">" are aligned to the right.
type table struct {
	heads []string
	rows  [][]string
	// shrinks is the column that is cut where a row would be too long; -1 for none.
	shrinks int
	// notes says that the last column holds sentences: one that is too long stands below its row, whole.
	notes bool
	// before are the widths of the columns that were written last, nil if none were.
	before []int
}

func newTable(heads ...string) *table { return &table{heads: heads, shrinks: -1} }

// add adds a row. What of it would steer a terminal is escaped: names come from others.
func (t *table) add(cells ...string) {
	for i := range cells {
		cells[i] = cluster.Printable(cells[i])
	}
	t.rows = append(t.rows, cells)
}

// write prints the rows that were added since it was last called, below the heads when it is called first. Columns become
// wider from one call to the next, where they must, and never narrower. Nothing is written after the last column.
func (t *table) write(w io.Writer) error {
	var text strings.Builder
	most := columns(w)
	widths := t.widths(most)
	if t.before == nil {
		text.WriteString(t.head(widths) + "\n")
	}
	for _, cells := range t.rows {
		row := t.row(cells, widths)
		if !t.notes {
			text.WriteString(strings.TrimRight(row, " ") + "\n")
			continue
		}
		const below = "    "
		note := cells[len(widths)]
		if beside := row + "  " + note; utf8.RuneCountInString(beside) <= most || note == "" {
			row = beside
		} else {
			row = strings.TrimRight(row, " ") + "\n" + below + fold(note, most-len(below), below)
		}
		text.WriteString(strings.TrimRight(row, " ") + "\n")
	}
	t.rows, t.before = nil, widths
	_, err := io.WriteString(w, text.String())
	return err
}

// head lays out the heads.
func (t *table) head(widths []int) string {
	heads := make([]string, len(t.heads))
	for i, h := range t.heads {
		heads[i] = strings.TrimPrefix(h, ">")
	}
	head := t.row(heads, widths)
	if t.notes {
		head += "  " + heads[len(widths)]
	}
	return strings.TrimRight(head, " ")
}

// row lays out the columns that have a width.
func (t *table) row(cells []string, widths []int) string {
	var row strings.Builder
	for i, n := range widths {
		if i > 0 {
			row.WriteString("  ")
		}
		cell := cut(cells[i], n)
		pad := strings.Repeat(" ", n-utf8.RuneCountInString(cell))
		if strings.HasPrefix(t.heads[i], ">") {
			row.WriteString(pad + cell)
		} else {
			row.WriteString(cell + pad)
		}
	}
	return row.String()
}

// widths returns the width of each column other than notes, and takes what is too much from the one that shrinks.
func (t *table) widths(most int) []int {
	heads := t.heads
	if t.notes {
		last := len(heads) - 1
		most -= 2 + utf8.RuneCountInString(heads[last])
		heads = heads[:last]
	}
	widths := make([]int, len(heads))
	for i, h := range heads {
		widths[i] = utf8.RuneCountInString(strings.TrimPrefix(h, ">"))
	}
	copy(widths, t.before)
	for _, row := range t.rows {
		for i := range widths {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	if t.shrinks >= 0 {
		total := 2 * (len(widths) - 1)
		for _, w := range widths {
			total += w
		}
		w := widths[t.shrinks]
		widths[t.shrinks] = max(min(w, 8), w-max(0, total-most))
	}
	return widths
}

// cut shortens text to n characters and marks that it did.
func cut(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

// fold breaks text between words into lines of at most n characters, each after the first indented. What would steer a
// terminal is escaped.
func fold(text string, n int, indent string) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		word = cluster.Printable(word)
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > n {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return strings.Join(append(lines, line), "\n"+indent)
}

// writeJSON prints v as one indented JSON value.
func writeJSON(w io.Writer, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// oneLine makes text fit into a cell.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
