package spark

import (
	"fmt"
	"slices"
)

// audit is what a JVM counts of itself, after applications have left it.
type audit struct {
	Threads     int64 `json:"threads"`
	Classes     int64 `json:"classes"`
	Loaders     int64 `json:"loaders"` // of classes
	Metaspace   int64 `json:"metaspace_bytes"`
	Heap        int64 `json:"heap_bytes"`
	Descriptors int64 `json:"descriptors"`
}

// values returns what grows if applications leave something behind. The heap is not among them: what is used of it
// contains garbage.
func (a audit) values() [5]int64 {
	return [...]int64{a.Threads, a.Classes, a.Loaders, a.Metaspace, a.Descriptors}
}

// counted are the names of values, for people.
var counted = [...]string{"threads", "classes", "class loaders", "bytes of metaspace", "open files"}

// slack is by how much each of values may grow in any case: Spark has up to 115 threads for an application, most of
// them for a minute, and a JVM is attached to up to 16.
var slack = [...]int64{2000, 10_000, 2000, 128 * mib, 2000}

// window is of how many audits the least counts: single audits swing, because threads and connections end late.
const window = 8

// growth compares the audits of a JVM with its plateau: the greatest values among the first audits, without those in
// which it became warm.
type growth struct {
	seen    int
	plateau [5]int64
	last    []audit // at most window
}

func (g *growth) add(a audit) {
	if g.seen++; g.seen > window && g.seen <= 2*window {
		for i, v := range a.values() {
			g.plateau[i] = max(g.plateau[i], v)
		}
	}
	if g.last = append(g.last, a); len(g.last) > window {
		g.last = slices.Delete(g.last, 0, 1)
	}
}

// beyond returns what of the JVM has grown by more than a multiple of its plateau, for people; empty if nothing has.
func (g *growth) beyond(times int64) string {
	if g.seen < 3*window {
		return ""
	}
	least := g.last[0].values()
	for _, a := range g.last[1:] {
		for i, v := range a.values() {
			least[i] = min(least[i], v)
		}
	}
	for i, v := range least {
		if v-g.plateau[i] > times*max(slack[i], g.plateau[i]) {
			return fmt.Sprintf("its %s have grown from %d to %d", counted[i], g.plateau[i], v)
		}
	}
	return ""
}
