package server

import (
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/live/api"
)

// Daemon identifies the process that answers, and its settings.
type Daemon struct {
	Version  string            `json:"version" doc:"of the program"`
	PID      int               `json:"pid" doc:"of the process"`
	UID      uint32            `json:"uid" doc:"id of the user that the daemon runs as"`
	State    string            `json:"state_dir" doc:"state directory"`
	Settings map[string]string `json:"settings,omitempty" doc:"settings given for the policy"`
	// Operators own everything: see access.
	Operators *Group `json:"operators,omitempty" doc:"group whose members may see and change the jobs of all users, as root may; omitted if there is none"`
	// Configuration is nil if the daemon has no configuration file.
	Configuration *Configuration `json:"configuration,omitempty" doc:"the configuration file; omitted if there is none"`
	// Listens is nil unless the daemon listens on the network.
	Listens *Listens `json:"listens,omitempty" doc:"where the daemon listens on the network; omitted if it does not"`
}

// Listens says where a daemon listens on the network.
type Listens struct {
	Address     string    `json:"address" doc:"host and port"`
	Certificate time.Time `json:"certificate_expires" doc:"when its certificate expires"`
}

// Configuration is the configuration file of a daemon.
type Configuration struct {
	File    string   `json:"file,omitempty" doc:"its path; omitted if it was removed"`
	Waiting []string `json:"waiting,omitempty" doc:"settings that have changed in the file since the daemon started, and that apply when it is started again"`
	Mistake string   `json:"mistake,omitempty" doc:"why the file was not applied when it was read again; omitted if it was applied"`
}

// Shown returns a copy of c for a status; nil if there is nothing to show.
func (c Configuration) Shown() *Configuration {
	if c.File == "" && c.Waiting == nil && c.Mistake == "" {
		return nil
	}
	return &c
}

// Status is a daemon and the machine it manages.
type Status struct {
	Daemon
	api.ClusterStatus
}

// Submission is a job to run.
type Submission struct {
	Name        string             `json:"name,omitempty"`
	Queue       string             `json:"queue,omitempty"`
	Weight      float64            `json:"weight,omitempty" doc:"share of its queue relative to others; 0 is 1"`
	Class       cluster.Class      `json:"class,omitempty" doc:"regular or flex; regular if left out"`
	MaxAttempts int                `json:"max_attempts,omitempty" doc:"number of attempts after which the job has failed; 0 is 1"`
	RetryDelay  *time.Duration     `json:"retry_delay_ns,omitempty" doc:"how long a task that has failed pauses before it runs again; each pause is twice the one before, up to 5 minutes; 0 is no pause; if left out, the first pause is 1 s"`
	AtMostOnce  bool               `json:"at_most_once,omitempty" doc:"no task runs again after it may have started"`
	App         string             `json:"app,omitempty" doc:"the application: runs of one program on other data; if left out, it is derived from name and command"`
	Deadline    time.Duration      `json:"deadline_ns,omitempty" doc:"longest wait for the start; 0 lets the policy choose"`
	Stages      []StageSpec        `json:"stages"`
	Env         []string           `json:"env,omitempty" doc:"the environment of the programs, NAME=VALUE"`
	Dir         string             `json:"dir,omitempty" doc:"the working directory, an absolute path; must be stated, here or in the Bulk"`
	Inherited   *cluster.Inherited `json:"inherited,omitempty" doc:"what the programs inherit from the submitter: umask, nice, CPUs and limits; if left out, the umask is 022 and the rest is the daemon's"`
	Input       bool               `json:"input,omitempty" doc:"the program reads the data sent to /v1/jobs/{job}/input; the job must have one task, which starts once"`
}

// StageSpec is a stage to run: the same command, Tasks times. The components of Ideal may be given as a list or as
// fields.
type StageSpec struct {
	cluster.Stage
	Ideal   resource.Vector `json:"ideal,omitzero" doc:"resources with which one task is as fast as it can be, as a list: cpu_millicores, ideal_memory_bytes, disk_bytes_per_s, network_bytes_per_s"`
	CPU     resource.Amount `json:"cpu_millicores,omitempty"`
	Memory  resource.Amount `json:"ideal_memory_bytes,omitempty" doc:"0 takes the value from the profile"`
	Disk    resource.Amount `json:"disk_bytes_per_s,omitempty"`
	Network resource.Amount `json:"network_bytes_per_s,omitempty"`
}

// specOf returns the spec of a stage. Arguments, variables and paths that are not UTF-8 are encoded.
func specOf(s cluster.Stage) StageSpec {
	s.Command = s.Encoded()
	spec := StageSpec{Stage: s, Ideal: s.Ideal}
	for k, field := range spec.Amounts() {
		*field, spec.Ideal[k] = s.Ideal[k], 0
	}
	return spec
}

// Amounts returns the kinds of resources that have a field of their own; the amounts of other kinds are in Ideal.
func (s *StageSpec) Amounts() map[resource.Kind]*resource.Amount {
	return map[resource.Kind]*resource.Amount{resource.CPU: &s.CPU, resource.Memory: &s.Memory, resource.Disk: &s.Disk,
		resource.Network: &s.Network}
}

// stageOf returns a stage in the form that the driver accepts.
func stageOf(s *StageSpec) cluster.Stage {
	out := s.Stage
	out.Coordinator = false         // a machine has no coordinators
	out.Told = cluster.Provenance{} // what a caller sends is stated, not learned
	out.Ideal = s.Ideal
	for k, field := range s.Amounts() {
		out.Ideal[k] = max(out.Ideal[k], *field)
	}
	return out
}

// SubmissionOf returns the submission of a job with what the submitter passes on: environment, working directory and
// inherited settings. Variables and paths that are not UTF-8 are encoded.
func SubmissionOf(j *cluster.Job, env []string, dir string, from *cluster.Inherited) Submission {
	s := Submission{Name: j.Name, Queue: j.Queue, Weight: j.Weight, Class: j.Class, MaxAttempts: j.MaxAttempts,
		AtMostOnce: j.AtMostOnce, App: j.App, Deadline: j.Deadline,
		Env: cluster.EncodeTexts(env), Dir: cluster.EncodeText(dir), Inherited: from}
	if j.MaxAttempts > 1 {
		s.RetryDelay = &j.RetryDelay
	}
	for i := range j.Stages {
		s.Stages = append(s.Stages, specOf(j.Stages[i]))
	}
	return s
}

// submissionOf returns a submission in the form that the driver accepts.
func submissionOf(s *Submission, caller cluster.Credentials) live.Submission {
	out := live.Submission{Caller: caller, Env: s.Env, Dir: s.Dir, Inherited: s.Inherited, Input: s.Input}
	out.Job = cluster.Job{Name: s.Name, Queue: s.Queue, Class: s.Class, Weight: s.Weight, MaxAttempts: s.MaxAttempts,
		AtMostOnce: s.AtMostOnce, App: s.App, Deadline: s.Deadline}
	if out.Job.RetryByDefault(); s.RetryDelay != nil {
		out.Job.RetryDelay = *s.RetryDelay
	}
	for i := range s.Stages {
		out.Job.Stages = append(out.Job.Stages, stageOf(&s.Stages[i]))
	}
	return out
}
