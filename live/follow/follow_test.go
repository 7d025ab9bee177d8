package follow

import (
	"testing"
	"time"

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

// Programs wait that have used next to nothing of late; a little more does not change what they were found to do. What
// they use says nothing while something keeps them from using more.
func TestWhoWaits(t *testing.T) {
	for name, c := range map[string]struct {
		uses           []usage.Span
		waits, becomes bool
	}{
		"from the beginning": {uses: []usage.Span{span(5, 20, nil)}, becomes: true},
		"too short to say":   {uses: []usage.Span{span(3, 0, nil)}},
		"of late": {uses: []usage.Span{span(60, 1000, nil), span(3, 0, nil), span(3, 50, nil)},
			becomes: true},
		"not long enough":   {uses: []usage.Span{span(60, 1000, nil), span(3, 0, nil)}},
		"works a little":    {uses: []usage.Span{span(10, 150, nil)}},
		"still waits":       {uses: []usage.Span{span(10, 150, nil)}, waits: true, becomes: true},
		"works again":       {uses: []usage.Span{span(60, 0, nil), span(5, 900, nil)}, waits: true},
		"works":             {uses: []usage.Span{span(5, 900, nil)}},
		"stood still":       {uses: []usage.Span{span(9, 0, func(s *usage.Span) { s.Suspended = time.Second })}},
		"waits for swap":    {uses: []usage.Span{span(9, 0, func(s *usage.Span) { s.Used[usage.Swap] = 1 << 20 })}},
		"was not looked at": {uses: []usage.Span{span(9, 0, func(s *usage.Span) { s.Gap = true })}},
		"is not measured": {uses: []usage.Span{span(9, 0, func(s *usage.Span) { s.Known = 0 })}, waits: true,
			becomes: true},
		"nothing was measured ever": {waits: true, becomes: true},
	} {
		f := Task{cores: 1000, Waits: c.waits}
		news := f.See(usage.Usage{Spans: c.uses})
		if f.Waits != c.becomes || news != f.Turned || f.Turned != (c.waits != c.becomes) {
			t.Errorf("%s: waits %v, turned %v, news %v", name, f.Waits, f.Turned, news)
		}
	}
}
