package cluster

import (
	"fmt"
	"slices"
)

// Holder is who holds the programs of a task still.
type Holder uint8

// HeldByMemory is the memory manager of the task's node.
const HeldByMemory Holder = 1

var holderNames = [...]string{"", "memory"}

func (h Holder) String() string {
	if int(h) < len(holderNames) {
		return holderNames[h]
	}
	return fmt.Sprintf("holder(%d)", uint8(h))
}

// MarshalText implements encoding.TextMarshaler.
func (h Holder) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Holder) UnmarshalText(text []byte) error {
	i := slices.Index(holderNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("holder %q: unknown", text)
	}
	*h = Holder(i)
	return nil
}
