package profile

import (
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// Elasticity returns m in the scheduler's form. Slowdowns are relative to IdealDuration at IdealMemory and may be below
// 1 where less memory is faster.
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

// finestTooth is the number of spills up to which Elasticity keeps each tooth of a saw-tooth. Smaller buffers spill at
// least 63/64 of the input, and count as flat.
const finestTooth = 64

// teeth returns the corners of a SawTooth from MinMemory to IdealMemory. With growing memory, run time drops where the
// input becomes smaller than k buffers, and then rises linearly until the input becomes smaller than k-1 buffers. Two
// neighbouring bytes per tooth, with straight lines between them, are therefore exact.
//
// cluster.SawTooth has the same shape but equates memory with the buffer and ideal memory with the input, which is
// wrong for a program with overhead.
func (m *Model) teeth() []cluster.ElasticityPoint {
	at := []resource.Amount{m.MinMemory, m.IdealMemory}
	for k := resource.Amount(1); k <= finestTooth; k++ {
		// The largest memory at which the input fills k buffers or more: k*B <= input, for k = 1 B < input.
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

// slowdown is at most what a stage may state.
func (m *Model) slowdown(memory resource.Amount) float64 {
	return min(cluster.MostSlowdown, float64(m.Duration(memory))/float64(m.IdealDuration))
}

// Apply sets what a model says of a stage that runs this program: ideal and minimum memory, run time at ideal memory,
// and elasticity. Other fields stay.
func (m *Model) Apply(s *cluster.Stage) {
	s.Ideal[resource.Memory] = m.IdealMemory
	s.MinMemory = m.MinMemory
	s.Duration = m.IdealDuration
	s.Elasticity = m.Elasticity()
}
