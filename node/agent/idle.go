package agent

import (
	"time"

	"github.com/bellows-rm/bellows/core/usage"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// idleness is for how long a container was idle, as far as can be seen: it used next to nothing, and all its programs
// waited for something other than a CPU, the disk or memory. The mutex of its monitored guards it.
type idleness struct {
	total  time.Duration
	cpu    int64         // CPU time at the last sample, milliseconds
	looked time.Duration // when the threads were looked at, by the clock; 0 if never, or not since it was busy
	asleep bool          // what they were then
}

// length returns for how long the container was idle.
func (i *idleness) length() time.Duration { return i.total }

// add adds a time in which the container was idle.
func (i *idleness) add(passed time.Duration) { i.total += passed }

// sampled notes the CPU time of a sample.
func (i *idleness) sampled(s *usage.Sample) { i.cpu = s.Value[usage.CPU] }

// quiet reports whether the container used next to no CPU since the last sample, which s follows.
func (i *idleness) quiet(s *usage.Sample, passed time.Duration, t *usage.Tolerance) bool {
	little := float64(t[usage.CPU]) * passed.Seconds()
	if s.Known.Has(usage.CPU) && float64(s.Value[usage.CPU]-i.cpu) <= little {
		return true
	}
	i.looked = 0
	return false
}

// sleeps reports whether the programs of a quiet container wait of their own. Threads take long to look at, compared
// with counters, so that what was seen holds for as long as memory.stat does.
func (i *idleness) sleeps(now time.Duration, g *cgroup.Group) bool {
	if i.looked == 0 || now-i.looked >= detailed-sampling/2 {
		i.asleep, i.looked = g.Asleep(), now
	}
	return i.asleep
}
