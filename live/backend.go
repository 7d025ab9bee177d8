package live

import (
	"io"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/usage"
)

// Audited is a Backend that compares its books with its containers.
type Audited interface {
	// Mended counts the containers whose books were wrong, since the backend began.
	Mended() int64
}

// Troubled is a Backend that may for now be unable to find out what became of a container.
type Troubled interface {
	// Troubles says, in one sentence each, of which containers a record cannot be read, why, and since when. They go
	// on, or stay ended, until it can be read, or until they are killed.
	Troubles() map[cluster.ContainerID]string
}

// Crowded is a Backend that knows what other daemons grant of its machine.
type Crowded interface {
	// Crowded returns one sentence if all daemons together may grant more than the machine has, else "".
	Crowded() string
}

// Metered is a Backend that may be unable to measure some of what containers use.
type Metered interface {
	// Unmeasured says in one clause why it does not measure a kind of resource, or returns "" if it does.
	Unmeasured(resource.Kind) string
}

// Backend carries decisions out and reports what happened. The agent of one machine is one.
//
// When it begins, it sends its inventory: NodeJoined for each node, TaskAdopted for each running container, TaskEnded
// for each container that has ended and was not forgotten (or DecisionFailed if it never started), NodeMemory if it
// knows the memory, NodeLeftover if containers left some in use, then Synced. While it cannot find out what became of
// some container, it sends nothing: see Troubled. A Kill of that container is carried out all the same, and ends the
// wait for it.
//
// From then on every Start ends in exactly one DecisionDone (the program runs) or DecisionFailed (the machine's fault,
// for the reason in Detail; nothing ran). Every DecisionDone is followed by exactly one TaskEnded with Run, Outcome and
// Exit; the outcome Lost says that the end was not observed. A program that cannot be executed is a DecisionDone and a
// TaskEnded whose Detail says why. Kill has no event of its own: the TaskEnded of the container is its end. A Kill of a
// container that has ended does nothing.
//
// Every Throttle, Resize, Suspend or Resume of a container that runs ends in exactly one DecisionDone (it was carried
// out; Detail of a throttle says how, if not by the kernel alone), DecisionFailed (Detail says why: the container is
// not throttled any more; of another order nothing has changed) or DecisionSuperseded (a later order set the same field
// of what is wanted of the task: see cluster.Want). The answers about one field come in the order of the orders; each
// field is answered by itself. The TaskEnded of the container answers every open order, and a later answer is ignored.
// An order that is open when the driver ends is never answered: the inventory of the next driver says what is in force.
//
// A throttle ends by itself when its time has come, even while there is no driver. A Suspend lasts until a Resume,
// even while there is no driver, but for leveling: the engine ends that part at At, the machine soon after if the
// engine did not, and at the latest when there has been no driver for a while. The TaskAdopted of a container says
// what is in force: Bound and Until of Found are its throttle, HeldBy is By of the last Suspend, HeldUntil its At and
// HeldFor its For.
//
// TaskSuspended is sent when the holders of a container change: those of the last Suspend, and the memory manager.
// By is all of them. TaskResumed is sent when there is no holder any more. Either may come before or after the
// answer to the order that caused it. By of TaskAdopted says who holds a container that was found; a TaskSuspended
// that repeats it does nothing. TaskPhase may be sent when a container enters another phase of its forecast, or is
// found to have entered it: PhaseSince of the Progress in Found says when, from the launch on and not after now;
// nil is now. It may name an earlier phase, and the same phase with another PhaseSince: an estimate was wrong.
// TaskHolds may be sent when a container holds more or less memory than was known. NodeMemory is sent when the
// memory that a node's containers may use changes, and always with the last value; NodeLeftover when the memory
// changes that outlives containers, and before the TaskEnded of a container that leaves some. NodePressed is sent,
// after Synced, when the disk comes under pressure, every few seconds while that lasts, and when it is over.
type Backend interface {
	// Capabilities says what it can do, which does not change. The Driver gives no order that the
	// Backend cannot carry out: it answers the order itself.
	Capabilities() cluster.Capabilities
	// Apply accepts orders (Start, Kill, Throttle, Resize, Suspend and Resume). It only enqueues them.
	Apply([]cluster.Order)
	// Events returns the channel of events, in order. It always returns the same channel, which is never closed.
	Events() <-chan cluster.Event
	// Forget says that the end of a container is recorded for good; inventories need not mention the container again.
	Forget(cluster.ContainerID)
	// Readings samples every running container. It may take milliseconds per container.
	Readings() map[cluster.ContainerID]cluster.Reading
	// Usage returns what a container used over time: one that runs, or that has ended and was not forgotten. The error is
	// one clause on what is missing of it, and why.
	Usage(cluster.ContainerID) (usage.Usage, error)
	// Input connects to the input of a running container whose Launch says that it has one. Package input describes the
	// protocol. The caller closes the connection.
	Input(cluster.ContainerID) (io.ReadWriteCloser, error)
}
