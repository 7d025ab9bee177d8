package jobs

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/format/workload"
)

// retryOptions are the flags that say when a task that has failed is tried again.
type retryOptions struct {
	times   int
	on      string
	delay   time.Duration
	changed func(name string) bool // whether a flag was given; nil if there are none
}

// flags adds the flags; whose are the tasks, in words.
func (o *retryOptions) flags(f *pflag.FlagSet, whose string) {
	o.changed, o.on, o.delay = f.Changed, cluster.RetryOnAny.String(), cluster.DefaultRetryDelay
	f.Var(flags.Count(&o.times, 0, cluster.MostRetries), "retry",
		fmt.Sprintf("how often %s is tried again after it failed; with more memory if it lacked memory", whose))
	f.Var(flags.Choice(&o.on, cluster.RetryOnNames()...), "retry-on",
		"after which ends: any, oom if it lacked memory, or error if it ended otherwise")
	f.Var(flags.Duration(&o.delay, 0), "retry-delay",
		fmt.Sprintf("pause after an attempt that failed; each is twice the one before, at most %v; 0s: no pause",
			cluster.LongestRetryDelay))
}

// put puts them into a job that does not state them.
func (o *retryOptions) put(j *workload.Job) error {
	for _, name := range []string{"retry-on", "retry-delay"} {
		if o.times == 0 && o.changed != nil && o.changed(name) {
			return command.Usagef("%s: needs --retry, which says how often a task is tried again", name)
		}
	}
	j.MaxAttempts = 1 + o.times
	if !j.KeepsRetryDelay {
		j.RetryDelay = o.delay
	}
	if j.KeepsRetryOn {
		return nil
	}
	return command.Usage(j.RetryOn.UnmarshalText([]byte(o.on)))
}
