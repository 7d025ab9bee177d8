package mapping

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/bellows-rm/bellows/door/terminal"
)

// failure is an input whose call failed.
type failure struct {
	number       int
	shown, error string
}

// failures counts the inputs whose calls failed, and has those that are listed, the first ones, in order.
type failures struct {
	count int
	first []failure
}

// mostListed bounds how many failures are listed.
const mostListed = 1000

func (all *failures) add(f failure) {
	all.count++
	at, _ := slices.BinarySearchFunc(all.first, f, func(a, b failure) int { return cmp.Compare(a.number, b.number) })
	all.first = slices.Insert(all.first, at, f)
	all.first = all.first[:min(len(all.first), mostListed)]
}

// list lists the failures of that many inputs.
func (all *failures) list(w io.Writer, inputs int) {
	if all.count == 0 {
		return
	}
	fmt.Fprintf(w, "bellows: %d of %s failed:\n", all.count, terminal.Count(inputs, "input"))
	for _, f := range all.first {
		fmt.Fprintf(w, "  input %d %s: %s\n", f.number, f.shown, lastLine(f.error))
	}
	if more := all.count - len(all.first); more > 0 {
		fmt.Fprintf(w, "  and %d more\n", more)
	}
	if whole := strings.TrimSpace(all.first[0].error); whole != lastLine(whole) {
		fmt.Fprintf(w, "The whole error of input %d:\n%s\n", all.first[0].number, whole)
	}
}

// lastLine returns the line of a stack trace that says what is wrong.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if first := lines[0]; strings.HasPrefix(first, "panic:") {
		return first
	}
	return lines[len(lines)-1]
}
