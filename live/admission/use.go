package admission

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
)

// takenPause is the shortest time between two looks at what is taken. Whoever asks gets what was taken after the
// question; those who ask meanwhile share an answer, so that their number does not matter to the loop.
const takenPause = 100 * time.Millisecond

// takenView is what is taken of the quotas that the engine counts.
type takenView struct {
	at  time.Time // it was not older then
	all map[cluster.Party]cluster.Taken
}

// takenViews has the newest view.
type takenViews struct {
	newest atomic.Pointer[takenView]
	turn   chan struct{} // has an element while a view is being made
}

func newTakenViews() takenViews { return takenViews{turn: make(chan struct{}, 1)} }

// after returns a view that is not older than the call, made by see unless another caller has had one made.
func (t *takenViews) after(ctx context.Context, see func() (map[cluster.Party]cluster.Taken,
	error)) (map[cluster.Party]cluster.Taken, error) {
	asked := time.Now()
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if v := t.newest.Load(); v != nil {
		if v.at.After(asked) {
			return v.all, nil
		}
		select {
		case <-time.After(time.Until(v.at.Add(takenPause))):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	v := &takenView{at: time.Now()}
	var err error
	if v.all, err = see(); err != nil {
		return nil, err
	}
	t.newest.Store(v)
	return v.all, nil
}

// Taken returns what is taken of the quotas that an engine counts, after the call. see looks, unless another caller has
// had it look.
func (g *Gate) Taken(ctx context.Context, see func() (map[cluster.Party]cluster.Taken,
	error)) (map[cluster.Party]cluster.Taken, error) {
	return g.taken.after(ctx, see)
}

// Use returns the quotas of all users and queues that the settings name or that have jobs, and of a user with this
// name: users first, by name. Root and others without a limit have none. taken is what is taken of the quotas that an
// engine counts.
func (g *Gate) Use(user string, taken map[cluster.Party]cluster.Taken, now timeline.Time) []api.QuotaUse {
	q := g.Rules()
	parties := g.parties(q, taken)
	parties[cluster.Party{Name: user}] = true
	all := []api.QuotaUse{}
	for _, party := range slices.SortedFunc(maps.Keys(parties), func(a, b cluster.Party) int {
		if a.Queue != b.Queue {
			return map[bool]int{false: -1, true: 1}[a.Queue]
		}
		return cmp.Compare(a.Name, b.Name)
	}) {
		if party.Name != "" {
			all = append(all, g.use(q, party, taken[party], now)...)
		}
	}
	return all
}

// parties returns the users and queues that quotas name or that count for them.
func (g *Gate) parties(q *cluster.Quotas, taken map[cluster.Party]cluster.Taken) map[cluster.Party]bool {
	parties := map[cluster.Party]bool{{Queue: true, Name: cluster.DefaultQueue}: true}
	for party := range taken {
		parties[party] = true
	}
	for name := range q.Users {
		parties[cluster.Party{Name: name}] = true
	}
	for name := range q.Queues {
		parties[cluster.Party{Queue: true, Name: name}] = true
	}
	g.Output.Users(func(name string) { parties[cluster.Party{Name: name}] = true })
	return parties
}

// use returns the quotas of one user or queue.
func (g *Gate) use(q *cluster.Quotas, party cluster.Party, taken cluster.Taken,
	now timeline.Time) (all []api.QuotaUse) {
	for kind := range cluster.NumQuotaKinds {
		limit := q.Of(party, kind)
		if limit.Most == cluster.Unlimited {
			continue
		}
		u := api.QuotaUse{Kind: kind, Most: limit.Most, Refuses: limit.Refuses}
		if u.User = party.Name; party.Queue {
			_, named := q.Queues[party.Name]
			u.User, u.Queue, u.Named = "", party.Name, named || party.Name == cluster.DefaultQueue
		}
		switch bytes, known := g.Output.Of(party.Name); {
		case kind.Counts():
			u.Taken = new(taken[kind])
		case kind == cluster.QuotaSubmissions:
			u.Taken = new(g.Submissions(party, now))
		case known:
			u.Taken = new(bytes)
		}
		all = append(all, u)
	}
	return all
}
