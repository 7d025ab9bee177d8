package cgroup

import (
	"context"
	"os/exec"
	"syscall"
)

// enter is a shell script that joins the groups named by its first arguments, up to --, and executes the rest. Memory
// that the shell used before stays charged to the group in which it was started.
const enter = `while [ "$1" != -- ]; do echo 0 > "$1" || exit 125; shift; done; shift; exec "$@"`

// Command returns a command that runs in the group. The end of ctx kills all processes of the group, also the children
// of the program.
func (g *Group) Command(ctx context.Context, args ...string) *exec.Cmd {
	words := append(append([]string{"-c", enter, "sh"}, g.JoinFiles()...), "--")
	cmd := exec.CommandContext(ctx, "/bin/sh", append(words, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return g.Kill(context.Background()) }
	return cmd
}
