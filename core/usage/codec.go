package usage

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// A span is stored as varints, with times in ms and bytes in KiB:
//
//   - the head, with the bits below;
//   - the length;
//   - if its bit is set, how long the programs stood still;
//   - if its bit is set, how long the disk was pressed;
//   - if its bit is set, how long the programs were idle;
//   - if its bit is set, how long they got less CPU than they would have used;
//   - if its bit is set, the set of known kinds: it differs from that of the span before;
//   - for each kind whose bit is set, its counter, or the change of its level since the span before: neither is 0.
//
// The head has a bit for a gap, for the set, for each kind, for stillness, for a bounded disk, for a pressed disk, for
// idleness and for curbed CPU.
const (
	headGap     = 1 << 0
	headSet     = 1 << 1
	headKind    = 2 // bit of the first kind
	headStill   = 1 << (headKind + NumKinds)
	headBounded = headStill << 1
	headPressed = headBounded << 1
	headIdle    = headPressed << 1
	headCurbed  = headIdle << 1
	headBeyond  = headCurbed << 1
)

// codec is the state that writer and reader share.
type codec struct {
	known Set
	level Amounts
}

func unit(k Kind) int64 {
	if k == CPU {
		return 1
	}
	return int64(resource.KiB)
}

func (c *codec) append(text []byte, s *Span) []byte {
	head := uint64(0)
	if s.Gap {
		head |= headGap
	}
	if s.Known != c.known {
		head |= headSet
	}
	if s.Suspended > 0 {
		head |= headStill
	}
	if s.Bounded {
		head |= headBounded
	}
	if s.Pressed > 0 {
		head |= headPressed
	}
	if s.Idle > 0 {
		head |= headIdle
	}
	if s.Curbed > 0 {
		head |= headCurbed
	}
	var change Amounts
	for _, k := range Kinds() {
		if !s.Known.Has(k) {
			continue
		}
		change[k] = s.Used[k] / unit(k)
		if k.IsLevel() {
			change[k], c.level[k] = change[k]-c.level[k], change[k]
		}
		if change[k] != 0 {
			head |= 1 << (headKind + k)
		}
	}
	text = binary.AppendUvarint(text, head)
	text = binary.AppendUvarint(text, uint64(s.Length/time.Millisecond))
	if s.Suspended > 0 {
		text = binary.AppendUvarint(text, uint64(s.Suspended/time.Millisecond))
	}
	if s.Pressed > 0 {
		text = binary.AppendUvarint(text, uint64(s.Pressed/time.Millisecond))
	}
	if s.Idle > 0 {
		text = binary.AppendUvarint(text, uint64(s.Idle/time.Millisecond))
	}
	if s.Curbed > 0 {
		text = binary.AppendUvarint(text, uint64(s.Curbed/time.Millisecond))
	}
	if s.Known != c.known {
		c.known = s.Known
		text = binary.AppendUvarint(text, uint64(s.Known))
	}
	for _, k := range Kinds() {
		switch {
		case change[k] == 0:
		case k.IsLevel():
			text = binary.AppendVarint(text, change[k])
		default:
			text = binary.AppendUvarint(text, uint64(change[k]))
		}
	}
	return text
}

// take reads one span; ok is false if text does not begin with one.
func (c *codec) take(text []byte) (s Span, rest []byte, ok bool) {
	ok = true
	next := func() uint64 {
		n, size := binary.Uvarint(text)
		if size <= 0 || n > math.MaxInt64 {
			ok = false
			return 0
		}
		text = text[size:]
		return n
	}
	head, length := next(), next()
	if head >= headBeyond || length == 0 || length > math.MaxInt64/uint64(time.Millisecond) {
		return s, nil, false
	}
	s.Gap, s.Bounded, s.Length = head&headGap != 0, head&headBounded != 0, time.Duration(length)*time.Millisecond
	part := func(bit uint64, most time.Duration) time.Duration { // of the length
		if head&bit == 0 {
			return 0
		}
		n := next()
		ok = ok && n > 0 && n <= uint64(most/time.Millisecond)
		return min(time.Duration(n)*time.Millisecond, most)
	}
	s.Suspended = part(headStill, s.Length)
	s.Pressed = part(headPressed, s.Active())
	s.Idle = part(headIdle, s.Active())
	s.Curbed = part(headCurbed, s.Active())
	if head&headSet != 0 {
		set := next()
		if set >= 1<<NumKinds {
			return s, nil, false
		}
		c.known = Set(set)
	}
	s.Known = c.known
	for _, k := range Kinds() {
		n := int64(0)
		if head&(1<<(headKind+k)) != 0 {
			u := next()
			n = int64(u)
			if k.IsLevel() {
				n = int64(u>>1) ^ -int64(u&1) // as binary.Varint
			}
		}
		if !s.Known.Has(k) {
			ok = ok && n == 0
			continue
		}
		if k.IsLevel() {
			n += c.level[k]
			c.level[k] = n
		}
		ok = ok && n >= 0 && n <= math.MaxInt64/unit(k)
		s.Used[k] = n * unit(k)
	}
	return s, text, ok
}

func appendSpans(text []byte, spans []Span) []byte {
	var c codec
	for i := range spans {
		text = c.append(text, &spans[i])
	}
	return text
}

// takeSpans reads spans to the end of the text; ok is false if the text ends in something else.
func takeSpans(text []byte) (spans []Span, ok bool) {
	var c codec
	for len(text) > 0 {
		var s Span
		if s, text, ok = c.take(text); !ok {
			return nil, false
		}
		spans = append(spans, s)
	}
	return spans, true
}

// version is the first byte of what Marshal returns.
const version = 4

// Marshal returns the usage as bytes: some 2 to 14 per span.
func (u Usage) Marshal() []byte {
	return appendSpans([]byte{version}, u.Spans)
}

// Unmarshal returns the usage that Marshal was called on. Any other text, or another version, is an error.
func Unmarshal(text []byte) (Usage, error) {
	switch {
	case len(text) == 0:
		return Usage{}, fmt.Errorf("read a usage: it is empty")
	case text[0] != version:
		return Usage{}, fmt.Errorf("read a usage: its format has version %d, and this program reads version %d", text[0],
			version)
	}
	spans, ok := takeSpans(text[1:])
	if !ok {
		return Usage{}, fmt.Errorf("read a usage: %d bytes are damaged", len(text))
	}
	return Usage{slices.Clip(spans)}, nil
}
