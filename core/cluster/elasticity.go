package cluster

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// ElasticityKind is the shape of an elasticity profile.
type ElasticityKind uint8

const (
	NotElastic    ElasticityKind = iota // runs at ideal memory only
	Step                                // one slowdown for every under-sized allocation (mappers, YARN-ME section 2.2)
	SawTooth                            // slowdown in proportion to the spilled share of the input (reducers, section 2.3)
	Points                              // measured points, interpolated linearly
	SawToothTable                       // SawTooth as the YARN-ME authors' simulator looks it up, by whole percent
)

var elasticityNames = [...]string{"none", "step", "sawtooth", "points", "sawtooth-table"}

func (k ElasticityKind) String() string { return NameOf(elasticityNames[:], k, "elasticity") }

// MarshalText implements encoding.TextMarshaler.
func (k ElasticityKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *ElasticityKind) UnmarshalText(text []byte) error {
	i := slices.Index(elasticityNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("elasticity kind %q: must be one of %s", text, strings.Join(elasticityNames[:], ", "))
	}
	*k = ElasticityKind(i)
	return nil
}

// Elasticity is the slowdown of a task that is under-sized (YARN-ME section 2). The zero value is a task that cannot be
// under-sized.
type Elasticity struct {
	Kind ElasticityKind `json:"kind"`
	// Factor is the slowdown of Step, and of SawTooth when all input is spilled. At least 1.
	Factor float64 `json:"factor,omitempty"`
	// Points of kind Points: memory strictly ascending, the last point at ideal memory. Below the first point its
	// slowdown applies.
	Points []ElasticityPoint `json:"points,omitempty"`
	// DiskRate is the bandwidth that one under-sized task requests of its node's disk, bytes per second, read and write
	// together. 0 is unknown and counts as 0 against a disk budget.
	DiskRate resource.Amount `json:"disk_rate_bytes_per_s,omitempty"`
}

// IsZero reports whether e is that of a stage that says nothing of its elasticity. A list of no points says nothing.
func (e Elasticity) IsZero() bool {
	return e.Kind == NotElastic && e.Factor == 0 && len(e.Points) == 0 && e.DiskRate == 0
}

// ElasticityPoint is one measured point of a profile.
type ElasticityPoint struct {
	Memory   resource.Amount `json:"memory_bytes"`
	Slowdown float64         `json:"slowdown"` // run time over run time at ideal memory; above 0
}

// Slowdown returns the run time at memory divided by the run time at ideal memory. Memory at or above ideal gives 1.
// Both amounts are in bytes and positive.
func (e *Elasticity) Slowdown(ideal, memory resource.Amount) float64 {
	if memory >= ideal || ideal <= 0 {
		return 1
	}
	switch e.Kind {
	case Step:
		return e.Factor
	case SawTooth:
		return 1 + (e.Factor-1)*spilledShare(ideal, memory)
	case SawToothTable:
		return 1 + (e.Factor-1)*tabulatedShare(ideal, memory)
	case Points:
		return e.interpolate(memory)
	}
	return 1
}

// spilledShare is the share of the input that is spilled to disk if the buffer holds a share r of the input: each full
// buffer is spilled whole, and the rest of the input stays in memory. The spilled share has its minima just above r =
// 1/k. (YARN-ME section 2.3; the authors' simulator computes (ceil(1/r)-1)*r.)
func spilledShare(ideal, memory resource.Amount) float64 {
	fills := (ideal - 1) / memory // ceil(ideal/memory) - 1
	return float64(fills) * float64(memory) / float64(ideal)
}

// tabulatedShare is the spilled share as the YARN-ME authors tabulate it: by memory as a whole percentage of ideal, for
// an input of 1155 segments that are spilled whole. Their entry for 25 % is 1, where the rule gives 0.75; the entry is
// kept, because it determines sizes in all results of their simulator. Below 10 %, where nothing runs, their table
// differs from the rule.
func tabulatedShare(ideal, memory resource.Amount) float64 {
	const segments, whole, quarter = 1155, 100, 25
	percent := max(1, int64(float64(memory)*whole/float64(ideal)))
	if memory < math.MaxInt64/whole {
		percent = max(1, int64(memory)*whole/int64(ideal))
	}
	if percent == quarter {
		return 1
	}
	fills := (whole+percent-1)/percent - 1
	return float64(segments*fills*percent/whole) / segments
}

func (e *Elasticity) interpolate(memory resource.Amount) float64 {
	p := e.Points
	i := sort.Search(len(p), func(i int) bool { return p[i].Memory >= memory })
	switch {
	case len(p) == 0:
		return 1
	case i == 0:
		return p[0].Slowdown
	case i == len(p):
		return p[len(p)-1].Slowdown
	}
	a, b := p[i-1], p[i]
	t := float64(memory-a.Memory) / float64(b.Memory-a.Memory)
	return a.Slowdown + t*(b.Slowdown-a.Slowdown)
}

// Worst returns the largest slowdown of the profile, at least 1.
func (e *Elasticity) Worst() float64 {
	worst := 1.0
	switch e.Kind {
	case Step, SawTooth, SawToothTable:
		worst = max(worst, e.Factor)
	case Points:
		for _, p := range e.Points {
			worst = max(worst, p.Slowdown)
		}
	}
	return worst
}

// Duration returns the run time at memory of a task that runs for d at ideal memory. If the task is slowed down, the
// result is rounded down to whole milliseconds.
func (e *Elasticity) Duration(d time.Duration, ideal, memory resource.Amount) time.Duration {
	s := e.Slowdown(ideal, memory)
	if s == 1 {
		return d
	}
	ms := float64(d) / float64(time.Millisecond) * s
	if ms > math.MaxInt64/float64(time.Millisecond) {
		return math.MaxInt64
	}
	// The billionth keeps a product such as 0.1*3*10 from rounding down to the millisecond below.
	return time.Duration(ms*(1+1e-12)) * time.Millisecond
}

// Check returns an error that names the first field that is out of range.
func (e *Elasticity) Check() error {
	if w := e.check(); w != nil {
		return errors.New(w.Named(w.Field))
	}
	return nil
}

func (e *Elasticity) check() *WrongField {
	wrong := func(what string, value any, must string) *WrongField {
		return wrong("elasticity", fmt.Sprintf("%s %v", what, value), "%s", must)
	}
	switch e.Kind {
	case NotElastic:
	case Step, SawTooth, SawToothTable:
		if !(e.Factor >= 1) || math.IsInf(e.Factor, 0) {
			return wrong("factor", e.Factor, "must be a number of at least 1")
		}
	case Points:
		if len(e.Points) == 0 {
			return wrong("points", 0, "must be at least one")
		}
		for i, p := range e.Points {
			memory := func(must string) *WrongField {
				return wrong(fmt.Sprintf("point %d memory", i+1), resource.FormatMemoryExact(p.Memory), must)
			}
			switch {
			case p.Memory <= 0 || (i > 0 && p.Memory <= e.Points[i-1].Memory):
				return memory("must be positive and ascending")
			case p.Memory > resource.MostMemory:
				return memory("must be at most " + resource.FormatMemoryExact(resource.MostMemory))
			}
			if !(p.Slowdown > 0) || math.IsInf(p.Slowdown, 0) {
				return wrong(fmt.Sprintf("point %d slowdown", i+1), p.Slowdown, "must be a positive number")
			}
		}
	default:
		return wrong("kind", uint8(e.Kind), "unknown")
	}
	if worst := e.Worst(); worst > MostSlowdown {
		return wrong("slowdown", worst, fmt.Sprintf("must be at most %d", MostSlowdown))
	}
	if e.DiskRate < 0 || e.DiskRate > resource.MostRate {
		return wrong("disk_rate", resource.FormatRateExact(e.DiskRate), "must be 0 to "+
			resource.FormatRateExact(resource.MostRate))
	}
	return nil
}

// String describes the profile in a few words.
func (e Elasticity) String() string {
	switch e.Kind {
	case Step, SawTooth, SawToothTable:
		return fmt.Sprintf("%s %gx", e.Kind, e.Factor)
	case Points:
		return fmt.Sprintf("%d measured points", len(e.Points))
	}
	return "none"
}
