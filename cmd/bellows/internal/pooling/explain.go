package pooling

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/live/api"
)

func explainCommand() *cobra.Command {
	var p place.Place
	var user string
	cmd := &cobra.Command{
		Use:   "explain POOL",
		Short: "Explain how many executors a pool has, and when it has more",
		Long: `Explain how many executors a pool has, what each application waits for, and when
there are more executors, or fewer. "bellows pool top --once --json" has the
same for programs.`,
		Example: `  bellows pool explain sums`,
		Args:    onePool,
		RunE: p.Run(func(cmd *cobra.Command, client *client.Client, args []string) error {
			d, err := client.Pool(cmd.Context(), user, args[0])
			if err != nil {
				return err
			}
			for _, line := range explanation(&d) {
				if _, err := fmt.Fprintln(cmd.OutOrStdout(), fold(line, terminal.Columns(cmd.OutOrStdout()))); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	userFlag(cmd, &user)
	cmd.ValidArgsFunction = p.CompletePools()
	p.Flags(cmd, false)
	return cmd
}

// fold breaks a line into lines of at most that many columns, of which those after the first are indented.
func fold(line string, columns int) string {
	const indent = "    "
	return terminal.Fold(line, columns-len(indent), indent)
}

// explanation explains a pool, one sentence or list of clauses a line.
func explanation(d *api.PoolDetail) (lines []string) {
	say := func(format string, values ...any) { lines = append(lines, fmt.Sprintf(format, values...)) }
	say("pool %s of %s has %s.", d.Name, d.User, sizeWords(&d.PoolSummary))
	if d.Why != "" {
		say("why: %s", d.Why)
	}
	if d.Broken != "" {
		say("broken: %s", d.Broken)
	}
	say("more: %s", whenMore(d))
	say("fewer: %s", whenFewer(d))
	say("pays: %s", whoPays(d))
	for i := range d.Enrolled {
		a := &d.Enrolled[i]
		if a.State != "open" && a.State != "closed" {
			continue
		}
		name := fmt.Sprintf("application %d", a.Application)
		if a.Name != "" {
			name += " (" + a.Name + ")"
		}
		line := fmt.Sprintf("%s: holds %s; running tasks: %d, waiting: %d", name, terminal.Count(a.Executors, "executor"),
			a.Running, a.Waiting)
		switch {
		case a.Drives:
			line += "; " + a.Why
		case a.Why != "":
			line += ", because " + a.Why
		}
		lines = append(lines, line)
	}
	return lines
}

func whoPays(d *api.PoolDetail) string {
	n := 0
	for i := range d.Members {
		if e := &d.Members[i]; e.Job != 0 && e.State != api.ExecutorQueued {
			n++
		}
	}
	if n == 0 {
		return fmt.Sprintf("%s, for nothing: no executor has started", d.User)
	}
	s := &d.Spec
	text := fmt.Sprintf("%s, for %s", d.User, terminal.Count(n, "executor"))
	if n > 1 {
		text += fmt.Sprintf(" of %s and %s, which are", resource.FormatMemory(s.Memory), resource.CPU.Format(s.CPU))
	} else {
		text += ", which is"
	}
	text += fmt.Sprintf(" %s and %s of its share and quotas, whether tasks run or not",
		resource.FormatMemory(resource.Amount(n)*s.Memory), resource.CPU.Format(resource.Amount(n)*s.CPU))
	if lenders(d) > 0 {
		text += "; cores that are lent do not count"
	}
	if s.Class == cluster.Flex {
		text += "; growth beyond that does not count"
	}
	return text
}

func whenMore(d *api.PoolDetail) string {
	var queued []api.PoolExecutor
	for _, e := range d.Members {
		if e.State == api.ExecutorQueued {
			queued = append(queued, e)
		}
	}
	switch {
	case len(queued) > 0:
		e := &queued[0]
		text := fmt.Sprintf("%s wait for their start", terminal.Count(len(queued), "executor"))
		if len(queued) == 1 {
			text = "1 executor waits for its start"
		}
		if e.Why != "" {
			text += ", the first because " + e.Why
		}
		if e.Job != 0 {
			text += fmt.Sprintf("; `bellows explain %d` says more", e.Job)
		}
		return text
	case d.Starting > 0:
		return terminal.Count(d.Starting, "executor") + " will register soon"
	case d.Wanted > d.Executors:
		return "as soon as they can be launched"
	case d.Executors >= d.Spec.Max:
		return fmt.Sprintf("not beyond --max %d", d.Spec.Max)
	}
	return fmt.Sprintf("when there are more tasks than executors, up to %d", d.Spec.Max)
}

// lenders is how many executors lend their cores.
func lenders(d *api.PoolDetail) (n int) {
	for i := range d.Members {
		if d.Members[i].Lends {
			n++
		}
	}
	return n
}

func whenFewer(d *api.PoolDetail) string {
	var parts []string
	ending := 0
	var longest api.PoolExecutor
	for _, e := range d.Members {
		switch {
		case e.State == api.ExecutorDraining:
			ending++
		case e.Idle > longest.Idle && slices.Contains([]api.ExecutorState{api.ExecutorRegistered, api.ExecutorAssigned,
			api.ExecutorParked}, e.State):
			longest = e
		}
	}
	if ending > 0 {
		parts = append(parts, terminal.Count(ending, "executor")+" will end after the task, or at once")
	}
	if lend := lenders(d); lend == 1 {
		parts = append(parts, "1 executor lends its cores to whoever waits, until it has a task")
	} else if lend > 1 {
		parts = append(parts, fmt.Sprintf("%d executors lend their cores to whoever waits, until they have tasks", lend))
	}
	switch {
	case d.Executors <= d.Spec.Min:
		parts = append(parts, fmt.Sprintf("not below --min %d, unless other owners wait for room", d.Spec.Min))
	case longest.Idle > 0:
		parts = append(parts, fmt.Sprintf("one that has run nothing for %v ends; executor %d has been idle for %s",
			d.Spec.Idle, longest.Executor, terminal.Age(longest.Idle)))
	default:
		parts = append(parts, fmt.Sprintf("one that has run nothing for %v ends", d.Spec.Idle))
	}
	return strings.Join(parts, "; ")
}
