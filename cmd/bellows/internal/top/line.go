package top

import (
	"strings"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/door/terminal"
)

// line is a line of the screen.
type line []span

type span struct {
	text string
	style
}

// style is how a text looks.
type style uint8

const (
	plain style = iota
	bold
	faint
	good
	warning
	bad
	accent
	reverse // of the selected row
)

// codes are the parameters of SGR (ECMA-48, 8.3.117) with and without colours.
var codes = map[style][2]string{bold: {"1", "1"}, faint: {"2", "2"}, good: {"32", ""}, warning: {"33", "1"},
	bad: {"1;31", "1"}, accent: {"36", ""}, reverse: {"7", "7"}}

// words returns a line of one text.
func words(text string, s style) line { return line{{text, s}} }

// text returns a line without its styles.
func (l line) text() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteString(s.text)
	}
	return b.String()
}

// ansi returns a line for a terminal.
func (l line) ansi(colours bool) string {
	which := 0
	if !colours {
		which = 1
	}
	var b strings.Builder
	for _, s := range l {
		if code := codes[s.style][which]; code != "" {
			b.WriteString("\033[" + code + "m" + s.text + "\033[0m")
		} else {
			b.WriteString(s.text)
		}
	}
	return b.String()
}

// within returns a line that fits into a number of columns. Whatever a terminal would take for a command is escaped:
// this is the last thing that happens to every line.
func (l line) within(columns int) line {
	var out line
	for _, s := range l {
		s.text = terminal.Cut(cluster.Printable(s.text), columns)
		columns -= terminal.Cells(s.text)
		out = append(out, s)
	}
	return out
}

// all returns a line in one style, up to the given column.
func (l line) all(s style, columns int) line {
	return words(pad(strings.TrimRight(l.text(), " "), columns, false), s)
}

// pad returns a text in as many columns as stated, on the left or on the right of them.
func pad(text string, columns int, right bool) string {
	text = terminal.Cut(text, columns)
	space := strings.Repeat(" ", max(0, columns-terminal.Cells(text)))
	if right {
		return space + text
	}
	return text + space
}

// wrap breaks a text that is wider than the screen. Lines after the first are indented as the first is, and by two
// columns more.
func wrap(text string, columns int) (lines []string) {
	text = cluster.Printable(text)
	indent := strings.Repeat(" ", min(len(text)-len(strings.TrimLeft(text, " "))+2, max(0, columns/2)))
	for terminal.Cells(text) > columns && columns > 2 {
		head := strings.TrimSuffix(terminal.Cut(text, columns), "…")
		if space := strings.LastIndex(head, " "); !strings.HasPrefix(text[len(head):], " ") && space > 0 &&
			strings.TrimSpace(head[:space]) != "" {
			head = head[:space]
		}
		if strings.TrimSpace(head) == "" {
			break
		}
		lines = append(lines, head)
		text = indent + strings.TrimLeft(text[len(head):], " ")
	}
	return append(lines, text)
}
