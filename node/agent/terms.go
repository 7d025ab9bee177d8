package agent

import (
	"sync/atomic"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// terms are what the configuration of an agent says of each container that starts: see Config.
type terms struct {
	grace       time.Duration
	outputLimit atomic.Int64
	oomScore    int
}

func newTerms(c *Config) *terms {
	t := &terms{grace: c.Grace, oomScore: c.OOMScore}
	t.outputLimit.Store(int64(c.OutputLimit))
	return t
}

// note notes them in the record of a container.
func (t *terms) note(s *spec) {
	s.Grace, s.OOMScore = t.grace, t.oomScore
	s.OutputLimit = outputShare(t.outputLimit.Load(), s.Launch.Tasks)
}

// LimitOutput changes Config.OutputLimit for the runs that start from now on.
func (a *Agent) LimitOutput(limit resource.Amount) { a.terms.outputLimit.Store(int64(limit)) }
