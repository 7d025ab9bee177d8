package pufferfish

import (
	"math"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// memoryWatch records the containers of a node over time.
type memoryWatch struct {
	states []sim.ContainerMemory
	orders []memoryOrder
}

type memoryOrder struct {
	at timeline.Time
	memory.Action
}

// watching returns config with w as the recorder.
func (w *memoryWatch) watching(config sim.Config) sim.Config {
	config.ObserveContainers = func(m sim.ContainerMemory) { w.states = append(w.states, m) }
	config.ObserveMemory = func(now timeline.Time, _ cluster.NodeID, a memory.Action) {
		w.orders = append(w.orders, memoryOrder{now, a})
	}
	return config
}

// over returns the sum of an amount over containers, over time, in GB.
func (w *memoryWatch) over(which func(sim.ContainerMemory) bool, of func(sim.ContainerMemory) resource.Amount) (x,
	y []float64) {
	latest := map[cluster.ContainerID]resource.Amount{}
	sum := resource.Amount(0)
	for _, m := range w.states {
		if !which(m) {
			continue
		}
		sum += of(m) - latest[m.Container]
		latest[m.Container] = of(m)
		at := time.Duration(m.At).Seconds()
		if n := len(x); n > 0 && x[n-1] == at {
			y[n-1] = float64(sum) / float64(resource.GB)
			continue
		}
		x, y = append(x, at), append(y, float64(sum)/float64(resource.GB))
	}
	return x, y
}

func limitOf(m sim.ContainerMemory) resource.Amount    { return m.Limit }
func residentOf(m sim.ContainerMemory) resource.Amount { return m.Resident }

// ofJob selects the containers of a job.
func ofJob(id cluster.JobID) func(sim.ContainerMemory) bool {
	return func(m sim.ContainerMemory) bool { return m.Container.Task.Job == id && m.Class == cluster.Flex }
}

// lines returns the use of containers and, dashed, their limits.
func (w *memoryWatch) lines(name string, color int, which func(sim.ContainerMemory) bool) []chart.Series {
	holds, may := chart.Series{Name: name, Color: color, Step: true}, chart.Series{Color: color, Step: true, Dashed: true}
	holds.X, holds.Y = w.over(which, residentOf)
	may.X, may.Y = w.over(which, limitOf)
	return []chart.Series{holds, may}
}

// kills returns when the manager killed containers of a job, in seconds.
func (w *memoryWatch) kills(job cluster.JobID) []float64 {
	var all []float64
	for _, o := range w.orders {
		if o.Kind == memory.Kill && o.Container.Task.Job == job {
			all = append(all, time.Duration(o.at).Seconds())
		}
	}
	return all
}

// back returns how long after a kill a container of the job started again, in seconds; NaN if none started.
func (w *memoryWatch) back(job cluster.JobID, kill float64) float64 {
	for _, m := range w.states {
		if at := time.Duration(m.At).Seconds(); at > kill && m.Container.Task.Job == job && m.Limit > 0 && ofJob(job)(m) {
			return at - kill
		}
	}
	return math.NaN()
}

// watched simulates a workload on the node of section 5.2.
func watched(o lab.Contender, w *workload.Workload) (*sim.Result, *memoryWatch, error) {
	watch := &memoryWatch{}
	r, err := o.ToTheEnd(watch.watching(pufferfishCluster(1)), w)
	return r, watch, err
}

// slackOf returns when a job's container was first shrunk because its use was below its limit, in seconds, and how much
// later another container grew.
func (w *memoryWatch) slackOf(job cluster.JobID) (shrunk, given float64) {
	shrunk, given = math.NaN(), math.NaN()
	for _, o := range w.orders {
		at := time.Duration(o.at).Seconds()
		switch {
		case math.IsNaN(shrunk) && o.Kind == memory.Shrink && o.Reason.Code == memory.Slack && o.Container.Task.Job == job:
			shrunk = at
		case !math.IsNaN(shrunk) && o.Kind == memory.Grow && o.Container.Task.Job != job:
			return shrunk, at - shrunk
		}
	}
	return shrunk, given
}

// squeezed returns the lowest limit, in GB, to which a job's container was shrunk for a container that was to start, 64
// if it never was, and how often that happened.
func (w *memoryWatch) squeezed(job cluster.JobID) (lowest, times float64) {
	lowest = float64(maxHeap) / float64(resource.GB)
	for _, o := range w.orders {
		if o.Kind == memory.Shrink && o.Reason.Code == memory.NeededByOther && o.Container.Task.Job == job {
			lowest = min(lowest, float64(o.Limit)/float64(resource.GB))
			times++
		}
	}
	return lowest, times
}
