package trace

import (
	"time"

	"github.com/bellows-rm/bellows/resource"
)

// What a file may ask for. The limits are far above anything that makes sense; they keep sums of a whole run in range.
const (
	longest    = 10 * 365 * 24 * time.Hour // a duration, or a time of submission
	mostMemory = 1000 * resource.PB        // one task
	mostCores  = 1_000_000                 // one task
	mostTasks  = 1 << 30                   // one stage
	mostSlower = 1_000_000                 // a slowdown
)
