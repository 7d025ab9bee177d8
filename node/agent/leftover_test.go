package agent

import (
	"os"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// What stops a container, and is wanted by no party, is ended by the second audit that finds it. What a party wants stays.
func TestLeftoversAreEnded(t *testing.T) {
	suspended := func(k *keeper, c *container) { k.state[c.id] = keptState{suspended: true} }
	throttled := func(_ *keeper, c *container) { c.throttled = true }
	nothing := func(*keeper, *container) {}
	for _, tt := range []struct {
		name      string
		is, stays holders
		wants     func(*keeper, *container)
	}{
		{"the memory manager's", byMemory, 0, nothing},
		{"a throttle's", byBackOff, 0, nothing},
		{"swapping out's", bySwapping, 0, nothing},
		{"all", byMemory | byBackOff | bySwapping | byEngine, byEngine, nothing},
		{"swapping out's of a suspended container", bySwapping | byMemory, byMemory, suspended},
		{"none, of a suspended container", byMemory, byMemory, suspended},
		{"none, of a throttled container", byBackOff, byBackOff, throttled},
		{"none, of a paused container", byEngine, byEngine, nothing},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, c := onPaper(t, recordOfRelease1)
			k := &keeper{agent: a, state: map[cluster.ContainerID]keptState{}}
			c.stance.still = tt.is
			tt.wants(k, c)
			for audit, want := range []holders{tt.is, tt.stays, tt.stays} {
				k.auditStances(map[cluster.ContainerID]*container{c.id: c})
				a.work.Wait()
				if c.stance.still != want {
					t.Errorf("after audit %d it is held by %04b, want %04b", audit, c.stance.still, want)
				}
			}
			if mended := k.mended.Load(); mended == 0 != (tt.is == tt.stays) {
				t.Errorf("%d mended", mended)
			}
		})
	}
}

// What is left over is looked at again when it is ended: a party that wants it by then keeps it. An action under way is no leftover.
func TestLeftoversThatAreWantedAgain(t *testing.T) {
	a, c := onPaper(t, recordOfRelease1)
	k := &keeper{agent: a, state: map[cluster.ContainerID]keptState{}}
	c.stance.still = byMemory | byBackOff
	c.acting.Lock()
	if l := k.look(c); l != (leftover{}) {
		t.Errorf("while the memory manager acts %+v is left over", l)
	}
	c.acting.Unlock()
	if l := k.look(c); l.still != byMemory|byBackOff {
		t.Errorf("%+v is left over", l)
	}
	c.stance.disk = cgroup.DiskLimit{Device: "8:0", Rate: cgroup.At(1 << 20)}
	if l := k.look(c); !l.bound {
		t.Error("the bound of its disk is not left over")
	}
	k.state[c.id], c.throttled = keptState{suspended: true}, true
	if k.endLeftover(c); c.stance.still != byMemory|byBackOff {
		t.Errorf("it is held by %b", c.stance.still)
	}
	k.state[c.id] = keptState{}
	if k.endLeftover(c); c.stance.still != byBackOff {
		t.Errorf("it is held by %b", c.stance.still)
	}
}

// A throttle ends on a full disk, too, where the order that it is to end cannot be recorded.
func TestThrottleEndsOnAFullDisk(t *testing.T) {
	a, c := onPaper(t, recordOfRelease1)
	th := throttle{Bound: resource.Vector{resource.Disk: resource.MiB}, Until: now().Add(time.Hour)}
	if err := c.dir.put(throttleFile, th); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(c.dir.path(throttleFile+".tmp/full"), 0o700); err != nil { // no new file can be written there
		t.Fatal(err)
	}
	c.stance.still = byBackOff
	if err := a.lift(c, &th); err != nil || c.stance.still != 0 || c.dir.exists(throttleFile) || th != (throttle{}) {
		t.Errorf("%v: held by %04b, %+v", err, c.stance.still, th)
	}
}
