package jobs

import (
	"strings"
	"time"

	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/live/api"
)

// What `bellows ps` and `bellows explain` say of jobs, other views say in the same words.

// JobState returns the state of a job in a word, and why it is in that state in a clause, which may be empty. all are
// the tasks of all jobs; they and those of the job have their usage.
func JobState(j *api.Job, all []api.Task) (state, why string) {
	s := startedOf(j.Tasks)
	return s.status(j), s.whyOf(j, all)
}

// TaskState is JobState for a task of a job.
func TaskState(j *api.Job, t *api.Task) (state, why string) {
	most := int64(0)
	if s := stageOf(j, t.Task); s != nil {
		most = int64(s.MaxMemory)
	}
	return taskState(t), terminal.OneLine(taskWhy(t, most))
}

// Explained returns the lines that `bellows explain` prints.
func Explained(e *api.Explanation, now time.Time) ([]string, error) {
	var text strings.Builder
	if err := printExplanation(&text, e, now); err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n"), nil
}
