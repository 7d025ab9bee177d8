package timeline

import "testing"

// FuzzTwin reads its input as a list of choices, one byte each: the width of the cells, the unit of the amounts, and
// then changes until the input is used up. A change begins with its operation (0-3 Add, 4-6 Sub, 7-8 Set, 9 Trim, 10 a
// whole timeline, 11 rare ones), then the borders of its span, whether all components take part, and which amounts.
// After the last change, readings go on drawing zeros.
func FuzzTwin(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 0, 0, 3, 9, 1, 1, 3})                                                 // one Add
	f.Add([]byte{0, 0, 0, 3, 9, 1, 1, 3, 4, 3, 9, 1, 1, 3})                               // and its Sub
	f.Add([]byte{2, 2, 0, 3, 9, 1, 1, 3, 0, 9, 20, 1, 1, 3})                              // neighbours that join
	f.Add([]byte{3, 3, 0, 0, 20, 0, 0, 1, 2, 3, 7, 5, 9, 1, 1, 4, 9, 6})                  // all of time, Set, Trim
	f.Add([]byte{1, 1, 0, 1, 20, 1, 1, 4, 10, 0, 3, 2, 8, 1, 1, 3, 4, 9, 1, 1, 1, 11, 3}) // timelines, doubling
	f.Fuzz(func(t *testing.T, input []byte) {
		if len(input) > 400 {
			return // longer ones find nothing new and are slow
		}
		d := func(_ string, n int) int {
			if len(input) == 0 {
				return 0
			}
			b := int(input[0])
			input = input[1:]
			return b % n
		}
		p := newPair(t, d)
		for len(input) > 0 {
			p.change(d)
			p.checkValues()
		}
		for _, choice := range []int{0, 1, 2, 5, 9} {
			n := choice
			p.checkReads(func(_ string, below int) int { n += 3; return n % below })
		}
	})
}
