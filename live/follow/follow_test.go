package follow

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/usage"
)

// span is some seconds in which so many millicores were used.
func span(seconds, millicores int64, change func(*usage.Span)) usage.Span {
	s := usage.Span{Length: time.Duration(seconds) * time.Second, Known: usage.SetOf(usage.CPU, usage.Memory, usage.Swap)}
	s.Used[usage.CPU] = seconds * millicores
	if change != nil {
		change(&s)
	}
	return s
}

// A task leaves what its programs did not use of late, but for headroom; a little more or less is no news. What they
// use says nothing while something keeps them from using more. Where memory is short, it leaves no more than before.
func TestWhatIsLeft(t *testing.T) {
	const all = book.Everything
	for name, c := range map[string]struct {
		uses          []usage.Span
		left, becomes resource.Amount
		short         bool
	}{
		"waits from the beginning": {uses: []usage.Span{span(5, 20, nil)}, becomes: all},
		"too short to say":         {uses: []usage.Span{span(1, 0, nil)}},
		"waits of late": {uses: []usage.Span{span(60, 1000, nil), span(3, 0, nil), span(3, 20, nil)},
			becomes: all},
		"not long enough":     {uses: []usage.Span{span(60, 1000, nil), span(1, 0, nil)}, becomes: 0},
		"uses half":           {uses: []usage.Span{span(10, 500, nil)}, becomes: 375},
		"uses a little":       {uses: []usage.Span{span(10, 150, nil)}, becomes: 813},
		"uses a little again": {uses: []usage.Span{span(10, 30, nil)}, left: all, becomes: all},
		"uses a little less":  {uses: []usage.Span{span(10, 120, nil)}, left: 813, becomes: 813},
		"uses less":           {uses: []usage.Span{span(10, 60, nil)}, left: 813, becomes: all},
		"works again":         {uses: []usage.Span{span(60, 0, nil), span(5, 900, nil)}, left: all},
		"works":               {uses: []usage.Span{span(5, 900, nil)}},
		"uses more":           {uses: []usage.Span{span(5, 1900, nil)}},
		"memory is short":     {uses: []usage.Span{span(10, 20, nil)}, left: 500, becomes: 500, short: true},
		"memory is short, and it works": {uses: []usage.Span{span(10, 900, nil)}, left: 500, becomes: 0,
			short: true},
		"stood still":       {uses: []usage.Span{span(9, 0, func(s *usage.Span) { s.Suspended = time.Second })}},
		"waits for swap":    {uses: []usage.Span{span(9, 0, func(s *usage.Span) { s.Used[usage.Swap] = 1 << 20 })}},
		"was not looked at": {uses: []usage.Span{span(9, 0, func(s *usage.Span) { s.Gap = true })}},
		"is not measured": {uses: []usage.Span{span(9, 0, func(s *usage.Span) { s.Known = 0 })}, left: all,
			becomes: all},
		"nothing was measured ever": {left: all, becomes: all},
	} {
		f := Task{cores: 1000, Leaves: c.left, most: all}
		if c.short {
			f.most = c.left
		}
		news := f.See(usage.Usage{Spans: c.uses})
		if f.Leaves != c.becomes || news != f.Turned || f.Turned != (c.left != c.becomes) {
			t.Errorf("%s: leaves %d, turned %v, news %v", name, f.Leaves, f.Turned, news)
		}
	}
}

// However many programs share the cores, up to perCore, no other one starts: what they hold is as good as all cores.
func TestNobodyStartsOnBusyCores(t *testing.T) {
	for n := resource.Amount(2); n <= 2*perCore; n++ {
		f := Task{cores: resource.Core, most: book.Everything}
		f.See(usage.Usage{Spans: []usage.Span{span(10, int64(2*resource.Core/n), nil)}})
		if holds := n * (f.cores - min(f.cores, f.Leaves)); holds <= resource.Core {
			t.Errorf("%d programs that share two cores hold %d millicores", n, holds)
		}
	}
}
