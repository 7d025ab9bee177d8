package api

import (
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// Node is a machine as people see it.
type Node struct {
	Name            string `json:"name"`
	CPU             int64  `json:"cpu_millicores" doc:"CPU that may be granted"`
	Memory          int64  `json:"memory_bytes" doc:"memory that may be granted"`
	FreeCPU         int64  `json:"free_cpu_millicores" doc:"CPU not granted now"`
	OverdrawnCPU    int64  `json:"overdrawn_cpu_millicores,omitempty" doc:"CPU granted beyond what the node has, because resumed tasks use CPU that they had lent, or tasks were resized; omitted if there is none"`
	FreeMemory      int64  `json:"free_memory_bytes" doc:"memory not granted now, without leftover_memory_bytes; flex containers that have grown may hold some of it"`
	LeftMemory      int64  `json:"left_memory_bytes" doc:"memory with which a task could start now without any being taken from others: neither granted, nor held by flex containers that have grown, nor left over; 0 while the node starts nothing"`
	HeldMemory      int64  `json:"held_memory_bytes,omitempty" doc:"what the containers hold: the sum of their limits, without what is lent to them and they never touched; more than was granted if flex containers have grown; 0 until it is known"`
	LeftoverMemory  int64  `json:"leftover_memory_bytes,omitempty" doc:"memory that outlives the tasks that have used it: files in memory, such as those in /dev/shm, and segments that programs shared; it is not granted until they are removed; omitted if there is none"`
	OverdrawnMemory int64  `json:"overdrawn_memory_bytes,omitempty" doc:"memory granted or left over beyond what the node has, because it is to come back to resumed tasks, which wait for it, or because tasks left it in use; omitted if there is none"`
	FreeDisk        *int64 `json:"free_disk_bytes_per_s,omitempty" doc:"bandwidth of the disk not granted now; omitted if that of the disk is unknown"`
	FreeNetwork     *int64 `json:"free_network_bytes_per_s,omitempty" doc:"bandwidth of the network not granted now; omitted if that of the network is unknown"`
	UsedMemory      int64  `json:"used_memory_bytes" doc:"memory that the containers use now"`
	UsedAnonymous   int64  `json:"used_anonymous_bytes" doc:"anonymous memory that the containers use now"`
	Containers      int    `json:"containers" doc:"number of containers"`
	Disk            int64  `json:"disk_bytes_per_s,omitempty" doc:"bandwidth of the disk, measured or given; 0 is unknown, and under-sized tasks then have no limit"`
	DiskGives       int64  `json:"disk_gives_bytes_per_s,omitempty" doc:"what the disk gives while it is pressed: several containers use it, it is busy, and it gives well below its bandwidth; omitted while it is not pressed"`
	Network         int64  `json:"network_bytes_per_s,omitempty" doc:"bandwidth of the network, as given; 0 is unknown"`
	// Unknown are the fields of the resources whose capacity is unknown.
	Unknown []string `json:"unknown,omitempty" doc:"resources whose capacity was neither measured nor stated, such as network: every request for them fits"`
	// Leveling is the newest question of the policy about the node; nil if there was none.
	Leveling *Leveling `json:"leveling,omitempty" doc:"the newest question of the policy about how to level the demand on the node; omitted if there was none"`
}

// Reserved is the memory that is granted to tasks, which is more than the node has while some of it is overdrawn.
func (n *Node) Reserved() int64 {
	return n.Memory - n.FreeMemory - n.LeftoverMemory + n.OverdrawnMemory
}

// Holds is what the containers hold together, without what is lent to them and they never touched. It is more than
// Reserved if flex containers have grown, and Reserved until the memory loop has reported.
func (n *Node) Holds() int64 { return max(n.HeldMemory, n.Reserved()) }

// Slack compares what was asked for tasks with what was reserved for them and what they used.
type Slack struct {
	Now  SlackOf `json:"now" doc:"of the tasks that have a container now"`
	Past SlackOf `json:"past" doc:"of the runs of tasks that have ended since the daemon began and were measured"`
}

// None reports whether nothing can be compared.
func (s *Slack) None() bool { return s.Now.Tasks+s.Past.Tasks == 0 }

// SlackOf adds up memory of tasks, bytes.
type SlackOf struct {
	Tasks    int64 `json:"tasks" doc:"number of tasks, or of their runs"`
	Open     int64 `json:"open_tasks,omitempty" doc:"of tasks: those that may use the memory of their node, because no limit was asked for; they count in reserved and used alone"`
	Asked    int64 `json:"asked_memory_bytes" doc:"sum of the limits that were asked for"`
	Reserved int64 `json:"reserved_memory_bytes" doc:"sum of what was reserved"`
	Used     int64 `json:"used_memory_bytes" doc:"sum of what they held in memory and in swap, without page cache: now, or of runs that have ended at most"`
}

// Add adds a task; asked is 0 if no limit was asked for.
func (s *SlackOf) Add(asked, reserved, used int64) {
	s.Tasks++
	if asked == 0 {
		s.Open++
	}
	s.Asked, s.Reserved, s.Used = s.Asked+asked, s.Reserved+reserved, s.Used+used
}

// ClusterStatus is the daemon as a whole.
type ClusterStatus struct {
	Policy string `json:"policy" doc:"name of the policy"`
	// Deadlines: the policy lets a job that is past its deadline come first.
	Deadlines bool `json:"deadlines" doc:"jobs past their deadline come first under the policy; under others a deadline changes nothing"`

	Since   time.Time `json:"since" doc:"when the daemon began"`
	Pending int       `json:"pending_tasks" doc:"tasks that have not started"`
	Running int       `json:"running_tasks" doc:"tasks that run"`
	Jobs    int       `json:"jobs" doc:"jobs that have not ended"` // jobs that have not ended
	Steps   int64     `json:"steps" doc:"steps of the engine"`
	Slack   Slack     `json:"slack" doc:"what was asked of memory for tasks, what was reserved for them and what they used"`
	// Trouble is one sentence on what prevents the daemon from working normally (a full disk, an impossible decision of
	// the policy); empty if nothing does.
	Trouble string `json:"trouble,omitempty" doc:"one sentence on what prevents the daemon from working normally"`
	// Quotas says that some user or queue has a quota.
	Quotas bool `json:"quotas,omitempty" doc:"users or queues have quotas"`
	// Crowded is one sentence if all daemons of the machine together may grant more than it has; else empty.
	Crowded string `json:"crowded,omitempty" doc:"one sentence if all bellows daemons of the machine together may grant more memory than it has; a daemon that has ended counts with the grants of its containers that still run"`
	// NetworkUnknown says why what containers transfer over the network is not counted; empty if it is.
	NetworkUnknown string `json:"network_unknown,omitempty" doc:"why it is unknown what containers transfer over the network; omitted if it is counted"`
	// AsOf is the time of the numbers above; zero if they are current, which they are unless the engine hangs.
	AsOf time.Time `json:"as_of,omitzero" doc:"time of these numbers; only while the engine hangs"`
	// EventLog is the file in which the steps of this run are recorded now: the newest segment.
	EventLog string `json:"event_log" doc:"the file in which the steps of this run are recorded now"`
	Nodes    []Node `json:"nodes"`
}

// LargestMemory is the memory of the node that has most of it, bytes; 0 without nodes.
func (s *ClusterStatus) LargestMemory() (most resource.Amount) {
	for i := range s.Nodes {
		most = max(most, resource.Amount(s.Nodes[i].Memory))
	}
	return most
}

// Leveling is the newest question of the policy about how to level the demand on a node, and what came of it.
type Leveling struct {
	Node     string    `json:"node" doc:"about which node"`
	Why      string    `json:"why" doc:"one clause on why the policy asked"`
	Asked    time.Time `json:"asked" doc:"when the policy asked"`
	Answered time.Time `json:"answered,omitzero" doc:"omitted while it is being solved"`
	// Result says what came of it in one clause, with the value, and the bound or that the value is proved.
	Result string `json:"result" doc:"one clause on what came of it: the value of the schedule, and whether it is proved optimal or how far it may be above the least value"`
	// Newest is its answer, Used the answer that is in use: the same, or an earlier one if Newest was stale or failed or
	// is yet to come.
	Newest *Schedule `json:"newest,omitempty" doc:"the answer; omitted while it is being solved"`
	Stale  bool      `json:"stale,omitempty" doc:"the answer is not used, because the node changed while it was solved"`
	Used   *Schedule `json:"used,omitempty" doc:"the newest answer that was used; omitted if there is none"`
}

// Schedule is how good an answer is.
type Schedule struct {
	Value  float64 `json:"value" doc:"cost of the schedule, less is better, in the unit of the policy"`
	Bound  float64 `json:"bound" doc:"no schedule costs less"`
	Gap    float64 `json:"gap" doc:"by how much the value may be above the least one, as a share of the value; 0 if that is proved"`
	Proved bool    `json:"proved" doc:"no schedule is better"`
	States int     `json:"states" doc:"how many states the solver looked at"`
	Failed string  `json:"failed,omitempty" doc:"why there is no schedule"`
}
