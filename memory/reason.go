package memory

import (
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/resource"
)

// Words puts r into one clause for people.
func (r Reason) Words() string {
	bytes := func(v int64) string { return resource.FormatMemory(resource.Amount(v)) }
	span := func(v int64) string { return time.Duration(v).Round(time.Second).String() }
	switch r.Code {
	case OutOfMemory:
		return fmt.Sprintf("out of memory: holds %s with what is in swap, and may hold %s", bytes(r.A), bytes(r.B))
	case RoomToGrow:
		return fmt.Sprintf("was out of memory, and the node has %s left", bytes(r.A))
	case NearLimit:
		return fmt.Sprintf("holds %s of %s, and the node has plenty left", bytes(r.A), bytes(r.B))
	case DemandMet:
		return fmt.Sprintf("holds %s with what is in swap, no more than it may, %s", bytes(r.A), bytes(r.B))
	case Slack:
		return fmt.Sprintf("holds only %s of %s", bytes(r.A), bytes(r.B))
	case NothingToWaitFor:
		return fmt.Sprintf("holds %s with what is in swap and may hold %s, but nothing else runs whose end would free memory", bytes(r.A), bytes(r.B))
	case NeededByOther:
		return fmt.Sprintf("a container that is to start needs %s", bytes(r.A))
	case NodeSmaller:
		return fmt.Sprintf("containers may have only %s together now", bytes(r.A))
	case NeededByFirst:
		return fmt.Sprintf("the container of rank %d comes first and is out of memory", r.A)
	case Exhausted:
		return fmt.Sprintf("the node's memory and swap are exhausted, and the container of rank %d comes first", r.A)
	case NoRoomToGrow:
		return fmt.Sprintf("out of memory, and of the %s that it was to get the node has %s left", bytes(r.A), bytes(r.B))
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
		return fmt.Sprintf("nobody is out of memory, and the node has %s left", bytes(r.A))
	case BelowLeast:
		return fmt.Sprintf("may hold %s, and must not run with less than %s", bytes(r.A), bytes(r.B))
	case Found:
		return "it was found like that"
	case OthersWait:
		return fmt.Sprintf("needs %s, and the container of rank %d is out of memory already", bytes(r.A), r.B)
	}
	return ""
}
