package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/sandbox"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/live/api"
)

// under is how a workload shares a machine: the policy and its settings.
type under struct {
	about    string
	policy   string
	settings map[string]string
}

// Run is one run of a part's programs. Means are over the makespan.
type Run struct {
	About      string          `json:"about" doc:"how the programs shared the machine"`
	JobRuntime time.Duration   `json:"mean_job_runtime_ns" doc:"from submission to end, mean over the jobs"`
	Makespan   time.Duration   `json:"makespan_ns" doc:"from the first submission to the end of the last job"`
	AtOnce     float64         `json:"programs_at_once" doc:"programs that ran and were not suspended, mean over the makespan"`
	Used       resource.Amount `json:"used_bytes" doc:"memory that programs filled with data, mean over the makespan"`
	Swapped    resource.Amount `json:"swapped_bytes_max" doc:"the most memory that was in swap at one time"`
	UnderSized int             `json:"under_sized" doc:"tasks that ran with less than their ideal memory"`
	Killed     int             `json:"killed" doc:"tasks that were killed for memory"`
	// Right counts the tasks whose result was checked and right; Wrong has a sentence for each fault of another task.
	Right int      `json:"right" doc:"tasks whose result was checked and right"`
	Wrong []string `json:"wrong,omitempty" doc:"a sentence for each fault of the other tasks; the exit code is 1"`
	// Why is a reason that the daemon gave for sharing memory; empty for none.
	Why string `json:"why,omitempty" doc:"a reason that the daemon gave for sharing memory; omitted if it gave none"`
	// Others is how many cores other work on the machine used, on average; nil is unknown.
	Others *float64 `json:"other_cores,omitempty" doc:"cores that other work on the machine used, mean over the makespan; omitted if unknown"`
	// taskTime is the time from start to end of the task that ended last.
	taskTime time.Duration
}

// run runs a workload on a machine of its own.
func (d *demonstration) run(ctx context.Context, u *under, node resource.Vector, w *workload.Workload) (r Run,
	err error) {
	var l lookout
	look := func(s *sandbox.Session) {
		l.look(s)
		d.Show(fmt.Sprintf("%s with %s: %.0f s", terminal.Count(len(w.Jobs), "job"), u.about, l.last.Seconds()))
	}
	const every = 100 * time.Millisecond
	r.Others, err = sandbox.Run(ctx, d.work, u.policy, u.settings, node, every, look,
		func(ctx context.Context, s *sandbox.Session) (time.Duration, error) {
			jobs, err := s.RunJobs(ctx, s.Input, s.Begun, w)
			if err != nil {
				return 0, err
			}
			r.take(jobs, s.Begun)
			return cpuTime(jobs), r.check(ctx, s.Machine, jobs)
		})
	if err != nil {
		return r, err
	}
	r.About, r.Swapped, r.Why = u.about, l.swapped, cmp.Or(l.why, r.Why)
	r.AtOnce, r.Used = l.running/r.Makespan.Seconds(), resource.Amount(l.used/r.Makespan.Seconds())
	if len(w.Jobs) > 1 {
		d.Say(fmt.Sprintf("%s: mean job runtime %.1f s, makespan %.1f s", u.about, r.JobRuntime.Seconds(),
			r.Makespan.Seconds()))
	}
	return r, nil
}

func cpuTime(jobs []api.Job) (used time.Duration) {
	for _, j := range jobs {
		for _, t := range slices.Concat(j.Earlier, j.Tasks) {
			if t.Exit != nil {
				used += t.Exit.CPUTime
			}
		}
	}
	return used
}

// take records the driver's information on ended jobs.
func (r *Run) take(jobs []api.Job, begun time.Time) {
	for _, j := range jobs {
		r.JobRuntime += j.Finished.Sub(j.Submitted) / time.Duration(len(jobs))
		r.Makespan = max(r.Makespan, j.Finished.Sub(begun))
		for _, t := range slices.Concat(j.Earlier, j.Tasks) {
			if t.Outcome == cluster.OutOfMemory || t.Exit != nil && t.Exit.OOMKills > 0 {
				r.Killed++
			}
		}
		for _, t := range j.Tasks {
			r.taskTime = t.Ended.Sub(t.Started)
			switch {
			case t.Outcome != cluster.Succeeded:
				r.Wrong = append(r.Wrong, fmt.Sprintf("job %d (%s): task %s ended as %s: %s", j.ID, j.Name, t.Task, t.Outcome,
					t.Detail))
			case t.UnderSized:
				r.UnderSized++
				if r.Why == "" {
					r.Why = fmt.Sprintf("job %d (%s), task %s: %s", j.ID, j.Name, t.Task, t.Why)
				}
			}
		}
	}
}

// check compares the output of the tasks of all jobs: programs of one kind that print something must print the same.
// Programs that print nothing have checked their results themselves.
func (r *Run) check(ctx context.Context, m *sandbox.Machine, jobs []api.Job) error {
	printed := map[string]int{}
	for _, j := range jobs {
		logs, err := m.Driver.Logs(ctx, j.ID)
		if err != nil {
			return fmt.Errorf("look up the output of job %d: %w", j.ID, err)
		}
		for _, l := range logs {
			text, err := os.ReadFile(l.Stdout)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("read the output of job %d: %w", j.ID, err)
			}
			printed[strings.TrimSpace(string(text))]++
		}
		r.Right += j.SucceededCount
	}
	if delete(printed, ""); len(printed) > 1 {
		r.Wrong = append(r.Wrong, fmt.Sprintf("the results differ: there are %d different ones", len(printed)))
		r.Right = 0
	}
	return nil
}

// lookout sums up samples of the containers of a machine.
type lookout struct {
	last    time.Duration   // time of the last sample
	swapped resource.Amount // peak
	running float64         // containers times seconds
	used    float64         // bytes times seconds
	why     string          // why the first container was suspended
}

// look takes one sample, which represents the time since the last one.
func (l *lookout) look(s *sandbox.Session) {
	now := time.Since(s.Begun)
	seconds := (now - l.last).Seconds()
	l.last = now
	var swapped resource.Amount
	for id, r := range s.Agent.Readings() {
		switch r.State {
		case cluster.ContainerWaiting:
			continue
		case cluster.ContainerSuspended:
			if l.why == "" && r.Why != "" {
				l.why = fmt.Sprintf("job %d was suspended: %s", id.Task.Job, r.Why)
			}
		default:
			l.running += seconds
		}
		if r.Anonymous != nil {
			l.used += float64(*r.Anonymous) * seconds
		}
		if r.Swap != nil {
			swapped += resource.Amount(*r.Swap)
		}
	}
	l.swapped = max(l.swapped, swapped)
}
