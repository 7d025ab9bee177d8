package cgroup

import "slices"

// Controller names a kind of control that a hierarchy offers, in the words of version 2.
type Controller string

// The controllers this package uses. Freezer is a controller in version 1 and part of every group in version 2. CPUAcct
// is a hierarchy of its own in version 1 and part of cpu.stat in version 2.
const (
	Memory  Controller = "memory"
	CPU     Controller = "cpu"
	CPUAcct Controller = "cpuacct"
	Cpuset  Controller = "cpuset"
	Freezer Controller = "freezer"
	IO      Controller = "io"
	PIDs    Controller = "pids"
)

// Controllers lists all controllers, in the order in which groups are made and processes join.
func Controllers() []Controller {
	return []Controller{Memory, CPU, CPUAcct, Cpuset, Freezer, IO, PIDs}
}

// legacyNames is what mountinfo and /proc/self/cgroup call a controller in version 1.
var legacyNames = map[string]Controller{
	"memory":  Memory,
	"cpu":     CPU,
	"cpuacct": CPUAcct,
	"cpuset":  Cpuset,
	"freezer": Freezer,
	"blkio":   IO,
	"pids":    PIDs,
}

// switchable are the version 2 controllers that cgroup.subtree_control turns on for children.
var switchable = []Controller{Memory, CPU, IO, Cpuset, PIDs}

// Version is the version of one hierarchy.
type Version int

// The two versions. The zero Version stands for "no hierarchy".
const (
	V1 Version = 1
	V2 Version = 2
)

// Mode is how a machine as a whole is set up.
type Mode string

// The modes. Legacy has version 1 hierarchies only, Unified has version 2 only, Hybrid has both (whichever controllers
// each has), None has neither.
const (
	None    Mode = "none"
	Legacy  Mode = "v1"
	Hybrid  Mode = "hybrid"
	Unified Mode = "v2"
)

// sorted returns cs in the order of Controllers, without repeats.
func sorted(cs []Controller) []Controller {
	var out []Controller
	for _, c := range Controllers() {
		if slices.Contains(cs, c) {
			out = append(out, c)
		}
	}
	return out
}
