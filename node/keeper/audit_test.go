package keeper

import (
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// TestAudit: a container in the memory manager's books that there is not, and one that there is and is not in the
// books, are found wrong at the first audit and mended at the second; what is right stays.
func TestAudit(t *testing.T) {
	k := play(t, new(cgroup.Group), new(cgroup.Group))
	const size = 64 * resource.MiB
	envelope := cluster.Envelope{Min: size, Max: size}
	right, missing := k.add(new(cgroup.Group), envelope), k.add(new(cgroup.Group), envelope)
	k.decide(memory.Input{Started: []memory.Started{{Envelope: right.envelope()}, {Envelope: missing.envelope()}}})
	lost := cluster.ContainerID{Task: cluster.TaskID{Job: 9999}, Run: 1}
	k.decide(memory.Input{Started: []memory.Started{{Envelope: memory.Envelope{Container: lost,
		Envelope: cluster.Envelope{Min: 100 * resource.MiB, Max: 100 * resource.MiB}}}},
		Ended: []cluster.ContainerID{missing.ID}})
	if held := k.manager.Allocated(); held != 164*resource.MiB {
		t.Fatalf("%d bytes are allocated, and the books are not as wrong as they should be", held)
	}
	k.audit()
	if n := k.Mended(); n != 0 {
		t.Errorf("%d containers are mended at first sight", n)
	}
	k.audit()
	k.audit()
	if n, held := k.Mended(), k.manager.Allocated(); n != 2 || held != 128*resource.MiB {
		t.Errorf("%d containers are mended, and %d bytes allocated", n, held)
	}
}

// A container that has not started is in the books from its admission on, and stays there.
func TestAuditBeforeTheStart(t *testing.T) {
	k := play(t, new(cgroup.Group), new(cgroup.Group))
	id := cluster.ContainerID{Task: cluster.TaskID{Job: 5}, Run: 1}
	k.containers[id] = nil
	k.decide(memory.Input{Started: []memory.Started{{Envelope: memory.Envelope{Container: id,
		Envelope: cluster.Envelope{Min: resource.MiB, Max: resource.MiB}}}}})
	for range 3 {
		k.audit()
	}
	if n, held := k.Mended(), k.manager.Allocated(); n != 0 || held != resource.MiB {
		t.Errorf("%d containers are mended, and %d bytes allocated", n, held)
	}
}

// The audit ends a hold of leveling that nothing else ends.
func TestLevelingIsAudited(t *testing.T) {
	k, c := asleep(t)
	all := k.Containers()
	stands := func() bool { requested, _ := c.Group.Frozen(); return requested }
	hold := cluster.Hold{By: cluster.HeldByLeveling, Until: calendar().Add(-LevelingGrace)}
	if err := k.Hold(c, hold); err != nil {
		t.Fatal(err)
	}
	if k.auditStillness(all); k.Mended() != 0 {
		t.Errorf("mended %d", k.Mended())
	}
	if !stands() {
		t.Fatal("it does not stand still")
	}
	hold.Until = hold.Until.Add(-overdue)
	if err := k.Hold(c, hold); err != nil {
		t.Fatal(err)
	}
	k.auditStillness(all)
	comes(t, "the end of its hold", func() bool { return !stands() })
	comes(t, "the end of the record", func() bool { return c.Recorded().Hold == (cluster.Hold{}) })
	if k.auditStillness(all); k.Mended() != 1 {
		t.Errorf("mended %d", k.Mended())
	}
}

// The audit resumes a container when the goroutine hangs that should resume it.
func TestStillnessIsAudited(t *testing.T) {
	k, c := asleep(t)
	all := k.Containers()
	if err := c.Stop(t.Context(), ByBackOff); err != nil {
		t.Fatal(err)
	}
	c.stillUntil.Store(int64(SinceBoot()))
	k.auditStillness(all)
	if requested, _ := c.Group.Frozen(); !requested || k.Mended() != 0 {
		t.Fatalf("frozen is %v, mended %d", requested, k.Mended())
	}
	c.stillUntil.Store(int64(SinceBoot() - overdue))
	k.auditStillness(all)
	comes(t, "the end of its stillness", func() bool { requested, _ := c.Group.Frozen(); return !requested })
	if k.auditStillness(all); k.Mended() != 1 {
		t.Errorf("mended %d", k.Mended())
	}
}
