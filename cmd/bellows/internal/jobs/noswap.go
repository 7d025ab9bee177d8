package jobs

import (
	"context"
	"fmt"
	"io"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/node/swap"
)

// withoutSwap turns a FLEX job on a machine without swap into a REGULAR job that spills, and says so, or refuses the
// job.
func withoutSwap(ctx context.Context, client *client.Client, j *workload.Job, to io.Writer) error {
	if j.Class != cluster.Flex || client.Remote() { // A daemon on another machine looks at its own swap.
		return nil
	}
	missing := swap.Machine{}.Missing()
	if missing == "" {
		return nil
	}
	var failed error
	known := place.Profiles{Client: client, Failed: &failed}
	lookUp := known.LookUp(ctx)
	words, err := api.SpillInstead(&j.Job, missing, func(stage int) (p cluster.Profile, ok bool) {
		if name := j.Stages[stage].Profile; name != "" {
			p, ok = lookUp(name)
		}
		return p, ok
	})
	if failed != nil {
		return failed
	}
	if err == nil {
		fmt.Fprintf(to, "bellows: job %q: %s\n", j.Name, words)
	}
	return err
}
