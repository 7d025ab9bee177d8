// Package memory is the memory manager of one node (Pufferfish, Chen et al., SoCC 2019): it sees how much memory
// containers hold and swap, and grows, shrinks, suspends and resumes them within their envelopes, without asking the
// engine. The manager is a deterministic state machine: Manager.Step takes the time and the news, updates the
// manager's records, and returns actions. It reads no clock and no file. Its driver, the agent or the simulator,
// carries the actions out.
//
// # Words
//
// The memory of a node, bytes, is at any moment
//
//	memory = the rooms of all containers + awaited + reserve + claimed + owed + free
//
//	room      what one container takes: the largest of the limits that are or may come into force for it
//	awaited   the need of the next container to start: its answer waits for memory that is coming
//	reserve   memory that growing containers never get: the part above Parameters.Stop
//	claimed   memory that is kept for REGULAR containers that were refused, until they ask again
//	owed      memory that is kept for containers which lack it within the share of their owner (share.go)
//	free      memory that any container may get; negative while containers use more than they may
//	coming    the part of rooms that the kernel is about to free
//
// What is in no room is unallocated: awaited + reserve + claimed + owed + free. Of this, claimed + owed + free are
// available to a container from which nothing is withheld.
//
// What a container could give to another is, from what it misses least:
//
//	untouched  its limit above the most that it needed lately, with room to grow by at once
//	spare      nearly all of its limit above the most that it needed lately: for a suspended container that comes after
//	           it
//	slack      its limit above what it holds now: nothing is swapped out
//	the rest   down to its Min, or to a part of it when it is squeezed: it is suspended, and what it holds goes to swap
//
// How much of a need a container gives is Manager.gives: no more than may still be shrunk.
//
// A container is short when it is out of memory (the paper: OCM, out of container memory): what it holds and what it
// has in swap together reach its limit, and it swaps. It lacks the difference between that sum and its limit.
//
// # Reading
//
// Begin with Manager.Step, whose phases are numbered. What the manager knows of a container is in container.go: its
// state (state.go), its place in the order (place.go) and the orders that the kernel has not confirmed (orders.go),
// each a small machine with a diagram, and its usage according to the readings (reading.go). How memory is shared
// among containers that are short is a strategy: backoff.go is the paper's Algorithm 1, uncoordinated.go its baseline
// KILL, inorder.go ours. All three keep the ledger of ledger.go, and the quotas of owners (quota.go); ours divides the
// node among owners, too (share.go). Containers are suspended and resumed in suspension.go, and in yield.go if they
// yield; memory is taken from them in reclaim.go.
//
// An action on its way, for example a resumption: Manager.resumeFitting orders Resume; on a machine Keeper.decide of
// node/keeper gets it from Step, Keeper.dispatch starts Keeper.perform, and Keeper.Act calls Keeper.resume, which
// changes the stance of the container: that writes the control group's files (cgroup: Group.Apply and Group.Thaw). The
// answer comes back as Input.Outcomes. In the simulator sim/container.go carries it out.
package memory
