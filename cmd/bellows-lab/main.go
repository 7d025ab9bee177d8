// Command bellows-lab studies how bellows shares memory: it makes papers' tables and figures again, and sets the papers'
// numbers beside ours. This package holds flags and wiring only.
package main

import (
	"os"

	"github.com/bellows-rm/bellows/cmd/internal/command"
)

const rootLong = `bellows-lab holds the studies of bellows: they make tables and figures of papers
again, and set the papers' numbers beside ours. Nobody needs them to run work.

  bellows-lab experiment list
  bellows-lab experiment run yarn-me/fig6a
  bellows-lab experiment show yarn-me/fig6a --from docs/results
  bellows-lab compare --workload uniform --policy fair,yarn-me --html page.html

Exit codes: 0 done, 1 the work failed, 2 the input or the usage was wrong.`

// newTree returns the program.
func newTree() *command.Tree {
	t := command.NewTree("bellows-lab", "Study how bellows shares memory", rootLong)
	t.Add("", experimentCommand(), compareCommand(), modelCommand(), pagingCommand(), patternCommand(), command.NewVersionCommand())
	return t
}

func main() {
	os.Exit(newTree().Execute(os.Args[1:], command.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
