package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// No CPU is free when the CPUs that may be used are busy, whoever uses them, or when containers use all that they may
// use together. Time that a hypervisor takes is busy; other CPUs, and long times without a look, say nothing.
func TestFullCores(t *testing.T) {
	type look struct {
		user, idle, steal int64 // ticks of each of CPUs 0 and 1
		used              int64 // by containers, milliseconds
		after             time.Duration
		full, others      bool
	}
	const each = 100 // ticks in a second
	for name, looks := range map[string][]look{
		"free":                     {{user: each / 2, idle: each / 2, used: 1000}},
		"full of containers":       {{user: each, used: 2000, full: true}},
		"full of others":           {{user: each, used: 1000, full: true, others: true}},
		"others on a free machine": {{user: each / 2, idle: each / 2, used: 0, others: true}},
		"taken by a hypervisor":    {{user: each / 2, steal: each / 2, used: 1000, full: true, others: true}},
		"all of the capacity":      {{user: each * 8 / 10, idle: each * 2 / 10, used: 1600, full: true}},
		"full, then free": {{user: each, used: 2000, full: true},
			{user: each / 10, idle: each * 9 / 10, used: 200}},
		"not looked for long": {{user: each, used: 2000, after: 2 * longestGap}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCores(1600)
			c.stat, c.allowed = filepath.Join(t.TempDir(), "stat"), unix.CPUSet{}
			c.allowed.Set(0)
			c.allowed.Set(1)
			user, idle, steal := int64(1e6), int64(2e6), int64(3e6)
			write := func() {
				one := fmt.Sprintf("%d 0 0 %d 0 0 0 %d 0 0", user, idle, steal)
				text := fmt.Sprintf("cpu  9 9 9\ncpu0 %s\ncpu1 %s\ncpu2 0 0 0 %d 0 0 0 0 0 0\nintr 5\n", one, one, 7*idle)
				if err := os.WriteFile(c.stat, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			at := 100 * time.Second
			write()
			c.look(at)
			for i, l := range looks {
				user, idle, steal, at = user+l.user, idle+l.idle, steal+l.steal, at+max(l.after, time.Second)
				write()
				c.add(l.used)
				c.look(at)
				if full, others := c.now(); full != l.full || others != l.others {
					t.Errorf("look %d: full %v, others %v", i, full, others)
				}
			}
		})
	}
}

// A container that uses all of its grant while no CPU is free would use more. One that uses less has what it wants,
// since its weight gives it its grant, unless programs outside of containers take the CPUs.
func TestWantsMore(t *testing.T) {
	for _, c := range []struct {
		used   int64
		share  resource.Amount
		others bool
		want   bool
	}{{990, 1000, false, true}, {500, 1000, false, false}, {500, 500, false, true}, {500, 1000, true, true},
		{10, 1000, true, false}, {10, 0, false, false}, {50, 50, false, true}, {300, 0, false, true}} {
		if got := wantsMore(c.used, time.Second, c.share, c.others, 20); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// A quota under which a program would use more shows in its samples, and one under which a program waits does not.
func TestQuotaShows(t *testing.T) {
	b := newBench(t)
	computes, waits := b.order("sh", "-c", "while :; do :; done"), b.order("sleep", "60")
	for _, o := range []cluster.Order{computes, waits} {
		o.Grant[resource.CPU] = 200
		b.Apply([]cluster.Order{o})
		b.next(cluster.DecisionDone)
	}
	if _, ok := b.container(computes.Container).group.Has(cgroup.CPU); !ok {
		t.Skip("needs a controller of the CPU")
	}
	await(t, "the quota shows", func() bool { return b.usageOf(computes.Container).Curbed() >= time.Second })
	// Its start is work, which a slow machine curbs.
	await(t, "it waits", func() bool { return b.usageOf(waits.Container).Idle() > 0 })
	before := b.usageOf(waits.Container)
	await(t, "it waits for longer", func() bool { return b.usageOf(waits.Container).Idle() >= before.Idle()+time.Second })
	if curbed := b.usageOf(waits.Container).Curbed() - before.Curbed(); curbed != 0 {
		t.Errorf("the program was curbed for %v while it waited", curbed)
	}
}
