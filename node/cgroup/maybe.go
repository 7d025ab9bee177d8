package cgroup

// Maybe is a value that may be missing: the kernel lacks it, the file could not be read, or this package does not
// understand its content. The zero Maybe is missing.
type Maybe[T any] struct {
	value T
	ok    bool
}

// Known returns a value that is not missing.
func Known[T any](v T) Maybe[T] { return Maybe[T]{value: v, ok: true} }

// Get returns the value; ok is false, and the value is zero, if it is missing.
func (m Maybe[T]) Get() (value T, ok bool) { return m.value, m.ok }

// Or returns the value, or the argument if the value is missing.
func (m Maybe[T]) Or(instead T) T {
	if m.ok {
		return m.value
	}
	return instead
}
