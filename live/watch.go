package live

import (
	"context"

	"github.com/bellows-rm/bellows/live/api"
)

// Changes waits until something has changed since a revision, and returns what, as of now. It returns a snapshot at
// once if the revision is 0, of an earlier run of the daemon, or so old that some of the jobs that have ended since
// are forgotten. It keeps nothing for its caller: whoever asks seldom gets all that has changed meanwhile, each job
// once.
func (d *Driver) Changes(ctx context.Context, from int64) (api.Update, error) {
	for {
		newer := d.board.Newer()
		if u, news := d.board.Newest().Changes(from, d.now()); news {
			return u, nil
		}
		if err := await(ctx, d, newer); err != nil {
			return api.Update{}, err
		}
	}
}
