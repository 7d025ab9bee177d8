package memory

import (
	"time"

	"github.com/bellows-rm/bellows/core/timeline"
)

// moment is when something last happened to a container or the node. The zero value has never happened.
type moment struct {
	at       timeline.Time
	happened bool
}

// within reports whether t happened less than d before now.
func (t moment) within(now timeline.Time, d time.Duration) bool {
	return t.happened && now.Sub(t.at) < d
}
