package place

import (
	"context"
	"errors"
	"time"

	"github.com/bellows-rm/bellows/live/api"
)

// RedialPace is the time between two requests while there is no daemon.
const RedialPace = time.Second / 5

// UntilAnswered repeats a request until a daemon answers it. When none answers at first it calls waiting, which may
// be nil, once with the error. It returns the error of the answer; after the deadline of ctx that of the last
// request, and if ctx is cancelled that of ctx.
func UntilAnswered(ctx context.Context, waiting func(error), request func() error) error {
	for {
		err := request()
		if api.KindOf(err) != api.Unavailable {
			return err
		}
		if waiting != nil {
			waiting(err)
			waiting = nil
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return err
			}
			return ctx.Err()
		case <-time.After(RedialPace):
		}
	}
}
