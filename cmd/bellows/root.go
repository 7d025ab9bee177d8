package main

import (
	"slices"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/advise"
	"github.com/bellows-rm/bellows/cmd/bellows/internal/jobs"
	"github.com/bellows-rm/bellows/cmd/bellows/internal/machine"
	"github.com/bellows-rm/bellows/cmd/bellows/internal/mapping"
	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/cmd/bellows/internal/pooling"
	"github.com/bellows-rm/bellows/cmd/bellows/internal/profiling"
	"github.com/bellows-rm/bellows/cmd/bellows/internal/replay"
	"github.com/bellows-rm/bellows/cmd/bellows/internal/top"

	"github.com/bellows-rm/bellows/cmd/bellows/internal/trace"

	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/cli/simulate"
	"github.com/bellows-rm/bellows/live/api"
)

const rootLong = `bellows runs memory-hungry batch work so that it shares memory instead of
waiting for fixed boxes: a task that would have to wait may run now with less
memory than its ideal, at a known price in time, if its job ends no later.

  bellows up --memory 4GiB --detach       manage 4 GiB of this machine, as root
  bellows run --memory 1GiB --min-memory 256MiB -- sort -S {memory} big.txt
  bellows ps
  bellows simulate --workload uniform --policy fair,yarn-me

Exit codes: 0 done, 1 the work failed, 2 the input or the usage was wrong;
an attached run returns the exit code of its command.`

// newTree returns the program.
func newTree() *command.Tree {
	t := command.NewTree("bellows", "Run memory-hungry batch work so that it shares memory", rootLong)
	t.Invalid = func(err error) bool { return api.KindOf(err).ExitCode() == command.WrongUsage }
	t.Add("This machine:", slices.Insert(machine.Commands(), 2, top.Command())...) // behind status
	t.Add("Jobs:", append(jobs.Commands(), pooling.Command(), mapping.Command())...)
	t.Add("Learn and compare:", demoCommand(), simulate.Command(place.StoredProfiles), replay.Command(), advise.Command(),
		trace.Command(),
		profiling.Command(), policiesCommand())
	t.Add("", command.NewVersionCommand(), command.NewManualCommand(), superviseCommand(),
		pooling.SparkExecutorCommand())
	return t
}
