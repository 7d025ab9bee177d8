package live

import (
	"context"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/usage"
	"github.com/bellows-rm/bellows/live/store"
)

// TaskUsage is what one run of a task used over time.
type TaskUsage struct {
	Task    cluster.TaskID  `json:"task"`
	Run     int             `json:"run" doc:"1 for the first"` // 1 for the first
	State   TaskState       `json:"state"`
	Outcome cluster.Outcome `json:"outcome,omitempty" doc:"omitted while it runs"` // 0 while it runs
	Started time.Time       `json:"started"`
	// DurationSeconds is how long it ran, or has run so far; MeasuredSeconds is the part of it that the spans cover,
	// including gaps, and GapSeconds the part that gaps cover.
	DurationSeconds float64 `json:"duration_s" doc:"how long it ran"`
	MeasuredSeconds float64 `json:"measured_s" doc:"the part that the spans cover, gaps among them"`
	GapSeconds      float64 `json:"gap_s,omitempty" doc:"the part of measured_s in gaps"`
	// StillSeconds is the part of it in which the programs stood still, because they were suspended or throttled.
	StillSeconds float64 `json:"still_s,omitempty" doc:"the part of measured_s for which it was stopped because it was suspended or throttled"`
	// PressedSeconds is the part of it in which the disk was pressed while the programs used it.
	PressedSeconds float64 `json:"pressed_s,omitempty" doc:"the part of measured_s in which the disk was pressed while it used the disk and was not stopped"`
	// IdleSeconds is the part of it in which the programs used next to nothing although nothing kept them from more.
	IdleSeconds float64 `json:"idle_s,omitempty" doc:"the part of measured_s in which it used next to nothing and waited of its own"`
	// Missing is one clause on what was not measured, and why; empty if nothing is missing.
	Missing string `json:"missing,omitempty" doc:"one clause on what was not measured, and why"`
	// CPUMillicores, MemoryBytes are the grant.
	CPUMillicores int64 `json:"granted_cpu_millicores" doc:"grant"`
	MemoryBytes   int64 `json:"granted_memory_bytes" doc:"grant"`
	// Mean and Peak are over all spans.
	Mean Rates `json:"mean" doc:"over all spans"`
	Peak Rates `json:"peak" doc:"over all spans; the peak of a rate is of a span of at least 0.5 s"`
	// Spans follow each other, from the start of the program.
	Spans []UsageSpan `json:"spans" doc:"they follow each other, from the start of the program"`
}

// Rates are levels, and amounts used per second. An unknown rate is nil.
type Rates struct {
	CPU *int64 `json:"cpu_millicores,omitempty" doc:"mean; a field that was not measured is omitted, which differs from 0"`
	// anonymous and shared, without page cache
	Memory *int64 `json:"memory_bytes,omitempty" doc:"largest sample of anonymous and shared memory, without page cache"`
	Swap   *int64 `json:"swap_bytes,omitempty" doc:"largest sample"`
	// from disks
	Read     *int64 `json:"read_bytes_per_s,omitempty" doc:"mean, from disks; with version 1 of control groups from the device of the state directory only"`
	Written  *int64 `json:"written_bytes_per_s,omitempty" doc:"mean, to disks; with version 1 of control groups a write counts when it makes a page of the cache dirty"`
	Received *int64 `json:"received_bytes_per_s,omitempty" doc:"mean, from the network"` // from the network
	Sent     *int64 `json:"sent_bytes_per_s,omitempty" doc:"mean, to the network"`
}

// UsageSpan is a time in which use stayed nearly the same: the means of rates, and the largest levels.
type UsageSpan struct {
	FromSeconds   float64 `json:"from_s" doc:"since the program began"` // since the program began
	LengthSeconds float64 `json:"length_s" doc:"its length"`
	// Gap says that no sample was taken in it.
	Gap bool `json:"gap,omitempty" doc:"no sample was taken in it for more than 15 s, as between two daemons: its rates are right, its levels unknown"`
	// StillSeconds is the part of it in which the programs stood still, because they were suspended or throttled.
	StillSeconds float64 `json:"still_s,omitempty" doc:"the part for which it was stopped"`
	// PressedSeconds is the part of it in which the disk was pressed while the programs used it.
	PressedSeconds float64 `json:"pressed_s,omitempty" doc:"the part in which the disk was pressed"`
	// IdleSeconds is the part of it in which the programs used next to nothing although nothing kept them from more.
	IdleSeconds float64 `json:"idle_s,omitempty" doc:"the part in which it waited of its own"`
	// Bounded says that the kernel kept the programs from transferring more to or from the disk in a part of it.
	Bounded bool `json:"bounded,omitempty" doc:"during a part of it, a throttle limited its transfers to or from the disk"`
	Rates
}

// ratesOf makes Rates of a function that returns one rate.
func ratesOf(of func(usage.Kind) (int64, bool)) Rates {
	var r Rates
	for k, into := range map[usage.Kind]**int64{usage.CPU: &r.CPU, usage.Memory: &r.Memory, usage.Swap: &r.Swap,
		usage.Read: &r.Read, usage.Written: &r.Written, usage.Received: &r.Received, usage.Sent: &r.Sent} {
		if v, ok := of(k); ok {
			*into = &v
		}
	}
	return r
}

// putUsage copies what was measured, in at most most spans.
func putUsage(t *TaskUsage, u usage.Usage, most int) {
	t.MeasuredSeconds, t.GapSeconds, t.StillSeconds = u.Length().Seconds(), u.Gap().Seconds(), u.Still().Seconds()
	t.PressedSeconds, t.IdleSeconds = u.Pressed().Seconds(), u.Idle().Seconds()
	t.Mean, t.Peak = ratesOf(u.Mean), ratesOf(u.Peak)
	u = u.Thin(most)
	at := time.Duration(0)
	t.Spans = make([]UsageSpan, len(u.Spans))
	for i := range u.Spans {
		s := &u.Spans[i]
		t.Spans[i] = UsageSpan{FromSeconds: at.Seconds(), LengthSeconds: s.Length.Seconds(), Gap: s.Gap,
			StillSeconds: s.Still.Seconds(), PressedSeconds: s.Pressed.Seconds(), IdleSeconds: s.Idle.Seconds(),
			Bounded: s.Bounded, Rates: ratesOf(s.Rate)}
		at += s.Length
	}
}

// spansInAnswer is the largest number of spans in one answer, which the runs share: some 20 MB of JSON.
const spansInAnswer = 100_000

// Usage returns what each run of a job's tasks used over time, by task and run, in at most most spans each; 0 sets no
// limit. Runs whose program has not begun are left out.
func (d *Driver) Usage(ctx context.Context, id cluster.JobID, most int) ([]TaskUsage, error) {
	j, err := d.Job(ctx, id, false)
	if err != nil {
		return nil, err
	}
	now := instant(d.now())
	out := []TaskUsage{}
	at := map[cluster.ContainerID]int{}
	for _, t := range j.Runs() {
		if t.Started.IsZero() {
			continue
		}
		until := t.Ended
		if t.State != TaskEnded {
			until = now
		}
		at[cluster.ContainerID{Task: t.Task, Run: t.Run}] = len(out)
		out = append(out, TaskUsage{Task: t.Task, Run: t.Run, State: t.State, Outcome: t.Outcome, Started: t.Started,
			CPUMillicores: t.CPUMillicores, MemoryBytes: t.MemoryBytes, DurationSeconds: max(0, until.Sub(t.Started).Seconds())})
	}
	each := max(1, spansInAnswer/max(1, len(out)))
	if most > 0 {
		each = min(each, most)
	}
	put := make([]bool, len(out))
	running := func(ended bool) {
		for id, i := range at {
			if put[i] || (out[i].State == TaskEnded) != ended {
				continue
			}
			u, err := d.backend.Usage(id)
			putUsage(&out[i], u, each)
			if put[i] = true; err != nil {
				out[i].Missing = err.Error()
			}
		}
	}
	running(false)
	// A run that ended meanwhile is in the store by now.
	if err := d.store.Usage(ctx, id, func(u store.Usage) error {
		if i, ok := at[u.Container]; ok {
			putUsage(&out[i], u.Usage, each)
			out[i].Missing, put[i] = u.Missing, true
		}
		return nil
	}); err != nil {
		return nil, err
	}
	running(true) // runs whose end is not stored yet, or that were not measured
	return out, nil
}

// Runs returns the runs of all tasks, by task and run.
func (j *Job) Runs() []Task {
	var all []Task
	earlier := j.Earlier
	for _, t := range j.Tasks {
		for len(earlier) > 0 && earlier[0].Task == t.Task {
			all, earlier = append(all, earlier[0]), earlier[1:]
		}
		all = append(all, t)
	}
	return all
}

// measured returns the usage of containers that are to be forgotten. On a full disk it is lost, because the reserved
// space is kept for the ends of tasks.
func (d *Driver) measured(forgotten []cluster.ContainerID) []store.Usage {
	if d.health.short != nil {
		return nil
	}
	var all []store.Usage
	for _, id := range forgotten {
		u, err := d.backend.Usage(id)
		if len(u.Spans) == 0 {
			continue // Its program did not run, or was not measured.
		}
		stored := store.Usage{Container: id, Ended: d.now(), Usage: u.Stored()}
		if err != nil {
			stored.Missing = err.Error()
		}
		all = append(all, stored)
	}
	return all
}

// thinAfter is how long the usage of a run is stored in detail, thinnedAtOnce the number of runs that are thinned in
// one transaction.
const (
	thinAfter     = 24 * time.Hour
	thinnedAtOnce = 100
)

// thinUsage thins the usage of runs that ended long ago.
func (d *Driver) thinUsage(ctx context.Context) error {
	for {
		n, err := d.store.ThinUsage(ctx, d.now().Add(-thinAfter), usage.SpansOld, thinnedAtOnce)
		if err != nil || n < thinnedAtOnce {
			return err
		}
	}
}
