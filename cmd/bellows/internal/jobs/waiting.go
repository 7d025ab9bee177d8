package jobs

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
)

const (
	// waitsSilently is how long nothing is said of a job that waits: most start at once.
	waitsSilently = 2 * time.Second
	// looksAgain is the longest pause after which it is asked again why a job waits.
	looksAgain = 30 * time.Second
)

// sayWhyItWaits says why a job has not started, as "bellows ps" does, and again when the reason changes; also between
// two attempts. It ends with ctx or with the job. Like srun it says so whether a person or a log reads it: what a
// command waits for is asked of logs, too.
func sayWhyItWaits(ctx context.Context, to io.Writer, look func() (api.Job, error)) {
	said := ""
	for pause := waitsSilently; wait(ctx, pause); pause = min(2*pause, looksAgain) {
		job, err := look()
		switch {
		case err != nil:
			continue
		case job.Ended:
			return
		}
		why := whyNotStarted(&job)
		if numberless(why) != said && why != "" {
			fmt.Fprintf(to, "bellows: job %d waits: %s\n", job.ID, cluster.Printable(why))
		}
		said = numberless(why)
	}
}

// whyNotStarted says why nothing of a job runs; empty if something does, or nothing is known.
func whyNotStarted(j *api.Job) string {
	if slices.ContainsFunc(j.Tasks, func(t api.Task) bool {
		return t.State == api.TaskRunning || t.State == api.TaskEnding
	}) {
		return ""
	}
	return startedOf(j.Tasks).whyOf(j, nil)
}

// numberless is a reason without its numbers, which change with what others hold, and with the time.
func numberless(why string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, why)
}
