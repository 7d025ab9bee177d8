package memory

import (
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/resource"
)

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
	TooLong                     // A: how long it was suspended, ns; B: how long it may be suspended, ns
	Alive                       // A: the heartbeat time-out, ns
	Free                        // A: memory asked for, bytes
	NoSwapLeft                  // A: memory asked for, bytes; B: swap that may still be used, bytes
	NoFlexLeft                  // A: memory asked for, bytes; B: memory that could be had, bytes
	OthersWait                  // A: memory asked for, bytes; B: rank of a container that is short already
	Found                       // the container was found in this state
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

// Words puts r into one clause for people.
func (r Reason) Words() string {
	bytes := func(v int64) string { return resource.FormatMemory(resource.Amount(v)) }
	span := func(v int64) string { return time.Duration(v).Round(time.Second).String() }
	switch r.Code {
	case OutOfMemory:
		return fmt.Sprintf("out of memory: held %s with what was in swap, and could hold %s", bytes(r.A), bytes(r.B))
	case RoomToGrow:
		return fmt.Sprintf("was out of memory, and the node had %s left", bytes(r.A))
	case NearLimit:
		return fmt.Sprintf("held %s of %s, and the node had plenty left", bytes(r.A), bytes(r.B))
	case DemandMet:
		return fmt.Sprintf("held %s with what was in swap, no more than it could, %s", bytes(r.A), bytes(r.B))
	case Slack:
		return fmt.Sprintf("held only %s of %s", bytes(r.A), bytes(r.B))
	case NothingToWaitFor:
		return fmt.Sprintf("held %s with what was in swap and could hold %s, but nothing else ran whose end would free memory", bytes(r.A), bytes(r.B))
	case NeededByOther:
		return fmt.Sprintf("a container that is to start needs %s", bytes(r.A))
	case NodeSmaller:
		return fmt.Sprintf("containers may have only %s together now", bytes(r.A))
	case NeededByFirst:
		return fmt.Sprintf("job %d comes first and is out of memory", r.A)
	case Exhausted:
		return fmt.Sprintf("the node's memory and swap are exhausted, and job %d comes first", r.A)
	case NoRoomToGrow:
		return fmt.Sprintf("out of memory, and of the %s that it was to get the node had %s left", bytes(r.A), bytes(r.B))
	case TooLong:
		return fmt.Sprintf("suspended for %s, longer than it may be, %s", span(r.A), span(r.B))
	case Alive:
		return fmt.Sprintf("lest its programs are taken for dead after %s", span(r.A))
	case Free:
		return fmt.Sprintf("%s are free", bytes(r.A))
	case NoSwapLeft:
		return fmt.Sprintf("needs %s, and only %s of swap may still be used", bytes(r.A), bytes(r.B))
	case NoFlexLeft:
		return fmt.Sprintf("needs %s, and FLEX containers can give only %s", bytes(r.A), bytes(r.B))
	case RoomToSpare:
		return fmt.Sprintf("nobody was out of memory, and the node had %s left", bytes(r.A))
	case BelowLeast:
		return fmt.Sprintf("may hold %s, and must not run with less than %s", bytes(r.A), bytes(r.B))
	case RegularWaits:
		return fmt.Sprintf("needs %s, and %s are kept for REGULAR containers that wait", bytes(r.A), bytes(r.B))
	case Yields:
		return fmt.Sprintf("made no progress while others lacked memory, and runs on behind them: held %s with what was in swap, and could hold %s", bytes(r.A), bytes(r.B))
	case SwapFull:
		return fmt.Sprintf("swap is full, and the kernel would kill: held %s with what was in swap, and could hold %s", bytes(r.A), bytes(r.B))
	case Locked:
		return fmt.Sprintf("its programs locked %s of the %s that it could hold, which cannot go to swap, and the kernel would kill", bytes(r.A), bytes(r.B))
	case FilesComeBack:
		return fmt.Sprintf("could hold %s, and files that it has mapped, of which it held %s, came back again and again", bytes(r.B), bytes(r.A))
	case Found:
		return "it was found like that"
	case OthersWait:
		return fmt.Sprintf("needs %s, and job %d is out of memory already", bytes(r.A), r.B)
	}
	return ""
}
