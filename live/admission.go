package live

import (
	"cmp"
	"reflect"
	"sync/atomic"

	"github.com/bellows-rm/bellows/core/cluster"
)

// admission is what is counted of submissions, and what bounds them: quotas, and room in memory.
type admission struct {
	quotas   atomic.Pointer[cluster.Quotas]
	pace     pace
	outputs  outputs
	requests requests
	entry    chan struct{} // has an element while a submission is being stored and handed to the engine: see enter
}

// begin begins with quotas; nil means none.
func (a *admission) begin(q *cluster.Quotas) {
	a.quotas.Store(cmp.Or(q, &cluster.Quotas{}))
	a.outputs.changed = newSignal()
	a.entry = make(chan struct{}, 1)
}

// rules are the quotas of users and queues. It may be called from any goroutine.
func (a *admission) rules() *cluster.Quotas { return a.quotas.Load() }

// set sets the quotas, and reports whether they have changed.
func (a *admission) set(q *cluster.Quotas) (changed bool) {
	q = cmp.Or(q, &cluster.Quotas{})
	return !reflect.DeepEqual(a.quotas.Swap(q), q)
}
