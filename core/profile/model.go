package profile

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// Kind is the shape of a model, from few parameters to many.
type Kind uint8

const (
	// Step has one run time when under-sized and another when well-sized: an extra merge pass at any size.
	Step Kind = iota + 1
	// SawTooth is the ideal run time plus the spilled bytes over a constant rate.
	SawTooth
	// Monotone interpolates linearly between measured sizes, made non-increasing in memory.
	Monotone
	// Interpolated interpolates linearly between measured sizes as they are, for programs that are faster with less
	// memory.
	Interpolated
)

// kinds lists all kinds, simplest first: a tie goes to the simpler one.
var kinds = [...]Kind{Step, SawTooth, Monotone, Interpolated}

var kindNames = map[Kind]string{Step: "step", SawTooth: "sawtooth", Monotone: "monotone", Interpolated: "interpolated"}

func (k Kind) String() string {
	if name, ok := kindNames[k]; ok {
		return name
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// MarshalText implements encoding.TextMarshaler.
func (k Kind) MarshalText() ([]byte, error) {
	if _, ok := kindNames[k]; !ok {
		return nil, fmt.Errorf("profile kind %d: unknown", uint8(k))
	}
	return []byte(k.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *Kind) UnmarshalText(text []byte) error {
	for _, kind := range kinds {
		if kindNames[kind] == string(text) {
			*k = kind
			return nil
		}
	}
	return fmt.Errorf("profile kind %q: must be one of step, sawtooth, monotone, interpolated", text)
}

// formatVersion is the version of the JSON form that this package writes, and the only version that it reads.
const formatVersion = 1

// Model is the run time of one program on one input as a function of its memory. It is plain data; its JSON form is
// stored. Fit makes a model, Read reads one back.
type Model struct {
	Version int  `json:"version" doc:"of this form"`
	Kind    Kind `json:"kind" doc:"step, sawtooth, monotone or interpolated"`
	// IdealMemory is the smallest memory with a well-sized run; IdealDuration is the run time there and above.
	IdealMemory   resource.Amount `json:"ideal_memory_bytes" doc:"the smallest memory with a well-sized run"`
	IdealDuration time.Duration   `json:"ideal_duration_ns" doc:"run time with at least that"`
	// MinMemory is the smallest measured memory. Below it the model extrapolates.
	MinMemory resource.Amount `json:"min_memory_bytes" doc:"the smallest measured memory; with less the model extrapolates"`
	// UnderSized is the run time of a Step below IdealMemory.
	UnderSized time.Duration `json:"undersized_duration_ns,omitempty" doc:"run time of a step with less than the ideal memory"`
	// Buffer, Input and SpillRate belong to SawTooth. Input is in bytes in the buffer. SpillRate is the input bytes per
	// second at which the task spills and reads back, the paper's diskRate; 0: spilling costs no time.
	Buffer    *Buffer         `json:"buffer,omitempty" doc:"of a sawtooth: how much of its memory the program fills before it spills"`
	Input     resource.Amount `json:"input_bytes,omitempty" doc:"of a sawtooth: size of the input in the buffer"`
	SpillRate resource.Amount `json:"spill_rate_bytes_per_s,omitempty" doc:"of a sawtooth: input that is spilled and read back per second; omitted if spilling costs no time"`
	// Expansion is the number of buffer bytes per byte on disk (SawTooth); 0 if spilled bytes were not measured.
	Expansion float64 `json:"expansion,omitempty" doc:"of a sawtooth: bytes in the buffer per byte on disk; omitted if spilled bytes were not measured"`
	// Points of Monotone and Interpolated: memory ascending, durations of Monotone not increasing, the last at
	// IdealMemory.
	Points []Point `json:"points,omitempty" doc:"corners of a monotone or interpolated model, by memory, ascending"`
	// DiskRate is the largest disk demand of an under-sized run, bytes per second, with every spilled byte counted once
	// as written and once as read; 0 means unknown.
	DiskRate resource.Amount `json:"disk_rate_bytes_per_s,omitempty" doc:"the largest disk demand of an under-sized run, each spilled byte counted as written and as read; omitted if unknown"`
}

// Point is one corner of a Monotone or Interpolated model.
type Point struct {
	Memory   resource.Amount `json:"memory_bytes" doc:"memory"`
	Duration time.Duration   `json:"duration_ns" doc:"run time with it"`
}

// Duration returns the predicted run time with the given memory in bytes, positive. From IdealMemory on it is
// IdealDuration.
func (m *Model) Duration(memory resource.Amount) time.Duration {
	if memory >= m.IdealMemory {
		return m.IdealDuration
	}
	switch m.Kind {
	case Step:
		return m.UnderSized
	case SawTooth:
		if m.SpillRate == 0 {
			return m.IdealDuration
		}
		spilled := SpilledWhole(m.Input, m.Buffer.At(memory))
		return duration(m.IdealDuration.Seconds() + float64(spilled)/float64(m.SpillRate))
	case Monotone, Interpolated:
		return interpolate(m.Points, memory)
	}
	return m.IdealDuration
}

// interpolate returns the duration at memory on straight lines between points, and the nearest point's duration
// outside.
func interpolate(points []Point, memory resource.Amount) time.Duration {
	i := sort.Search(len(points), func(i int) bool { return points[i].Memory >= memory })
	switch {
	case i == 0:
		return points[0].Duration
	case i == len(points):
		return points[i-1].Duration
	}
	a, b := points[i-1], points[i]
	t := float64(memory-a.Memory) / float64(b.Memory-a.Memory)
	return a.Duration + time.Duration(math.Round(t*float64(b.Duration-a.Duration)))
}

// duration converts seconds, not negative, to the nearest nanosecond; it saturates.
func duration(seconds float64) time.Duration {
	if seconds >= math.MaxInt64/1e9 {
		return math.MaxInt64
	}
	return time.Duration(math.Round(seconds * 1e9))
}

// Check returns an error that names the first field of m that is out of range.
func (m *Model) Check() error {
	switch {
	case m.Version != formatVersion:
		return fmt.Errorf("version %d: must be %d", m.Version, formatVersion)
	case m.IdealMemory <= 0 || m.IdealMemory > maxMemory:
		return fmt.Errorf("ideal_memory_bytes %d: must be 1 to %d", m.IdealMemory, maxMemory)
	case m.MinMemory <= 0 || m.MinMemory > m.IdealMemory:
		return fmt.Errorf("min_memory_bytes %d: must be 1 to ideal_memory_bytes, %d", m.MinMemory, m.IdealMemory)
	case m.DiskRate < 0:
		return fmt.Errorf("disk_rate_bytes_per_s %d: must not be negative", m.DiskRate)
	}
	if err := checkDuration("ideal_duration_ns", m.IdealDuration); err != nil {
		return err
	}
	switch m.Kind {
	case Step:
		return checkDuration("undersized_duration_ns", m.UnderSized)
	case SawTooth:
		return m.checkSawTooth()
	case Monotone, Interpolated:
		return m.checkPoints()
	}
	return fmt.Errorf("kind %d: must be one of step, sawtooth, monotone, interpolated", m.Kind)
}

func (m *Model) checkSawTooth() error {
	switch {
	case m.Buffer == nil:
		return errors.New("buffer: must be given for a sawtooth")
	case m.Input <= 0 || m.Input > maxMemory:
		return fmt.Errorf("input_bytes %d: must be 1 to %d", m.Input, maxMemory)
	case m.SpillRate < 0:
		return fmt.Errorf("spill_rate_bytes_per_s %d: must not be negative", m.SpillRate)
	case !(m.Expansion >= 0) || math.IsInf(m.Expansion, 0):
		return fmt.Errorf("expansion %v: must be a number of at least 0", m.Expansion)
	}
	return m.Buffer.Check()
}

func (m *Model) checkPoints() error {
	if len(m.Points) == 0 {
		return errors.New("points: must have at least one for a profile of this kind")
	}
	for i, p := range m.Points {
		name := fmt.Sprintf("points[%d]", i)
		if err := checkDuration(name+".duration_ns", p.Duration); err != nil {
			return err
		}
		switch {
		case p.Memory <= 0:
			return fmt.Errorf("%s.memory_bytes %d: must be positive", name, p.Memory)
		case i > 0 && p.Memory <= m.Points[i-1].Memory:
			return fmt.Errorf("%s.memory_bytes %d: must be above the one before, %d", name, p.Memory, m.Points[i-1].Memory)
		case m.Kind == Monotone && i > 0 && p.Duration > m.Points[i-1].Duration:
			return fmt.Errorf("%s.duration_ns %d: must not be above the one before, %d", name, p.Duration,
				m.Points[i-1].Duration)
		}
	}
	last := m.Points[len(m.Points)-1]
	if last.Memory != m.IdealMemory || last.Duration != m.IdealDuration {
		return fmt.Errorf("points: must end at the ideal, %d bytes and %d ns", m.IdealMemory, m.IdealDuration)
	}
	return nil
}

func checkDuration(name string, d time.Duration) error {
	if d <= 0 || d.Seconds() > maxSeconds {
		return fmt.Errorf("%s %d: must be above 0 and at most %.0f s", name, d, maxSeconds)
	}
	return nil
}
