package jobs

import (
	"context"
	"fmt"
	"io"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/terminal"
)

// sayReserved says on a terminal with how much memory a job of one task starts, and how far it may grow, if that was
// not stated but learned. What cannot be asked is not said.
func sayReserved(ctx context.Context, client *client.Client, id cluster.JobID, to io.Writer) {
	if !terminal.Is(to) {
		return
	}
	job, err := client.Job(ctx, id, false)
	if err != nil || len(job.Stages) != 1 || job.Stages[0].Reserved == nil {
		return
	}
	s := &job.Stages[0]
	most := s.MaxMemory
	if status, err := client.Status(ctx); err == nil {
		if node := status.LargestMemory(); most == 0 || node > 0 && node < most {
			most = node
		}
	}
	fmt.Fprintln(to, "bellows: "+reservedWords(s.Reserved, resource.Amount(s.IdealBytes), most))
}

// reservedWords says what a container starts with, and why, and how far it may grow; most is 0 if that is unknown.
func reservedWords(by *cluster.Reservation, starts, most resource.Amount) string {
	text := "memory: auto, starts with " + resource.FormatMemory(starts)
	if evidence := by.String(); evidence != "" {
		text += " (" + evidence + ")"
	}
	if most > 0 {
		text += ", may grow to " + resource.FormatMemory(most)
	}
	return text
}
