package keeper

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// A machine of 1000 bytes whose containers had 500 at the last report, 30 ms ago.
func TestWhenHoldingIsTold(t *testing.T) {
	for _, c := range []struct {
		held    resource.Amount
		wait    time.Duration
		changed bool
	}{
		{500, 0, false},
		{510, reportSmall - 30*time.Millisecond, true},
		{490, reportSmall - 30*time.Millisecond, true},
		{511, reportLarge - 30*time.Millisecond, true},
		{0, reportLarge - 30*time.Millisecond, true},
	} {
		start := time.Now()
		h := holding{told: 500, at: start}
		wait, changed := h.wait(c.held, 1000, start.Add(30*time.Millisecond))
		if changed != c.changed || changed && wait != c.wait {
			t.Errorf("%d: in %v (%v), want in %v (%v)", c.held, wait, changed, c.wait, c.changed)
		}
		if wait, changed := h.wait(c.held, 1000, start.Add(time.Hour)); changed && wait != 0 {
			t.Errorf("%d: in %v after an hour", c.held, wait)
		}
	}
}
