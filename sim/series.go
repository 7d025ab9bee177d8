package sim

import (
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// SeriesOptions says at what resolution grants and use of the cluster are recorded. The zero value records nothing.
type SeriesOptions struct {
	// Resolution is the length of a sample. It doubles whenever there would be more than Limit samples.
	Resolution time.Duration
	// Limit is the largest number of samples, at least 2; 0 means 1000.
	Limit int
	// Nodes records every node on its own, each change of it: Result.Nodes.
	Nodes bool
}

// Series is the grants and use of a cluster over time.
type Series struct {
	Resolution time.Duration // of every sample; the last sample may end earlier, with the run
	Samples    []Sample      // consecutive, from time 0
}

// Sample is the mean over one span of a Series, summed over all nodes.
type Sample struct {
	At timeline.Time // its beginning
	// Capacity is the sum over the nodes, 0 of a resource that is unknown on one of them. Granted is the sum over the
	// tasks, from their start decisions on; on nodes with a memory manager, granted memory is the limits of the admitted
	// containers. Used is the true use of the tasks: resident memory, and the other resources at the tasks' present
	// pace.
	Capacity, Granted, Used resource.Vector
}

const usualSamples = 1000

func (o *SeriesOptions) check() error {
	if o.Resolution < 0 || o.Limit < 0 || o.Limit == 1 {
		return fmt.Errorf("series of %d samples of %v: must be at least 2, not negative", o.Limit, o.Resolution)
	}
	return nil
}

// recorder sums up grants and use over time; nil records nothing.
type recorder struct {
	resolution timeline.Time
	limit      int
	since      timeline.Time
	held       [3]resource.Vector // capacity, granted, used
	sums       [][3][resource.NumKinds]float64
	uses       map[*task]resource.Vector
}

const (
	ofCapacity = iota
	ofGranted
	ofUsed
)

func newRecorder(o SeriesOptions) *recorder {
	if o.Resolution == 0 {
		return nil
	}
	if o.Limit == 0 {
		o.Limit = usualSamples
	}
	return &recorder{resolution: timeline.Time(o.Resolution), limit: o.Limit,
		uses: map[*task]resource.Vector{}}
}

// change records a change of one of the held vectors from now on.
func (r *recorder) change(now timeline.Time, of int, from, to resource.Vector) {
	if r == nil || from == to {
		return
	}
	r.advance(now)
	r.held[of] = r.held[of].Add(to).Sub(from)
}

// advance adds the held vectors, until now, to the samples of that time.
func (r *recorder) advance(now timeline.Time) {
	for r.since < now {
		i := int(r.since / r.resolution)
		for i >= r.limit {
			r.coarsen()
			i = int(r.since / r.resolution)
		}
		for len(r.sums) <= i {
			r.sums = append(r.sums, [3][resource.NumKinds]float64{})
		}
		until := min(now, timeline.Time(i+1)*r.resolution)
		for of := range r.held {
			for k, amount := range r.held[of] {
				r.sums[i][of][k] += float64(amount) * float64(until-r.since)
			}
		}
		r.since = until
	}
}

// coarsen merges each pair of samples into one.
func (r *recorder) coarsen() {
	for i := range r.sums {
		if i%2 == 0 {
			r.sums[i/2] = r.sums[i]
			continue
		}
		for of := range r.held {
			for k := range r.sums[i][of] {
				r.sums[i/2][of][k] += r.sums[i][of][k]
			}
		}
	}
	r.sums = r.sums[:(len(r.sums)+1)/2]
	r.resolution *= 2
}

// series returns the record until now.
func (r *recorder) series(now timeline.Time) *Series {
	if r == nil {
		return nil
	}
	r.advance(now)
	s := &Series{Resolution: time.Duration(r.resolution)}
	for i := range r.sums {
		at := timeline.Time(i) * r.resolution
		length := float64(min(at+r.resolution, now) - at)
		mean := func(of int) (v resource.Vector) {
			for k := range v {
				v[k] = resource.Amount(r.sums[i][of][k]/length + 0.5)
			}
			return v
		}
		s.Samples = append(s.Samples, Sample{At: at, Capacity: mean(ofCapacity), Granted: mean(ofGranted),
			Used: mean(ofUsed)})
	}
	return s
}

// recordCapacity records the capacity of the cluster after nodes have joined or left.
func (r *run) recordCapacity() {
	if r.recorder != nil {
		r.recorder.change(r.now, ofCapacity, r.recorder.held[ofCapacity], r.engine.Snapshot().Capacity)
	}
}

// use records the use of a task from now on: zero once the task has ended.
func (r *run) use(t *task, to resource.Vector) {
	if r.recorder == nil {
		return
	}
	r.recorder.change(r.now, ofUsed, r.recorder.uses[t], to)
	if to == (resource.Vector{}) {
		delete(r.recorder.uses, t)
	} else {
		r.recorder.uses[t] = to
	}
}

// useNow is the use of a task at its present pace.
func (r *run) useNow(t *task) resource.Vector {
	if t.flow == nil {
		return r.plainUse(t)
	}
	v := t.flow.demand
	if t.flow.speed == 0 {
		return v // memory only
	}
	share := t.flow.pace / t.flow.speed
	for _, k := range contended {
		v[k] = resource.Amount(share * float64(v[k]))
	}
	return v
}
