package live

import (
	"context"
	"errors"
	"sync"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/store"
)

// ownedApp is an application of an owner.
type ownedApp struct {
	uid       uint32
	user, app string
}

func appOf(owner cluster.Credentials, app string) ownedApp {
	return ownedApp{owner.UID, owner.User, app}
}

// histories keeps histories of the store in memory: models are fitted once after a run, which takes up to a third of a
// second with 40 runs of six phases, and not at each submission. Its methods may be called from any goroutine.
type histories struct {
	mu    sync.Mutex
	known map[ownedApp]*knownHistory
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

func (c *histories) of(key ownedApp) *knownHistory {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uses++
	k := c.known[key]
	if k == nil {
		if c.known == nil {
			c.known = map[ownedApp]*knownHistory{}
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
	var oldest ownedApp
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
	by  []cluster.JobID
}

// withHistory calls f with the history of an application. If it cannot be read, f gets an empty history and the reason,
// unreadable. If f adds runs, it must return what is to be stored.
func (d *Driver) withHistory(ctx context.Context, key ownedApp, f func(h *profile.History, unreadable error) (*taught,
	error)) error {
	k := d.learning.of(key)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := d.readHistory(ctx, key, k); err != nil {
		return err
	}
	changed, err := f(k.h, k.failed)
	if err == nil && changed != nil {
		err = d.store.PutLearned(ctx, changed.app, changed.by...)
		k.at, k.size, k.failed = changed.app.LearnedAt, len(changed.app.Learned), nil
	}
	if err != nil {
		k.h = nil // what is in memory may not be what is stored
	}
	return err
}

// readHistory brings k up to date with the store.
func (d *Driver) readHistory(ctx context.Context, key ownedApp, k *knownHistory) error {
	a, err := d.store.App(ctx, key.uid, key.user, key.app)
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
		d.log.Warn("what was learned of an application cannot be read: its history begins anew with its next run", "app",
			key.app, "uid", key.uid, "error", err)
		k.failed = err
		return nil
	case len(notes) > 0:
		d.log.Warn("what was learned of an application is not sound, and used in part", "app", key.app, "uid", key.uid,
			"notes", notes)
	}
	k.h = h
	return nil
}
