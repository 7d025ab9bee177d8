package learn

import (
	"context"
	"errors"
	"sync"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/store"
)

// App is an application of an owner.
type App struct {
	UID        uint32
	User, Name string
}

// AppOf returns an application of a user.
func AppOf(owner cluster.Credentials, name string) App { return App{owner.UID, owner.User, name} }

// histories keeps histories of the store in memory: models are fitted once after a run, which takes up to a third of a
// second with 40 runs of six phases, and not at each submission. Its methods may be called from any goroutine.
type histories struct {
	mu    sync.Mutex
	known map[App]*knownHistory
	uses  uint64
}

// knownHistory is a history in memory. It is current if at and size equal the values in the store.
type knownHistory struct {
	mu     sync.Mutex
	at     timeline.Time
	size   int
	h      *profile.History
	failed error  // why the stored text could not be read; h is empty then
	used   uint64 // guarded by the mutex of histories
}

// mostHistories is how many histories are kept in memory.
const mostHistories = 200

func (c *histories) of(key App) *knownHistory {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uses++
	k := c.known[key]
	if k == nil {
		if c.known == nil {
			c.known = map[App]*knownHistory{}
		}
		if len(c.known) >= mostHistories {
			c.drop()
		}
		k = &knownHistory{}
		c.known[key] = k
	}
	k.used = c.uses
	return k
}

// drop drops the least recently used history.
func (c *histories) drop() {
	var oldest App
	least := c.uses
	for key, k := range c.known {
		if k.used <= least {
			oldest, least = key, k.used
		}
	}
	delete(c.known, oldest)
}

// taught is a history with added runs.
type taught struct {
	app store.App // with the new text, and the time to store it under
	by  store.Lessons
}

// Read calls f with the history of an application, which f must not keep. If the history cannot be read, f gets an
// empty one and the reason, unreadable. The error is that of f, or of the store.
func (l *Learner) Read(ctx context.Context, key App, f func(h *profile.History, unreadable error) error) error {
	return l.with(ctx, key, func(h *profile.History, unreadable error) (*taught, error) { return nil, f(h, unreadable) })
}

// Forecast fills in what is reserved for the tasks of a job, where that is learned, and what they are expected to
// demand when: see profile.History.Forecast.
func (l *Learner) Forecast(ctx context.Context, owner cluster.Credentials, j *cluster.Job, untimed []int) error {
	return l.Read(ctx, AppOf(owner, j.App), func(h *profile.History, _ error) error {
		h.ReserveFor(j, l.jobs.MostMemory())
		h.Forecast(j, untimed)
		return nil
	})
}

// with is Read for an f that may add runs: then it returns what is to be stored.
func (l *Learner) with(ctx context.Context, key App, f func(h *profile.History, unreadable error) (*taught,
	error)) error {
	k := l.histories.of(key)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := l.read(ctx, key, k); err != nil {
		return err
	}
	changed, err := f(k.h, k.failed)
	if err == nil && changed != nil {
		err = l.store.PutLearned(ctx, changed.app, changed.by)
		k.at, k.size, k.failed = changed.app.LearnedAt, len(changed.app.Learned), nil
	}
	if err != nil {
		k.h = nil // what is in memory may not be what is stored
	}
	return err
}

// read brings k up to date with the store.
func (l *Learner) read(ctx context.Context, key App, k *knownHistory) error {
	a, err := l.store.App(ctx, key.UID, key.User, key.Name)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if k.h != nil && k.at == a.LearnedAt && k.size == len(a.Learned) {
		return nil
	}
	k.h, k.at, k.size, k.failed = &profile.History{}, a.LearnedAt, len(a.Learned), nil
	if a.Learned == nil {
		return nil
	}
	h, notes, err := profile.ReadHistory(a.Learned)
	switch {
	case err != nil:
		l.log.Warn("what was learned of an application cannot be read: its history begins anew with its next run", "app",
			key.Name, "uid", key.UID, "error", err)
		k.failed = err
		return nil
	case len(notes) > 0:
		l.log.Warn("what was learned of an application is not sound, and used in part", "app", key.Name, "uid", key.UID,
			"notes", notes)
	}
	k.h = h
	return nil
}
