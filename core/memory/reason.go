package memory

import (
	"fmt"
	"strconv"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
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
	NoFlexLeft                  // A: memory asked for, bytes; B: memory that could be freed, bytes
	OthersWait                  // A: memory asked for, bytes; B: rank of a container that is short already
	Found                       // the container was found in this state
	RoomToSpare                 // A: memory the node has left, bytes
	BelowLeast                  // A: its limit, bytes; B: the least that it may run with, bytes
	// A: memory asked for, bytes; B: memory kept for REGULAR containers that were refused, bytes
	RegularWaits
	Yields        // A: what it holds with swap, bytes; B: its limit, bytes
	SwapFull      // A: what it holds with swap, bytes; B: its limit, bytes
	Locked        // A: what its programs locked, bytes; B: its limit, bytes
	FilesComeBack // A: what it has mapped of files, bytes; B: its limit, bytes
	LeastRaised   // A: the least that it may run with, bytes; B: its limit, bytes
	PagedOut      // its memory was paged out for another party, and comes back
	Requeued      // A: rank of the container that it is for
	NoRoomBeside  // A: what it holds, bytes; B: its limit, bytes
	OutgrewMost   // A: what it holds, bytes; B: rank of the container that is out of memory
	RunsOn        // A: what it holds, bytes; B: its limit, bytes
	NoSafeStart   // A: memory asked for, bytes; B: rank of the container that could not grow to what it may need
	ComesBack     // A: memory asked for, bytes; B: rank of the requeued container that waits
	OverQuota     // A: the quota of its owner, bytes; B: what the containers of its owner may hold, bytes
	HeldBack      // A: what it holds with swap, bytes; B: its limit, bytes
	// A: rank of a container of another owner, which needs what is within the share of that owner; B: the share, bytes
	WithinShare
	BeyondShare // A: what the FLEX containers of its owner may hold, bytes; B: the share of each owner, bytes
	numReasons
)

// Reason is why the manager acts: a code with operands, put into words only when they are shown.
type Reason struct {
	Code ReasonCode `json:"code,omitempty"`
	A    int64      `json:"a,omitempty"`
	B    int64      `json:"b,omitempty"`
}

// operand formats an operand of a reason.
type operand func(v int64) string

func bytes(v int64) string { return resource.FormatMemory(resource.Amount(v)) }
func span(v int64) string  { return time.Duration(v).Round(time.Second).String() }
func rank(v int64) string  { return strconv.FormatInt(v, 10) }

// reasons are the words of each code, and what its operands are; a code without b has no operand B.
var reasons = [numReasons]struct {
	words string
	a, b  operand
}{
	OutOfMemory: {"out of memory: held %s with what was in swap, and could hold %s", bytes, bytes},
	RoomToGrow:  {"was out of memory, and the node had %s left", bytes, nil},
	NearLimit:   {"held %s of %s, and the node had plenty left", bytes, bytes},
	DemandMet:   {"held %s with what was in swap, no more than it could, %s", bytes, bytes},
	Slack:       {"held only %s of %s", bytes, bytes},
	NothingToWaitFor: {"held %s with what was in swap and could hold %s, " +
		"but nothing else ran whose end would free memory", bytes, bytes},
	NeededByOther: {"a container that is to start needs %s", bytes, nil},
	NodeSmaller:   {"containers may have only %s together now", bytes, nil},
	NeededByFirst: {"job %s comes first and is out of memory", rank, nil},
	Exhausted:     {"the node's memory and swap are exhausted, and job %s comes first", rank, nil},
	NoRoomToGrow:  {"out of memory, and of the %s that it was to get the node had %s left", bytes, bytes},
	TooLong:       {"suspended for %s, longer than it may be, %s", span, span},
	Alive:         {"so that its programs can send heartbeats (time-out %s)", span, nil},
	Free:          {"%s are free", bytes, nil},
	NoSwapLeft:    {"needs %s, and only %s of swap may still be used", bytes, bytes},
	NoFlexLeft:    {"needs %s, and FLEX containers can give only %s", bytes, bytes},
	OthersWait:    {"needs %s, and job %s is out of memory already", bytes, rank},
	Found:         {"it was found in this state", nil, nil},
	RoomToSpare:   {"no container was out of memory, and the node had %s left", bytes, nil},
	BelowLeast:    {"may hold %s, and must not run with less than %s", bytes, bytes},
	RegularWaits:  {"needs %s, and %s are kept for REGULAR containers that wait", bytes, bytes},
	Yields: {"made no progress while others lacked memory, and runs on behind them: " +
		"held %s with what was in swap, and could hold %s", bytes, bytes},
	SwapFull: {"nothing can go to swap, and the kernel would kill: " +
		"held %s with what was in swap, and could hold %s", bytes, bytes},
	Locked: {"its programs locked %s of the %s that it could hold, which cannot go to swap, " +
		"and the kernel would kill", bytes, bytes},
	FilesComeBack: {"could hold %[2]s, and files that it has mapped, of which it held %[1]s, " +
		"came back again and again", bytes, bytes},
	LeastRaised: {"needs %s at least, and could hold %s", bytes, bytes},
	PagedOut:    {"its memory was paged out, and comes back", nil, nil},
	Requeued: {"requeued: job %s, before it in the order, needed the memory; it runs again when there is room", rank,
		nil},
	NoRoomBeside: {"requeued: held %s of %s, and the containers beside it hold the rest; " +
		"it runs again when there is room", bytes, bytes},
	OutgrewMost: {"held %s, job %s was out of memory, too, nothing could go to swap, and no container may run again: " +
		"it had outgrown by most what it was known to need", bytes, rank},
	RunsOn: {"held %s of %s, and no memory can be had by any means: it goes on until it needs more", bytes, bytes},
	NoSafeStart: {"needs %s, and beside it job %s could not grow to what it may need in memory and swap; " +
		"a job that may run again (--retry) need not wait for that", bytes, rank},
	ComesBack: {"needs %s, and job %s comes before it, which was requeued and waits for its memory", bytes, rank},
	OverQuota: {"waits for memory: the quota of its user is %s, and the containers of the user hold %s", bytes, bytes},
	HeldBack: {"held %s with what was in swap, and could hold %s: containers beside it are to end first, so that memory " +
		"and swap suffice", bytes, bytes},
	WithinShare: {"its user held more than a share of the node, and job %s of another user, " +
		"who is within the share of %s, needed the memory", rank, bytes},
	BeyondShare: {"waits for memory: the containers of its user hold %s, and the share of each user is %s; " +
		"others use the rest", bytes, bytes},
}

// Words puts r into one clause for people.
func (r Reason) Words() string {
	if r.Code >= numReasons {
		return ""
	}
	said := &reasons[r.Code]
	var operands []any
	if said.a != nil {
		operands = append(operands, said.a(r.A))
	}
	if said.b != nil {
		operands = append(operands, said.b(r.B))
	}
	return fmt.Sprintf(said.words, operands...)
}
