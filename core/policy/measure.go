package policy

import (
	"cmp"

	"github.com/bellows-rm/bellows/core/resource"
)

// measure compares vectors of resources as parts of a whole: by memory, or by the resource with the largest part.
type measure struct {
	dominant bool
	whole    resource.Vector
}

// YARN's calculators know memory, or memory and CPU; other resources do not count.
var (
	memoryOnly   = []resource.Kind{resource.Memory}
	memoryAndCPU = []resource.Kind{resource.Memory, resource.CPU}
)

// kinds are the resources that count.
func (m *measure) kinds() []resource.Kind {
	if m.dominant {
		return memoryAndCPU
	}
	return memoryOnly
}

// part is v's part of the whole of one resource; 0 if the whole has none of that resource.
func (m *measure) part(v resource.Vector, k resource.Kind) float64 {
	if m.whole[k] <= 0 {
		return 0
	}
	return float64(v[k]) / float64(m.whole[k])
}

// share is the largest part.
func (m *measure) share(v resource.Vector) float64 {
	share := m.part(v, resource.Memory)
	if m.dominant {
		share = max(share, m.part(v, resource.CPU))
	}
	return share
}

// largest is the resource with the largest part.
func (m *measure) largest(v resource.Vector) resource.Kind {
	if m.dominant && m.part(v, resource.CPU) > m.part(v, resource.Memory) {
		return resource.CPU
	}
	return resource.Memory
}

// compare orders vectors by their largest parts, then by the other parts.
func (m *measure) compare(v, w resource.Vector) int {
	if !m.dominant {
		return cmp.Compare(v[resource.Memory], w[resource.Memory])
	}
	v1, v2 := m.part(v, resource.Memory), m.part(v, resource.CPU)
	w1, w2 := m.part(w, resource.Memory), m.part(w, resource.CPU)
	return cmp.Or(cmp.Compare(max(v1, v2), max(w1, w2)), cmp.Compare(min(v1, v2), min(w1, w2)))
}

func (m *measure) less(v, w resource.Vector) bool { return m.compare(v, w) < 0 }

// min and max return one of the two vectors.
func (m *measure) min(v, w resource.Vector) resource.Vector {
	if m.compare(v, w) <= 0 {
		return v
	}
	return w
}

func (m *measure) max(v, w resource.Vector) resource.Vector {
	if m.compare(v, w) >= 0 {
		return v
	}
	return w
}

// of is v without the resources that do not count.
func (m *measure) of(v resource.Vector) resource.Vector {
	var out resource.Vector
	for _, k := range m.kinds() {
		out[k] = v[k]
	}
	return out
}
