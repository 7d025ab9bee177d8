package ecs

import (
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/sim/trial"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// Runs has the runs of the experiments of ECS.
var Runs = map[string]lab.Run{
	"ecs/fig1": figure1, "ecs/fig2-3": figure2, "ecs/fig8-9": figure8, "ecs/fig10": figure10,
	"ecs/assumed": ecsSweep,
	"ecs/table5":  table5, "ecs/detector": detector, "ecs/wrong": wrong, "ecs/overhead": overhead,
	"ecs/real":   onReal,
	"ecs/table4": tableFour, "ecs/slow-start": slowStart, "ecs/over-allocated": overAllocated,
}

// nodes are the slaves of the paper's cluster of 7 servers of 16 cores and 9 of 20 cores (section V.A): two
// servers are masters, and the paper does not say which.
type nodes struct {
	name string
	of16 int
	of20 int
}

// The two ends: both masters have 20 cores, or 16.
var clusters = []nodes{{"7 nodes of 16 cores and 7 of 20", 7, 7}, {"5 nodes of 16 cores and 9 of 20", 5, 9}}

// cores is how many cores the nodes have together.
func (n *nodes) cores() int { return 16*n.of16 + 20*n.of20 }

// cluster is the simulated cluster. A container has its grant of CPU as a quota, as on a real machine; a stopped one
// lends its cores.
func (n *nodes) cluster() sim.Config {
	const memory = 128 * resource.GB
	nodes := sim.Uniform(n.of16+n.of20, resource.Of(16*resource.Core, memory))
	for i := range nodes[n.of16:] {
		nodes[n.of16+i].Capacity[resource.CPU] = 20 * resource.Core
	}
	return config(nodes)
}

// perState makes a search that uses up its budget of 400,000 states as long as the paper's optimizer takes
// (section V.E: 2.1 s).
const perState = 5 * time.Microsecond

// config is how the nodes acquire work, and what changes of a container cost (section V.E). A container starts in
// 0.9 s, as on YARN.
func config(nodes []cluster.Node) sim.Config {
	c := sim.Config{Nodes: nodes, Caps: resource.KindsOf(resource.CPU), Lends: true, ResizeDelay: sim.ECSResizeDelay,
		HoldDelay: sim.ECSHoldDelay, Solver: sim.Solver{PerState: perState}}
	yarn := sim.YARN()
	yarn.Startup = sim.Startup{Container: yarn.Startup.Container}
	yarn.Apply(&c)
	return c
}

// The schedulers of section V.A. YARN's Capacity Scheduler counts CPU here: by memory alone it would run four tasks
// per core.
var (
	capacity = lab.Contender{Contender: trial.Contender{Label: "Capacity", Policy: "capacity",
		Settings: map[string]string{"capacity.calculator": "dominant"}}}
	prism  = lab.Contender{Contender: trial.Contender{Label: "PRISM", Policy: "prism"}}
	own    = with("ECS", "short", "false")
	weight = with("ECS by weight, α and β of a core", "short", "false", "cpu", "weight", "units", "core")
)

// products are ECS as people get it, which treats short tasks apart, and what they get if they choose no policy.
var products = []lab.Contender{lab.Product("ecs"), lab.Product(policy.Default)}

// with is ECS with some settings, each a name and a value.
func with(label string, settings ...string) lab.Contender {
	c := lab.Contender{Contender: trial.Contender{Label: label, Policy: "ecs", Settings: map[string]string{}}}
	for i := 0; i < len(settings); i += 2 {
		c.Settings["ecs."+settings[i]] = settings[i+1]
	}
	return c
}
