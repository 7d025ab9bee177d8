package simulate

import (
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/door/cli/workloadfile"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/sim/clusterfile"
)

// clusterOptions are the flags that describe the simulated cluster.
type clusterOptions struct {
	file      string
	nodes     int
	node      resource.Vector
	heartbeat time.Duration
}

func (o *clusterOptions) flags(f *pflag.FlagSet) {
	o.nodes, o.node, o.heartbeat = 100, resource.Of(16*resource.Core, 10*resource.GB), time.Second
	f.StringVar(&o.file, "cluster", "",
		"cluster `file`: nodes of several sizes, failures, swap and more (docs/reference/simulation.md)")
	f.Var(flags.Count(&o.nodes, 1, 1<<20), "nodes", "number of nodes (1 for job and workload files)")
	f.Var(flags.Memory(&o.node[resource.Memory]), "node-memory", "memory of a node")
	f.Var(flags.CPU(&o.node[resource.CPU]), "node-cpus", "cores of a node")
	f.Var(flags.Duration(&o.heartbeat, 0), "heartbeat",
		"time between two reports of a node; 0: nodes report at once (0 for job and workload files, and flex)")
}

// settle returns the cluster. Each value comes from the flags, else from the cluster file, else from the workload, else
// from the defaults of that kind of workload.
func (o *clusterOptions) settle(w *workloadOptions, changed func(string) bool) (*clusterfile.Cluster, error) {
	c := clusterfile.New()
	if o.file != "" {
		file, err := os.Open(o.file)
		if err != nil {
			return nil, command.Usagef("cluster: %w", err)
		}
		defer file.Close()
		if c, err = clusterfile.Read(file, o.file); err != nil {
			return nil, workloadfile.FaultOf(err)
		}
	}
	if err := o.settleNodes(c, w, changed); err != nil {
		return nil, err
	}
	if changed("heartbeat") {
		c.Heartbeat = &o.heartbeat
	}
	if w.generatesFlex() {
		settleFlex(c)
	}
	o.settleHeartbeats(c, w)
	return c, nil
}

func (o *clusterOptions) settleNodes(c *clusterfile.Cluster, w *workloadOptions, changed func(string) bool) error {
	nodes, node, unknown := o.nodes, o.node, resource.Kinds(0)
	fromWorkload := func(n int, size resource.Vector) { // unless a flag says otherwise
		if !changed("nodes") {
			nodes = n
		}
		for k := range resource.NumKinds {
			if !changed("node-" + k.Field()) {
				node[k] = size[k]
			}
		}
	}
	suggested := w.cluster()
	switch {
	case len(c.Groups) > 1 && (changed("nodes") || changed("node-memory") || changed("node-cpus")):
		return command.Usagef("nodes, node-memory, node-cpus: cannot be combined with %s, whose nodes have several sizes",
			o.file)
	case len(c.Groups) > 1:
		return nil
	case len(c.Groups) == 1:
		if names := c.Groups[0].Names; !changed("nodes") || o.nodes == len(names) {
			fromWorkload(len(names), c.Groups[0].Capacity)
			c.Groups[0].Capacity = node
			return nil
		}
		fromWorkload(o.nodes, c.Groups[0].Capacity)
		unknown = c.Groups[0].Unknown
	case suggested != nil:
		fromWorkload(suggested.Nodes, suggested.Node)
	case w.ours():
		fromWorkload(1, node)
	case w.generatesFlex():
		fromWorkload(4, resource.Of(8*resource.Core, 24*resource.GB))
	}
	c.Groups = []clusterfile.Group{{Names: clusterfile.Numbered("node", nodes), Capacity: node, Unknown: unknown}}
	return nil
}

// settleFlex sets the defaults for generated FLEX jobs: machines that are short of memory, and no heartbeats.
func settleFlex(c *clusterfile.Cluster) {
	if c.Machine == nil {
		c.Machine = ref("ssd")
	}
	if c.Swap.Size == nil && *c.Machine != "ideal" {
		c.Swap.Size = ref(64 * resource.GB)
	}
	if c.Heartbeat == nil && c.Acquire == nil {
		c.Heartbeat = ref(time.Duration(0))
	}
}

// settleHeartbeats sets the heartbeats of the acquisition, else the defaults of the workload.
func (o *clusterOptions) settleHeartbeats(c *clusterfile.Cluster, w *workloadOptions) {
	usual := sim.Acquisition{Heartbeat: o.heartbeat, StartsPerHeartbeat: 1, CoordinatorHeartbeat: time.Second}
	if w.ours() {
		usual.Heartbeat = 0
	}
	if c.Acquire != nil {
		usual, _ = sim.AcquisitionOf(*c.Acquire) // no error: the reader has checked the name
	}
	if c.Heartbeat == nil {
		c.Heartbeat = &usual.Heartbeat
	}
	// Jobs in our own formats have their own coordinators.
	if *c.Heartbeat == 0 || w.ours() && c.Acquire == nil {
		usual.CoordinatorHeartbeat = 0
	}
	if *c.Heartbeat == 0 {
		usual.StartsPerHeartbeat = 0
	}
	if c.Coordinator.Heartbeat == nil {
		c.Coordinator.Heartbeat = &usual.CoordinatorHeartbeat
	}
	if c.StartsPerHeartbeat == nil {
		c.StartsPerHeartbeat = &usual.StartsPerHeartbeat
	}
}

func ref[T any](v T) *T { return &v }
