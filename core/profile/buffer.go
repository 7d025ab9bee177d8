package profile

import (
	"fmt"
	"math"
	"sort"

	"github.com/bellows-rm/bellows/core/resource"
)

// Buffer says how much of a task's memory its program fills before it spills: Share*memory - Overhead. A command with
// "-m {memory*0.8-16MiB}" has Share 0.8 and Overhead 16 MiB.
type Buffer struct {
	Share    float64         `json:"share" doc:"above 0, at most 1: the program fills share × memory − overhead_bytes"`
	Overhead resource.Amount `json:"overhead_bytes" doc:"see share"`
}

// Program is what is known of a program before it is measured.
type Program struct {
	Buffer Buffer
	// Input is the size of its input in the buffer, bytes; 0 means unknown: it is learned.
	Input resource.Amount
}

// Check returns an error that names the first field out of range.
func (p Program) Check() error {
	if p.Input < 0 || p.Input > maxMemory {
		return fmt.Errorf("input %d bytes: must be 0 (unknown) to %d", p.Input, maxMemory)
	}
	return p.Buffer.Check()
}

// WholeMemory is the buffer of a program that fills all of its memory.
var WholeMemory = Buffer{Share: 1}

// At returns the buffer in bytes of a task with the given memory, at least 1 byte.
func (b Buffer) At(memory resource.Amount) resource.Amount {
	size := memory
	if b.Share != 1 {
		size = resource.Amount(b.Share * float64(memory))
	}
	return max(size-b.Overhead, 1)
}

// MemoryBelow returns the largest memory, at most limit, whose buffer is at most size. At grows with memory, so that
// every larger memory has a larger buffer.
func (b Buffer) MemoryBelow(size, limit resource.Amount) resource.Amount {
	return resource.Amount(sort.Search(int(limit), func(m int) bool { return b.At(resource.Amount(m)+1) > size }))
}

// Check returns an error that names the first field out of range.
func (b Buffer) Check() error {
	if !(b.Share > 0 && b.Share <= 1) {
		return fmt.Errorf("buffer share %v: must be above 0 and at most 1", b.Share)
	}
	if b.Overhead < 0 || b.Overhead > maxMemory {
		return fmt.Errorf("buffer overhead %d bytes: must be 0 to %d", b.Overhead, maxMemory)
	}
	return nil
}

// maxMemory and maxSeconds bound the values of a model, so that no sum of two of them overflows.
const (
	maxMemory  resource.Amount = 1 << 52 // whole numbers up to here are exact in a float64
	maxSeconds                 = math.MaxInt64 / 4 / 1e9
)
