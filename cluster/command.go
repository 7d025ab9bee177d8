package cluster

import "time"

// Command is a program with its arguments. Placeholders such as {memory} are filled in when a task starts.
type Command struct {
	Args []string          `json:"args" yaml:"args"`
	Env  map[string]string `json:"env,omitempty" yaml:"env,omitempty"` // added to the submitter's environment
	Dir  string            `json:"dir,omitempty" yaml:"dir,omitempty"` // working directory; empty is the submitter's
	// Stdin is the file that the command reads, relative to the working directory; empty is none.
	Stdin string `json:"stdin,omitempty" yaml:"stdin,omitempty"`
	// Timeout is how long the command may run, standing still included, before it is ended; 0 is for ever.
	Timeout time.Duration `json:"timeout_ns,omitempty" yaml:"timeout,omitempty"`
	// Runtime is JVM if java is to be told about its memory before the job is submitted: see WithHeap. Empty is none.
	Runtime string `json:"runtime,omitempty" yaml:"runtime,omitempty"`
}
