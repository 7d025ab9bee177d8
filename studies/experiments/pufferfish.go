package experiments

import (
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/sim"
)

// pufferfish runs the experiments of Pufferfish: "Container-driven Elastic Memory Management for Data-intensive
// Applications", Chen et al., SoCC 2019.
var pufferfish = map[string]run{
	"pufferfish/fig1": pufferfishFigure1, "pufferfish/fig2": pufferfishFigure2, "pufferfish/fig3": fig3Squeeze,
	"pufferfish/fig5":  fig5Contention,
	"pufferfish/fig6a": fig6aPuff, "pufferfish/fig6b": fig6bReclaim, "pufferfish/fig6c": fig6cLatency,
	"pufferfish/fig7a": fig7aKmeans, "pufferfish/fig7b": fig7bWordcount, "pufferfish/fig7c": fig7cMixed,
	"pufferfish/table1-2": pufferfishMix, "pufferfish/table3": pufferfishOutOfMemory,
	"pufferfish/fig8a": pufferfishFigure8a, "pufferfish/fig8b": pufferfishFigure8b, "pufferfish/fig8c": pufferfishFigure8c,
	"pufferfish/fig9": pufferfishFigure9, "pufferfish/fig10": pufferfishFigure10, "pufferfish/fig11": fig11Overhead,
	"pufferfish/fig12a": fig12aRatio, "pufferfish/fig12b": fig12bStart, "pufferfish/fig13": fig13Paging,
}

// The cluster and the settings of Pufferfish in section 5.1.
const (
	pufferfishNodes     = 26
	pufferfishMinCont   = 4 * resource.GB
	pufferfishMaxHeap   = 64 * resource.GB
	pufferfishNodeHas   = 120 * resource.GB  // for containers, of 128 GB
	pufferfishNodeCPU   = 32 * resource.Core // two processors of 8 cores with two threads each
	pufferfishNodeDisk  = 400 * resource.MB  // bytes/s; ours: five disks as RAID-5, four of them with data
	pufferfishSwap      = 1 * resource.TB    // ours: never full. The paper has a partition on a solid-state disk
	pufferfishSwapSpeed = 2 * resource.GB    // bytes/s: 1 GB in 0.5 s (section 5.4)
	pufferfishInterval  = 2 * time.Second    // of heartbeats between nodes and the resource manager (section 4.2)
)

// pufferfishCluster returns the cluster of section 5.1 with the given number of nodes, or with 1 the node of section
// 5.2. Work is acquired as on YARN, with heartbeats of 2 s, under any scheduler.
func pufferfishCluster(nodes int) sim.Config {
	node := resource.Of(pufferfishNodeCPU, pufferfishNodeHas).With(resource.Disk, pufferfishNodeDisk)
	c := sim.Config{Nodes: sim.Uniform(nodes, node), Machine: pufferfishMachine()}
	yarn := sim.YARN()
	yarn.Heartbeat = pufferfishInterval
	yarn.Apply(&c)
	return c
}

// pufferfishMachine returns a machine with hard disks for data and a solid-state disk for swap (sections 5.1 and 5.4).
func pufferfishMachine() sim.Machine {
	return sim.Machine{Disk: sim.HDDLoss, Network: sim.IncastLoss, Paging: sim.SSDPaging,
		Collection: sim.JVMCollection, Swap: pufferfishSwap, SwapSpeed: pufferfishSwapSpeed,
		FaultShare: sim.MeasuredFaultShare}
}

// gigabytes prints an amount such as 64 GB.
func gigabytes(a resource.Amount) string { return fmt.Sprintf("%d GB", a/resource.GB) }
