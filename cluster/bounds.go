package cluster

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/bellows-rm/bellows/resource"
)

// The bounds of what a job may request, whether the job comes from a file, a flag, the API or a recording. They are far
// above any sensible value; they keep sums over a whole run from overflowing. resource.Kind.Most bounds the resources
// of one task.
const (
	LongestTime  = 10 * 365 * 24 * time.Hour // a duration, or a time of submission
	MostTasks    = 1 << 30                   // of one stage
	MostSlowdown = 1_000_000
	MostAttempts = 1000 // of one task
	MostWeight   = 1_000_000
	LongestName  = 200 // bytes
	MostDataOn   = 100 // names of nodes
)

// The additional bounds of a job that is run, as opposed to simulated. They keep one job from exhausting a daemon: each
// task costs the daemon a record, and each container costs a process beyond those of the user.
const (
	LeastRunCPU    resource.Amount = 1 // of one task, millicores
	LeastRunMemory                 = resource.MiB
	MostRunTasks                   = 100_000 // of one job
	MostRunStages                  = 10_000
	// LeastHeartbeatTimeout is the shortest heartbeat time-out. A suspended container stands still for a quarter of the
	// time-out at a time, and also while memory is reclaimed from it: a shorter time-out could not be met.
	LeastHeartbeatTimeout = 2 * time.Second
)

// ContainersPerCore is the most containers per core that a daemon puts on a node. Apart from its programs, each
// container costs the node a supervisor, a control group and a record, and costs the daemon a booking in the step that
// starts it.
const ContainersPerCore = 100

// IsName reports whether text can be a name that people read: one line of 1 to LongestName bytes, all of them visible
// characters.
func IsName(text string) bool {
	if text == "" || len(text) > LongestName || strings.TrimSpace(text) != text {
		return false
	}
	for _, c := range text {
		if !unicode.IsPrint(c) || c == unicode.ReplacementChar {
			return false
		}
	}
	return true
}

// CheckName returns an error if text is neither empty nor a name. what says in the error what is named.
func CheckName(what, text string) error {
	if text == "" || IsName(text) {
		return nil
	}
	return fmt.Errorf("%s %s: must be at most %d bytes of printable characters, with no space at either end", what, clipName(text), LongestName)
}

// clipName quotes a text that is not a name, for a message of one line.
func clipName(text string) string {
	if len(text) > LongestName {
		text = text[:60] + "..."
	}
	return fmt.Sprintf("%q", text)
}

// CheckRuns is Check for a job that is to be run: it also checks the bounds of such jobs.
func (j *Job) CheckRuns() error {
	if err := j.checkNames(); err != nil {
		return err
	}
	if len(j.Stages) > MostRunStages {
		return fmt.Errorf("job %q stages %d: must be at most %d", j.Name, len(j.Stages), MostRunStages)
	}
	if err := j.Check(); err != nil {
		return err
	}
	switch {
	case j.MaxAttempts > MostAttempts:
		return fmt.Errorf("job %q max attempts %d: must be at most %d", j.Name, j.MaxAttempts, MostAttempts)
	case j.Weight > MostWeight:
		return fmt.Errorf("job %q weight %v: must be at most %d", j.Name, j.Weight, MostWeight)
	}
	tasks := 0
	for i := range j.Stages {
		if err := j.Stages[i].checkRuns(); err != nil {
			return fmt.Errorf("job %q stage %q: %w", j.Name, j.stageName(i), err)
		}
		tasks += j.Stages[i].Tasks // no overflow: there are few stages
	}
	if tasks > MostRunTasks {
		return fmt.Errorf("job %q tasks %d: must be at most %d", j.Name, tasks, MostRunTasks)
	}
	return nil
}

func (j *Job) checkNames() error {
	if err := CheckName("job name", j.Name); err != nil {
		return err
	}
	if err := CheckName(fmt.Sprintf("job %q queue", j.Name), j.Queue); err != nil {
		return err
	}
	for i := range j.Stages {
		if err := CheckName(fmt.Sprintf("job %q stage %d name", j.Name, i), j.Stages[i].Name); err != nil {
			return err
		}
		for _, node := range j.Stages[i].DataOn {
			if err := CheckName(fmt.Sprintf("job %q stage %q data on", j.Name, j.stageName(i)), node); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Stage) checkRuns() error {
	least := s.Ideal[resource.Memory]
	if s.MinMemory > 0 {
		least = s.MinMemory
	}
	switch {
	case s.Coordinator:
		return nil
	case s.Ideal[resource.CPU] < LeastRunCPU:
		return fmt.Errorf("cpu %s cores: must be at least %s", resource.FormatCPU(s.Ideal[resource.CPU]), resource.FormatCPU(LeastRunCPU))
	case least < LeastRunMemory:
		return fmt.Errorf("memory %s: must be at least %s", resource.FormatMemoryExact(least), resource.FormatMemoryExact(LeastRunMemory))
	case s.HeartbeatTimeout > 0 && s.HeartbeatTimeout < LeastHeartbeatTimeout:
		return fmt.Errorf("heartbeat timeout %v: must be at least %v, since what is suspended is silent for a while", s.HeartbeatTimeout, LeastHeartbeatTimeout)
	}
	return nil
}

// checkBounds checks the amounts of a stage for Check.
func (s *Stage) checkBounds() error {
	for k, a := range s.Ideal {
		if kind := resource.Kind(k); a > kind.Most() {
			return fmt.Errorf("%s %s: must be at most %s", kind, kind.Format(a), kind.Format(kind.Most()))
		}
	}
	switch {
	case s.MaxMemory > resource.MostMemory:
		return fmt.Errorf("maximum memory %s: must be at most %s", resource.FormatMemory(s.MaxMemory), resource.FormatMemory(resource.MostMemory))
	case s.Elasticity.DiskRate > resource.MostRate:
		return fmt.Errorf("elasticity disk rate %s: must be at most %s", resource.FormatRate(s.Elasticity.DiskRate), resource.FormatRate(resource.MostRate))
	case s.Duration > LongestTime:
		return fmt.Errorf("duration %v: must be at most %v", s.Duration, LongestTime)
	case s.HeartbeatTimeout > LongestTime:
		return fmt.Errorf("heartbeat timeout %v: must be at most %v", s.HeartbeatTimeout, LongestTime)
	case s.Elasticity.Worst() > MostSlowdown:
		return fmt.Errorf("elasticity slowdown %v: must be at most %d", s.Elasticity.Worst(), MostSlowdown)
	}
	return nil
}

// BringIntoBounds changes a job that was recorded under laxer bounds as little as needed to satisfy the present bounds,
// so that one old record does not block all other jobs. It reports whether anything changed.
func (j *Job) BringIntoBounds() (changed bool) {
	for i := range j.Stages {
		s := &j.Stages[i]
		before := *s
		for k := range s.Ideal {
			s.Ideal[k] = min(s.Ideal[k], resource.Kind(k).Most())
		}
		s.MinMemory, s.MaxMemory = min(s.MinMemory, s.Ideal[resource.Memory]), min(s.MaxMemory, resource.MostMemory)
		s.Elasticity.DiskRate = min(s.Elasticity.DiskRate, resource.MostRate)
		s.Duration, s.HeartbeatTimeout = min(s.Duration, LongestTime), min(s.HeartbeatTimeout, LongestTime)
		if s.HeartbeatTimeout > 0 {
			s.HeartbeatTimeout = max(s.HeartbeatTimeout, LeastHeartbeatTimeout)
		}
		if s.Elasticity.Worst() > MostSlowdown {
			s.Elasticity = Elasticity{} // of no use: nothing gains from it
		}
		changed = changed || before.Ideal != s.Ideal || before.MinMemory != s.MinMemory || before.MaxMemory != s.MaxMemory ||
			before.Duration != s.Duration || before.HeartbeatTimeout != s.HeartbeatTimeout ||
			before.Elasticity.DiskRate != s.Elasticity.DiskRate || before.Elasticity.Kind != s.Elasticity.Kind
	}
	return changed
}
