package api

import (
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
)

// LogFile is the location of the output of one run of a task. The files may not exist yet while the run is being
// started.
type LogFile struct {
	Task   cluster.TaskID `json:"task"`
	Run    int            `json:"run"`
	Stdout string         `json:"stdout"`
	Stderr string         `json:"stderr"`
	// Ended says that the files do not grow any more.
	Ended bool `json:"ended"`
}

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

// Still is how long the programs stood still.
func (u *TaskUsage) Still() time.Duration {
	return time.Duration(u.StillSeconds * float64(time.Second))
}

// Ran is the part of the span in which the programs did not stand still.
func (s *UsageSpan) Ran() time.Duration {
	return time.Duration((s.LengthSeconds - s.StillSeconds) * float64(time.Second))
}

// UsageOf returns what a run of a task used; nil if that is not among all.
func UsageOf(all []TaskUsage, t *Task) *TaskUsage {
	at := slices.IndexFunc(all, func(u TaskUsage) bool { return u.Task == t.Task && u.Run == t.Run })
	if at < 0 {
		return nil
	}
	return &all[at]
}
