package api

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/bellows-rm/bellows/core/cluster"
)

// Output is a request for the output of one run of a task.
type Output struct {
	Task   cluster.TaskID
	Run    int   // number of the run; 0 is the newest
	Stderr bool  // standard error instead of standard output
	Follow bool  // wait for the run to begin, and continue until it ends
	From   int64 // number of bytes to skip at the beginning
	All    bool  // the task waits for this reader before it drops output, as long as the reader makes progress
}

// JobFilter is the part of a request for jobs that says which are wanted: those with all that is stated. It compares
// what the caller may see of a job.
type JobFilter struct {
	Status string `query:"status" doc:"only jobs of this status" enum:"pending,running,set-aside,succeeded,failed,cancelled"`
	User   string `query:"user" doc:"only jobs of the user of this name"`
	Name   string `query:"name" doc:"only jobs of this name"`
}

// JobsOnPage is the largest number of jobs in one answer: some 300 kB of jobs that have ended. Other lists have pages
// of the same size.
const JobsOnPage = 1000

// TaskForm is the form of the text of a task, whose numbers fit in a TaskID.
var TaskForm = regexp.MustCompile(`^[0-9]{1,18}(\.[0-9]{1,9}){0,2}$`)

// ParseTask parses "7", "7.0" or "7.0.2": job, stage and index. Stage and index are 0 if left out.
func ParseTask(text string) (cluster.TaskID, error) {
	if !TaskForm.MatchString(text) {
		return cluster.TaskID{}, fmt.Errorf("task %q: must be JOB or JOB.STAGE.INDEX, such as 7 or 7.0.2", Clipped(text))
	}
	var numbers [3]int64
	for i, part := range strings.Split(text, ".") {
		numbers[i], _ = strconv.ParseInt(part, 10, 64) // the pattern admits nothing else
	}
	return cluster.TaskID{Job: cluster.JobID(numbers[0]), Stage: int32(numbers[1]), Index: int32(numbers[2])}, nil
}

// Clipped shortens a part of a request for a message of one line.
func Clipped(text string) string {
	const longest = 300
	if len(text) > longest {
		return fmt.Sprintf("%s...", text[:longest])
	}
	return text
}
