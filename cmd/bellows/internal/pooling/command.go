// Package pooling has the commands for pools of warm executors: to make, list, watch, explain and remove them.
package pooling

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/live/api"
)

// Command returns the command.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pool",
		Short: "Keep warm executors, which start tasks in milliseconds",
		Long: `Keep warm executors. An executor is a process that stays: it runs tasks of one
application after the other, and what it has imported or opened is there for the
next. A pool has executors of one kind and one owner, as many as there are tasks
to run, from --min to --max. The executors are jobs of the owner: quotas hold,
and "bellows ps" and "bellows explain" show them.

A pool belongs to who makes it. Other users neither see nor use it.
docs/pools.md says how programs use a pool.`,
		Example: `  bellows pool create sums --memory 256MiB --max 8
  bellows pool ls
  bellows pool top sums
  bellows pool rm sums`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(createCommand(), listCommand(), topCommand(), explainCommand(), removeCommand())
	return cmd
}

// onePool says that a command needs the name of one pool.
var onePool = command.OneArgument("pool: must be the name of one pool; `bellows pool ls` lists them")

func userFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "user", "", "`name` of the owner, for operators; default: you")
}

func listCommand() *cobra.Command {
	var p place.Place
	var user string
	var asJSON bool
	cmd := &cobra.Command{
		Use:        "ls",
		SuggestFor: []string{"list"},
		Short:      "List pools",
		Long: `List your pools, for operators those of all users.

NOW is the number of executors, WANTED how many there should be, and MEMORY
what each requests. Of the executors, BUSY run a task and IDLE run nothing; the
others wait for their start or begin. APPS are the applications that have not
ended.`,
		Example: `  bellows pool ls
  bellows pool ls --json`,
		Args: cobra.NoArgs,
		RunE: p.Run(func(cmd *cobra.Command, client *client.Client, _ []string) error {
			all, err := client.Pools(cmd.Context(), user)
			switch {
			case err != nil:
				return err
			case asJSON:
				return terminal.WriteJSON(cmd.OutOrStdout(), map[string]any{"pools": terminal.OrEmpty(all)})
			}
			return printPools(cmd.OutOrStdout(), all)
		}),
	}
	cmd.Flags().StringVar(&user, "user", "", "only pools of the user of this `name`; operators may name any")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	p.Flags(cmd, false)
	return cmd
}

// printPools prints one row per pool.
func printPools(w io.Writer, all []api.PoolSummary) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "no pools")
		return err
	}
	t := terminal.NewTable("POOL", "OWNER", ">MEMORY", ">MIN", ">MAX", ">NOW", ">WANTED", ">BUSY", ">IDLE", ">APPS")
	t.Shrinks = 0
	for i := range all {
		s := &all[i]
		const widest = 12 // columns of a name of a user
		t.Add(s.Name, terminal.Cut(s.User, widest), resource.FormatMemory(s.Spec.Memory), strconv.Itoa(s.Spec.Min),
			strconv.Itoa(s.Spec.Max), strconv.Itoa(s.Executors), strconv.Itoa(s.Wanted), strconv.Itoa(s.Busy),
			strconv.Itoa(s.Idle), strconv.Itoa(s.Applications))
	}
	return t.Write(w)
}

func removeCommand() *cobra.Command {
	var p place.Place
	var user string
	cmd := &cobra.Command{
		Use:        "rm POOL...",
		SuggestFor: []string{"remove", "delete", "stop", "kill"},
		Short:      "Remove pools",
		Long: `Remove pools, with their applications. Executors end, busy ones too: tasks that
run are lost. The command returns when they have ended.`,
		Example: `  bellows pool rm sums`,
		Args:    command.SomeArguments("pool: must be the name of at least one pool; `bellows pool ls` lists them"),
		RunE: p.Run(func(cmd *cobra.Command, client *client.Client, args []string) error {
			var all error
			for _, name := range args {
				all = errors.Join(all, client.RemovePool(cmd.Context(), user, name))
			}
			return all
		}),
	}
	userFlag(cmd, &user)
	cmd.ValidArgsFunction = p.CompletePools()
	p.Flags(cmd, false)
	return cmd
}
