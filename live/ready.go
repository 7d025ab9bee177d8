package live

import (
	"time"

	"github.com/bellows-rm/bellows/live/api"
)

// Ready returns why the Driver does not serve now; nil if it does: its state is recovered, the engine answers, and
// the store can be written. The error is Unavailable. Ready does not use the engine.
func (d *Driver) Ready() error {
	select {
	case <-d.turns.Ended():
		return api.Errorf(api.Unavailable, "%w", errStopped)
	default:
	}
	if silent, hangs := d.watchdog.Hangs(); hangs {
		return api.Errorf(api.Unavailable, "the engine has not answered for %v", silent.Round(time.Second))
	}
	select {
	case <-d.inventory.complete():
	default:
		return api.Errorf(api.Unavailable, "the containers of an earlier daemon are being found")
	}
	if why := d.board.Newest().Unready; why != nil {
		return api.Errorf(api.Unavailable, "%w", why)
	}
	if err := d.store.Full(); err != nil { // The loop may not know it yet.
		return api.Errorf(api.Unavailable, "%w", err)
	}
	return nil
}
