// Command bellows runs memory-hungry batch work so that it shares memory: on this machine, or in a simulation of many.
// This package holds flags and wiring only.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/bellows-rm/bellows/agent"
	"github.com/bellows-rm/bellows/cmd/bellows/internal/demo"
)

// streams are where a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

func main() {
	// Supervisors of containers are this program too; they must stay small.
	if len(os.Args) > 1 && os.Args[1] == agent.SuperviseCommand {
		os.Exit(agent.Supervise(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == demo.WorkCommand {
		os.Exit(demo.Work(os.Args[2:]))
	}
	os.Exit(execute(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

// execute runs one command line and returns the exit code.
func execute(args []string, io streams) int {
	// A reader that went away ends commands that print by SIGPIPE, as it does other programs. Interrupts end a command's
	// context first, so that it can tidy up; one that comes later than that takes ends the process. Not one that comes at
	// once: whoever ends a process and then its group sends each signal twice.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	const tidyingUp = 10 * time.Second
	context.AfterFunc(ctx, func() { time.AfterFunc(tidyingUp, stop) })
	defer stop()
	root, started := newRoot(io)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	code := exitCode(err, *started)
	if text := errorText(err); text != "" {
		fmt.Fprintln(io.err, text)
	}
	return code
}
