package keeper

import "sync"

// newest does one thing at a time, and of what is asked for meanwhile the newest alone. The kernel takes milliseconds
// for some requests, and seconds when it has many to do: requests of which each holds descriptors and a thread, one for
// each change of a limit, would exhaust both.
type newest struct {
	mu   sync.Mutex
	busy bool
	next func()
}

// do calls f, and returns when nothing is left to do; or it leaves f to the call under way, and returns at once.
func (n *newest) do(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next = f; n.busy {
		return
	}
	n.busy = true
	for n.next != nil {
		f, n.next = n.next, nil
		n.mu.Unlock()
		f()
		n.mu.Lock()
	}
	n.busy = false
}
