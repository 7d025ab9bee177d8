// Package clusterfile reads descriptions of simulated clusters: nodes of several sizes, how they acquire work, how they
// behave under too much demand, when they fail, and how far estimates deviate from the truth.
// docs/reference/simulation.md describes the file.
package clusterfile

import (
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
)

// Cluster is a cluster as the file describes it. A nil field was not given: the caller chooses its value.
type Cluster struct {
	Groups []Group // of nodes; at least one if given

	// Heartbeat to Coordinator are the fields of sim.Config. Acquire is the name of an acquisition (sim.Acquisitions),
	// which sets the fields that are nil, and the start-up of containers.
	Heartbeat          *time.Duration `yaml:"heartbeat" least:"0"`
	StartsPerHeartbeat *int           `yaml:"starts_per_heartbeat" least:"0" most:"1048576"`
	LaunchDelay        time.Duration  `yaml:"launch_delay" least:"0"`
	Coordinator        Coordinator
	Acquire            *string

	// Machine is the name of the nodes' behaviour under too much demand (sim.Machines).
	Machine *string
	Swap    Swap
	// Caps are the resources of which a task uses no more than its grant (sim.Config.Caps), by name: a key of caps.
	Caps string
	// Still says what a task that stands still does with its cores and bandwidths (sim.Config.Lends): lends or keeps.
	Still string

	Failures Failures
	Flex     Flex
	Misjudge Misjudge
}

// Group is nodes of one size.
type Group struct {
	Names    []string        // of the nodes, at least one
	Capacity resource.Vector `yaml:",inline" least:"0"`
	Unknown  resource.Kinds  // fields of Capacity that say unknown: cluster.Node.Unknown
}

// Coordinator is the application master of each job.
type Coordinator struct {
	Heartbeat *time.Duration  `yaml:"heartbeat" least:"0"`
	CPU       resource.Amount `yaml:"cpus" form:"cpus" least:"0"`
	Memory    resource.Amount `yaml:"memory" least:"0"`
}

// Swap is the swap of a node.
type Swap struct {
	Size  *resource.Amount `yaml:"size" least:"0"`              // bytes
	Speed *resource.Amount `yaml:"speed" form:"disk" least:"0"` // bytes per second; nil means that of the machine
}

// Failures are losses of nodes at random.
type Failures struct {
	Every  time.Duration `yaml:"every" least:"0"`        // mean time between two losses; 0: no node is lost
	Repair time.Duration `yaml:"repair_after" least:"0"` // until an equal node joins; 0: no node joins
	Seed   uint64        `yaml:"seed"`
}

// Flex is how the memory of FLEX containers is managed.
type Flex struct {
	Manager   string  // a name of memory.Presets
	PuffRatio float64 // 0 means the manager's own
	// initial memory of containers, bytes; 0 means that of the workload
	MinContainer resource.Amount `yaml:"min_container" least:"0"`
	Look         *time.Duration  `yaml:"look" least:"0"` // sim.Flex.Look
}

// Misjudge is how far the workload's estimates deviate from the truth.
type Misjudge struct {
	Text string // as workload.ParseMisjudgement reads it
	Seed uint64 `yaml:"seed"`
}

// caps are the sets of resources of which tasks can be kept to their grants.
var caps = map[string]resource.Kinds{"none": 0, "cpus": resource.KindsOf(resource.CPU),
	"all": resource.KindsOf(resource.KindsWhere(resource.Kind.Contended)...)}

// New returns a cluster with no field given, in which tasks are kept to their grants, and lend them while they stand
// still, as on a real machine.
func New() *Cluster {
	return &Cluster{Caps: "cpus", Still: "lends", Failures: Failures{Seed: 1}, Flex: Flex{Manager: "default"},
		Misjudge: Misjudge{Text: "none", Seed: 1}}
}

// paperLook is the interval at which Pufferfish's nodes sample their containers.
const paperLook = 2 * time.Second

// mostFailures is the largest mean number of losses.
const mostFailures = 10_000

// Numbered returns n names: base1, base2, …
func Numbered(base string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s%d", base, i+1)
	}
	return names
}

// Config returns the cluster for the simulator. A nil field gets the zero value of sim.Config.
func (c *Cluster) Config() (sim.Config, error) {
	config := sim.Config{Coordinator: resource.Of(c.Coordinator.CPU, c.Coordinator.Memory), LaunchDelay: c.LaunchDelay,
		Caps: caps[c.Caps], Lends: c.Still == "lends"}
	for _, g := range c.Groups {
		for _, name := range g.Names {
			config.Nodes = append(config.Nodes, cluster.Node{ID: cluster.NodeID(len(config.Nodes)), Name: name,
				Capacity: g.Capacity, Unknown: g.Unknown})
		}
	}
	set(&config.Heartbeat, c.Heartbeat)
	set(&config.StartsPerHeartbeat, c.StartsPerHeartbeat)
	set(&config.CoordinatorHeartbeat, c.Coordinator.Heartbeat)
	if config.CoordinatorHeartbeat > 0 && config.Heartbeat == 0 {
		return config, fmt.Errorf("application_master heartbeat %v: needs a heartbeat of nodes, but that is 0",
			config.CoordinatorHeartbeat)
	}
	if c.Acquire != nil {
		a, err := sim.AcquisitionOf(*c.Acquire)
		if err != nil {
			return config, err
		}
		config.Startup = a.Startup
	}
	var err error
	if config.Machine, err = c.machine(); err != nil {
		return config, err
	}
	if config.Flex, err = c.Flex.config(); err != nil {
		return config, err
	}
	if f := c.Failures; f.Every > 0 {
		config.Incidents, err = sim.RandomFailures(sim.Failures{Every: f.Every, Until: mostFailures * f.Every,
			Repair: f.Repair}, config.Nodes, f.Seed)
		if err != nil {
			return config, err
		}
	}
	return config, config.Check()
}

func set[T any](to *T, given *T) {
	if given != nil {
		*to = *given
	}
}

func (c *Cluster) machine() (m sim.Machine, err error) {
	if c.Machine != nil {
		if m, err = sim.MachineOf(*c.Machine); err != nil {
			return m, err
		}
	}
	set(&m.Swap, c.Swap.Size)
	if m.Swap > 0 && len(m.Paging) == 0 {
		return m, fmt.Errorf("swap size %s: needs machine hdd, ssd or measured, which say what paging costs",
			resource.FormatMemoryExact(m.Swap))
	}
	set(&m.SwapSpeed, c.Swap.Speed)
	return m, nil
}

func (f *Flex) config() (sim.Flex, error) {
	p, err := memory.PresetOf(f.Manager, f.PuffRatio)
	if err != nil {
		return sim.Flex{}, fmt.Errorf("flex %w", err)
	}
	flex := sim.Flex{Manager: p}
	if f.Manager != "default" {
		flex.Look = paperLook
	}
	set(&flex.Look, f.Look)
	return flex, nil
}

// Apply returns the workload with the estimates and the initial containers of the cluster's description, for the k-th
// seed from its own seed on. It does not change w.
func (c *Cluster) Apply(w *workload.Workload, k int) (*workload.Workload, error) {
	m, err := workload.ParseMisjudgement(c.Misjudge.Text)
	if err != nil {
		return nil, err
	}
	if m != (workload.Misjudgement{}) {
		w = workload.Misjudge(w, m, c.Misjudge.Seed+uint64(k))
	}
	if c.Flex.MinContainer > 0 {
		w = workload.StartWith(w, c.Flex.MinContainer)
	}
	return w, nil
}
