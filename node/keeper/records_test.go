package keeper

import (
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// A record is read as it was written. There is one as long as the container is not as it was started.
func TestRecords(t *testing.T) {
	f := &records{}
	c := NewContainer(Setup{Group: new(cgroup.Group), Records: f})
	check := func(want Record) {
		t.Helper()
		if got, err := RecordOf(f); got != want || err != nil || c.Recorded() != want || f.text == "" != (want == Record{}) {
			t.Errorf("%+v is read as %+v, %v, and in memory it is %+v: %s", want, got, err, c.Recorded(), f.text)
		}
	}
	check(Record{})
	for _, want := range []Record{
		{Hold: cluster.Hold{By: cluster.HeldByOwner, PageOut: true}, Out: true},
		{Hold: cluster.Hold{By: cluster.HeldByLeveling, Until: 7, For: cluster.TaskID{Job: 3, Stage: 1, Index: 2}}},
		{Bound: cluster.Bound{Most: resource.Vector{}.With(resource.Disk, 5), Until: 7}, Device: "8:0"},
		{Size: cluster.Size{Grant: resource.Of(1, 2), Why: cluster.Because(cluster.LevelingEnds)},
			Was: resource.Of(3, 4), Resized: 5},
		{},
	} {
		if err := c.put(func(r *Record) { *r = want }); err != nil {
			t.Fatal(err)
		}
		check(want)
		f.full = true
		if err := c.put(func(r *Record) { r.Was[resource.CPU]++ }); err == nil {
			t.Error("a full disk has room")
		}
		f.full = false
		check(want)
	}
	f.text = "{"
	if got, err := RecordOf(f); err == nil || got != (Record{}) {
		t.Errorf("one that cannot be read is read as %+v, %v", got, err)
	}
}

// An order to page out that comes just before the record of the last one is removed keeps its record: otherwise the
// next order would leave the container stopped for ever.
func TestPageOutKeepsItsRecord(t *testing.T) {
	k := play(t, new(cgroup.Group), new(cgroup.Group))
	c := k.add(new(cgroup.Group), cluster.Envelope{})
	c.outing.moving = true // No goroutine moves its memory in this test.
	wants := func(out bool) {
		if err := c.put(func(r *Record) { r.Hold = cluster.Hold{By: cluster.HeldByOwner, PageOut: out} }); err != nil {
			t.Fatal(err)
		}
		k.wantOut(c, out)
	}
	wants(true)
	if err := c.isBack(); err != nil || !c.Recorded().Out {
		t.Errorf("the record is gone: %v", err)
	}
	wants(false)
	if err := c.isBack(); err != nil || c.Recorded().Out {
		t.Errorf("the record is left: %v", err)
	}
}

// The bound on a disk shows in what is known of a container's stillness, until its end.
func TestStoodBound(t *testing.T) {
	c := NewContainer(Setup{Group: new(cgroup.Group)})
	s := stance{disk: cgroup.DiskLimit{Device: "8:0", Rate: cgroup.At(5)}}
	c.posture.stood.note(&s, c.Group)
	if _, bound := c.SuspendedFor(); bound != 5 {
		t.Errorf("bound %d", bound)
	}
	s.disk.Rate = cgroup.Unlimited()
	c.posture.stood.note(&s, c.Group)
	if _, bound := c.SuspendedFor(); bound != 0 {
		t.Errorf("bound %d after its end", bound)
	}
}
