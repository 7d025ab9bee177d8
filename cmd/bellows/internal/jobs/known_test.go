package jobs

import (
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/live/api"
)

// A limit above what any node has is warned of where the container may grow to it, also where the daemon decides that.
// A box of that size will be refused.
func TestWarnOfSize(t *testing.T) {
	const gib = resource.GiB
	for _, c := range []struct {
		class        cluster.Class
		reserve      cluster.ReserveBy
		undecided    bool
		memory, most resource.Amount
		what         string
	}{
		{cluster.Regular, 0, false, 4 * gib, 0, ""},
		{cluster.Flex, 0, false, gib, 4 * gib, "maximum memory 4GiB"},
		{cluster.Flex, 0, false, 3 * gib, 4 * gib, ""},
		{cluster.Flex, 0, false, gib, 2 * gib, ""},
		{cluster.Flex, cluster.ReserveLearned, false, 4 * gib, 0, "memory 4GiB"},
		{cluster.Regular, 0, true, 4 * gib, 0, "memory 4GiB"},
		{cluster.Regular, 0, true, 2 * gib, 0, ""},
		{cluster.Regular, 0, true, 0, 0, ""},
	} {
		var said strings.Builder
		j := workload.Job{Undecided: c.undecided, Job: cluster.Job{Name: "sort", Class: c.class, Reserve: c.reserve,
			Stages: []cluster.Stage{{Name: "s", Ideal: resource.Of(1000, c.memory), MaxMemory: c.most}}}}
		warnOfSize(&j, 2*gib, &said)
		want := ""
		if c.what != "" {
			want = "bellows: job \"sort\" stage \"s\" " + c.what + ": the largest machine has only 2GiB for containers\n"
		}
		if said.String() != want {
			t.Errorf("%+v: said %q, want %q", c, said.String(), want)
		}
	}
}

// A limit below what earlier runs used is warned of, unless the command sizes itself: of a box, and of a container that
// may not grow so far, also where the daemon decides what is reserved.
func TestWarnOfPeak(t *testing.T) {
	learned := []api.Learned{{Variants: []api.LearnedVariant{{Phases: []api.ForecastPhase{{Memory: 629 << 20}}}}}}
	const box = "request more, or leave the memory and the class out"
	const grows = "it cannot grow so far; state more, or leave the memory out"
	for _, c := range []struct {
		class     cluster.Class
		reserve   cluster.ReserveBy
		undecided bool
		memory    resource.Amount
		most      resource.Amount
		arg       string
		remedy    string
	}{
		{cluster.Regular, 0, false, 64 * resource.MiB, 0, "big.txt", box},
		{cluster.Regular, 0, false, 629 * resource.MiB, 0, "big.txt", ""},
		{cluster.Regular, 0, false, 0, 0, "big.txt", ""},
		{cluster.Regular, 0, false, 64 * resource.MiB, 0, "-S{memory*0.8}", ""},
		{cluster.Flex, 0, false, 64 * resource.MiB, 0, "big.txt", ""},
		{cluster.Flex, 0, false, 32 * resource.MiB, 64 * resource.MiB, "big.txt", grows},
		{cluster.Flex, cluster.ReserveLearned, false, 64 * resource.MiB, 0, "big.txt", grows},
		{cluster.Regular, 0, true, 64 * resource.MiB, 0, "big.txt", grows},
		{cluster.Regular, 0, true, 700 * resource.MiB, 0, "big.txt", ""},
		{cluster.Regular, 0, true, 0, 0, "big.txt", ""},
	} {
		var said strings.Builder
		j := workload.Job{Undecided: c.undecided, Job: cluster.Job{Name: "sort", Class: c.class, Reserve: c.reserve,
			Stages: []cluster.Stage{{Ideal: resource.Of(1000, c.memory), MaxMemory: c.most,
				Command: cluster.Command{Args: []string{"sort", c.arg}}}}}}
		decided := j.AssumingDecided()
		warnOfPeak(&decided, 0, learned, &said)
		want := ""
		if c.remedy != "" {
			want = "bellows: job \"sort\" memory 64MiB: earlier runs used up to 629MiB, so it may be killed; " + c.remedy + "\n"
		}
		if said.String() != want {
			t.Errorf("%+v: said %q, want %q", c, said.String(), want)
		}
	}
}
