package cluster

import (
	"fmt"
	"slices"

	"github.com/bellows-rm/bellows/resource"
)

// CheckBreathing returns an error, and the first field that is wrong, if a stage requests what only a container with
// changing memory can have, or what no container can have.
func (j *Job) CheckBreathing(stage int) (field string, err error) {
	const needs = "needs class flex: a regular container keeps its memory and is never suspended"
	s := &j.Stages[stage]
	c := &s.Command
	fixed := j.Class != Flex
	switch {
	case fixed && s.MaxMemory > 0:
		return "max_memory", fmt.Errorf("max_memory %s: %s", resource.FormatMemoryExact(s.MaxMemory), needs)
	case fixed && s.HeartbeatTimeout > 0:
		return "heartbeat_timeout", fmt.Errorf("heartbeat_timeout %v: %s", s.HeartbeatTimeout, needs)
	case s.HeartbeatTimeout > 0 && s.HeartbeatTimeout < LeastHeartbeatTimeout:
		return "heartbeat_timeout", fmt.Errorf("heartbeat_timeout %v: must be at least %v, since what is suspended is silent for a while", s.HeartbeatTimeout, LeastHeartbeatTimeout)
	}
	if err := c.CheckRuntime(); err != nil {
		if slices.Equal(c.Args[:min(2, len(c.Args))], []string{"sh", "-c"}) {
			err = fmt.Errorf("%w (a command that is one text is for the shell: write a list)", err)
		}
		return "runtime", err
	}
	if c.Runtime != "" && fixed {
		return "runtime", fmt.Errorf("runtime %s: %s", c.Runtime, needs)
	}
	return "", nil
}
