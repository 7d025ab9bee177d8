package simulate

import (
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/sim"
)

// seriesJSON is the nodes over time, exactly: with a step for each change. Areas are from the first submission to the
// end of the last job; they are omitted if no job has ended.
type seriesJSON struct {
	From  float64          `json:"from_s" doc:"first submission: areas begin"`
	Until float64          `json:"until_s" doc:"end of the last job: areas end"`
	Nodes []nodeSeriesJSON `json:"nodes" doc:"in the order in which they joined"`
	areasJSON
}

// areasJSON is the areas FA and OA of Prophet. A resource without a number, which bounds nothing, has none.
type areasJSON struct {
	Fragmentation  workJSON `json:"fragmentation,omitempty" doc:"integral of max(0, capacity − demand), area FA of Prophet: cpu_core_s, memory_byte_s, disk_bytes, network_bytes; a resource of which the node has no number is omitted"`
	OverAllocation workJSON `json:"over_allocation,omitempty" doc:"integral of max(0, demand − capacity), area OA of Prophet"`
}

type nodeSeriesJSON struct {
	Node  string         `json:"node" doc:"its name"`
	Steps []nodeStepJSON `json:"steps" doc:"one for each change"`
	areasJSON
}

type nodeStepJSON struct {
	At       float64      `json:"at_s" doc:"the state from then on, until the next step"`
	Gone     bool         `json:"gone,omitempty" doc:"the node has left"`
	Capacity capacityJSON `json:"capacity" doc:"what bounds nothing is omitted"`
	Granted  amountsJSON  `json:"granted" doc:"sums of the grants; of memory on nodes with a memory manager, of the limits"`
	Demand   amountsJSON  `json:"demand" doc:"what the tasks would use if the node had enough for all of them, as far as grants and throttles let them"`
	Used     amountsJSON  `json:"used" doc:"what they get"`
}

// amountsJSON is an amount of every resource.
type amountsJSON struct {
	CPU     resource.Amount `json:"cpu_millicores" doc:"CPU"`
	Memory  resource.Amount `json:"memory_bytes" doc:"memory"`
	Disk    resource.Amount `json:"disk_bytes_per_s" doc:"bandwidth of disks"`
	Network resource.Amount `json:"network_bytes_per_s" doc:"bandwidth of the network"`
}

// capacityJSON is what a node has. What bounds nothing is omitted.
type capacityJSON struct {
	CPU     resource.Amount `json:"cpu_millicores,omitempty" doc:"CPU"`
	Memory  resource.Amount `json:"memory_bytes,omitempty" doc:"memory"`
	Disk    resource.Amount `json:"disk_bytes_per_s,omitempty" doc:"bandwidth of disks"`
	Network resource.Amount `json:"network_bytes_per_s,omitempty" doc:"bandwidth of the network"`
}

func amountsOf(v resource.Vector) amountsJSON {
	return amountsJSON{v[resource.CPU], v[resource.Memory], v[resource.Disk], v[resource.Network]}
}

// workJSON is an amount × time of resources. Its keys name the resource and the unit, such as cpu_core_s.
type workJSON map[string]float64

// seriesOf describes the nodes of a run whose first job was submitted at from.
func seriesOf(res *sim.Result, from timeline.Time) *seriesJSON {
	until := from.Add(res.Makespan)
	out := &seriesJSON{From: from.Seconds(), Until: until.Seconds()}
	for i := range res.Nodes {
		n := nodeSeriesOf(&res.Nodes[i], from, until)
		out.add(&n.areasJSON)
		out.Nodes = append(out.Nodes, n)
	}
	return out
}

func nodeSeriesOf(of *sim.NodeSeries, from, until timeline.Time) nodeSeriesJSON {
	out := nodeSeriesJSON{Node: of.Name}
	var most resource.Vector
	for i := range of.Steps {
		s := &of.Steps[i]
		most = most.Max(s.Capacity)
		out.Steps = append(out.Steps, nodeStepJSON{At: s.At.Seconds(), Gone: s.Capacity == resource.Vector{},
			Capacity: capacityJSON(amountsOf(s.Capacity)), Granted: amountsOf(s.Granted), Demand: amountsOf(s.Demand),
			Used: amountsOf(s.Used)})
	}
	for k := range resource.NumKinds {
		if most[k] > 0 && until > from {
			idle, over := of.Areas(k, from, until)
			unit, size := k.WorkUnit()
			name := k.String() + "_" + unit
			out.add(&areasJSON{workJSON{name: idle.UnitSeconds() / float64(size)},
				workJSON{name: over.UnitSeconds() / float64(size)}})
		}
	}
	return out
}

// add adds areas of another node, or of another resource.
func (a *areasJSON) add(o *areasJSON) {
	if len(o.Fragmentation) > 0 && a.Fragmentation == nil {
		a.Fragmentation, a.OverAllocation = workJSON{}, workJSON{}
	}
	for k := range o.Fragmentation {
		a.Fragmentation[k] += o.Fragmentation[k]
		a.OverAllocation[k] += o.OverAllocation[k]
	}
}
