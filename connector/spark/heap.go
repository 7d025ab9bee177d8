package spark

import "fmt"

// Memory of an executor, bytes.
const (
	mib = 1 << 20
	// DefaultMemory is what an executor has if its user states nothing, and DefaultStart what one of class FLEX has at
	// first: as much as a JVM takes that has served no application.
	DefaultMemory = 1536 * mib
	DefaultStart  = 384 * mib
	// leastOverhead is what a JVM needs besides its heap, with workers of Python: as Spark counts it.
	leastOverhead = 384 * mib
	// leastHeap is the smallest heap that Spark starts an executor with.
	leastHeap = 450 * mib
	// LeastMemory is the smallest memory of an executor.
	LeastMemory = leastHeap + leastOverhead
)

// Heap returns the largest heap of a JVM in a container that may have a memory, bytes: all but a tenth, or but 384 MiB
// if that is more, for what is no heap. It refuses a memory that is too small for Spark.
func Heap(memory int64) (int64, error) {
	heap := memory - max(leastOverhead, memory/10)
	if heap < leastHeap {
		return 0, fmt.Errorf("memory: %d MiB leave a heap of %d MiB: must be at least %d MiB, because Spark needs a heap "+
			"of %d MiB, and %d MiB are for what is no heap", memory/mib, max(0, heap/mib), int64(LeastMemory/mib),
			int64(leastHeap/mib), int64(leastOverhead/mib))
	}
	return heap, nil
}
