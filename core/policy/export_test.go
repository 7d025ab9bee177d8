package policy

import (
	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/timeline"
)

// StopUnderSizing makes a yarn-me policy start tasks with their ideal memory only.
func StopUnderSizing(p Policy) {
	f := &p.(*yarnME).fair
	f.size, f.holds = idealSize, holdsIdeal
}

// Estimate makes a yarn-me policy estimate the ends of all jobs.
func Estimate(p Policy, now timeline.Time, plan *book.Plan) {
	p.(*yarnME).timeline.Estimate(now, plan)
}
