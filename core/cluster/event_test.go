package cluster

import (
	"testing"
	"unsafe"
)

// TestEventIsSmall: a driver allocates events by the million. The Go allocator gives one of up to 160 bytes 160, and a
// larger one 176 or more.
func TestEventIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Event{}); size > 160 {
		t.Errorf("an event has %d bytes, want at most 160: put what few events have into Condition", size)
	}
}
