package live

import (
	"context"
	"sync"
)

// beside are the goroutines of a Driver other than its loop.
type beside struct {
	sync.WaitGroup
	stop func()
}

// begin begins work that lasts until the end, or ends by itself.
func (b *beside) begin(works ...func(context.Context)) {
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	for _, work := range works {
		b.Go(func() { work(ctx) })
	}
}

// end ends the work, and waits for it.
func (b *beside) end() {
	b.stop()
	b.Wait()
}
