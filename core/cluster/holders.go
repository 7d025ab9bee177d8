package cluster

import (
	"fmt"
	"slices"
	"strings"
)

// Holders is the set of parties that hold the programs of a task still. The task goes on when the set is empty.
type Holders uint8

const (
	HeldByMemory   Holders = 1 << iota // the memory manager of the task's node
	HeldByOwner                        // its owner, or a user who may act for the owner: see JobPaused
	HeldByLeveling                     // the policy, until a given time: see book.Plan.SuspendUntil
	AllHolders     Holders = 1<<iota - 1
)

var holderNames = [...]string{"memory", "owner", "leveling"}

// String joins the names of the holders by "+"; it is empty if there is none.
func (h Holders) String() string {
	if h > AllHolders {
		return fmt.Sprintf("holders(%d)", uint8(h))
	}
	var names []string
	for i, name := range holderNames {
		if h&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "+")
}

// MarshalText implements encoding.TextMarshaler.
func (h Holders) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Holders) UnmarshalText(text []byte) error {
	*h = 0
	if len(text) == 0 {
		return nil
	}
	for name := range strings.SplitSeq(string(text), "+") {
		i := slices.Index(holderNames[:], name)
		if i < 0 || *h&(1<<i) != 0 {
			return fmt.Errorf("holders %q: unknown", text)
		}
		*h |= 1 << i
	}
	return nil
}
