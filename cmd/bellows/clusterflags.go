package main

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bellows-rm/bellows/cmd/internal/flags"
	"github.com/bellows-rm/bellows/resource"
)

// simulateDefaults are the flags of commands that simulate, before any is given.
func simulateDefaults() simulateOptions {
	o := simulateOptions{
		nodes: 100, node: resource.Of(16*resource.Core, 10000*resource.MB),
		perHeartbeat: 1, heartbeat: time.Second, amHeartbeat: time.Second,
		policies: []string{"fair", "yarn-me"}, settings: map[string]string{}, parallel: 0,
	}
	o.workload.defaults()
	return o
}

// clusterFlags adds the flags that say which cluster is simulated.
func (o *simulateOptions) clusterFlags(f *pflag.FlagSet) {
	f.Var(flags.Count(&o.nodes, 1, 1<<20), "nodes", "nodes in the cluster (1 for bellows workloads)")
	f.Var(flags.Memory(&o.node[resource.Memory]), "node-memory", "memory of a node")
	f.Var(flags.CPU(&o.node[resource.CPU]), "node-cpus", "cores of a node")
	f.Var(flags.Rate(&o.node[resource.Disk]).OrZero(), "node-disk", "disk bandwidth of a node, such as 110MB/s; 0 is unlimited")
	f.Var(flags.Rate(&o.node[resource.Network]).OrZero(), "node-network", "network bandwidth of a node; 0 is unlimited")
	f.Var(flags.Duration(&o.heartbeat, 0), "heartbeat", "between reports of a node; 0: at once")
	f.Var(flags.Count(&o.perHeartbeat, 0, 1<<20), "starts-per-heartbeat", "tasks a node starts per heartbeat; 0: any number")
	f.Var(flags.Duration(&o.amHeartbeat, 0), "am-heartbeat", "between reports of an application master; 0: jobs have none")
	f.Var(flags.Memory(&o.am[resource.Memory]).OrZero(), "am-memory", "memory of an application master")
	f.Var(flags.CPU(&o.am[resource.CPU]).OrZero(), "am-cpus", "cores of an application master")
	f.Var(flags.Duration(&o.launchDelay, 0), "launch-delay", "from decision to launch, where there is no application master")
	o.truth.flags(f)
	o.flex.flags(f)
}

// profileFlags adds the flags that say where profiles are that a workload names.
func (o *simulateOptions) profileFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	o.workload.place.flags(cmd, true)
	f.Lookup("state").Usage = "`directory` with the profiles named in bellows workloads, if no daemon runs (or $BELLOWS_STATE)"
	f.Lookup("socket").Usage = "`file` where a daemon listens that has those profiles (or $BELLOWS_SOCKET)"
}
