package cgroup

import (
	"fmt"
	"strings"
)

// mostThreads is how many threads Asleep looks at: a thousand take some milliseconds.
const mostThreads = 1000

// looks is how often Asleep looks at threads that all seem to wait while some of them ran.
const looks = 3

// Asleep reports whether every thread of the group, and of the groups below it, waits for something that comes from
// elsewhere: a timer, a lock, the network, another program. A thread that runs, waits for its turn on a CPU, or waits
// for the disk or for its memory does not (the states R and D of proc(5)). It is false if there are no threads or
// more than a thousand, and where the kernel does not say.
//
// Threads are looked at one after the other, and two that take turns may each be seen waiting. One that waits after
// it ran has used CPU time, so that they all waited at the first look if the group has used none until after the
// last.
func (g *Group) Asleep() bool {
	used := g.cpuTime()
	for range looks {
		if !g.seemsAsleep() {
			return false
		}
		before := used
		if used = g.cpuTime(); used == before {
			return used.ok
		}
	}
	return false
}

func (g *Group) seemsAsleep() bool {
	file := "tasks"
	if g.dir() == g.unified {
		file = "cgroup.threads"
	}
	threads := 0
	for _, dir := range below(g.dir()) {
		for _, id := range parseProcs(slurp(dir, file)) {
			state := stateOf(slurp(fmt.Sprintf("/proc/%d", id), "stat"))
			if state == "R" || state == "D" || threads == mostThreads {
				return false
			}
			if state != "" { // it has not ended meanwhile
				threads++
			}
		}
	}
	return threads > 0
}

// stateOf returns the state in a file /proc/PID/stat; empty if there is none. The name of a program before it may
// contain anything.
func stateOf(stat string) string {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) == 0 {
		return ""
	}
	return fields[0]
}
