package terminal

import (
	"unicode"

	"golang.org/x/text/width"
)

// Cells returns how many columns of a terminal a printable text takes: East Asian wide characters take two, and marks
// that are combined with the character before take none (Unicode Standard Annex 11).
func Cells(text string) int {
	n := 0
	for _, r := range text {
		n += cellsOf(r)
	}
	return n
}

func cellsOf(r rune) int {
	switch {
	case r < 0x300: // Latin: no character of it is wide or combined.
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Cut shortens text to n columns and marks the cut.
func Cut(text string, n int) string {
	if Cells(text) <= n {
		return text
	}
	left := n - 1 // columns beside the mark
	for i, r := range text {
		if left -= cellsOf(r); left < 0 && n > 0 {
			return text[:i] + "…"
		}
	}
	return ""
}
