package fault

import "strings"

// Nearest returns the known name that was probably meant by another one: a known name of which it is the
// beginning, or one from which it differs by a typing mistake or, if it is longer than four letters, by two. It
// returns "" if there is none. A mistake is a letter too many, missing or wrong, or two neighbours in the wrong
// order.
func Nearest(name string, known []string) string {
	nearest, least := "", 2
	if len(name) > 4 {
		least = 3
	}
	const longest = 40 // No known name is as long, and a mistake in it is seen without help.
	if len(name) < 2 || len(name) > longest {
		return ""
	}
	for _, of := range known {
		d := mistakes(name, of)
		if len(name) > 2 && strings.HasPrefix(of, name) {
			d = 1
		}
		if d < least {
			nearest, least = of, d
		}
	}
	return nearest
}

// mistakes returns the number of typing mistakes between two names: their distance of optimal string alignment.
func mistakes(a, b string) int {
	var before []int // the distances of the prefix of a that is two shorter
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			change := 1
			if a[i] == b[j] {
				change = 0
			}
			row[j+1] = min(last[j]+change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

// DidYouMean returns the question for a name that is not known, to be put behind a sentence; "" if no known one is
// near.
func DidYouMean(name string, known []string) string {
	if near := Nearest(name, known); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}
