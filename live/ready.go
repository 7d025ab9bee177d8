package live

import "time"

// Ready returns why the Driver does not serve now; nil if it does: its state is recovered, the engine answers, and
// the store can be written. The error is Unavailable. Ready does not use the engine.
func (d *Driver) Ready() error {
	select {
	case <-d.turns.Ended():
		return Errorf(Unavailable, "%w", errStopped)
	default:
	}
	if silent, hangs := d.watchdog.Hangs(); hangs {
		return Errorf(Unavailable, "the engine has not answered for %v", silent.Round(time.Second))
	}
	select {
	case <-d.inventory.complete():
	default:
		return Errorf(Unavailable, "the containers of an earlier daemon are being found")
	}
	if why := d.board.newest().unready; why != nil {
		return Errorf(Unavailable, "%w", why)
	}
	if err := d.store.Full(); err != nil { // The loop may not know it yet.
		return Errorf(Unavailable, "%w", err)
	}
	return nil
}
