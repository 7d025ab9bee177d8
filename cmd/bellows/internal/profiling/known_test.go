package profiling

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/internal/testfile"
	"github.com/bellows-rm/bellows/live/api"
)

func known(now time.Time) []api.Application {
	measured := api.NamedProfile{Name: "sort", Made: now.Add(-time.Hour),
		Measured: api.Measured{IdealMemory: 300 * resource.MiB, MinMemory: 60 * resource.MiB,
			Duration: 4200 * time.Millisecond, Elasticity: cluster.Elasticity{Kind: cluster.SawTooth, Factor: 1.5}}}
	learned := []api.Learned{{Runs: 4, Last: now.Add(-time.Minute), InputBytes: 3 << 30, CPUMillicores: 2000,
		MemoryBytes: 1 << 30, Notes: []string{"network: never measured."}, Variants: []api.LearnedVariant{
			{Share: 0.75, Runs: 3, DurationSeconds: 60, Told: cluster.Provenance{Model: "median", Samples: 3, Error: 0.08},
				Unknown: []string{"network"},
				Phases: []api.ForecastPhase{{LengthSeconds: 20, CPU: 300, Memory: 600 << 20, Disk: 100_000_000},
					{FromSeconds: 20, LengthSeconds: 40, CPU: 2000, Memory: 1 << 30}}},
			{Share: 0.25, Runs: 1, DurationSeconds: 180, Told: cluster.Provenance{Model: "as measured", Samples: 1},
				Why: "phases: 1 instead of 2"}}}}
	doubtful := slices.Clone(learned)
	doubtful[0].DoubtfulRuns, doubtful[0].Doubtful = 2, []api.DoubtfulRun{
		{Ended: now.Add(-time.Minute), Notes: []string{"gaps 1: nothing was measured for 3s of 60s",
			"samples 2: memory must be 0 to 8PiB, taken as unknown"}},
		{Ended: now.Add(-time.Hour), Notes: []string{"the last 5 bytes of its samples were damaged and are dropped"}}}
	return []api.Application{{Name: "both", Measured: &measured, Learned: learned},
		{Name: "learned only", Learned: learned}, {Name: "with reservations", Learned: doubtful},
		{Name: "measured only", Measured: &measured},
		{Name: "broken", Trouble: "what its runs taught cannot be read, and begins anew with the next run: version 99"}}
}

// What is known is listed and shown, whether it was measured, learned, both or cannot be read.
func TestKnown(t *testing.T) {
	local := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = local })
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	apps := known(now)
	var list, show bytes.Buffer
	if err := printApps(&list, apps, now); err != nil {
		t.Fatal(err)
	}
	for i := range apps {
		if err := printApp(&show, &apps[i]); err != nil {
			t.Fatal(err)
		}
	}
	testfile.Golden(t, "list.txt", list.Bytes())
	testfile.Golden(t, "show.txt", show.Bytes())
}
