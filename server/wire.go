package server

import (
	"slices"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/workload"
)

// Daemon says what process answers, and with what.
type Daemon struct {
	Version  string            `json:"version"`
	PID      int               `json:"pid"`
	UID      uint32            `json:"uid" doc:"whom the daemon runs as"`
	State    string            `json:"state_dir"`
	Settings map[string]string `json:"settings,omitempty" doc:"settings of the policy that were given"`
}

// Status is a daemon and the machine it manages.
type Status struct {
	Daemon
	live.Status
	Nodes []Node `json:"nodes"`
}

// Node is a machine.
type Node struct {
	Name          string `json:"name"`
	CPU           int64  `json:"cpu_millicores" doc:"what may be granted"`
	Memory        int64  `json:"memory_bytes" doc:"what may be granted"`
	FreeCPU       int64  `json:"free_cpu_millicores" doc:"not granted now"`
	FreeMemory    int64  `json:"free_memory_bytes" doc:"not granted now"`
	UsedMemory    int64  `json:"used_memory_bytes" doc:"what the containers hold now"`
	UsedAnonymous int64  `json:"used_anonymous_bytes" doc:"of that, anonymous memory"`
	Containers    int    `json:"containers"`
	Disk          int64  `json:"disk_bytes_per_s,omitempty" doc:"bandwidth of the disk, as measured or given; without it under-sized tasks have no limit"`
}

func nodeOf(n live.Node) Node {
	return Node{Name: n.Name, CPU: int64(n.Capacity[resource.CPU]), Memory: int64(n.Capacity[resource.Memory]),
		FreeCPU: int64(n.Free[resource.CPU]), FreeMemory: int64(n.Free[resource.Memory]),
		UsedMemory: n.UsedMemoryBytes, UsedAnonymous: n.UsedAnonymousBytes, Containers: n.Containers,
		Disk: int64(n.Capacity[resource.Disk])}
}

// Submission is a job to run.
type Submission struct {
	Name        string             `json:"name,omitempty"`
	Queue       string             `json:"queue,omitempty"`
	Weight      float64            `json:"weight,omitempty" doc:"share of its queue relative to others; 0 is 1"`
	Class       string             `json:"class,omitempty" doc:"regular or flex; regular if empty"`
	MaxAttempts int                `json:"max_attempts,omitempty" doc:"how often a task may run; 0 is once"`
	AtMostOnce  bool               `json:"at_most_once,omitempty" doc:"no task runs again after it may have started"`
	Stages      []StageSpec        `json:"stages"`
	Env         []string           `json:"env,omitempty" doc:"the environment of the programs, NAME=VALUE"`
	Dir         string             `json:"dir" doc:"the working directory, an absolute path"`
	Inherited   *cluster.Inherited `json:"inherited,omitempty" doc:"what the programs have from the submitter: umask, nice and limits; unless given, a umask of 022 and the rest from the daemon"`
	Input       bool               `json:"input,omitempty" doc:"its program reads what is sent to /v1/jobs/{job}/input; it has one task, which starts once"`
}

// StageSpec is a stage to run: the same command, Tasks times.
type StageSpec struct {
	Name       string              `json:"name,omitempty"`
	Tasks      int                 `json:"tasks" doc:"at least 1"`
	Parents    []int               `json:"parents,omitempty" doc:"indexes of the stages that must end first"`
	CPU        int64               `json:"cpu_millicores"`
	Memory     int64               `json:"ideal_memory_bytes,omitempty" doc:"0 takes it from the profile"`
	MinMemory  int64               `json:"min_memory_bytes,omitempty" doc:"0 takes it from the profile, else is the ideal memory"`
	MaxMemory  int64               `json:"max_memory_bytes,omitempty" doc:"the most a container of class flex may hold; 0 is what its node has"`
	Heartbeat  int64               `json:"heartbeat_timeout_ns,omitempty" doc:"how long programs of a flex container may be silent; 0 is for ever"`
	DataOn     []string            `json:"data_on,omitempty" doc:"names of nodes that hold the stage's data, a wish"`
	Disk       int64               `json:"disk_bytes_per_s,omitempty"`
	Network    int64               `json:"network_bytes_per_s,omitempty"`
	Duration   int64               `json:"duration_ns,omitempty" doc:"estimated run time at ideal memory; 0 is unknown"`
	Elasticity *cluster.Elasticity `json:"elasticity,omitempty" doc:"what less memory costs"`
	Profile    string              `json:"profile,omitempty" doc:"name of a stored profile for what is left out"`
	Args       []string            `json:"args" doc:"program and arguments; {memory} and other placeholders are filled when a task starts. Here, in env, dir and stdin a byte that is not UTF-8 is written as U+0000 and two hexadecimal digits"`
	Env        map[string]string   `json:"env,omitempty" doc:"added to the environment"`
	Dir        string              `json:"dir,omitempty" doc:"working directory, relative to that of the job"`
	Timeout    int64               `json:"timeout_ns,omitempty" doc:"how long a task may run, standing still included, before it is ended; 0 is for ever"`
	Stdin      string              `json:"stdin,omitempty" doc:"file that the program reads, relative to the working directory; none if empty"`
}

// SubmissionOf describes a job to run, with what whoever submits it passes on. What of arguments, variables and paths is not
// UTF-8 is encoded.
func SubmissionOf(j *workload.Job, env []string, dir string, from *cluster.Inherited) Submission {
	s := Submission{Name: j.Name, Queue: j.Queue, Weight: j.Weight, Class: j.Class.String(), MaxAttempts: j.MaxAttempts, AtMostOnce: j.AtMostOnce, Env: encodeAll(env), Dir: cluster.EncodeText(dir), Inherited: from}
	for i := range j.Stages {
		from := &j.Stages[i]
		to := StageSpec{
			Name: from.Name, Tasks: from.Tasks, Parents: from.Parents,
			CPU: int64(from.Ideal[resource.CPU]), Memory: int64(from.Ideal[resource.Memory]), MinMemory: int64(from.MinMemory),
			MaxMemory: int64(from.MaxMemory), Heartbeat: int64(from.HeartbeatTimeout), DataOn: from.DataOn,
			Disk: int64(from.Ideal[resource.Disk]), Network: int64(from.Ideal[resource.Network]), Duration: int64(from.Duration),
		}
		if from.Elasticity.Kind != cluster.NotElastic {
			to.Elasticity = &from.Elasticity
		}
		if i < len(j.Commands) {
			c := &j.Commands[i]
			to.Args, to.Dir, to.Stdin, to.Timeout = encodeAll(c.Args), cluster.EncodeText(c.Dir), cluster.EncodeText(c.Stdin), int64(c.Timeout)
			for name, value := range c.Env {
				if to.Env == nil {
					to.Env = map[string]string{}
				}
				to.Env[cluster.EncodeText(name)] = cluster.EncodeText(value)
			}
		}
		if i < len(j.Profiles) {
			to.Profile = j.Profiles[i]
		}
		s.Stages = append(s.Stages, to)
	}
	return s
}

func encodeAll(raw []string) []string {
	all := slices.Clone(raw)
	for i := range all {
		all[i] = cluster.EncodeText(all[i])
	}
	return all
}

// live returns s as the driver takes it.
func (s *Submission) live(caller cluster.Credentials) (live.Submission, error) {
	out := live.Submission{Caller: caller, Env: s.Env, Dir: s.Dir, Inherited: s.Inherited, Input: s.Input, Profiles: make([]string, len(s.Stages))}
	out.Job = cluster.Job{Name: s.Name, Queue: s.Queue, Weight: s.Weight, MaxAttempts: s.MaxAttempts, AtMostOnce: s.AtMostOnce}
	if err := out.Job.Class.UnmarshalText([]byte(s.Class)); err != nil {
		return out, Errorf(Invalid, "job %q %v", s.Name, err)
	}
	for i, from := range s.Stages {
		to := cluster.Stage{
			Name: from.Name, Tasks: from.Tasks, Parents: from.Parents, MinMemory: resource.Amount(from.MinMemory),
			MaxMemory: resource.Amount(from.MaxMemory), HeartbeatTimeout: time.Duration(from.Heartbeat), DataOn: from.DataOn,
			Ideal: resource.Vector{resource.CPU: resource.Amount(from.CPU), resource.Memory: resource.Amount(from.Memory),
				resource.Disk: resource.Amount(from.Disk), resource.Network: resource.Amount(from.Network)},
			Duration: time.Duration(from.Duration),
		}
		if from.Elasticity != nil {
			to.Elasticity = *from.Elasticity
		}
		out.Job.Stages = append(out.Job.Stages, to)
		out.Commands = append(out.Commands, cluster.Command{Args: from.Args, Env: from.Env, Dir: from.Dir, Stdin: from.Stdin, Timeout: time.Duration(from.Timeout)})
		out.Profiles[i] = from.Profile
	}
	return out, nil
}
