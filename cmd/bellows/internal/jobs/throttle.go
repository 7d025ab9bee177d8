package jobs

import (
	"fmt"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
)

// throttleWords says what bounds a task, until when and why.
func throttleWords(t *api.Throttle) string {
	text := "throttled"
	switch {
	case t.Failed != "":
		text = "cannot be throttled"
	case !t.InForce:
		text = "being throttled"
	}
	text += fmt.Sprintf(" to %s until %s", ratesWords(t.Disk, t.Network), t.Until.Local().Format(time.TimeOnly))
	for _, more := range []string{t.Failed, t.Why} {
		if more != "" {
			text += ": " + more
			break
		}
	}
	if t.How != "" {
		text += "; " + t.How
	}
	return text
}

// ratesWords names bandwidths that are not 0.
func ratesWords(disk, network int64) string {
	var rates []string
	for kind, rate := range (resource.Vector{resource.Disk: resource.Amount(disk),
		resource.Network: resource.Amount(network)}) {
		if rate > 0 {
			rates = append(rates, resource.Kind(kind).FormatOf(rate))
		}
	}
	return strings.Join(rates, " and ")
}
