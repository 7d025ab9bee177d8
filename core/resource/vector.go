// Package resource represents amounts of CPU, memory, disk and network bandwidth as one small value type, with a text
// form with units. All amounts are integers, so that sums do not depend on the order of addition.
package resource

import "math"

// Amount is a quantity of one resource in its base unit: millicores, bytes, or bytes per second.
type Amount int64

const (
	Core Amount = 1000 // millicores
	KB   Amount = 1000
	MB          = 1000 * KB
	GB          = 1000 * MB
	KiB  Amount = 1024
	MiB         = 1024 * KiB
	GiB         = 1024 * MiB
)

// Unbounded is the free amount of a resource of which no number is known: every need fits in it, and it is no number.
// Texts say "unknown" instead, and no file has it. It is half of the largest Amount, so that a sum with a need does not
// overflow.
const Unbounded Amount = math.MaxInt64 / 2

// Vector is an amount of every resource, indexed by Kind. The zero Vector is zero of every resource. Vectors are only
// partly ordered: use FitsIn, never a comparison of single components.
type Vector [NumKinds]Amount

// Of returns a Vector with the given CPU (millicores) and memory (bytes) and no bandwidth.
func Of(cpu, memory Amount) Vector { return Vector{CPU: cpu, Memory: memory} }

// The operations below name the components one by one: they are the innermost loops of every policy, and this form is
// faster than a loop over the kinds.

// Add returns v + w.
func (v Vector) Add(w Vector) Vector {
	return Vector{v[CPU] + w[CPU], v[Memory] + w[Memory], v[Disk] + w[Disk], v[Network] + w[Network]}
}

// Sub returns v - w. Components may become negative.
func (v Vector) Sub(w Vector) Vector {
	return Vector{v[CPU] - w[CPU], v[Memory] - w[Memory], v[Disk] - w[Disk], v[Network] - w[Network]}
}

// Scale returns v * n.
func (v Vector) Scale(n int64) Vector {
	for k := range v {
		v[k] *= Amount(n)
	}
	return v
}

// Min returns the smaller of each component.
func (v Vector) Min(w Vector) Vector {
	return Vector{min(v[CPU], w[CPU]), min(v[Memory], w[Memory]), min(v[Disk], w[Disk]), min(v[Network], w[Network])}
}

// Max returns the larger of each component.
func (v Vector) Max(w Vector) Vector {
	return Vector{max(v[CPU], w[CPU]), max(v[Memory], w[Memory]), max(v[Disk], w[Disk]), max(v[Network], w[Network])}
}

// FitsIn reports whether every component of v is at most that of free.
func (v Vector) FitsIn(free Vector) bool {
	return v[CPU] <= free[CPU] && v[Memory] <= free[Memory] && v[Disk] <= free[Disk] && v[Network] <= free[Network]
}

// IsZero reports whether every component is zero.
func (v Vector) IsZero() bool { return v == Vector{} }

// Negative reports whether any component is below zero, and returns the first such Kind.
func (v Vector) Negative() (Kind, bool) {
	for k := range v {
		if v[k] < 0 {
			return Kind(k), true
		}
	}
	return 0, false
}

// Listed returns the components as files list them, in the order of kinds.
func (v Vector) Listed() []Amount { return v[:] }

// With returns v with component k set to a.
func (v Vector) With(k Kind, a Amount) Vector {
	v[k] = a
	return v
}

// TooMuch returns the need that fits in no room.
func TooMuch() (v Vector) {
	for k := range v {
		v[k] = math.MaxInt64
	}
	return v
}

// NoRoom returns the free room in which nothing fits, not even the zero Vector.
func NoRoom() (v Vector) {
	for k := range v {
		v[k] = -1
	}
	return v
}
