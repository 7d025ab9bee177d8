// Package memory is the memory manager of one node (Pufferfish, Chen et al., SoCC 2019): it sees how much memory containers hold
// and swap, and grows, shrinks, suspends and resumes them within their envelopes, without asking. It is a pure function of what it
// is told: it reads no clock and no file, and whoever drives it carries its actions out.
//
// # Words
//
// The memory of a node, bytes, is at any moment
//
//	memory = the rooms of all containers + awaited + reserve + claimed + free
//
//	room      what one container takes: the largest of the limits that are or may come into force for it
//	awaited   what the request needs that is being served: its answer waits for what is coming
//	reserve   what is never given to growing containers: the part of memory above Parameters.Stop
//	claimed   what is kept for REGULAR containers that were refused, until they ask again
//	free      what may be given to any container; negative while more is used than there should be
//	coming    the part of rooms that the kernel is about to free
//
// A container is short when it is out of memory (the paper: OCM, out of container memory): what it holds and what it has in swap
// together reach its limit, and it swaps. It lacks what its limit is below that.
//
// # Reading
//
// Begin with Manager.Step, whose phases are numbered. What the manager keeps of a container is in container.go: its state, its
// place in the order, the orders that the kernel has not confirmed, and its usage each have a type, a file and a diagram. How
// memory is shared among containers that are short is a strategy: backoff.go is the paper's Algorithm 1, uncoordinated.go its
// baseline KILL, inorder.go ours. All three keep the ledger of ledger.go, and take memory from containers as reclaim.go says.
package memory
