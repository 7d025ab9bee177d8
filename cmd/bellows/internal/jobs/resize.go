package jobs

import (
	"fmt"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
)

// resizedWords says how and when the grant of a task was changed last, and why.
func resizedWords(r *api.Resized, to *api.Grant) string {
	text := fmt.Sprintf("resized from %s to %s", grantWords(&r.Was), grantWords(to))
	switch {
	case r.Failed != "":
		text = fmt.Sprintf("could not be resized, and keeps %s", grantWords(to))
	case !r.InForce:
		text = fmt.Sprintf("being resized from %s to %s", grantWords(&r.Was), grantWords(to))
	}
	if !r.Since.IsZero() && r.Failed == "" {
		text += " since " + r.Since.Local().Format(time.TimeOnly)
	}
	for _, more := range []string{r.Failed, r.Why} {
		if more != "" {
			return text + ": " + more
		}
	}
	return text
}

// renewedWords says what is reserved of memory for a task, since when, and why.
func renewedWords(r *api.Renewed) string {
	reserves, why, _ := strings.Cut(r.Why, ":")
	return reserves + " since " + r.Since.Local().Format(time.TimeOnly) + ":" + why
}

// grantWords is a grant of CPU and memory.
func grantWords(g *api.Grant) string {
	return resource.CPU.Format(resource.Amount(g.CPUMillicores)) + " and " +
		resource.FormatMemory(resource.Amount(g.MemoryBytes))
}
