package demo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bellows-rm/bellows/door/terminal"
)

// text is a report that is being written.
type text struct{ strings.Builder }

// say writes a paragraph.
func (t *text) say(format string, operands ...any) {
	t.WriteString(terminal.Fold(fmt.Sprintf(format, operands...), terminal.Width, "") + "\n")
}

// table writes rows and an empty line. The first row has the heads; all columns except the first are aligned to the
// right.
func (t *text) table(rows [][]string) {
	heads := slices.Clone(rows[0])
	for i := 1; i < len(heads); i++ {
		heads[i] = ">" + heads[i]
	}
	table := terminal.NewTable(heads...)
	for _, row := range rows[1:] {
		table.Add(row...)
	}
	_ = table.Write(t) // a Builder never fails
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

// claims writes which of some sentences are true.
func (t *text) claims(all []claim) {
	for _, c := range all {
		t.say("%s: %s", c.verdict(), c.text)
	}
}

// claim is a sentence that is true or false.
type claim struct {
	text  string
	holds bool
}

func (c *claim) verdict() string {
	if c.holds {
		return "Holds"
	}
	return "Does not hold"
}
