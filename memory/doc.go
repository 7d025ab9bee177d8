// Package memory is the memory manager of one node (Pufferfish, Chen et al., SoCC 2019): it sees how much memory containers hold
// and swap, and grows, shrinks, suspends and resumes them within their envelopes, without asking. The manager is a deterministic
// state machine: Manager.Step takes the time and what happened, changes the manager's books, and returns actions. It reads no clock
// and no file. Its driver, the agent or the simulator, carries the actions out.
//
// # Words
//
// The memory of a node, bytes, is at any moment
//
//	memory = the rooms of all containers + awaited + reserve + claimed + free
//
//	room      what one container takes: the largest of the limits that are or may come into force for it
//	awaited   what the next container needs that is to start: its answer waits for what is coming
//	reserve   what is never given to growing containers: the part of memory above Parameters.Stop
//	claimed   what is kept for REGULAR containers that were refused, until they ask again
//	free      what may be given to any container; negative while more is used than there should be
//	coming    the part of rooms that the kernel is about to free
//
// Together claimed and free are available: to a container from which no claim is withheld.
//
// A container is short when it is out of memory (the paper: OCM, out of container memory): what it holds and what it has in swap
// together reach its limit, and it swaps. It lacks what its limit is below that.
//
// # Reading
//
// Begin with Manager.Step, whose phases are numbered. What the manager knows of a container is in container.go: its state
// (state.go), its place in the order (place.go) and the orders that the kernel has not confirmed (orders.go), each a small machine with
// a diagram, and its usage as the readings tell it (reading.go). How memory is shared among containers that are short is a strategy:
// backoff.go is the paper's Algorithm 1, uncoordinated.go its baseline KILL, inorder.go ours. All three keep the ledger of ledger.go.
// Containers are suspended and resumed in suspension.go, and in yield.go if they yield; memory is taken from them in reclaim.go.
//
// An action on its way, for example a resumption: Manager.resumeFitting orders Resume; on a machine agent's keeper.decide gets it
// from Step, keeper.dispatch starts keeper.perform, and Agent.carryOut calls Agent.resume, which writes the control group's files
// (cgroup: Group.Apply and Group.Thaw). The answer comes back as Input.Outcomes. In the simulator sim/container.go carries it out.
package memory
