package jobs

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/live/api"
)

// mostAsked is the most applications of a submission about which the daemon is asked.
const mostAsked = 100

// warnOfPeaks tells of stages that request less memory than earlier runs of their programs used. What is not known, or
// cannot be asked, is no reason to submit nothing.
func warnOfPeaks(ctx context.Context, client *client.Client, all []workload.Job, to io.Writer) {
	known := map[string][]api.Learned{}
	for i := range all {
		j := &all[i].Job
		app := cmp.Or(j.App, j.Stages[0].Profile, j.DeriveApp())
		learned, asked := known[app]
		if !asked && app != "" && len(known) < mostAsked {
			a, _ := client.App(ctx, app)
			learned, known[app] = a.Learned, a.Learned
		}
		if len(learned) == 0 {
			continue
		}
		decided := all[i].AssumingDecided()
		for s := range j.Stages {
			warnOfPeak(&decided, s, learned, to)
		}
	}
}

// warnOfPeak warns of a stage of a job for which it is decided whether what is reserved is learned.
func warnOfPeak(j *cluster.Job, stage int, learned []api.Learned, to io.Writer) {
	s := &j.Stages[stage]
	grows := j.Class == cluster.Flex
	most := s.Ideal[resource.Memory]
	if grows {
		most = s.MaxMemory
	}
	if most == 0 || s.SizesItself() {
		return
	}
	of := ""
	if len(j.Stages) > 1 {
		of = j.StageName(stage)
	}
	for i := range learned {
		l := &learned[i]
		if l.Stage != of || l.Peak() <= int64(most) {
			continue
		}
		remedy := "request more, or leave the memory and the class out"
		if grows {
			remedy = "it cannot grow so far; state more, or leave the memory out"
		}
		fmt.Fprintf(to, "bellows: job %q memory %s: earlier runs used up to %s, so it may be killed; %s\n",
			cluster.Printable(j.Name), resource.FormatMemory(most), resource.FormatMemory(resource.Amount(l.Peak())), remedy)
	}
}
