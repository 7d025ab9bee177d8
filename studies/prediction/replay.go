package prediction

import (
	"cmp"
	"container/heap"
)

// method predicts for the tasks of one process. What it knows of a task besides its input is what was measured, once
// the task has ended.
type method interface {
	// first returns how many bytes to reserve for a task; 0 if the method knows too little.
	first(t *task) float64
	// next returns the same after an attempt failed that had reserved had.
	next(t *task, had float64) float64
	// learn adds a task that ended well.
	learn(t *task)
	// failed adds an attempt that failed.
	failed(t *task, had float64)
}

// failsAfter is the part of its run time after which an attempt fails that has too little.
type failsAfter string

const (
	aSecond failsAfter = "1 s"
	half    failsAfter = "half"
	whole   failsAfter = "whole"
)

func (f failsAfter) of(lasts int64) int64 {
	switch f {
	case half:
		return lasts / 2
	case whole:
		return lasts
	}
	return min(1000, lasts)
}

// score is what reservations cost.
type score struct {
	Wastage  float64 `json:"wastage_gbh"`
	Failures int     `json:"failures"`
	// Grown are tasks that grew, by GB·h together.
	Grown    int     `json:"grown"`
	GrownGBh float64 `json:"grown_gbh"`
}

// outcome is the score of all tasks of a workflow, and of those that Sizey's authors would evaluate.
type outcome struct {
	All      score `json:"all"`
	Selected score `json:"selected"`
	// Tasks has the wastage by process, for a look at causes.
	Processes map[string]float64 `json:"processes"`
}

// contender is a method, and how its attempts fail.
type contender struct {
	name  string
	make  func() method
	fails failsAfter
	grows bool // an attempt that outgrows its reservation grows
}

// attempt is a running attempt of a task.
type attempt struct {
	task     *task
	number   int // of the task
	ends     int64
	reserved float64
	fails    bool
}

// attempts is a heap by end, then by task.
type attempts []attempt

func (a attempts) Len() int { return len(a) }
func (a attempts) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(a[i].ends, a[j].ends), cmp.Compare(a[i].number, a[j].number)) < 0
}
func (a attempts) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *attempts) Push(x any)   { *a = append(*a, x.(attempt)) }
func (a *attempts) Pop() any {
	old := *a
	x := old[len(old)-1]
	*a = old[:len(old)-1]
	return x
}

const gigabyteHours = 1e9 * 3600 * 1000 // bytes times milliseconds

// replay runs the tasks of a workflow.
func (c *contender) replay(tasks []task) outcome {
	o := outcome{Processes: map[string]float64{}}
	methods := map[string]method{}
	var running attempts
	begin := func(t *task, number int, now int64, bytes float64) {
		if !(bytes > 0) || bytes > t.request {
			bytes = t.request
		}
		fails := bytes < t.peak && bytes < t.request
		a := attempt{task: t, number: number, ends: now + t.lasts, reserved: bytes, fails: fails && !c.grows}
		var s score
		switch {
		case a.fails:
			lasted := c.fails.of(t.lasts)
			a.ends = now + lasted
			s = score{Wastage: bytes * float64(lasted) / gigabyteHours, Failures: 1}
		case fails:
			s = score{Grown: 1, GrownGBh: (t.peak - bytes) * float64(t.lasts) / gigabyteHours}
		default:
			s = score{Wastage: max(0, bytes-t.peak) * float64(t.lasts) / gigabyteHours}
		}
		o.Processes[t.process] += s.Wastage
		o.All.add(s)
		if t.selected {
			o.Selected.add(s)
		}
		heap.Push(&running, a)
	}
	end := func() {
		a := heap.Pop(&running).(attempt)
		m := methods[a.task.process]
		if !a.fails {
			m.learn(a.task)
			return
		}
		m.failed(a.task, a.reserved)
		begin(a.task, a.number, a.ends, m.next(a.task, a.reserved))
	}
	for i := range tasks {
		t := &tasks[i]
		for len(running) > 0 && running[0].ends <= t.start {
			end()
		}
		m := methods[t.process]
		if m == nil {
			m = c.make()
			methods[t.process] = m
		}
		begin(t, i, t.start, m.first(t))
	}
	for len(running) > 0 {
		end()
	}
	return o
}

func (s *score) add(b score) {
	s.Wastage += b.Wastage
	s.Failures += b.Failures
	s.Grown += b.Grown
	s.GrownGBh += b.GrownGBh
}
