package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// Width is the width of help texts, and of tables that are not written to a wider terminal; in columns.
const Width = 80

// Columns returns the largest width of a table on w.
func Columns(w io.Writer) int {
	f, ok := w.(interface{ Fd() uintptr })
	if !ok {
		return Width
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return Width
	}
	return max(Width, int(size.Col))
}

// Table prints rows below heads. Columns whose head begins with ">" are aligned to the right.
type Table struct {
	heads []string
	rows  [][]string
	// Shrinks is the column that is shortened where a row would be too long; -1 for none.
	Shrinks int
	// Notes says that the last column has sentences: a sentence that is too long is printed below its row.
	Notes bool
	// before is the widths of the columns in the last Write, nil before the first.
	before []int
}

// NewTable returns a table without rows.
func NewTable(heads ...string) *Table { return &Table{heads: heads, Shrinks: -1} }

// Add adds a row. Terminal control characters are escaped, because names come from other users.
func (t *Table) Add(cells ...string) {
	for i := range cells {
		cells[i] = cluster.Printable(cells[i])
	}
	t.rows = append(t.rows, cells)
}

// Write prints the rows added since its last call; the first call prints the heads above them. Columns become wider
// from one call to the next where they must, and never narrower. Nothing is written after the last column.
func (t *Table) Write(w io.Writer) error {
	var text strings.Builder
	most := Columns(w)
	widths := t.widths(most)
	if t.before == nil {
		text.WriteString(t.head(widths) + "\n")
	}
	for _, cells := range t.rows {
		row := t.row(cells, widths)
		if !t.Notes {
			text.WriteString(strings.TrimRight(row, " ") + "\n")
			continue
		}
		const below = "    "
		note := cells[len(widths)]
		if beside := row + "  " + note; Cells(beside) <= most || note == "" {
			row = beside
		} else {
			row = strings.TrimRight(row, " ") + "\n" + below + Fold(note, most-len(below), below)
		}
		text.WriteString(strings.TrimRight(row, " ") + "\n")
	}
	t.rows, t.before = nil, widths
	_, err := io.WriteString(w, text.String())
	return err
}

// Fits reports whether every column of the table fits on w as it is.
func (t *Table) Fits(w io.Writer) bool {
	total := -2
	for _, n := range t.widths(Width) {
		total += n + 2
	}
	return total <= Columns(w)
}

// head lays out the heads.
func (t *Table) head(widths []int) string {
	heads := make([]string, len(t.heads))
	for i, h := range t.heads {
		heads[i] = strings.TrimPrefix(h, ">")
	}
	head := t.row(heads, widths)
	if t.Notes {
		head += "  " + heads[len(widths)]
	}
	return strings.TrimRight(head, " ")
}

// row lays out the columns that have a width.
func (t *Table) row(cells []string, widths []int) string {
	var row strings.Builder
	for i, n := range widths {
		if i > 0 {
			row.WriteString("  ")
		}
		cell := Cut(cells[i], n)
		pad := strings.Repeat(" ", n-Cells(cell))
		if strings.HasPrefix(t.heads[i], ">") {
			row.WriteString(pad + cell)
		} else {
			row.WriteString(cell + pad)
		}
	}
	return row.String()
}

// widths returns the width of each column except for notes, and shortens the column that shrinks where the row would be
// too long.
func (t *Table) widths(most int) []int {
	heads := t.heads
	if t.Notes {
		last := len(heads) - 1
		most -= 2 + Cells(heads[last])
		heads = heads[:last]
	}
	widths := make([]int, len(heads))
	for i, h := range heads {
		widths[i] = Cells(strings.TrimPrefix(h, ">"))
	}
	copy(widths, t.before)
	for _, row := range t.rows {
		for i := range widths {
			widths[i] = max(widths[i], Cells(row[i]))
		}
	}
	if t.Shrinks >= 0 {
		total := 2 * (len(widths) - 1)
		for _, w := range widths {
			total += w
		}
		w := widths[t.Shrinks]
		widths[t.Shrinks] = max(min(w, 6), w-max(0, total-most))
	}
	return widths
}

// Fold breaks text between words into lines of at most n columns; lines after the first are indented. Terminal
// control characters are escaped.
func Fold(text string, n int, indent string) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		word = cluster.Printable(word)
		if line != "" && Cells(line)+1+Cells(word) > n {
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

// WriteJSON prints v as one indented JSON value.
func WriteJSON(w io.Writer, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// OneLine joins text into one line, for a cell.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Count prints a number of things.
func Count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// IsOrAre is the verb after a number of things.
func IsOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// OrDash returns a text for a cell: "-" if it is empty.
func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// MemoryOrDash prints an amount of memory for a cell: "-" for none.
func MemoryOrDash[T ~int64](bytes T) string {
	if bytes == 0 {
		return "-"
	}
	return resource.FormatMemory(resource.Amount(bytes))
}

// OrEmpty returns list, or an empty list for nil, so that JSON has [] and not null.
func OrEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Age prints a duration in at most six characters.
func Age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

// Quote quotes a word for a shell.
func Quote(word string) string {
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./+=:@") == "" && word != "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Span prints a duration with two units at most.
func Span(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%.1fd", d.Hours()/24)
	case d >= time.Hour:
		d = d.Round(time.Minute)
		return strings.TrimSuffix(d.String(), "0s")
	case d >= time.Minute:
		return d.Round(time.Second).String()
	}
	return d.Round(time.Millisecond).String()
}
