package profile

import (
	"slices"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
)

// Elasticity returns m in the scheduler's form. Slowdowns are relative to IdealMemory and IdealDuration and may be below 1
// where less memory is faster.
func (m *Model) Elasticity() cluster.Elasticity {
	e := cluster.Elasticity{DiskRate: m.DiskRate}
	switch m.Kind {
	case Step:
		e.Kind = cluster.Step
		e.Factor = max(m.slowdown(m.MinMemory), 1)
	case SawTooth:
		e.Kind = cluster.Points
		e.Points = m.teeth()
	case Monotone, Interpolated:
		e.Kind = cluster.Points
		for _, p := range m.Points {
			e.Points = append(e.Points, m.point(p.Memory))
		}
	}
	if m.MinMemory == m.IdealMemory {
		return cluster.Elasticity{}
	}
	return e
}

// finestTooth is the number of spills up to which a saw-tooth is handed over tooth by tooth. Smaller buffers spill all but
// 1/64 of the input: flat from there on.
const finestTooth = 64

// teeth returns the corners of a SawTooth from MinMemory to IdealMemory. Run time falls at once where the input stops being k buffers
// and rises linearly until it stops being k-1, so that two neighbouring bytes per tooth and lines between them are exact.
//
// cluster.SawTooth has the same shape but takes memory for the buffer and ideal memory for the input; neither holds for
// a program with overhead.
func (m *Model) teeth() []cluster.ElasticityPoint {
	at := []resource.Amount{m.MinMemory, m.IdealMemory}
	for k := resource.Amount(1); k <= finestTooth; k++ {
		// The largest memory that needs k buffers or more: k*B <= input, for k = 1 B < input.
		full := m.Input / k
		if k == 1 {
			full--
		}
		corner := m.Buffer.MemoryBelow(full, m.IdealMemory)
		if corner < m.MinMemory {
			break
		}
		at = append(at, corner, min(corner+1, m.IdealMemory))
	}
	slices.Sort(at)
	var points []cluster.ElasticityPoint
	for _, memory := range slices.Compact(at) {
		points = append(points, m.point(memory))
	}
	return points
}

func (m *Model) point(memory resource.Amount) cluster.ElasticityPoint {
	return cluster.ElasticityPoint{Memory: memory, Slowdown: m.slowdown(memory)}
}

func (m *Model) slowdown(memory resource.Amount) float64 {
	return float64(m.Duration(memory)) / float64(m.IdealDuration)
}

// Apply sets what the scheduler knows of a stage that runs this program: ideal and minimum memory, run time at ideal
// memory, and elasticity. Other fields stay.
func (m *Model) Apply(s *cluster.Stage) {
	s.Ideal[resource.Memory] = m.IdealMemory
	s.MinMemory = m.MinMemory
	s.Duration = m.IdealDuration
	s.Elasticity = m.Elasticity()
}
