package live

import (
	"io"

	"github.com/bellows-rm/bellows/cluster"
)

// Audited is a Backend that compares its books with what there is.
type Audited interface {
	// Mended counts the containers of which the books were wrong since the backend began.
	Mended() int64
}

// Crowded is a Backend that knows what others grant of its machine.
type Crowded interface {
	// Crowded is one sentence that says that all together may grant more than there is; empty if they may not.
	Crowded() string
}

// Backend carries decisions out and reports what happened. The agent of one machine is one.
//
// When it begins, it sends its inventory: NodeJoined for each node, TaskAdopted for each container that runs, TaskEnded
// for each that ended and was not yet forgotten, or DecisionFailed if it never started, NodeMemory if it knows, then Synced. From
// then on every Start ends in exactly one DecisionDone (the program runs) or DecisionFailed (the machine's fault, for Detail;
// nothing ran), and after a DecisionDone in exactly one TaskEnded with Run, Outcome and Exit; Lost says that nobody saw how it
// ended. A program that cannot be executed is a DecisionDone and a TaskEnded whose Detail says why. Kill has no event of its own: the TaskEnded of the container is its end; a Kill of what has already
// ended does nothing. NodeMemory comes when what the containers of a node may hold changes, and the last value always.
type Backend interface {
	// Apply takes orders (Start and Kill) in. It only enqueues.
	Apply([]cluster.Order)
	// Events tells what happened, in order. It always returns the same channel, which is never closed.
	Events() <-chan cluster.Event
	// Forget says that the end of a container is recorded for good, so that no inventory need mention it again.
	Forget(cluster.ContainerID)
	// Readings samples every running container. It may take milliseconds per container.
	Readings() map[cluster.ContainerID]cluster.Reading
	// Input connects to the input of a running container whose Launch says that it has one. What goes over the connection
	// is told in package input. The caller closes it.
	Input(cluster.ContainerID) (io.ReadWriteCloser, error)
}
