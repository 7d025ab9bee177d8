package memory

// strategy is what the ways to share the memory of a node among containers that are short differ in. All of them keep the same
// ledger, and Step takes them through the same phases.
type strategy struct {
	// reclaims says that memory is taken from one container for another, which suspends it if need be, and that containers which
	// are short are suspended. Without it a request that does not fit is refused.
	reclaims bool
	// shortFirst says that no FLEX container starts while another container is short: it would soon be short, too.
	shortFirst bool
	// flexTakes is from whom memory is taken for a FLEX container that is to start. REGULAR ones take it from all.
	flexTakes reach
	// limitSuspensions handles containers that have been suspended for longer than they may be.
	limitSuspensions func(m *Manager)
	// grow gives memory to containers that are short.
	grow func(m *Manager)
}

// strategies are indexed by Parameters.Strategy.
var strategies = [...]strategy{Backoff: backoff, Uncoordinated: uncoordinated, InOrder: inOrder}
