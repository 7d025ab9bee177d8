package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cmd/internal/command"
	"github.com/bellows-rm/bellows/cmd/internal/simulate"
	"github.com/bellows-rm/bellows/live"
)

const rootLong = `bellows runs memory-hungry batch work so that it shares memory instead of
waiting for fixed boxes: a task that would have to wait may run now with less
memory than its ideal, at a known price in time, if its job ends no later.

On one machine, as root:

  bellows up --memory 4GiB --detach       manage 4 GiB of this machine
  bellows run --memory 1GiB --min-memory 256MiB -- sort -S {memory} big.txt
  bellows ps

Without a machine:

  bellows simulate --workload uniform --policy fair,yarn-me

Exit codes: 0 done, 1 the work failed, 2 the input or the usage was wrong;
an attached run returns the exit code of its command.`

// newTree returns the program.
func newTree() *command.Tree {
	t := command.NewTree("bellows", "Run memory-hungry batch work so that it shares memory", rootLong)
	t.Invalid = func(err error) bool { return live.KindOf(err).ExitCode() == command.WrongUsage }
	t.Add("This machine:", upCommand(), statusCommand(), downCommand(), pruneCommand(), swapCommand())
	t.Add("Jobs:", runCommand(), submitCommand(), psCommand(), logsCommand(), explainCommand(), waitCommand(), killCommand())
	t.Add("Learn and compare:", demoCommand(), simulate.Command(storedFor), traceCommand(), profileCommand(), policiesCommand())
	t.Add("", command.NewVersionCommand(), superviseCommand())
	t.Add("", command.Moved("experiment", "bellows-lab experiment"), command.Moved("compare", "bellows simulate --seeds 10` or, for pictures, `bellows-lab compare"))
	return t
}

// place is where a daemon keeps its state and listens.
type place struct{ state, socket string }

// flags adds the flags that say where the daemon is.
func (p *place) flags(cmd *cobra.Command, withState bool) {
	if withState {
		cmd.Flags().StringVar(&p.state, "state", "", "state `directory` (or $BELLOWS_STATE)")
	}
	cmd.Flags().StringVar(&p.socket, "socket", "", "`file` where the daemon listens (or $BELLOWS_SOCKET)")
}

// fill sets what no flag has set: from the environment, else below the places that the system keeps for such things.
// A socket that nobody named stands in the state directory if that was named.
func (p *place) fill() error {
	if p.state == "" {
		p.state = os.Getenv("BELLOWS_STATE")
	}
	if p.socket == "" {
		p.socket = os.Getenv("BELLOWS_SOCKET")
	}
	if p.state != "" && p.socket == "" {
		p.socket = filepath.Join(p.state, "bellows.sock")
	}
	state, socket, err := usualPlace()
	if err != nil {
		return err
	}
	if p.state == "" {
		p.state = state
	}
	if p.socket == "" {
		p.socket = socket
	}
	for _, path := range []*string{&p.state, &p.socket} {
		if *path, err = filepath.Abs(*path); err != nil {
			return fmt.Errorf("find the working directory: %w", err)
		}
	}
	// The kernel takes no longer name for a socket.
	// A little is left for the name that it has at first.
	const longest = 100
	if len(p.socket) > longest {
		return command.Usagef("socket %q: must be at most %d characters long, not %d", p.socket, longest, len(p.socket))
	}
	return nil
}

// usualPlace returns the state directory and socket of this user.
func usualPlace() (state, socket string, err error) {
	if os.Geteuid() == 0 {
		return "/var/lib/bellows", "/run/bellows/bellows.sock", nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", "", command.Usagef("state: must be named by --state, because this user has no home directory")
	}
	state = filepath.Join(home, ".local", "state", "bellows")
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		state = filepath.Join(dir, "bellows")
	}
	socket = filepath.Join(state, "bellows.sock")
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		socket = filepath.Join(dir, "bellows", "bellows.sock")
	}
	return state, socket, nil
}
