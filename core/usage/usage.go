// Package usage holds what one container used over time: as spans of nearly constant use, compressed, and summed up.
//
//	samples --Log--> a file that survives the program --Parse--> Usage --Marshal--> the store
//
// Time in this package is time since the container's program began, by a clock that neither jumps nor counts while the
// machine sleeps. A kind that was not measured is unknown, which differs from zero.
package usage

import (
	"cmp"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// Kind is something that is measured.
type Kind uint8

// Counters grow while a container runs. Levels rise and fall.
const (
	CPU      Kind = iota // counter: CPU time, milliseconds
	Memory               // level: anonymous and shared memory, without page cache, bytes
	Swap                 // level: bytes in swap
	Read                 // counter: bytes read from disks
	Written              // counter: bytes written to disks
	Received             // counter: bytes received from the network
	Sent                 // counter: bytes sent to the network
	NumKinds
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{CPU, Memory, Swap, Read, Written, Received, Sent} }

// IsLevel reports whether the kind is a level, and not a counter.
func (k Kind) IsLevel() bool { return k == Memory || k == Swap }

// Amounts has an amount of each kind, in the unit of the kind.
type Amounts [NumKinds]int64

// Set is a set of kinds.
type Set uint8

// SetOf returns the set of the given kinds.
func SetOf(kinds ...Kind) (s Set) {
	for _, k := range kinds {
		s |= 1 << k
	}
	return s
}

// Has reports whether k is in the set.
func (s Set) Has(k Kind) bool { return s&(1<<k) != 0 }

const levels = Set(1<<Memory | 1<<Swap)

// Span is a part of a container's life. Within it the use of each known kind stayed nearly the same, unless it is a gap
// or was thinned.
type Span struct {
	// Length is in whole milliseconds, more than 0.
	Length time.Duration
	// Used is how much a counter grew, and the largest sample of a level. Bytes are in whole KiB. It is 0 for kinds that
	// are not known.
	Used  Amounts
	Known Set
	// Gap says that the only sample of the span is at its end: the counters are right, and levels are unknown.
	Gap bool
	// Suspended is how long the programs stood still in it, because they were suspended, paused or throttled, in whole
	// milliseconds. Invariant: 0 <= Suspended <= Length.
	Suspended time.Duration
	// Bounded says that the kernel kept the programs from reading or writing faster in a part of it.
	Bounded bool
	// Pressed is how long, in whole milliseconds, the disk was pressed while the programs transferred something and did
	// not stand still: other programs hindered them. Invariant: 0 <= Pressed <= Active.
	Pressed time.Duration
	// Idle is how long, in whole milliseconds, the programs used next to nothing although nothing kept them from more:
	// they waited for a timer, a lock or the network. It is 0 where that is unknown. Invariant: 0 <= Idle <= Active.
	Idle time.Duration
	// Curbed is how long, in whole milliseconds, the programs got less CPU than they would have used: their quota kept
	// them from it, or they used all of their share while no CPU of the machine was free. What they used then is a lower
	// bound of what they demand. Invariant: 0 <= Curbed <= Active.
	Curbed time.Duration
}

// Active returns how long the programs did not stand still in the span.
func (s *Span) Active() time.Duration { return s.Length - s.Suspended }

// Rate returns the mean of a counter per second, in millicores or bytes per second, or the level in bytes; ok is
// false if it is unknown.
func (s *Span) Rate(k Kind) (rate int64, ok bool) {
	if !s.Known.Has(k) {
		return 0, false
	}
	if k.IsLevel() {
		return s.Used[k], true
	}
	return perSecond(s.Used[k], s.Length), true
}

func perSecond(n int64, d time.Duration) int64 { return int64(float64(n) / d.Seconds()) }

// Demand returns what the programs demand while they do not stand still, as resources: CPU in millicores, memory and
// swap together in bytes, disk (read and written) and network (received and sent) in bytes per second. known has the
// kinds of which every part is known; others are 0. Memory in swap counts, because a task with all the memory it
// wants would have it in memory. The rate of a disk that was bounded, or pressed for most of the time, does not show
// the demand, which is unknown then; so are all rates of a span in which the programs only stood still.
func (s *Span) Demand() (demand resource.Vector, known resource.Kinds) {
	active := *s
	active.Length = s.Active()
	switch {
	case active.Length <= 0:
		active.Known &= levels
	case s.Bounded || s.Pressed > active.Length/2:
		active.Known &^= SetOf(Read, Written)
	}
	return active.rates()
}

// rates returns the rates of the span as resources.
func (s *Span) rates() (demand resource.Vector, known resource.Kinds) {
	for _, r := range []struct {
		kind  resource.Kind
		parts []Kind
	}{{resource.CPU, []Kind{CPU}}, {resource.Memory, []Kind{Memory, Swap}}, {resource.Disk, []Kind{Read, Written}},
		{resource.Network, []Kind{Received, Sent}}} {
		sum, all := int64(0), true
		for _, k := range r.parts {
			rate, ok := s.Rate(k)
			sum, all = sum+rate, all && ok
		}
		if all {
			demand[r.kind] = resource.Amount(sum)
			known |= resource.KindsOf(r.kind)
		}
	}
	return demand, known
}

// Usage is what one container used, from its begin on: spans that follow each other without a pause.
type Usage struct{ Spans []Span }

// Held returns the memory and swap in use when it was last sampled, bytes; ok is false if that is unknown.
func (u Usage) Held() (bytes resource.Amount, ok bool) {
	if len(u.Spans) == 0 {
		return 0, false
	}
	last, known := u.Spans[len(u.Spans)-1].Demand()
	return last[resource.Memory], known.Has(resource.Memory)
}

// Length returns the time that the spans cover.
func (u Usage) Length() time.Duration {
	return u.sum(func(s *Span) time.Duration { return s.Length })
}

// sum adds up a time of each span.
func (u Usage) sum(of func(*Span) time.Duration) (d time.Duration) {
	for i := range u.Spans {
		d += of(&u.Spans[i])
	}
	return d
}

// Gap returns the time that the gaps cover.
func (u Usage) Gap() (d time.Duration) {
	for i := range u.Spans {
		if u.Spans[i].Gap {
			d += u.Spans[i].Length
		}
	}
	return d
}

// Suspended returns how long the programs stood still because they were suspended, paused or throttled.
func (u Usage) Suspended() time.Duration {
	return u.sum(func(s *Span) time.Duration { return s.Suspended })
}

// Bounded returns the time of the spans in which the disk was bounded, less the time in which the programs stood still.
func (u Usage) Bounded() (d time.Duration) {
	for i := range u.Spans {
		if s := &u.Spans[i]; s.Bounded {
			d += s.Active()
		}
	}
	return d
}

// Pressed returns how long the disk was pressed while the programs used it.
func (u Usage) Pressed() time.Duration {
	return u.sum(func(s *Span) time.Duration { return s.Pressed })
}

// Idle returns how long the programs used next to nothing although nothing kept them from more.
func (u Usage) Idle() time.Duration {
	return u.sum(func(s *Span) time.Duration { return s.Idle })
}

// Curbed returns how long the programs got less CPU than they would have used.
func (u Usage) Curbed() time.Duration {
	return u.sum(func(s *Span) time.Duration { return s.Curbed })
}

// Swapped returns for how long a part of its memory was in swap, less the time in which the programs stood still:
// programs that wait for their memory use less CPU than they demand.
func (u Usage) Swapped() (d time.Duration) {
	for i := range u.Spans {
		if s := &u.Spans[i]; s.Used[Swap] >= leastBytes {
			d += s.Active()
		}
	}
	return d
}

// Mean returns the mean rate of a counter or the mean level, over the spans in which the kind is known; ok is false if
// there are none. Compression makes the mean of a level too large, by at most the tolerance of the level.
func (u Usage) Mean(k Kind) (rate int64, ok bool) {
	sum, length := 0.0, 0.0
	for i := range u.Spans {
		s := &u.Spans[i]
		if !s.Known.Has(k) {
			continue
		}
		seconds := s.Length.Seconds()
		length += seconds
		if k.IsLevel() {
			sum += float64(s.Used[k]) * seconds
		} else {
			sum += float64(s.Used[k])
		}
	}
	if length == 0 {
		return 0, false
	}
	return int64(sum / length), true
}

// shortest is the length of the shortest span whose rate can be a peak: the rate of a shorter time varies too much.
const shortest = 500 * time.Millisecond

// Peak returns the largest rate of a span of at least half a second that is no gap, but at least the mean rate; or
// the largest level. ok is false if the kind is unknown in all spans.
func (u Usage) Peak(k Kind) (rate int64, ok bool) {
	rate, ok = u.Mean(k)
	for i := range u.Spans {
		s := &u.Spans[i]
		if s.Gap || !k.IsLevel() && s.Length < shortest {
			continue
		}
		if r, known := s.Rate(k); known {
			rate = max(rate, r)
		}
	}
	return rate, ok
}

// MostHeld returns the largest sample of memory and swap together; 0 if there is none.
func (u Usage) MostHeld() (most resource.Amount) {
	for i := range u.Spans {
		held, _ := u.Spans[i].rates() // 0 if unknown
		most = max(most, held[resource.Memory])
	}
	return most
}

// Total returns how much a counter grew, as far as is known; ok is false for levels and if nothing is known.
func (u Usage) Total(k Kind) (n int64, ok bool) {
	for i := range u.Spans {
		if s := &u.Spans[i]; !k.IsLevel() && s.Known.Has(k) {
			n, ok = n+s.Used[k], true
		}
	}
	return n, ok
}

// join returns two spans that follow each other as one. A kind is known only if it is known in both. Levels are the
// exception: in a gap they are unknown, and those of the other span count.
func join(a, b Span) Span {
	out := Span{Length: a.Length + b.Length, Known: a.Known & b.Known, Gap: a.Gap && b.Gap,
		Suspended: a.Suspended + b.Suspended, Bounded: a.Bounded || b.Bounded,
		Pressed: a.Pressed + b.Pressed, Idle: a.Idle + b.Idle, Curbed: a.Curbed + b.Curbed}
	switch {
	case a.Gap && !b.Gap:
		out.Known |= b.Known & levels
	case b.Gap && !a.Gap:
		out.Known |= a.Known & levels
	}
	for _, k := range Kinds() {
		switch {
		case !out.Known.Has(k):
		case k.IsLevel():
			out.Used[k] = max(a.Used[k], b.Used[k])
		default:
			out.Used[k] = a.Used[k] + b.Used[k]
		}
	}
	return out
}

// SpansStored is how many spans of a container's usage are stored at most after its end, and SpansOld how many are
// left after a day.
const (
	SpansStored = 512
	SpansOld    = 64
)

// Of noise in all kinds, a span takes up to 25 bytes per second. So the usage of a run is thinned to storedRate bytes
// per second of the container's life, together with the rowBytes that the store needs for each run. 100 containers
// then take less than 100 MB a day, although half of a page of the store is empty where a usage takes a little more
// than the other half. At least spansShort spans are kept, which show the steps of a run of less than a minute.
const (
	storedRate = 5
	rowBytes   = 150
	spansShort = 20
)

// Stored returns the usage as it is stored after the end of its container.
func (u Usage) Stored() Usage {
	u = u.Thin(SpansStored)
	size, room := len(u.Marshal()), int(storedRate*u.Length().Seconds())-rowBytes
	if most := max(spansShort, len(u.Spans)*room/max(1, size)); most < len(u.Spans) {
		u = u.Thin(most)
	}
	return u
}

// Thin returns the usage in at most most spans, where most is at least 1: neighbours whose rates differ least are
// joined first. Totals of counters and peaks of levels stay as they are; peaks of rates may fall. A counter that is
// unknown in one of two spans is unknown in the joined span. The result may share memory with u.
func (u Usage) Thin(most int) Usage {
	spans := slices.Clone(u.Spans)
	for len(spans) > most {
		// One round joins disjoint pairs, the most alike first, at most as many as are too many.
		order := make([]pair, 0, len(spans)-1)
		scale := largest(spans)
		for i := range len(spans) - 1 {
			order = append(order, pair{i, unlike(&spans[i], &spans[i+1], &scale)})
		}
		slices.SortFunc(order, func(a, b pair) int { return cmp.Or(cmp.Compare(a.cost, b.cost), a.at-b.at) })
		joined := make([]bool, len(spans)) // with the span before or after
		excess := min(len(spans)-most, max(1, len(order)/4))
		first := make([]bool, len(spans))
		for _, p := range order {
			if excess > 0 && !joined[p.at] && !joined[p.at+1] {
				joined[p.at], joined[p.at+1], first[p.at] = true, true, true
				excess--
			}
		}
		kept := spans[:0:0]
		for i := 0; i < len(spans); i++ {
			if first[i] {
				kept = append(kept, join(spans[i], spans[i+1]))
				i++
				continue
			}
			kept = append(kept, spans[i])
		}
		spans = kept
	}
	return Usage{spans}
}

// pair is a span and its next one.
type pair struct {
	at   int
	cost float64
}

// largest returns the largest rate of each kind, at least 1.
func largest(spans []Span) (scale [NumKinds]float64) {
	for k := range scale {
		scale[k] = 1
	}
	for i := range spans {
		for k := range scale {
			if r, ok := spans[i].Rate(Kind(k)); ok {
				scale[k] = max(scale[k], float64(r))
			}
		}
	}
	return scale
}

// unlike returns how much is lost when two neighbours are joined: the difference of their rates, as parts of scale,
// over the time of the shorter one, in seconds.
func unlike(a, b *Span, scale *[NumKinds]float64) float64 {
	sum := 0.0
	for _, k := range Kinds() {
		x, inA := a.Rate(k)
		y, inB := b.Rate(k)
		switch {
		case inA && inB:
			sum += max(float64(x-y), float64(y-x)) / scale[k]
		case inA != inB:
			sum++
		}
	}
	return sum * min(a.Length, b.Length).Seconds()
}
