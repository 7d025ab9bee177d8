package jobs

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

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
		for s := range j.Stages {
			warnOfPeak(j, s, learned, to)
		}
	}
}

func warnOfPeak(j *cluster.Job, stage int, learned []api.Learned, to io.Writer) {
	s := &j.Stages[stage]
	memory := int64(s.Ideal[resource.Memory])
	sizesItself := slices.ContainsFunc(s.Args, func(arg string) bool { return strings.Contains(arg, "{memory") })
	if j.Class == cluster.Flex || memory == 0 || sizesItself {
		return
	}
	of := ""
	if len(j.Stages) > 1 {
		of = j.StageName(stage)
	}
	for i := range learned {
		if l := &learned[i]; l.Stage == of && l.Peak() > memory {
			fmt.Fprintf(to, "bellows: job %q memory %s: earlier runs used up to %s, so it may be killed; request more, "+
				"or use class flex\n", cluster.Printable(j.Name), resource.FormatMemory(resource.Amount(memory)),
				resource.FormatMemory(resource.Amount(l.Peak())))
		}
	}
}
