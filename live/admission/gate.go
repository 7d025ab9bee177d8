// Package admission bounds what is submitted, besides what an engine counts: how many submissions come in a minute, how
// large the requests of all jobs are, and how much output is kept.
package admission

import (
	"cmp"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/output"
	"github.com/bellows-rm/bellows/live/store"
)

// Gate is what is counted of submissions, and what bounds them. Its methods may be called from any goroutine, but for
// More, Less and Check, which only the loop calls.
type Gate struct {
	// Output is what is kept of each user.
	Output output.Kept

	quotas   atomic.Pointer[cluster.Quotas]
	changed  chan struct{} // has an element if the quotas have changed
	pace     pace
	taken    takenViews
	requests requests
	entry    chan struct{} // has an element while a submission is being stored and handed to the engine
}

// New returns a Gate with quotas; nil means none.
func New(q *cluster.Quotas) *Gate {
	g := &Gate{changed: make(chan struct{}, 1), entry: make(chan struct{}, 1),
		taken: newTakenViews()}
	g.quotas.Store(cmp.Or(q, &cluster.Quotas{}))
	return g
}

// Rules are the quotas of users and queues.
func (g *Gate) Rules() *cluster.Quotas { return g.quotas.Load() }

// Set sets the quotas, and reports whether they have changed; nil means none.
func (g *Gate) Set(q *cluster.Quotas) (changed bool) {
	q = cmp.Or(q, &cluster.Quotas{})
	if reflect.DeepEqual(g.quotas.Swap(q), q) {
		return false
	}
	select {
	case g.changed <- struct{}{}:
	default: // Whoever waits for it has yet to look, and finds these.
	}
	return true
}

// Changed has an element when the quotas have changed. It has one receiver.
func (g *Gate) Changed() <-chan struct{} { return g.changed }

// Begin counts the submissions of the last minute before the driver began.
func (g *Gate) Begin(now timeline.Time, submitted []store.Submitted) {
	g.pace.begin(now, g.Rules(), submitted)
}

// Enter counts submissions, unless a quota has too little left for them: then it returns the quota, and how long
// until enough is left. If there are more than the whole quota, that is how long until all of it is.
func (g *Gate) Enter(now timeline.Time, jobs []*cluster.Job) (over *cluster.Excess, wait time.Duration) {
	return g.pace.enter(now, g.Rules(), jobs)
}

// Submissions returns how many submissions of the last minute count for a quota.
func (g *Gate) Submissions(of cluster.Party, now timeline.Time) int64 { return g.pace.count(of, now) }

// More counts the request of a job that has been accepted, Less that of one that has ended.
func (g *Gate) More(j *store.Job) { g.requests.more(j) }

// Less is described with More.
func (g *Gate) Less(j *store.Job) { g.requests.less(j) }

// Check returns an error, which is OverQuota, if no further request fits. The last one that fits may go beyond the
// bound.
func (g *Gate) Check(j *store.Job) error { return g.requests.check(j) }

// Requests returns how many bytes the requests of all jobs take.
func (g *Gate) Requests() resource.Amount { return g.requests.all }

// CheckOutput returns an error, which is OverQuota, if the owner of a job has as much output as a quota permits, or
// more.
func (g *Gate) CheckOutput(j *cluster.Job) error {
	party := cluster.Party{Name: j.Owner}
	quota := g.Rules().Of(party, cluster.QuotaOutput)
	taken, known := g.Output.Of(j.Owner)
	if !known || taken < quota.Most {
		return nil
	}
	return api.Errorf(api.OverQuota, "job %q %w", j.Name, &cluster.Excess{Party: party, Kind: cluster.QuotaOutput,
		Quota: quota, Taken: taken})
}

// Entry takes an element when no other submission is being stored and handed to an engine: jobs enter the engine by
// ascending id. Leave takes it back.
func (g *Gate) Entry() chan<- struct{} { return g.entry }

// Leave lets the next submission in.
func (g *Gate) Leave() { <-g.entry }
