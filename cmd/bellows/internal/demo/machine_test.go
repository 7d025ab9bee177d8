package demo

import (
	"log/slog"
	"testing"
)

// TestMachineAsksForSwap: the demonstration's machine refuses FLEX jobs without swap, as that of `bellows up` does.
func TestMachineAsksForSwap(t *testing.T) {
	if (&machine{}).config(nil, nil, slog.New(slog.DiscardHandler)).HasSwap == nil {
		t.Error("the driver is not told whether there is swap")
	}
}
