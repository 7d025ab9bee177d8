// Package paging has measurements of what less memory costs programs that can spill, when they spill and when the
// kernel pages, on a real disk: a curve per way of using memory, with points at shares of ideal memory and all repeats.
// PageSlowdown and SpillSlowdown interpolate linearly between the medians; BreakEven is where the lines cross.
package paging

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sort"

	"github.com/bellows-rm/bellows/core/resource"
)

// Series is one series of measurements: the cost of less memory for a program that spills by itself, and for the same
// program if it is run as if it had enough memory while the kernel pages (YARN-ME, Fig. 2b; Pufferfish, Fig. 13).
// Measured returns ours.
type Series struct {
	Date   string  `json:"date"`   // day of the measurement, YYYY-MM-DD
	Swap   string  `json:"swap"`   // kind of swap: "file"
	Device string  `json:"device"` // kind of the device of spill files and swap
	Kernel string  `json:"kernel"`
	Note   string  `json:"note,omitempty"` // further facts needed to judge it
	Curves []Curve `json:"curves"`
}

// Curve is the measurements of one program.
type Curve struct {
	// Pattern is its memory access: merge, sort, hash or scan.
	Pattern string `json:"pattern"`
	// Ideal is the size of the container in which it neither spills nor pages, in bytes; IdealSeconds is the median run
	// time there.
	Ideal        resource.Amount `json:"ideal_memory_bytes"`
	IdealSeconds float64         `json:"ideal_duration_s"`
	// Points are in ascending order of share, the last at share 1.
	Points []Point `json:"points"`
}

// Point is the measurements at one size of the container.
type Point struct {
	Share float64 `json:"share"` // container over Ideal, above 0, at most 1
	Spill Times   `json:"spill"`
	Page  Times   `json:"page"`
}

// Times are the repeats of one measurement, in seconds.
type Times struct {
	Seconds []float64 `json:"seconds_each,omitempty"` // in the order they were measured
	// Over is the time after which a run was given up, in seconds; 0 if none was. The true time is longer.
	Over float64 `json:"given_up_after_s,omitempty"`
	// Failures is how many further runs failed, and Failed is the reason of the last failure: the kernel may kill a
	// program for lack of memory while there is swap left.
	Failures int    `json:"failures,omitempty"`
	Failed   string `json:"failed,omitempty"`
	// Written and MajorFaults are medians of the bytes that the program wrote to files and of its page faults that
	// waited for the disk.
	Written     resource.Amount `json:"written_bytes,omitempty"`
	MajorFaults int64           `json:"major_faults,omitempty"`
}

// Known reports whether a run ended or was given up, which gives a time or a lower bound for it.
func (t Times) Known() bool { return t.Over > 0 || len(t.Seconds) > 0 }

// Median returns the median run time in seconds. A run that was given up counts with its limit; Median is then only a
// lower bound, as AtLeast reports.
func (t Times) Median() float64 {
	all := t.sorted()
	if len(all) == 0 {
		return math.NaN()
	}
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

// AtLeast reports whether a run was given up, so that Median is a lower bound.
func (t Times) AtLeast() bool { return t.Over > 0 }

// Range returns the fastest and the slowest run in seconds.
func (t Times) Range() (fastest, slowest float64) {
	all := t.sorted()
	if len(all) == 0 {
		return math.NaN(), math.NaN()
	}
	return all[0], all[len(all)-1]
}

func (t Times) sorted() []float64 {
	all := append([]float64(nil), t.Seconds...)
	if t.Over > 0 {
		all = append(all, t.Over)
	}
	sort.Float64s(all)
	return all
}

// Read reads a series of measurements from its JSON form. The error names the field, the value and the limit.
func Read(text []byte) (p Series, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return Series{}, err
	}
	if err := p.Check(); err != nil {
		return Series{}, err
	}
	return p, nil
}

// Check returns an error that names the first field of p that is out of range.
func (p *Series) Check() error {
	if p.Swap == "" {
		return errors.New("swap: must be given")
	}
	for i, c := range p.Curves {
		if err := c.Check(); err != nil {
			return fmt.Errorf("curves[%d].%w", i, err)
		}
	}
	return nil
}

// Check returns an error that names the first field of c that is out of range.
func (c *Curve) Check() error {
	switch {
	case c.Pattern == "":
		return errors.New("pattern: must be given")
	case c.Ideal <= 0 || c.Ideal > maxMemory:
		return fmt.Errorf("ideal_memory_bytes %d: must be 1 to %d", c.Ideal, maxMemory)
	case !positive(c.IdealSeconds):
		return fmt.Errorf("ideal_duration_s %v: must be above 0 and at most %.0f", c.IdealSeconds, maxSeconds)
	case len(c.Points) == 0 || c.Points[len(c.Points)-1].Share != 1:
		return errors.New("points: must end at share 1")
	}
	for i, p := range c.Points {
		if !(p.Share > 0 && p.Share <= 1) || (i > 0 && p.Share <= c.Points[i-1].Share) {
			return fmt.Errorf("points[%d].share %v: must be above 0, at most 1, and above the one before", i, p.Share)
		}
		for _, t := range []Times{p.Spill, p.Page} {
			if t.Over != 0 && !positive(t.Over) {
				return fmt.Errorf("points[%d]: given_up_after_s %v: must be 0 or a time", i, t.Over)
			}
			for _, s := range t.Seconds {
				if !positive(s) {
					return fmt.Errorf("points[%d]: seconds_each %v: must be above 0 and at most %.0f", i, s, maxSeconds)
				}
			}
		}
	}
	return nil
}

// maxMemory and maxSeconds bound what is read.
const (
	maxMemory  resource.Amount = 1 << 52
	maxSeconds                 = math.MaxInt64 / 4 / 1e9
)

func positive(seconds float64) bool { return seconds > 0 && seconds <= maxSeconds }

// Slowdown is a run time over the run time in the ideal container.
type Slowdown struct {
	Factor  float64 // at least 1
	AtLeast bool    // Factor is a lower bound: a neighbouring run was given up
}

// PageSlowdown returns the slowdown by paging at a share of ideal memory, interpolated linearly between the two
// measured shares around it. At 1 and above it is 1. ok is false below the smallest known measured share: nothing is
// extrapolated.
func (c *Curve) PageSlowdown(share float64) (s Slowdown, ok bool) {
	return c.slowdown(share, func(p Point) Times { return p.Page })
}

// SpillSlowdown is PageSlowdown for spilling.
func (c *Curve) SpillSlowdown(share float64) (s Slowdown, ok bool) {
	return c.slowdown(share, func(p Point) Times { return p.Spill })
}

func (c *Curve) slowdown(share float64, of func(Point) Times) (s Slowdown, ok bool) {
	if share >= 1 {
		return Slowdown{Factor: 1}, true
	}
	above, last := Slowdown{Factor: 1}, 1.0
	for i := len(c.Points) - 1; i >= 0; i-- {
		at, t := c.Points[i].Share, of(c.Points[i])
		if at == 1 || !t.Known() {
			continue
		}
		here := Slowdown{max(1, t.Median()/c.IdealSeconds), t.AtLeast()}
		if share >= at {
			w := (share - at) / (last - at)
			return Slowdown{
				Factor:  here.Factor + w*(above.Factor-here.Factor),
				AtLeast: (here.AtLeast && w < 1) || (above.AtLeast && w > 0),
			}, true
		}
		above, last = here, at
	}
	return Slowdown{}, false
}

// BreakEven returns the share of ideal memory from which on, up to the ideal, paging is no slower than spilling: where
// the lines between the medians cross. If paging is no slower at any measured share, it is the smallest of them. ok is
// false if spilling is faster at the largest measured share below the ideal, or paging was killed there.
func (c *Curve) BreakEven() (share float64, ok bool) {
	above, last := 0.0, 1.0
	for i := len(c.Points) - 1; i >= 0; i-- {
		p := c.Points[i]
		if p.Share == 1 {
			continue
		}
		lost, pages := p.lost(c.IdealSeconds)
		switch {
		case pages:
			above, last, ok = lost, p.Share, true
			continue
		case !ok:
			return 0, false
		case math.IsInf(lost, 1):
			return last, true
		}
		return p.Share + (last-p.Share)*lost/(lost-above), true
	}
	return last, ok
}

// lost is the difference between the slowdowns by paging and by spilling, in multiples of the ideal run time. If paging
// is no slower, lost is not positive, and pages is true. If paging does not work, lost is infinite.
func (p Point) lost(ideal float64) (slower float64, pages bool) {
	switch {
	case !p.Page.Known() || p.Page.Failures > 0:
		return math.Inf(1), false
	case !p.Spill.Known():
		return 0, true
	}
	slower = (p.Page.Median() - p.Spill.Median()) / ideal
	if p.Spill.AtLeast() || p.Page.AtLeast() { // only bounds: paging is not known to be faster
		return max(slower, 0), !p.Page.AtLeast()
	}
	return slower, slower <= 0
}

// Curve returns the measurements of a pattern.
func (p *Series) Curve(pattern string) (*Curve, bool) {
	for i := range p.Curves {
		if p.Curves[i].Pattern == pattern {
			return &p.Curves[i], true
		}
	}
	return nil, false
}
