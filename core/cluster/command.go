package cluster

import (
	"slices"
	"time"
)

// Command is a program with its arguments. Placeholders such as {memory} are filled in when a task starts.
type Command struct {
	Args []string `json:"args,omitempty" yaml:"command" doc:"program and arguments; {memory} and other placeholders are filled when a task starts. Here, in env, dir and stdin a byte that is not UTF-8 is written as U+0000 and two hexadecimal digits"`
	// Items are what the tasks of the stage work on, one each, in the order of their indexes: see {item}. Empty if tasks
	// differ by their index alone.
	Items []string `json:"items,omitempty" yaml:"each" doc:"what the tasks work on, one each: {item} in the command becomes that of the task"`
	// added to the submitter's environment
	Env map[string]string `json:"env,omitempty" yaml:"env" doc:"variables added to the environment of the job"`
	// working directory; empty is the submitter's
	Dir string `json:"dir,omitempty" yaml:"dir" form:"a directory" doc:"working directory, relative to that of the job"`
	// Stdin is the file that the command reads, relative to the working directory; empty means none.
	Stdin string `json:"stdin,omitempty" yaml:"stdin" form:"a file" doc:"file that the program reads, relative to the working directory; none if empty"`
	// Timeout is how long the command may run, including time suspended, before it is ended; 0 is no limit.
	Timeout time.Duration `json:"timeout_ns,omitempty" yaml:"timeout" doc:"how long a task may run, suspensions included, before it is ended; 0 is for ever"`
	// PrivateTmp says that the command sees empty folders of its own in place of /tmp and /var/tmp, which are removed
	// after its end. NoNetwork says that it has a network of its own, in which there is nothing.
	PrivateTmp bool `json:"private_tmp,omitempty" yaml:"private_tmp" doc:"whether the program has folders of its own in place of /tmp and /var/tmp, which are removed after its end"`
	NoNetwork  bool `json:"no_network,omitempty" yaml:"no_network" doc:"whether the program can connect to nothing but itself"`
	// Runtime is JVM if the program is java. It is checked and changes nothing: every java in a FLEX container gets a
	// heap, see WithHeaps.
	Runtime string `json:"runtime,omitempty" yaml:"runtime" form:"jvm" doc:"jvm: the program is java; it changes nothing, since in a flex container every java gets a heap"`
}

// ByShell reports whether the command is a text for the shell, which is its last argument.
func (c *Command) ByShell() bool { return len(c.Args) == 3 && c.Args[0] == "sh" && c.Args[1] == "-c" }

// HasCommands reports whether the stages of j have commands, so that j can be run.
func (j *Job) HasCommands() bool { return len(j.Stages) > 0 && len(j.Stages[0].Args) > 0 }

// Estimates returns j without commands: the part that an engine needs. Commands can contain secrets, and events are
// recorded.
func (j *Job) Estimates() Job {
	out := *j
	out.Stages = slices.Clone(j.Stages)
	for i := range out.Stages {
		out.Stages[i].Command = Command{}
	}
	return out
}

// Encoded returns c with every text that is not valid UTF-8 encoded by EncodeText.
func (c Command) Encoded() Command {
	c.Args, c.Items, c.Dir, c.Stdin = EncodeTexts(c.Args), EncodeTexts(c.Items), EncodeText(c.Dir), EncodeText(c.Stdin)
	env := c.Env
	c.Env = nil
	for name, value := range env {
		if c.Env == nil {
			c.Env = make(map[string]string, len(env))
		}
		c.Env[EncodeText(name)] = EncodeText(value)
	}
	return c
}
