package keeper

import (
	"errors"
	"io/fs"
	"log/slog"
	"sync"

	"github.com/bellows-rm/bellows/core/memory"
)

// Comebacks keep the tasks that were requeued, so that they come back with what they are to have even if the daemon
// restarts in between.
type Comebacks interface {
	// Put replaces them all.
	Put([]memory.Comeback) error
	// Get returns what was put last. The error is an fs.ErrNotExist if nothing was.
	Get() ([]memory.Comeback, error)
}

// comebacks puts the newest comebacks into their place; without a place, nowhere.
type comebacks struct {
	place Comebacks
	log   *slog.Logger

	taken int // versions taken; owned by the keeper's goroutine

	mu    sync.Mutex
	saved int // the newest version in its place
}

func newComebacks(place Comebacks, log *slog.Logger) *comebacks {
	return &comebacks{place: place, log: log}
}

// take numbers the comebacks of this moment, and returns what saves them, unless newer ones are saved already.
func (b *comebacks) take(all []memory.Comeback) (save func()) {
	b.taken++
	version := b.taken
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.place == nil || version <= b.saved {
			return
		}
		if err := b.place.Put(all); err != nil {
			b.log.Warn("a restart will lose with how much memory requeued tasks are to come back", "error", err)
			return
		}
		b.saved = version
	}
}

// read returns what the last keeper has saved.
func (b *comebacks) read() []memory.Comeback {
	if b.place == nil {
		return nil
	}
	all, err := b.place.Get()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.log.Warn("requeued tasks come back with what they began with", "error", err)
	}
	return all
}
