package live

import (
	"context"
	"sync/atomic"
)

// bulletin has the newest board, and wakes those who wait for the next one. Only the loop puts boards; the other
// methods may be called from any goroutine.
type bulletin struct {
	board atomic.Pointer[board]
	news  signal                        // a revision was not announced
	fresh atomic.Pointer[chan struct{}] // closed, and replaced, when a revision is announced
}

func newBulletin() *bulletin {
	b := &bulletin{news: newSignal()}
	b.fresh.Store(new(make(chan struct{})))
	return b
}

func (b *bulletin) newest() *board { return b.board.Load() }

// put replaces the board, if there is one.
func (b *bulletin) put(next *board) {
	if was := b.board.Swap(next); was != nil && was.revision != next.revision {
		b.news.raise()
	}
}

// newer returns a channel that is closed when there is a later revision than that of the board, or soon after.
func (b *bulletin) newer() <-chan struct{} { return *b.fresh.Load() }

// announce wakes those who wait for another revision. The loop does not do it, so that it need not wait for them
// however many they are.
func (b *bulletin) announce(ctx context.Context) {
	for {
		select {
		case <-b.news:
			close(*b.fresh.Swap(new(make(chan struct{}))))
		case <-ctx.Done():
			return
		}
	}
}
