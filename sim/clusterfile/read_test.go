package clusterfile

import (
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/fault"
	"github.com/bellows-rm/bellows/internal/testfile"
	"github.com/bellows-rm/bellows/sim"
)

// full has every field.
const full = `bellows_cluster: 1
nodes:
  - {count: 2, cpus: 16, memory: 64GB}
  - {count: 1, cpus: 16, memory: 96GB, disk: 110MB/s, network: 125MB/s}
  - {count: 2, name: large, cpus: 64, memory: 1TB, disk: 1GB/s, network: unknown}
  - {names: [login, "db 1"], cpus: 500m, memory: 4GiB}
heartbeat: 2s
starts_per_heartbeat: 3
application_master: {heartbeat: 200ms, cpus: 1, memory: 1GB}
launch_delay: 10ms
acquire: yarn
machine: hdd
swap: {size: 64GB, speed: 0}
caps: all
failures: {every: 10m, repair_after: 5m, seed: 7}
flex: {manager: paper, puff_ratio: 0.5, min_container: 1GB, look: 0}
misjudge: {duration: 0.15, memory: -0.5, penalty: -0.5:0.5, demand: 0.3, seed: 3}
`

func TestRead(t *testing.T) {
	c, err := Read(strings.NewReader(full), "cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config, err := c.Config()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range config.Nodes {
		names = append(names, n.Name)
	}
	if got := strings.Join(names, ","); got != "node1,node2,node3,large1,large2,login,db 1" {
		t.Errorf("nodes %s", got)
	}
	if large := config.Nodes[3]; large.Unknown != resource.KindsOf(resource.Network) ||
		large.Capacity[resource.Network] != 0 || large.Capacity[resource.Disk] != resource.GB ||
		config.Nodes[2].Unknown != 0 {
		t.Errorf("the first large node is %+v", large)
	}
	if got, want := config.Nodes[2].Capacity,
		(resource.Vector{16 * resource.Core, 96 * resource.GB, 110 * resource.MB, 125 * resource.MB}); got != want {
		t.Errorf("the third node has %v, want %v", got, want)
	}
	switch {
	case config.Heartbeat != 2*time.Second || config.StartsPerHeartbeat != 3 ||
		config.CoordinatorHeartbeat != 200*time.Millisecond || config.LaunchDelay != 10*time.Millisecond:
		t.Errorf("heartbeats %+v", config)
	case config.Coordinator != resource.Of(resource.Core, resource.GB):
		t.Errorf("coordinators hold %v", config.Coordinator)
	case config.Startup != sim.YARN().Startup:
		t.Errorf("start-up %+v", config.Startup)
	case config.Machine.Swap != 64*resource.GB || config.Machine.SwapSpeed != 0 || len(config.Machine.Paging) == 0:
		t.Errorf("machine %+v", config.Machine)
	case config.Caps != resource.KindsOf(resource.CPU, resource.Disk, resource.Network):
		t.Errorf("caps %v", config.Caps)
	case config.Flex.Manager.PuffRatio != 0.5 || config.Flex.Manager.Interval != memory.Paper().Interval ||
		config.Flex.Look != 0:
		t.Errorf("flex %+v", config.Flex)
	case len(config.Incidents) == 0 || c.Failures.Seed != 7:
		t.Errorf("failures %+v", c.Failures)
	case c.Misjudge != Misjudge{"duration=0.15,memory=-0.5,penalty=-0.5:0.5,demand=0.3", 3}:
		t.Errorf("misjudge %+v", c.Misjudge)
	}
}

// TestReadNothing: what is left out is left to whoever simulates.
func TestReadNothing(t *testing.T) {
	c, err := Read(strings.NewReader("bellows_cluster: 1\n"), "cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if c.Groups != nil || c.Heartbeat != nil || c.StartsPerHeartbeat != nil || c.Coordinator.Heartbeat != nil ||
		c.Acquire != nil || c.Machine != nil ||
		c.Swap.Size != nil || c.Swap.Speed != nil || c.Flex.Look != nil {
		t.Errorf("%+v", c)
	}
	// Nodes of a manager as in the paper look at their containers as often as there.
	if c, err = Read(strings.NewReader(
		"bellows_cluster: 1\nflex: {manager: ejf}\nnodes: [{count: 1, cpus: 1, memory: 1GB}]\n"),
		"cluster.yaml"); err != nil {
		t.Fatal(err)
	}
	if config, err := c.Config(); err != nil || config.Flex.Look != 2*time.Second ||
		config.Caps != resource.KindsOf(resource.CPU) {
		t.Errorf("look every %v, caps %v: %v", config.Flex.Look, config.Caps, err)
	}
}

// TestFaults: a mistake is one sentence with file, line and field.
func TestFaults(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "c: bellows_cluster is missing: must be 1, the version of the format",
		"heartbeat: 1s\n":                 "c:1: bellows_cluster is missing: must be 1, the version of the format",
		"bellows_cluster: 2\n":            "c:1: bellows_cluster 2: must be 1, the version of the format",
		"- 1\n":                           "c:1: must be a mapping of field names to values, but is a list",
		"bellows_cluster: [\n":            "c:1: must be YAML: did not find expected node content",
		"bellows_cluster: 1\n---\na: 1\n": "c:2: must describe one cluster, but a second document begins",
		"bellows_cluster: 1\nheart: 1s\n": "c:2: heart: unknown field; must be one of bellows_cluster, nodes, " +
			"application_master, acquire, machine, swap, caps, failures, flex, misjudge, heartbeat, " +
			"starts_per_heartbeat, launch_delay; did you mean heartbeat?",
		"bellows_cluster: 1\nheartbeat: 1\n": "c:2: heartbeat 1: must be a duration with its unit, such as 90s, 1.5h " +
			"or 250ms, up to 87600h0m0s",
		"bellows_cluster: 1\nheartbeat:\n": "c:2: heartbeat empty: must be a duration with its unit, such as 90s, " +
			"1.5h or 250ms, up to 87600h0m0s",
		"bellows_cluster: 1\nheartbeat: -1s": "c:2: heartbeat -1s: must be " +
			"from 0s to 87600h0m0s",
		"bellows_cluster: 1\nheartbeat: 1s\nheartbeat: 1s\n": "c:3: heartbeat: written " +
			"twice, first in line 2",
		"bellows_cluster: 1\nnodes: []\n": "c:2: nodes an empty list: " +
			"must be a list of at least one group of nodes",
		"bellows_cluster: 1\nnodes:\n  - count: 2\n    cpus: 1\n": "c:3: nodes 1 memory is " +
			"missing: must be above 0",
		"bellows_cluster: 1\nnodes:\n  - count: 2\n    cpus: 1\n    memory: 3\n": "c:5: nodes 1 memory \"3\" has " +
			"no unit: write a number and one of B, KB, MB, GB, TB, PB (powers of 1000; K, M, G, T, P mean the same) or " +
			"KiB, MiB, GiB, TiB, PiB (powers of 1024), such as 4GiB",
		"bellows_cluster: 1\nnodes: [{count: 0, cpus: 1, memory: 1GB}]\n": "c:2: nodes 1 count 0: must be " +
			"a whole number from 1 to 1048576",
		"bellows_cluster: 1\nnodes: [{cpus: 1, memory: 1GB}]\n": "c:2: nodes 1 count is " +
			"missing: must be at least 1, or names given",
		"bellows_cluster: 1\nnodes: [{cpus: 1, memory: 1GB, count: 2, names: [a]}]\n": "c:2: nodes 1 names a list: " +
			"cannot be combined with count or name",
		"bellows_cluster: 1\nnodes: [{cpus: 0, memory: 1GB, count: 2}]\n": "c:2: nodes 1 cpus 0: must be above 0",
		"bellows_cluster: 1\nnodes:\n  - {cpus: 1, memory: 1GB, names: [a]}\n  - {cpus: 1, memory: 1GB, names: [b, " +
			"a]}\n": "c:4: nodes 2 a: is the name of two nodes",
		"bellows_cluster: 1\nnodes: [{cpus: 1, memory: 1GB, count: 1}, {cpus: 1, memory: 1GB, count: " +
			"1048576}]\n": "c:2: nodes 2: a cluster has at most 1048576 nodes",
		"bellows_cluster: 1\nnodes: [{cpus: unknown, memory: 1GB, count: 1}]\n": "c:2: nodes 1 cpus \"unknown\" does " +
			"not begin with a digit: write cores such as 2 or 1.5, or millicores such as 500m",
		"bellows_cluster: 1\nacquire: slurm\n": "c:2: acquire slurm: must be one of " +
			"yarn, spark-standalone, bellows",
		"bellows_cluster: 1\nmachine: tape\n": "c:2: machine tape: must be one of " +
			"ideal, hdd, ssd, measured",
		"bellows_cluster: 1\nswap: 1GB\n": "c:2: swap: must be a mapping of " +
			"field names to values, but is \"1GB\"",
		"bellows_cluster: 1\nswap:\n  sise: 1GB\n": "c:3: swap sise: unknown field; must " +
			"be one of size, speed; did you mean size?",
		"bellows_cluster: 1\nflex: {puff_ratio: 1000}\n": "c:2: flex puff_ratio 1000: must be " +
			"0, or from 0.01 to 100",
		"bellows_cluster: 1\nflex: {manager: none}\n": "c:2: flex manager none: must be one " +
			"of default, ejf, ejf+s, kill, paper, sjf",
		"bellows_cluster: 1\nmisjudge: {speed: 1}\n": "c:2: misjudge speed: unknown field; " +
			"must be one of seed, duration, memory, penalty, demand; did you mean seed?",
		"bellows_cluster: 1\nmisjudge: {memory: -1}\n": "c:2: misjudge memory -1: must be an " +
			"error such as 0.15, or two with a colon between them, above -1 and at most 10",
		"bellows_cluster: 1\nmisjudge: {memory: '0.1,penalty=0.1'}\n": "c:2: misjudge memory " +
			"0.1,penalty=0.1: must be an error such as 0.15, or two with a colon between them, above -1 and at most 10",
		"bellows_cluster: 1\nfailures: {seed: -1}\n": "c:2: failures seed -1: must be a " +
			"whole number from 0 on",
		"bellows_cluster: &a 1\nheartbeat: *a\n": "c:2: heartbeat an alias, which is " +
			"not part of the format: must be a duration with its unit, such as 90s, 1.5h or 250ms, up to 87600h0m0s",
	} {
		_, err := Read(strings.NewReader(text), "c")
		if !fault.Is(err) || err.Error() != want {
			t.Errorf("%q:\n got %v\nwant %s", text, err, want)
		}
	}
}

// TestConfigRefuses what only shows when everything is known.
func TestConfigRefuses(t *testing.T) {
	const nodes = "bellows_cluster: 1\nnodes: [{count: 1, cpus: 1, memory: 1GB}]\n"
	for text, want := range map[string]string{
		"swap: {size: 1GB}\n": "swap size 1GB: needs machine hdd, ssd or measured, which say what " +
			"paging costs",
		"machine: ideal\nswap: {size: 1GB}\n": "swap size 1GB: needs machine hdd, ssd or measured, which say what " +
			"paging costs",
		"application_master: {heartbeat: 1s}\n": "application_master heartbeat 1s: needs a heartbeat of nodes, but that is 0",
	} {
		c, err := Read(strings.NewReader(nodes+text), "c")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Config(); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// TestDocumented: the example in docs/reference/simulation.md describes a cluster.
func TestDocumented(t *testing.T) {
	for _, text := range testfile.Examples(t, "../../docs/reference/simulation.md", "cluster") {
		c, err := Read(strings.NewReader(text), "docs/reference/simulation.md")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Config(); err != nil {
			t.Error(err)
		}
	}
}

// FuzzRead: whatever a file holds, it is read or refused with a fault of one line, and what is read makes a cluster
// that the simulator takes, or is refused with a sentence.
func FuzzRead(f *testing.F) {
	f.Add(full)
	f.Add("bellows_cluster: 1\nnodes: [{count: 3, cpus: 1, memory: 1GB}]\n")
	f.Add("bellows_cluster: &a 1\nswap: {<<: *a}\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Read(strings.NewReader(text), "c")
		if err != nil {
			if !fault.Is(err) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("not a fault of one line: %q", err)
			}
			return
		}
		nodes := 0
		for _, g := range c.Groups {
			if len(g.Names) == 0 {
				t.Fatal("a group without nodes")
			}
			nodes += len(g.Names)
		}
		if nodes > 1000 || c.Failures.Every > 0 {
			return // drawing failures takes time
		}
		config, err := c.Config()
		if err == nil && len(config.Nodes) != nodes {
			t.Fatalf("%d nodes, want %d", len(config.Nodes), nodes)
		}
	})
}
