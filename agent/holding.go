package agent

import (
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
)

// holding tells the engine how much memory the containers of this machine may hold together. Who places containers wants
// to know what FLEX ones have left of it, at once if it is much; all that they do every few milliseconds would only fill the
// event log.
type holding struct {
	told  resource.Amount
	at    time.Time // when it was told
	again time.Time // when it is to be told; zero: nothing is
}

const (
	// A change by more than a hundredth of the machine is told at most so often,
	reportLarge = 100 * time.Millisecond
	// and a smaller one so often.
	reportSmall = 5 * time.Second
)

// wait returns how long to wait before held is told; changed is false if it has been.
func (h *holding) wait(held, node resource.Amount, now time.Time) (wait time.Duration, changed bool) {
	pause := reportSmall
	if max(held-h.told, h.told-held) > node/100 {
		pause = reportLarge
	}
	return max(0, h.at.Add(pause).Sub(now)), held != h.told
}

// report tells what the containers may hold now, or sees to it that it is told later if it need not be at once. A machine on
// which no FLEX container ever ran has nothing to tell: there it is what was granted.
func (k *keeper) report(atOnce bool) {
	h := &k.holding
	held := k.manager.Allocated()
	if len(k.kept) == 0 && h.told == 0 {
		return
	}
	wait, changed := h.wait(held, k.agent.config.Capacity[resource.Memory], time.Now())
	switch {
	case !changed:
		h.again = time.Time{}
	case wait > 0 && !atOnce:
		h.again = time.Now().Add(wait)
	default:
		h.again, h.told, h.at = time.Time{}, held, time.Now()
		k.agent.events.put(cluster.Event{Kind: cluster.NodeMemory, Held: held})
	}
}
