// Package retention says which jobs that have ended, and how much of the event logs, are kept, and removes the rest.
package retention

import (
	"cmp"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
)

// Rule says which ended jobs are kept, with their tasks and their output. Jobs that have not ended are always
// kept, and jobs that ended less than 10 seconds ago, so that waiting clients see how they ended.
type Rule struct {
	// For is how long a job stays after its end.
	For time.Duration
	// Jobs is the largest number of jobs that stay, and Output the largest number of bytes of output; 0 is no limit.
	// Beyond them, the oldest job of the owner who has most goes, so that the history of one owner does not push out
	// that of others.
	Jobs   int
	Output resource.Amount
	// UserJobs and UserOutput are the largest numbers of each owner, of the most recently ended jobs. What is beyond
	// them does not count for Jobs and Output.
	UserJobs   int
	UserOutput resource.Amount
	// Events is the largest number of bytes of event logs that stay; 0 is no limit. The current run gets half of it, of
	// which the newest segments stay; no segment is smaller than three times its inventory. Earlier runs get the other
	// half: the latest stay, for at most as long as jobs, and at most 100.
	Events resource.Amount
	// Newest is the number of most recently ended jobs that are kept regardless of the other bounds.
	Newest int
}

// justEnded is how long a job stays after its end whatever the rule says.
const justEnded = 10 * time.Second

// Choose returns the jobs to remove. ended are the ended jobs, the last first; size returns the bytes of a job's
// output.
func (keep *Rule) Choose(ended []store.Ended, now timeline.Time, size func(cluster.JobID) int64) api.Pruned {
	p := api.Pruned{Jobs: []cluster.JobID{}}
	measured := keep.Output > 0 || keep.UserOutput > 0
	all, users := make([]past, len(ended)), map[uint32]past{}
	var counted []*past // by the limits of all users together
	for i, j := range ended {
		this := past{jobs: users[j.UID].jobs + 1, output: users[j.UID].output}
		if measured {
			this.bytes = size(j.ID)
			this.output += this.bytes
		}
		this.beyond = keep.UserJobs > 0 && this.jobs > keep.UserJobs || keep.UserOutput > 0 &&
			this.output > int64(keep.UserOutput)
		users[j.UID], all[i] = this, this
		if !this.beyond {
			counted = append(counted, &all[i])
		}
	}
	keep.level(counted)
	for i, j := range ended {
		this, age := &all[i], now.Sub(j.At)
		if !this.beyond && age < keep.For || i < keep.Newest || age < justEnded {
			continue
		}
		if !measured {
			this.bytes = size(j.ID)
		}
		p.Jobs = append(p.Jobs, j.ID)
		p.OutputBytes += this.bytes
	}
	slices.Sort(p.Jobs)
	return p
}

// past is an ended job: the bytes of its output, how many jobs and bytes of output its user has with it and those
// that ended later, and whether it is beyond a limit.
type past struct {
	bytes, output int64
	jobs          int
	beyond        bool
}

// level says which jobs, the last first, are beyond the limits of all users together: as many as necessary, each the
// oldest of the user who then has the most.
func (keep *Rule) level(all []*past) {
	within := func(limit int64, of func(*past) (most, more int64)) {
		if limit == 0 {
			return
		}
		sorted, sum := slices.Clone(all), int64(0)
		slices.SortStableFunc(sorted, func(a, b *past) int {
			x, _ := of(a)
			y, _ := of(b)
			return cmp.Compare(x, y)
		})
		for _, this := range sorted {
			_, more := of(this)
			sum += more
			this.beyond = this.beyond || sum > limit
		}
	}
	within(int64(keep.Jobs), func(j *past) (most, more int64) { return int64(j.jobs), 1 })
	within(int64(keep.Output), func(j *past) (most, more int64) { return j.output, j.bytes })
}

// OfSegment returns the largest size of a segment, bytes: half of what the run may have, so that there is always
// another one; 0 is no limit. A segment usually has half of that, and more if orders are under way all the time. The
// Rule may be nil.
func (keep *Rule) OfSegment() int64 { return (keep.OfEvents() + 1) / 2 }

// OfEvents returns the largest size of one run's event log, bytes; 0 is no limit. The Rule may be nil.
func (keep *Rule) OfEvents() int64 {
	if keep == nil {
		return 0
	}
	return int64(keep.Events / 2)
}
