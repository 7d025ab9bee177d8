package keeper

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// What stops a container, and is wanted by no party, is ended by the second audit that finds it. What a party wants
// stays.
func TestLeftoversAreEnded(t *testing.T) {
	suspended := func(k *played, c *Container) { k.shown.all[c.ID] = keptState{suspended: true} }
	throttled := func(_ *played, c *Container) { c.keeping = new(keeping) }
	nothing := func(*played, *Container) {}
	for _, tt := range []struct {
		name      string
		is, stays Party
		wants     func(*played, *Container)
	}{
		{"the memory manager's", ByMemory, 0, nothing},
		{"a throttle's", ByBackOff, 0, nothing},
		{"swapping out's", BySwapping, 0, nothing},
		{"all", ByMemory | ByBackOff | BySwapping | ByEngine, ByEngine, nothing},
		{"swapping out's of a suspended container", BySwapping | ByMemory, ByMemory, suspended},
		{"none, of a suspended container", ByMemory, ByMemory, suspended},
		{"none, of a throttled container", ByBackOff, ByBackOff, throttled},
		{"none, of a paused container", ByEngine, ByEngine, nothing},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := play(t, new(cgroup.Group), new(cgroup.Group))
			c := k.add(new(cgroup.Group), cluster.Envelope{})
			c.posture.stance.still = tt.is
			tt.wants(k, c)
			for audit, want := range []Party{tt.is, tt.stays, tt.stays} {
				k.auditStances(map[cluster.ContainerID]*Container{c.ID: c})
				k.work.Wait()
				if c.posture.stance.still != want {
					t.Errorf("after audit %d it is held by %04b, want %04b", audit, c.posture.stance.still, want)
				}
			}
			if mended := k.mended.Load(); mended == 0 != (tt.is == tt.stays) {
				t.Errorf("%d mended", mended)
			}
		})
	}
}

// What is left over is looked at again when it is ended: a party that wants it by then keeps it. An action under way
// is no leftover.
func TestLeftoversThatAreWantedAgain(t *testing.T) {
	k := play(t, new(cgroup.Group), new(cgroup.Group))
	c := k.add(new(cgroup.Group), cluster.Envelope{})
	c.posture.stance.still = ByMemory | ByBackOff
	c.acting.Lock()
	if l := k.look(c); l != (leftover{}) {
		t.Errorf("while the memory manager acts %+v is left over", l)
	}
	c.acting.Unlock()
	if l := k.look(c); l.still != ByMemory|ByBackOff {
		t.Errorf("%+v is left over", l)
	}
	c.posture.stance.disk = cgroup.DiskLimit{Device: "8:0", Rate: cgroup.At(1 << 20)}
	if l := k.look(c); !l.bound {
		t.Error("the bound of its disk is not left over")
	}
	k.shown.all[c.ID], c.keeping = keptState{suspended: true}, new(keeping)
	if k.endLeftover(c); c.posture.stance.still != ByMemory|ByBackOff {
		t.Errorf("it is held by %b", c.posture.stance.still)
	}
	k.shown.all[c.ID] = keptState{}
	if k.endLeftover(c); c.posture.stance.still != ByBackOff {
		t.Errorf("it is held by %b", c.posture.stance.still)
	}
}

// A throttle ends on a full disk, too, where the order that it is to end cannot be recorded.
func TestThrottleEndsOnAFullDisk(t *testing.T) {
	k := play(t, new(cgroup.Group), new(cgroup.Group))
	kept := &records{}
	c := k.add(new(cgroup.Group), cluster.Envelope{})
	c.Records = kept
	b := cluster.Bound{Most: resource.Vector{resource.Disk: resource.MiB}, Until: calendar().Add(time.Hour)}
	if err := c.put(func(r *Record) { r.Bound, r.Device = b, "8:0" }); err != nil {
		t.Fatal(err)
	}
	kept.full = true
	c.posture.stance.still = ByBackOff
	if err := k.lift(c); err != nil || c.posture.stance.still != 0 || kept.text != "" || c.Recorded() != (Record{}) {
		t.Errorf("%v: held by %04b, %+v, %s", err, c.posture.stance.still, c.Recorded(), kept.text)
	}
}
