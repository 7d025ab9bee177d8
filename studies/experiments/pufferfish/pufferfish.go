package pufferfish

import (
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// Runs has the experiments of Pufferfish: "Container-driven Elastic Memory Management for Data-intensive
// Applications", Chen et al., SoCC 2019.
var Runs = map[string]lab.Run{
	"pufferfish/fig1": figure1, "pufferfish/fig2": figure2, "pufferfish/fig3": fig3Squeeze,
	"pufferfish/fig5":  fig5Contention,
	"pufferfish/fig6a": fig6aPuff, "pufferfish/fig6b": fig6bReclaim, "pufferfish/fig6c": fig6cLatency,
	"pufferfish/fig7a": fig7aKmeans, "pufferfish/fig7b": fig7bWordcount, "pufferfish/fig7c": fig7cMixed,
	"pufferfish/table1-2": mix, "pufferfish/table3": outOfMemory,
	"pufferfish/fig8a": figure8a, "pufferfish/fig8b": figure8b, "pufferfish/fig8c": figure8c,
	"pufferfish/fig9": figure9, "pufferfish/fig10": figure10, "pufferfish/fig11": fig11Overhead,
	"pufferfish/fig12a": fig12aRatio, "pufferfish/fig12b": fig12bStart, "pufferfish/fig13": fig13Paging,
}

// The cluster and the settings of Pufferfish in section 5.1.
const (
	nodes     = 26
	minCont   = 4 * resource.GB
	maxHeap   = 64 * resource.GB
	nodeHas   = 120 * resource.GB  // for containers, of 128 GB
	nodeCPU   = 32 * resource.Core // two processors of 8 cores with two threads each
	nodeDisk  = 400 * resource.MB  // bytes/s; ours: five disks as RAID-5, four of them with data
	swap      = 1 * resource.TB    // ours: never full. The paper has a partition on a solid-state disk
	swapSpeed = 2 * resource.GB    // bytes/s: 1 GB in 0.5 s (section 5.4)
	interval  = 2 * time.Second    // of heartbeats between nodes and the resource manager (section 4.2)
)

// pufferfishCluster returns the cluster of section 5.1 with the given number of nodes, or with 1 the node of section
// 5.2. Work is acquired as on YARN, with heartbeats of 2 s, under any scheduler.
func pufferfishCluster(nodes int) sim.Config {
	node := resource.Of(nodeCPU, nodeHas).With(resource.Disk, nodeDisk)
	c := sim.Config{Nodes: sim.Uniform(nodes, node), Machine: machine()}
	yarn := sim.YARN()
	yarn.Heartbeat = interval
	yarn.Apply(&c)
	return c
}

// machine returns a machine with hard disks for data and a solid-state disk for swap (sections 5.1 and 5.4).
func machine() sim.Machine {
	return sim.Machine{Disk: sim.HDDLoss, Network: sim.IncastLoss, Paging: sim.SSDPaging,
		Collection: sim.JVMCollection, Swap: swap, SwapSpeed: swapSpeed,
		FaultShare: sim.MeasuredFaultShare}
}

// gigabytes prints an amount such as 64 GB.
func gigabytes(a resource.Amount) string { return fmt.Sprintf("%d GB", a/resource.GB) }
