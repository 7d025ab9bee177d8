package cluster

import "testing"

// TestBecause: Because rejects the reasons that have operands.
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
