// Package testrequest has requests of jobs that every front door must answer in the same way. The tests of job files,
// workload files, flags and the API try all of them.
package testrequest

import (
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// Case changes one thing in the job that Job returns.
type Case struct {
	Name  string
	Class cluster.Class
	// Fields are the fields of the stage as a job file writes them, and flags of `bellows run` with underscores for
	// dashes: "min_memory: 1GiB". Job-level fields stand in JobFields.
	Fields, JobFields []string
	Change            func(j *cluster.Job, s *cluster.Stage)
	// Wrong names the field that is refused and the reason; empty if the job is accepted.
	Wrong string
	// Notation says that files or flags refuse the value in the words of their notation, which has bounds of its own.
	Notation bool
}

// Job returns the job of a case.
func (c *Case) Job() cluster.Job {
	j := cluster.Job{Name: "j", Class: c.Class,
		Stages: []cluster.Stage{{Name: "s", Tasks: 1, Ideal: resource.Of(resource.Core, 64*resource.MiB),
			Command: cluster.Command{Args: []string{"java", "Main"}}}}}
	if c.Change != nil {
		c.Change(&j, &j.Stages[0])
	}
	return j
}

// File returns the job file of a case; its stage stands in line 4.
func (c *Case) File() string {
	fields := append([]string{"name: s", "command: [java, Main]"}, c.Fields...)
	if !c.sets("memory") {
		fields = append(fields, "memory: 64MiB")
	}
	job := strings.Join(append([]string{"bellows: 1, name: j, class: " + c.Class.String()}, c.JobFields...), ", ")
	return "{" + job + ", stages: [\n\n\n{" + strings.Join(fields, ", ") + "}]}\n"
}

// Flags returns the arguments of `bellows run` for a case.
func (c *Case) Flags() []string {
	args := []string{"--name", "j", "--class", c.Class.String()}
	if !c.sets("memory") {
		args = append(args, "--memory", "64MiB")
	}
	for _, field := range append(c.JobFields, c.Fields...) {
		name, value, _ := strings.Cut(field, ": ")
		args = append(args, "--"+strings.ReplaceAll(name, "_", "-")+"="+value)
	}
	return append(args, "--", "java", "Main")
}

func (c *Case) sets(name string) bool {
	for _, field := range c.Fields {
		if strings.HasPrefix(field, name+":") {
			return true
		}
	}
	return false
}

// Place returns Wrong after a prefix and the place of the field; empty if the job is accepted.
func (c *Case) Place(prefix string) string {
	switch {
	case c.Wrong == "":
		return ""
	case c.JobFields != nil:
		return prefix + `job "j" ` + c.Wrong
	}
	return prefix + `job "j" stage "s" ` + c.Wrong
}

// Flag returns Wrong in the words of `bellows run`, whose flags have dashes.
func (c *Case) Flag() string {
	field, rest, _ := strings.Cut(c.Wrong, " ")
	return strings.ReplaceAll(field, "_", "-") + " " + rest
}

const (
	needsFlex = "needs class flex: a regular container keeps its memory"
	tooSoon   = "must be at least 2s, because a suspended container is silent for a while"
)

// Cases are the cases, by field.
var Cases = []Case{
	{Name: "regular"},
	{Name: "flex with everything", Class: cluster.Flex, Fields: []string{"min_memory: 8MiB", "max_memory: 1GiB",
		"heartbeat_timeout: 2s"}, Change: func(_ *cluster.Job, s *cluster.Stage) {
		s.MinMemory, s.MaxMemory, s.HeartbeatTimeout = 8*resource.MiB, resource.GiB, 2*time.Second
	}},
	{Name: "runtime", Class: cluster.Flex, Fields: []string{"runtime: jvm"},
		Change: func(_ *cluster.Job, s *cluster.Stage) { s.Runtime = cluster.JVM }},
	{Name: "min_memory of a regular job", Fields: []string{"min_memory: 8MiB"},
		Change: func(_ *cluster.Job, s *cluster.Stage) { s.MinMemory = 8 * resource.MiB }},
	{Name: "min_memory of a flex job", Class: cluster.Flex, Fields: []string{"min_memory: 8MiB"},
		Change: func(_ *cluster.Job, s *cluster.Stage) { s.MinMemory = 8 * resource.MiB }},
	{Name: "min_memory above memory", Fields: []string{"min_memory: 1GiB"},
		Wrong: "min_memory 1GiB: must be at most memory, which is 64MiB", Change: func(_ *cluster.Job, s *cluster.Stage) {
			s.MinMemory = resource.GiB
		}},
	{Name: "min_memory of a flex job above memory", Class: cluster.Flex, Fields: []string{"min_memory: 1GiB"},
		Wrong: "min_memory 1GiB: must be at most memory, which is 64MiB", Change: func(_ *cluster.Job, s *cluster.Stage) {
			s.MinMemory = resource.GiB
		}},
	{Name: "max_memory of a regular job", Fields: []string{"max_memory: 1GiB"}, Wrong: "max_memory 1GiB: " + needsFlex,
		Change: func(_ *cluster.Job, s *cluster.Stage) { s.MaxMemory = resource.GiB }},
	{Name: "max_memory below memory", Class: cluster.Flex, Fields: []string{"max_memory: 32MiB"},
		Wrong: "max_memory 32MiB: must be at least memory, which is 64MiB", Change: func(_ *cluster.Job, s *cluster.Stage) {
			s.MaxMemory = 32 * resource.MiB
		}},
	{Name: "max_memory beyond all", Class: cluster.Flex, Fields: []string{"max_memory: 1001PB"},
		Wrong: "max_memory 1001PB: must be at most 1000PB", Notation: true, Change: func(_ *cluster.Job, s *cluster.Stage) {
			s.MaxMemory = 1001 * resource.PB
		}},
	{Name: "heartbeat_timeout of a regular job", Fields: []string{"heartbeat_timeout: 1m"},
		Change: func(_ *cluster.Job, s *cluster.Stage) { s.HeartbeatTimeout = time.Minute }},
	{Name: "heartbeat_timeout that cannot be met", Class: cluster.Flex, Fields: []string{"heartbeat_timeout: 1s"},
		Wrong: "heartbeat_timeout 1s: " + tooSoon, Change: func(_ *cluster.Job, s *cluster.Stage) {
			s.HeartbeatTimeout = time.Second
		}},
	{Name: "heartbeat_timeout beyond all", Class: cluster.Flex, Fields: []string{"heartbeat_timeout: 87601h"},
		Wrong: "heartbeat_timeout 87601h0m0s: must be at most 87600h0m0s", Notation: true,
		Change: func(_ *cluster.Job, s *cluster.Stage) { s.HeartbeatTimeout = cluster.LongestTime + time.Hour }},
	{Name: "runtime of a regular job", Fields: []string{"runtime: jvm"}, Wrong: "runtime jvm: " + needsFlex,
		Change: func(_ *cluster.Job, s *cluster.Stage) { s.Runtime = cluster.JVM }},
	{Name: "unknown runtime", Class: cluster.Flex, Fields: []string{"runtime: go"}, Wrong: "runtime go: must be jvm",
		Notation: true, Change: func(_ *cluster.Job, s *cluster.Stage) { s.Runtime = "go" }},
	{Name: "memory beyond all", Fields: []string{"memory: 1001PB"}, Wrong: "memory 1001PB: must be at most 1000PB",
		Notation: true, Change: func(_ *cluster.Job, s *cluster.Stage) { s.Ideal[resource.Memory] = 1001 * resource.PB }},
	{Name: "cpus beyond all", Fields: []string{"cpus: 1000001"},
		Wrong: "cpus 1000001 cores: must be at most 1000000 cores", Notation: true,
		Change: func(_ *cluster.Job, s *cluster.Stage) {
			s.Ideal[resource.CPU] = 1000001 * resource.Core
		}},
	{Name: "disk beyond all", Fields: []string{"disk: 1001PB/s"}, Wrong: "disk 1001PB/s: must be at most 1000PB/s",
		Notation: true, Change: func(_ *cluster.Job, s *cluster.Stage) { s.Ideal[resource.Disk] = 1001 * resource.PB }},
	{Name: "duration beyond all", Fields: []string{"duration: 87601h"},
		Wrong: "duration 87601h0m0s: must be at most 87600h0m0s", Notation: true,
		Change: func(_ *cluster.Job, s *cluster.Stage) {
			s.Duration = cluster.LongestTime + time.Hour
		}},
	{Name: "timeout beyond all", Fields: []string{"timeout: 87601h"},
		Wrong: "timeout 87601h0m0s: must be at most 87600h0m0s", Notation: true,
		Change: func(_ *cluster.Job, s *cluster.Stage) {
			s.Timeout = cluster.LongestTime + time.Hour
		}},
	{Name: "input", Fields: []string{"input: 3GiB"},
		Change: func(_ *cluster.Job, s *cluster.Stage) { s.Input = 3 * resource.GiB }},
	{Name: "input beyond all", Fields: []string{"input: 1001PB"}, Wrong: "input 1001PB: must be at most 1000PB",
		Notation: true, Change: func(_ *cluster.Job, s *cluster.Stage) { s.Input = 1001 * resource.PB }},
	{Name: "app and deadline", JobFields: []string{"app: sort big", "deadline: 10m"},
		Change: func(j *cluster.Job, _ *cluster.Stage) { j.App, j.Deadline = "sort big", 10*time.Minute }},
	{Name: "app that is no name", JobFields: []string{"app: " + strings.Repeat("x", 201)}, Notation: true,
		Wrong: "app \"" + strings.Repeat("x", 60) +
			"...\": must be at most 200 bytes of printable characters, with no space at either end",
		Change: func(j *cluster.Job, _ *cluster.Stage) { j.App = strings.Repeat("x", 201) }},
	{Name: "deadline beyond all", JobFields: []string{"deadline: 87601h"},
		Wrong: "deadline 87601h0m0s: must be at most 87600h0m0s", Notation: true,
		Change: func(j *cluster.Job, _ *cluster.Stage) {
			j.Deadline = cluster.LongestTime + time.Hour
		}},
	{Name: "attempts of a job that runs at most once", JobFields: []string{"retry: 1", "at_most_once: true"},
		Wrong:  "retry 1: must be 0 for a job that runs at most once",
		Change: func(j *cluster.Job, _ *cluster.Stage) { j.MaxAttempts, j.AtMostOnce = 2, true }},
}
