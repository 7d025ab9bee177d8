package jobs

import (
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
)

// A request below what earlier runs used is warned of, unless the container grows or the command sizes itself.
func TestWarnOfPeak(t *testing.T) {
	learned := []api.Learned{{Variants: []api.LearnedVariant{{Phases: []api.ForecastPhase{{Memory: 629 << 20}}}}}}
	for _, c := range []struct {
		class  cluster.Class
		memory resource.Amount
		arg    string
		warns  bool
	}{
		{cluster.Regular, 64 * resource.MiB, "big.txt", true},
		{cluster.Regular, 629 * resource.MiB, "big.txt", false},
		{cluster.Regular, 0, "big.txt", false},
		{cluster.Flex, 64 * resource.MiB, "big.txt", false},
		{cluster.Regular, 64 * resource.MiB, "-S{memory*0.8}", false},
	} {
		var said strings.Builder
		warnOfPeak(&cluster.Job{Name: "sort", Class: c.class, Stages: []cluster.Stage{{Ideal: resource.Of(1000, c.memory),
			Command: cluster.Command{Args: []string{"sort", c.arg}}}}}, 0, learned, &said)
		want := ""
		if c.warns {
			want = "bellows: job \"sort\" memory 64MiB: earlier runs used up to 629MiB, so it may be killed; request " +
				"more, or use class flex\n"
		}
		if said.String() != want {
			t.Errorf("%+v: said %q, want %q", c, said.String(), want)
		}
	}
}
