package board

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/bellows-rm/bellows/live/api"
)

// Bulletin has the newest board, and wakes those who wait for the next one. Only the loop begins and publishes; the
// other methods may be called from any goroutine.
type Bulletin struct {
	board atomic.Pointer[Board]
	news  chan struct{}                 // has an element if a revision was not announced
	fresh atomic.Pointer[chan struct{}] // closed, and replaced, when a revision is announced
}

// NewBulletin returns a Bulletin without a board.
func NewBulletin() *Bulletin {
	b := &Bulletin{news: make(chan struct{}, 1)}
	b.fresh.Store(new(make(chan struct{})))
	return b
}

// Newest returns the newest board.
func (b *Bulletin) Newest() *Board { return b.board.Load() }

// Begin shows the first board.
func (b *Bulletin) Begin(first *Board) { b.board.Store(first) }

// Publish shows a new board, with a status, and wakes those who wait for the change of a job. unready is why the driver
// does not serve; nil if it does.
func (b *Bulletin) Publish(e *Edition, status api.ClusterStatus, unready error) {
	next := e.Board
	next.At, next.Status, next.Unready = time.Now(), status, unready
	if was := b.board.Swap(&next); was.revision != next.revision {
		select {
		case b.news <- struct{}{}:
		default: // What was not announced includes this one.
		}
	}
	for _, c := range e.replaced {
		close(c)
	}
}

// Newer returns a channel that is closed when there is a later revision than that of the board, or soon after.
func (b *Bulletin) Newer() <-chan struct{} { return *b.fresh.Load() }

// Announce wakes those who wait for another revision, until ctx ends. The loop does not do it, so that it need not wait
// for them however many they are.
func (b *Bulletin) Announce(ctx context.Context) {
	for {
		select {
		case <-b.news:
			close(*b.fresh.Swap(new(make(chan struct{}))))
		case <-ctx.Done():
			return
		}
	}
}
