package memory

// strategy is one way to share the memory of a node among containers that are short. Its fields are the differences
// between strategies: all of them keep the same ledger, and go through the same phases of Step.
type strategy struct {
	// reclaims says that memory is taken from one container for another, which is suspended if need be, and that
	// containers are suspended while they are short. Without it a request that does not fit is refused.
	reclaims bool
	// shortFirst says that no FLEX container starts while another container is short: it would soon be short, too.
	shortFirst bool
	// flexTakes says from which containers memory is taken for a FLEX container that is to start; for a REGULAR one,
	// from all.
	flexTakes reach
	// limitSuspensions handles containers that have been suspended for longer than they may be.
	limitSuspensions func(m *Manager)
	// grow gives memory to containers that are short.
	grow func(m *Manager)
}

// strategies are indexed by Parameters.Strategy.
var strategies = [...]strategy{Backoff: backoff, Uncoordinated: uncoordinated, InOrder: inOrder}
