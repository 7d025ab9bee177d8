package memory

import (
	"fmt"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
)

// ActionKind says what the manager wants to happen.
type ActionKind uint8

const (
	Grow    ActionKind = iota + 1 // raise the limit to Limit
	Shrink                        // lower the limit to Limit, by way of swap if need be; never raise it
	Suspend                       // all but stop its programs
	Resume                        // let them run
	Breathe                       // let them run for a moment; the container stays suspended
	Kill                          // end it, to be run again elsewhere or later
	Admit                         // the memory for a container that was asked for is there
	Refuse                        // it cannot be had
)

var actionNames = [...]string{"", "grow", "shrink", "suspend", "resume", "breathe", "kill", "admit", "refuse"}

func (k ActionKind) String() string {
	if int(k) < len(actionNames) {
		return actionNames[k]
	}
	return fmt.Sprintf("action(%d)", uint8(k))
}

// ActionID numbers actions from 1 in the order in which they were asked for.
type ActionID int64

// Action is what the manager wants to happen to one container, and why. Every Grow, Shrink, Suspend, Resume, Breathe and
// Kill ends in exactly one Outcome.
type Action struct {
	ID        ActionID
	Kind      ActionKind
	Container cluster.ContainerID
	Limit     resource.Amount // Grow and Shrink: bytes
	Suspended bool            // Grow and Shrink: its programs are stopped, and are to stay so
	Reason    Reason
}

// Outcome is what came of an action.
type Outcome struct {
	Action ActionID
	// Limit is the limit in force afterwards, bytes; 0 leaves it as it was.
	Limit resource.Amount
	// Failed says that the kernel did not do it; the manager takes the next step.
	Failed bool
}

// ReasonCode names why the manager acts. Each code says what its operands A and B are.
type ReasonCode uint8

const (
	_                ReasonCode = iota
	OutOfMemory                 // A: what it holds with swap, bytes; B: its limit, bytes
	RoomToGrow                  // A: memory the node has left, bytes
	NearLimit                   // A: what it holds, bytes; B: its limit, bytes
	DemandMet                   // A: what it holds with swap, bytes; B: its limit, bytes
	Slack                       // A: what it holds with swap, bytes; B: its limit, bytes
	NothingToWaitFor            // A: what it holds with swap, bytes; B: its limit, bytes
	NeededByOther               // A: memory asked for, bytes
	NodeSmaller                 // A: memory that the node has now, bytes
	NeededByFirst               // A: rank of the container that it is for
	Exhausted                   // A: rank of the container that is out of memory
	NoRoomToGrow                // A: memory that one puff would take, bytes; B: memory the node has left, bytes
	TooLong                     // A: how long it was suspended, ns; B: how long it may be, ns
	Alive                       // A: after how long its programs would be taken for dead, ns
	Free                        // A: memory asked for, bytes
	NoSwapLeft                  // A: memory asked for, bytes; B: swap that may still be used, bytes
	NoFlexLeft                  // A: memory asked for, bytes; B: memory that could be had, bytes
	OthersWait                  // A: memory asked for, bytes; B: rank of a container that is out of memory already
	Found                       // it was found so
	RoomToSpare                 // A: memory the node has left, bytes
	BelowLeast                  // A: its limit, bytes; B: the least that it may run with, bytes
	RegularWaits                // A: memory asked for, bytes; B: memory kept for REGULAR containers that were refused, bytes
	Yields                      // A: what it holds with swap, bytes; B: its limit, bytes
	SwapFull                    // A: what it holds with swap, bytes; B: its limit, bytes
	Locked                      // A: what its programs locked, bytes; B: its limit, bytes
	FilesComeBack               // A: what it has mapped of files, bytes; B: its limit, bytes
	numReasons
)

// Reason is why the manager acts: a code with operands, put into words only when somebody asks.
type Reason struct {
	Code ReasonCode `json:"code,omitempty"`
	A    int64      `json:"a,omitempty"`
	B    int64      `json:"b,omitempty"`
}
