package top

import (
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/door/terminal"
)

// table says which columns a table of rows R has.
type table[R any] struct {
	columns []column[R] // from left to right
	narrow  []string    // their names in the order in which they are given up on a narrow screen, the last first
}

// column is a column of a table.
type column[R any] struct {
	name        string // for --sort
	head        string
	width, most int  // at least and, if that is more, at most for longer texts
	right       bool // aligned
	largest     bool // the largest comes first
	cell        func(r *R, now time.Time) string
	compare     func(a, b *R) int // nil: rows are not sorted by it
	look        func(*R) style    // nil: plain
}

// order is in which order rows are shown.
type order struct {
	by       int // the index of the column that they are sorted by
	reversed bool
}

// find returns the index of a column that rows can be sorted by; ok is false if there is none of that name.
func (t *table[R]) find(name string) (at int, ok bool) {
	at = slices.IndexFunc(t.columns, func(c column[R]) bool { return c.name == name && c.compare != nil })
	return at, at >= 0
}

// names are the names of the columns that rows can be sorted by.
func (t *table[R]) names() string {
	var names []string
	for i := range t.columns {
		if t.columns[i].compare != nil {
			names = append(names, t.columns[i].name)
		}
	}
	return strings.Join(names, ", ")
}

// next returns the order by the next column.
func (t *table[R]) next(o order) order {
	for {
		if o.by = (o.by + 1) % len(t.columns); t.columns[o.by].compare != nil {
			return order{by: o.by}
		}
	}
}

// sort sorts rows by a column, and those that are equal there by another comparison.
func (t *table[R]) sort(rows []R, o order, then func(a, b *R) int) {
	by := &t.columns[o.by]
	slices.SortFunc(rows, func(a, b R) int {
		n := by.compare(&a, &b)
		if by.largest != o.reversed {
			n = -n
		}
		if n == 0 {
			n = then(&a, &b)
		}
		return n
	})
}

// fit returns how wide each column is on a screen with that many columns; 0 is not shown.
func (t *table[R]) fit(rows []R, room int, now time.Time) []int {
	widths := make([]int, len(t.columns))
	longest := func(c *column[R], w, most int) int {
		for i := range rows {
			w = max(w, min(most, terminal.Cells(c.cell(&rows[i], now))))
		}
		return w
	}
	left := room + 1 // a space follows each column but the last
	for i, name := range t.narrow {
		at := slices.IndexFunc(t.columns, func(c column[R]) bool { return c.name == name })
		w := t.columns[at].width
		if i == 0 {
			w = min(longest(&t.columns[at], w, t.columns[at].most), room)
		}
		if w+1 > left {
			break
		}
		widths[at], left = w, left-w-1
	}
	for i := range t.columns {
		if c := &t.columns[i]; widths[i] > 0 && c.most > widths[i] {
			w := longest(c, widths[i], min(c.most, widths[i]+left))
			left -= w - widths[i]
			widths[i] = w
		}
	}
	return widths
}

// heads returns the heads of the columns, the first of which may have another one. An arrow is beside the one that
// the rows are sorted by.
func (t *table[R]) heads(widths []int, o order, first string) (out line) {
	for i, w := range widths {
		if w == 0 {
			continue
		}
		c, after := &t.columns[i], " "
		text, look := c.head, bold
		if i == 0 && first != "" {
			text = first
		}
		if i == o.by {
			arrow := "↑"
			if c.largest != o.reversed {
				arrow = "↓"
			}
			if look = accent; c.right {
				after = arrow
			} else {
				text += arrow
			}
		}
		out = append(out, span{pad(text, w, c.right), look}, span{after, accent})
	}
	return out
}

func (t *table[R]) line(r *R, widths []int, now time.Time) (out line) {
	for i, w := range widths {
		if w == 0 {
			continue
		}
		c, look := &t.columns[i], plain
		if c.look != nil {
			look = c.look(r)
		}
		out = append(out, span{pad(c.cell(r, now), w, c.right), look}, span{" ", plain})
	}
	return out
}

// view returns the heads of the columns and as many rows as fit into that many lines, the selected one among them; at
// is negative if none is.
func (t *table[R]) view(f *frame, rows []R, at, lines int, o order, first string) (out []line) {
	widths := t.fit(rows, f.columns, f.now)
	if lines > 1 {
		out = append(out, t.heads(widths, o, first))
		lines--
	}
	from := max(0, min(at-lines/2, len(rows)-lines))
	for i := from; i < min(from+lines, len(rows)); i++ {
		l := t.line(&rows[i], widths, f.now)
		if i == at && f.lines > 0 {
			l = l.all(reverse, f.columns)
		}
		out = append(out, l)
	}
	return out
}

// text returns the whole table as text, in the order of the rows. The column that shrinks is named.
func (t *table[R]) text(rows []R, shrinks string) *terminal.Table {
	var heads []string
	for i := range t.columns {
		c := &t.columns[i]
		head := c.head
		if c.right {
			head = ">" + head
		}
		heads = append(heads, head)
	}
	out := terminal.NewTable(heads...)
	out.Shrinks, out.Notes = slices.IndexFunc(t.columns, func(c column[R]) bool { return c.name == shrinks }), true
	for i := range rows {
		var cells []string
		for k := range t.columns {
			cells = append(cells, t.columns[k].cell(&rows[i], time.Time{}))
		}
		out.Add(cells...)
	}
	return out
}
