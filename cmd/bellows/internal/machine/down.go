package machine

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/door/client"
)

func downCommand() *cobra.Command {
	var p place.Place
	var force bool
	cmd := &cobra.Command{
		Use:        "down",
		SuggestFor: []string{"shutdown"},
		Short:      "Stop the daemon and remove its control groups",
		Long: `Stop the daemon and remove its control groups. It is refused while jobs have not
ended, unless --force kills these jobs first. Output and records of jobs stay in
the state directory.`,
		Example: `  bellows down
  bellows down --force`,
		Args: cobra.NoArgs,
		RunE: p.Run(func(cmd *cobra.Command, client *client.Client, _ []string) error {
			status, err := client.Status(cmd.Context())
			if err != nil {
				return err
			}
			if err := client.Shutdown(cmd.Context(), force); err != nil {
				return err
			}
			if client.Remote() { // Its process is on another machine.
				return nil
			}
			return waitGone(cmd.Context(), status.PID)
		}),
	}
	cmd.Flags().BoolVar(&force, "force", false, "kill the jobs that have not ended")
	p.Flags(cmd, false)
	return cmd
}

// waitGone waits for a process to end, so that a new daemon can take its place at once.
func waitGone(ctx context.Context, pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil // it has ended, or this kernel cannot tell
	}
	defer unix.Close(fd)
	for ctx.Err() == nil {
		const aWhile = 200 // milliseconds
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, aWhile)
		switch {
		case n > 0:
			return nil
		case err != nil && !errors.Is(err, unix.EINTR):
			return fmt.Errorf("wait for the daemon, process %d, to end: %w", pid, err)
		}
	}
	return ctx.Err()
}
