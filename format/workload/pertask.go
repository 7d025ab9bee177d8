package workload

import "fmt"

// PerTask is what is known of the tasks of a stage: one value for all of them, or one for each. The zero value is
// nothing: all tasks are as estimated.
type PerTask[T any] struct {
	values []T
	each   bool // values has one value for each task, otherwise one for all
}

// ForAll returns a value that all tasks share.
func ForAll[T any](value T) PerTask[T] { return PerTask[T]{values: []T{value}} }

// ForEach returns values that differ from task to task, in the order of the tasks. It keeps the slice; an empty slice
// is nothing.
func ForEach[T any](values []T) PerTask[T] {
	if len(values) == 0 {
		return PerTask[T]{}
	}
	return PerTask[T]{values: values, each: true}
}

// Given reports whether there is a value.
func (p PerTask[T]) Given() bool { return len(p.values) > 0 }

// Differs reports whether each task has a value of its own.
func (p PerTask[T]) Differs() bool { return p.each }

// Of returns the value of a task, counted from 0; given is false if there is none.
func (p PerTask[T]) Of(task int) (value T, given bool) {
	if !p.each {
		task = 0
	}
	if task >= len(p.values) {
		return value, false
	}
	return p.values[task], true
}

// Values returns the values of the tasks: one for each task if tasks differ, otherwise at most one. The caller must not
// change them.
func (p PerTask[T]) Values() []T { return p.values }

// Map returns p with each value replaced by f of it.
func (p PerTask[T]) Map(f func(T) T) PerTask[T] {
	if !p.Given() {
		return p
	}
	mapped := PerTask[T]{values: make([]T, len(p.values)), each: p.each}
	for i, v := range p.values {
		mapped.values[i] = f(v)
	}
	return mapped
}

// check returns an error if there is neither one value for all tasks nor one for each of them, or the error of the
// first value that is wrong. name is the name of the list.
func (p PerTask[T]) check(name string, tasks int, wrong func(T) error) error {
	if p.each && len(p.values) != tasks {
		return fmt.Errorf("%s: must be one for each task, %d, but are %d", name, tasks, len(p.values))
	}
	for i, v := range p.values {
		if err := wrong(v); err != nil && p.each {
			return fmt.Errorf("task %d %w", i, err)
		} else if err != nil {
			return err
		}
	}
	return nil
}
