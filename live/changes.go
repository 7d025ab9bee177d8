package live

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
)

// changes are the jobs that are to be looked at again. Only the loop uses it.
type changes struct {
	touched map[cluster.JobID]*job // by steps, since the last harvest
	untold  map[cluster.JobID]*job // changed since the last board
	asking
}

func newChanges() changes {
	return changes{touched: map[cluster.JobID]*job{}, untold: map[cluster.JobID]*job{}}
}

// touch says that a step may have changed a job.
func (c *changes) touch(j *job) {
	c.touched[j.ID] = j
	c.tell(j)
}

// tell says that a job has changed: the next board shows it anew.
func (c *changes) tell(j *job) { c.untold[j.ID] = j }

// harvest yields the jobs that steps may have changed, each once.
func (c *changes) harvest() iter.Seq[*job] {
	return func(yield func(*job) bool) {
		for id, j := range c.touched {
			if delete(c.touched, id); !yield(j) {
				return
			}
		}
	}
}

// news are the jobs that the next board shows anew, by ID.
func (c *changes) news() []*job {
	return slices.SortedFunc(maps.Values(c.untold), func(a, b *job) int { return cmp.Compare(a.ID, b.ID) })
}

// tellAll says that jobs have changed.
func (c *changes) tellAll(jobs map[cluster.JobID]*job) { maps.Copy(c.untold, jobs) }

// told says that a board shows all that has changed.
func (c *changes) told() { clear(c.untold) }
