package cluster

import "testing"

// TestBecause: a reason with operands cannot be made without them.
func TestBecause(t *testing.T) {
	if r := Because(ReservationUsed); r != (Reason{Code: ReservationUsed}) {
		t.Errorf("reason is %+v", r)
	}
	defer func() {
		if recover() == nil {
			t.Error("a reason is made without its operands")
		}
	}()
	Because(QueueFull)
}
