package keeper

import (
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// holding reports to the engine how much memory the containers of this machine hold together: what they may use,
// without what they never touched, which is lent to them until another container is to start. A policy that places
// containers needs to know at once when FLEX containers take much more or less; reports of every small change would
// only fill the event log.
type holding struct {
	told  resource.Amount
	at    time.Time // of the last report
	again time.Time // of the next report; zero if there is nothing to report
}

const (
	// reportLarge is the shortest interval between reports of changes by more than 1 % of the machine's memory.
	reportLarge = 100 * time.Millisecond
	// reportSmall is the same interval for smaller changes.
	reportSmall = 5 * time.Second
)

// wait returns how long to wait before held is reported; changed is false if it is reported already.
func (h *holding) wait(held, node resource.Amount, now time.Time) (wait time.Duration, changed bool) {
	pause := reportSmall
	if max(held-h.told, h.told-held) > node/100 {
		pause = reportLarge
	}
	return max(0, h.at.Add(pause).Sub(now)), held != h.told
}

// due reports whether held is to be reported now, which counts as done then. A change that need not be reported at once
// waits for its time.
func (h *holding) due(held, node resource.Amount, now time.Time, atOnce bool) bool {
	wait, changed := h.wait(held, node, now)
	switch {
	case !changed:
		h.again = time.Time{}
	case wait > 0 && !atOnce:
		h.again = now.Add(wait)
	default:
		h.again, h.told, h.at = time.Time{}, held, now
		return true
	}
	return false
}

// next returns when the next report is due; ok is false if there is nothing to report.
func (h *holding) next() (at time.Time, ok bool) { return h.again, !h.again.IsZero() }

// none reports whether nothing was ever reported, or last that the containers hold nothing.
func (h *holding) none() bool { return h.told == 0 }

// report reports what the containers may use now, or schedules a later report if it need not be at once. A machine on
// which no FLEX container ever ran reports nothing: its containers may use what was granted.
func (k *Keeper) report(atOnce bool) {
	held := k.manager.Allocated() - k.manager.Untouched()
	if len(k.kept) == 0 && k.holding.none() {
		return
	}
	if k.holding.due(held, k.config.Capacity, time.Now(), atOnce) {
		k.owner.Report(cluster.Event{Kind: cluster.NodeMemory, Held: held})
	}
}
