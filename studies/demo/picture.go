package demo

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/studies/chart"
)

// Picture is a picture of a result.
type Picture struct {
	Name string // of its file, without an ending
	chart.Picture
}

// sinceFirst is the label of the time axis.
const sinceFirst = "seconds since the first job was submitted"

// Pictures returns memory and tasks over time, one typical run of each contender.
func (r *ElasticResult) Pictures() []Picture {
	runs := r.Runs
	if r.Simulated {
		runs = r.Predicted
	}
	p := &chart.Tracks{X: sinceFirst}
	for i := range sizings {
		run := typical(runsOf(runs, &sizings[i]), (*Run).AverageJobRuntime)
		p.To = max(p.To, run.Makespan().Seconds())
		p.Rows = append(p.Rows, r.memoryTrack(&sizings[i], run), r.tasksTrack(run))
		p.Title = fmt.Sprintf("Four ways to share %s and %s cores among the same %d jobs with %d tasks",
			resource.FormatMemory(r.Node[resource.Memory]), resource.FormatCPU(r.Node[resource.CPU]), len(run.Jobs),
			len(run.Tasks))
	}
	p.Subtitle = fmt.Sprintf("memory granted to each job, in tracks of %s; how many programs run, of %s",
		resource.FormatMemory(r.Node[resource.Memory]), resource.FormatCPU(r.Node[resource.CPU]))
	if r.Simulated {
		p.Subtitle += "; all simulated"
	}
	return []Picture{{"elastic", p}}
}

// memoryTrack stacks the memory granted to each job, with a line for the memory that programs fill with data.
func (r *ElasticResult) memoryTrack(c *contender, run *Run) chart.Track {
	name := c.Label
	if run.Simulated {
		name += " (simulated)"
	}
	t := chart.Track{Name: name, High: 96, Top: float64(r.Node[resource.Memory]), Notes: []string{
		fmt.Sprintf("average runtime %.1f s", run.AverageJobRuntime().Seconds()),
		fmt.Sprintf("makespan %.1f s", run.Makespan().Seconds())}}
	times := changes(run, func(t *TaskRun) time.Duration { return t.Booked })
	for j := range run.Jobs {
		granted := func(at time.Duration) (memory float64) {
			for _, t := range run.Tasks {
				if t.Job == j && t.Booked <= at && at < t.Ended {
					memory += float64(t.Memory)
				}
			}
			return memory
		}
		x, y := steps(times, granted)
		t.X, t.Areas = x, append(t.Areas, chart.Area{Name: run.Jobs[j].Name, Y: y, Color: j + 1})
	}
	used := chart.Series{Name: "memory that programs fill with data"}
	for _, u := range run.Usage {
		if u.At <= run.Makespan() {
			used.X, used.Y = append(used.X, u.At.Seconds()), append(used.Y, float64(u.Anonymous))
		}
	}
	if len(used.X) > 0 {
		t.Lines = []chart.Series{used}
	}
	return t
}

// tasksTrack draws the number of running programs.
func (r *ElasticResult) tasksTrack(run *Run) chart.Track {
	x, y := steps(changes(run, func(t *TaskRun) time.Duration { return t.Started }), func(at time.Duration) (n float64) {
		for _, t := range run.Tasks {
			if t.Started <= at && at < t.Ended {
				n++
			}
		}
		return n
	})
	cores := float64(r.Node[resource.CPU]) / float64(resource.Core)
	return chart.Track{Notes: []string{"programs running"}, High: 26, Top: cores, X: x,
		Areas: []chart.Area{{Name: "programs running", Y: y, Color: 8}}}
}

// steps returns a step function with its values at the given times.
func steps(times []time.Duration, of func(at time.Duration) float64) (x, y []float64) {
	for _, at := range times {
		x, y = append(x, at.Seconds()), append(y, of(at))
	}
	return x, y
}

// changes returns the times at which a task begins or ends, ascending, each once.
func changes(run *Run, begins func(t *TaskRun) time.Duration) []time.Duration {
	var times []time.Duration
	for i := range run.Tasks {
		times = append(times, begins(&run.Tasks[i]), run.Tasks[i].Ended)
	}
	slices.Sort(times)
	return slices.Compact(times)
}

// Pictures returns the memory of each container over time, of the FLEX run whose makespan is the median; nothing if the
// part was left out.
func (r *FlexResult) Pictures() []Picture {
	if r.Why != "" {
		return nil
	}
	return []Picture{{"flex", flexPicture(r)}}
}

// flexPicture has a track for the node, one for each job, and one for all short jobs. The tracks of containers have the
// same scale.
func flexPicture(r *FlexResult) *chart.Tracks {
	run, node := typical(r.of(breathing), (*FlexRun).Makespan), r.Node[resource.Memory]
	most := resource.MiB
	for _, s := range run.samples {
		for _, c := range s.containers {
			most = max(most, c.limit, c.anonymous+c.swap)
		}
	}
	p := &chart.Tracks{
		Title: fmt.Sprintf("%d programs in FLEX containers share %s with short REGULAR jobs", len(run.Jobs),
			resource.FormatMemory(node)),
		Subtitle: fmt.Sprintf(
			"a real run: %d of %d finished, %d killed, makespan %.1f s; the track of the node is %s high, others %s; "+
				"times are from submission to end", run.Finished(), len(run.Jobs), run.Kills(), run.Makespan().Seconds(),
			resource.FormatMemory(node), wholeMiB(most)),
		X: sinceFirst, Shade: "suspended", To: run.Makespan().Seconds(),
	}
	whole := run.track(float64(node), func(*held) bool { return true })
	whole.Name, whole.Notes = "node", []string{fmt.Sprintf("%.0f %% used", 100*run.Used()/float64(node))}
	whole.Shaded, whole.Areas = nil, whole.Areas[:1]
	p.Rows = append(p.Rows, whole)
	for i := range run.Jobs {
		p.Rows = append(p.Rows, run.jobTrack(&run.Jobs[i], float64(most)))
	}
	short := map[cluster.JobID]bool{}
	for _, j := range run.Stream {
		short[j.ID] = true
	}
	streamed := run.track(float64(most), func(c *held) bool { return short[c.id.Task.Job] })
	streamed.Name, streamed.Notes = "short jobs", []string{fmt.Sprintf("%d of them", len(run.Stream))}
	streamed.Shaded, streamed.Lines, streamed.Areas = nil, nil, streamed.Areas[:1]
	streamed.Areas[0].Name, streamed.Areas[0].Color = "short REGULAR jobs, all together", 3
	p.Rows = append(p.Rows, streamed)
	return p
}

// jobTrack draws the container of a job, and when the job waited to start.
func (r *FlexRun) jobTrack(j *FlexJob, most float64) chart.Track {
	t := r.track(most, func(c *held) bool { return c.id.Task.Job == j.ID })
	t.Name, t.Notes = j.Name, []string{fmt.Sprintf("%.1f s", (j.Ended - j.Submitted).Seconds())}
	if still := r.standstill(j.ID); still > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("%.1f s suspended", still.Seconds()))
	}
	if j.Started > j.Submitted {
		low := most / 20
		t.Lines = append(t.Lines, chart.Series{Name: "waits to start",
			X: []float64{j.Submitted.Seconds(), j.Started.Seconds()}, Y: []float64{low, low}, Dashed: true, Color: 8})
	}
	return t
}

// track draws the memory, swap and limits of the containers that are meant, together.
func (r *FlexRun) track(top float64, meant func(c *held) bool) chart.Track {
	memory, swap := chart.Area{Name: "in memory", Color: 6}, chart.Area{Name: "in swap", Color: 5}
	limit := chart.Series{Name: "limit", Step: true}
	t := chart.Track{Top: top}
	for _, s := range r.samples {
		var all held
		for _, c := range s.containers {
			if meant(&c) {
				all.anonymous, all.swap, all.limit = all.anonymous+c.anonymous, all.swap+c.swap, all.limit+c.limit
				all.suspended = all.suspended || c.suspended
			}
		}
		t.X, t.Shaded = append(t.X, s.at.Seconds()), append(t.Shaded, all.suspended)
		memory.Y, swap.Y = append(memory.Y, float64(all.anonymous)), append(swap.Y, float64(all.swap))
		limits := math.NaN() // a gap, where there is no container
		if all.limit > 0 {
			limits = float64(all.limit)
		}
		limit.X, limit.Y = append(limit.X, s.at.Seconds()), append(limit.Y, limits)
	}
	t.Areas, t.Lines = []chart.Area{memory, swap}, []chart.Series{limit}
	return t
}
