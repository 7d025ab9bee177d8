package importer

import "github.com/bellows-rm/bellows/format/workload"

// Limits for all files of an import together, after unpacking. A packed file of some kilobytes can unpack to any size;
// each job takes about a kilobyte of memory.
const (
	mostJobsInAll        = 2_000_000
	mostTasksInAll       = 1 << 28
	mostBytesInAll int64 = 16 << 30
)

// total counts what was read of all files, up to limits.
type total struct {
	jobs, tasks         int
	bytes               int64
	mostJobs, mostTasks int
	mostBytes           int64
}

func newTotal() *total {
	return &total{mostJobs: mostJobsInAll, mostTasks: mostTasksInAll, mostBytes: mostBytesInAll}
}

// add counts a job.
func (t *total) add(in *input, j *workload.Job) error {
	t.jobs++
	for i := range j.Stages {
		t.tasks += j.Stages[i].Tasks
	}
	switch {
	case t.jobs > t.mostJobs:
		return in.fault("jobs: must be at most %d in all files together", t.mostJobs)
	case t.tasks > t.mostTasks:
		return in.fault("tasks: must be at most %d in all files together", t.mostTasks)
	}
	return nil
}

// read counts bytes.
func (t *total) read(in *input, n int) error {
	if t.bytes += int64(n); t.bytes > t.mostBytes {
		return in.fault("bytes: must be at most %d in all files together, after unpacking", t.mostBytes)
	}
	return nil
}
