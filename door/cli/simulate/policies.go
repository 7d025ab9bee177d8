package simulate

import (
	"context"
	"maps"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/sim/trial"
)

// Policies are the policies under which a command simulates what a daemon has, and settings of them. Without any, it
// is the policy of the daemon.
type Policies struct {
	texts    []string // as trial.ParseContender reads them
	settings map[string]string
}

// Flags defines the flags with which the user chooses.
func (o *Policies) Flags(cmd *cobra.Command) {
	o.settings = map[string]string{}
	f := cmd.Flags()
	f.Var(flags.Texts(&o.texts), "policy",
		"`names` of policies, each also NAME:SETTING=VALUE; default: that of the daemon")
	f.Var(flags.Settings(o.settings), "set", "setting of one of the policies; may be repeated")
	_ = cmd.RegisterFlagCompletionFunc("policy",
		cobra.FixedCompletions(policy.Names(), cobra.ShellCompDirectiveNoFileComp))
}

// Exists is a check of Contenders: an error if there is no such policy, or if it has other settings.
func Exists(c trial.Contender) error {
	_, err := policy.New(c.Policy, c.Settings)
	return err
}

// Contenders returns the chosen policies, with the settings of the daemon, whose policy is given, where the user
// gives no others. An error is a mistake of the user, and so is an error of check, which is called with each policy.
func (o *Policies) Contenders(daemon string, given map[string]string,
	check func(trial.Contender) error) (all []trial.Contender, err error) {
	settings := map[string]string{}
	maps.Copy(settings, given)
	maps.Copy(settings, o.settings)
	texts := o.texts
	if len(texts) == 0 {
		texts = []string{daemon}
	}
	var names []string
	for _, text := range texts {
		c, err := trial.ParseContender(text, settings)
		if err == nil {
			err = check(c)
		}
		if err != nil {
			return nil, command.Usage(err)
		}
		all, names = append(all, c), append(names, c.Policy)
	}
	if err := policy.CheckUsed(o.settings, names...); err != nil {
		return nil, command.Usage(err)
	}
	return all, nil
}

// Until returns what run returns, or the cause of the end of ctx if ctx ends first: a simulation cannot be
// interrupted, and the end of the process ends it.
func Until[T any](ctx context.Context, run func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	if ctx.Err() == nil {
		go func() {
			value, err := run()
			done <- result{value, err}
		}()
	}
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
