// Command bellows-lab studies how bellows shares memory: it reproduces tables and figures of papers, and compares the
// papers' numbers with ours. This package has only flags and wiring.
package main

import (
	"os"

	"github.com/bellows-rm/bellows/door/cli/command"
	_ "github.com/bellows-rm/bellows/door/cli/supervisor"
	"github.com/bellows-rm/bellows/studies/boundeddisk"
)

const rootLong = `bellows-lab has the studies of bellows: they reproduce tables and figures of
papers, and compare the papers' numbers with ours. Running jobs does not need
them.

  bellows-lab experiment list
  bellows-lab experiment run yarn-me/fig6a
  bellows-lab experiment show yarn-me/fig6a --from docs/results
  bellows-lab compare --workload uniform --policy fair,yarn-me --html page.html

Exit codes: 0 done, 1 the work failed, 2 the input or the usage was wrong.`

// newTree returns the program.
func newTree() *command.Tree {
	t := command.NewTree("bellows-lab", "Study how bellows shares memory", rootLong)
	t.Add("", experimentCommand(), compareCommand(), demandCommand(), firstuseCommand(), sparkstreamCommand(),
		modelCommand(), command.NewVersionCommand())
	return t
}

func main() {
	// The server of a disk runs this program too.
	if len(os.Args) > 1 && os.Args[1] == boundeddisk.Command {
		os.Exit(boundeddisk.Serve(os.Args[2:]))
	}
	os.Exit(newTree().Execute(os.Args[1:], command.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
