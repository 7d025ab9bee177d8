package place

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/door/client"
)

// Completion offers values of an argument or a flag to a shell.
type Completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// Complete offers what the daemon is asked for: names, each perhaps with a tab and a description. If the daemon does
// not answer within a second, nothing is offered.
func (p *Place) Complete(ask func(context.Context, *client.Client) ([]string, error)) Completion {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		client, err := p.Client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		names, _ := ask(ctx, client)
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// CompletePools offers the caller's pools.
func (p *Place) CompletePools() Completion {
	return p.Complete(func(ctx context.Context, client *client.Client) (names []string, err error) {
		all, err := client.Pools(ctx, "")
		for i := range all {
			names = append(names, all[i].Name)
		}
		return names, err
	})
}

// CompleteQueues offers the queues of jobs that have not ended, and those with quotas.
func (p *Place) CompleteQueues() Completion {
	return p.Complete(func(ctx context.Context, client *client.Client) (names []string, err error) {
		jobs, err := client.Jobs(ctx)
		if err != nil {
			return nil, err
		}
		quotas, err := client.Quotas(ctx, "")
		for i := range jobs {
			names = append(names, jobs[i].Queue)
		}
		for i := range quotas {
			names = append(names, quotas[i].Queue)
		}
		slices.Sort(names)
		return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" }), err
	})
}

// CompleteApps offers the caller's applications, of which something is known.
func (p *Place) CompleteApps() Completion {
	return p.Complete(func(ctx context.Context, client *client.Client) (names []string, err error) {
		all, err := client.Apps(ctx, "")
		for i := range all {
			names = append(names, all[i].Name)
		}
		return names, err
	})
}
