package machine

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/jobs"
	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/live/api"
)

func statusCommand() *cobra.Command {
	var p place.Place
	var asJSON bool
	cmd := &cobra.Command{
		Use:        "status",
		SuggestFor: []string{"info", "sinfo", "nodes"},
		Short:      "Show the daemon and what is left",
		Long: `Show the daemon and its machine, and what was asked of memory for tasks, what is
reserved for them and what they use, now and of runs that have ended.

USED is without page cache, RESERVED the memory that tasks start with. GROWN is
what containers keep of it and beyond, since flex containers grow; what they
never touch is lent to them, and not counted. LEFT is what the next task finds,
without any being taken that others use. CORES are those reserved.

The lines below the table have the bandwidths of disk and network and what tasks
were granted of them, or say that they are unknown. "bellows up" measures the
disk, unless --disk states it; the network is what "bellows up --network"
states.`,
		Example: `  bellows status
  bellows status --json`,
		Args: cobra.NoArgs,
		RunE: p.Run(func(cmd *cobra.Command, client *client.Client, _ []string) error {
			s, err := client.Status(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return terminal.WriteJSON(cmd.OutOrStdout(), s)
			}
			return printStatus(cmd.OutOrStdout(), &s, time.Now())
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	p.Flags(cmd, false)
	return cmd
}

func printStatus(w io.Writer, s *api.Status, now time.Time) error {
	fmt.Fprintf(w, "%s since %s (process %d, version %s), state in %s\n", s.Policy, terminal.Age(now.Sub(s.Since)),
		s.PID, s.Version, s.State)
	fmt.Fprintf(w, "%s not ended, %s running, %d waiting\n", terminal.Count(s.Jobs, "job"),
		terminal.Count(s.Running, "task"), s.Pending)
	memory := func(bytes int64) string { return resource.FormatMemory(resource.Amount(bytes)) }
	if n := &s.Slack.Now; n.Tasks > 0 {
		fmt.Fprintf(w, "memory of %s: %s\n", terminal.Count(int(n.Tasks), "task"), jobs.SlackWords(n, memory))
	}
	if p := &s.Slack.Past; p.Tasks > 0 {
		fmt.Fprintf(w, "memory of %s: %s\n", terminal.Count(int(p.Tasks), "ended run"), jobs.SlackWords(p, memory))
	}
	if s.Configuration != nil {
		fmt.Fprintln(w, terminal.Fold("configuration: "+configured(s.Configuration), terminal.Width-2, "  "))
	}
	if s.Listens != nil {
		fmt.Fprintf(w, "network: %s, over TLS; the certificate expires %s\n", s.Listens.Address,
			s.Listens.Certificate.UTC().Format(time.DateOnly))
	}
	if s.Trouble != "" {
		fmt.Fprintf(w, "%s\n", terminal.Fold("trouble: "+s.Trouble, terminal.Width-2, "  "))
	}
	if s.Crowded != "" {
		fmt.Fprintf(w, "%s\n", terminal.Fold("warning: "+s.Crowded, terminal.Width-2, "  "))
	}
	fmt.Fprintln(w)
	t := terminal.NewTable("NODE", ">MEMORY", ">USED", ">RESERVED", ">GROWN", ">LEFT", ">CORES", ">CONTAINERS")
	t.Shrinks = 0
	for _, n := range s.Nodes {
		cpu := func(milli int64) string { return resource.FormatCPU(resource.Amount(milli)) }
		t.Add(n.Name, memory(n.Memory), memory(n.UsedAnonymous), memory(n.Reserved()), memory(n.Holds()),
			memory(n.LeftMemory), cpu(n.CPU-n.FreeCPU)+" of "+cpu(n.CPU), fmt.Sprint(n.Containers))
	}
	if err := t.Write(w); err != nil {
		return err
	}
	for _, n := range s.Nodes {
		if n.LeftoverMemory > 0 {
			fmt.Fprintf(w, "\n%s\n",
				terminal.Fold(fmt.Sprintf(
					"%s of the memory of %s outlives its tasks, and is not granted again: files in memory, such as those in "+
						"/dev/shm, or segments that programs shared; remove them, and see `ipcs -m`",
					resource.FormatMemory(resource.Amount(n.LeftoverMemory)), n.Name), terminal.Width-2, "  "))
		}
		if n.Disk > 0 || n.Network > 0 || len(n.Unknown) > 0 || n.Leveling != nil {
			fmt.Fprintln(w)
		}
		if n.Disk > 0 {
			fmt.Fprintf(w, "disk of %s: %s%s; under-sized tasks share it\n", n.Name,
				resource.FormatRate(resource.Amount(n.Disk)), granted(n.Disk, n.FreeDisk))
		}
		if n.OverdrawnCPU > 0 {
			fmt.Fprintf(w, "%s grants %s more than it has, and starts nothing until enough tasks have ended\n", n.Name,
				resource.CPU.Format(resource.Amount(n.OverdrawnCPU)))
		}
		if n.DiskGives > 0 {
			fmt.Fprintf(w, "disk of %s is pressed: it is busy for several containers, and gives %s\n", n.Name,
				resource.FormatRate(resource.Amount(n.DiskGives)))
		}
		if n.Network > 0 {
			fmt.Fprintf(w, "network of %s: %s%s\n", n.Name, resource.FormatRate(resource.Amount(n.Network)),
				granted(n.Network, n.FreeNetwork))
		}
		if len(n.Unknown) > 0 {
			fmt.Fprintf(w, "unknown of %s: %s; every request for it fits\n", n.Name, strings.Join(n.Unknown, ", "))
		}
		if n.Leveling != nil {
			fmt.Fprintf(w, "%s\n", terminal.Fold("leveling of "+n.Name+": "+n.Leveling.Result, terminal.Width-2, "  "))
		}
	}
	if s.NetworkUnknown != "" {
		fmt.Fprintf(w, "\n%s\n", terminal.Fold("what containers transfer over the network is unknown: "+s.NetworkUnknown,
			terminal.Width-2, "  "))
	}
	return nil
}

// configured says which configuration file a daemon has, and what of it is not in force.
func configured(c *api.Configuration) string {
	text := cmp.Or(c.File, "none")
	if len(c.Waiting) > 0 {
		text += "; changed, and in force after the next start of bellows: " + strings.Join(c.Waiting, ", ")
	}
	if c.Mistake != "" {
		text += "; not applied when it was read again: " + c.Mistake
	}
	return text
}

// granted says how much of a bandwidth is granted; empty if that is unknown.
func granted(all int64, free *int64) string {
	if free == nil {
		return ""
	}
	return fmt.Sprintf(", %s granted", resource.FormatRate(resource.Amount(all-*free)))
}
