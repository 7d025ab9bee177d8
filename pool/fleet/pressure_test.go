package fleet

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/live/api"
)

func disk(n resource.Amount) resource.Vector {
	return resource.Vector{}.With(resource.Disk, n*resource.MB)
}

// Who uses much of what is pressed is an offender, and not who uses little of it or much of something else.
func TestOffenders(t *testing.T) {
	uses := func(of ...resource.Amount) map[cluster.JobID]resource.Vector {
		all := map[cluster.JobID]resource.Vector{}
		for i, n := range of {
			all[cluster.JobID(i+1)] = disk(n)
		}
		return all
	}
	network := uses(10, 4)
	network[3] = resource.Vector{}.With(resource.Network, resource.GB)
	for what, c := range map[string]struct {
		live.Pressure
		want []cluster.JobID
	}{
		"alike":           {live.Pressure{Gives: disk(30), Uses: uses(10, 10, 10)}, []cluster.JobID{1, 2, 3}},
		"one most":        {live.Pressure{Gives: disk(30), Uses: uses(4, 1, 90, 1)}, []cluster.JobID{3}},
		"just half":       {live.Pressure{Gives: disk(30), Uses: uses(10, 10, 4)}, []cluster.JobID{1, 2, 3}},
		"less than half":  {live.Pressure{Gives: disk(30), Uses: uses(10, 10, 3)}, []cluster.JobID{1, 2}},
		"nobody":          {live.Pressure{Gives: disk(30)}, nil},
		"nothing of it":   {live.Pressure{Gives: disk(30), Uses: network}, []cluster.JobID{1, 2}},
		"not pressed":     {live.Pressure{Uses: uses(10, 10)}, nil},
		"bounded already": {live.Pressure{Gives: disk(30), Bounded: true, Uses: uses(10, 10)}, nil},
	} {
		if got := slices.Sorted(maps.Keys(offenders(&c.Pressure))); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}

// When the machine is pressed, the pool whose executors use much of its disk has fewer tasks for a while, and says
// why. A pool that uses little goes on.
func TestMachineIsPressed(t *testing.T) {
	bubble(t, 8, func(t *testing.T, m *machine) {
		a, b := m.put(ada, func(s *api.PoolSpec) { s.Max = 4 }), m.put(bob, func(s *api.PoolSpec) { s.Max = 4 })
		m.enrol(a, 1000)
		m.enrol(b, 1000)
		busy := func(when string, ofA, ofB int) {
			t.Helper()
			if x, y := m.detail(a), m.detail(b); x.Busy != ofA || y.Busy != ofB {
				t.Errorf("%s %d and %d executors are busy, want %d and %d", when, x.Busy, y.Busy, ofA, ofB)
			}
		}
		m.later(2500 * time.Millisecond)
		busy("at first", 4, 4)
		uses := map[cluster.JobID]resource.Vector{}
		for i, r := range []api.PoolRef{a, b} {
			for _, e := range m.detail(r).Members {
				uses[e.Job] = disk([]resource.Amount{7, 1}[i])
			}
		}
		m.pressures <- live.Pressure{Gives: disk(30), Bounded: true, Uses: uses}
		m.later(1500 * time.Millisecond)
		busy("while programs are bounded", 4, 4)
		m.pressures <- live.Pressure{Gives: disk(30), Uses: uses}
		m.later(1500 * time.Millisecond)
		busy("pressed", 2, 4)
		d := m.detail(a)
		if d.Executors != 4 || !strings.Contains(d.Enrolled[0].Why, "the machine gives 30MB/s of disk, of 100MB/s") {
			t.Errorf("pressed: %+v", d)
		}
		m.pressures <- live.Pressure{}
		m.later(500 * time.Millisecond)
		busy("relieved", 4, 4)
	})
}
