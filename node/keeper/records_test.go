package keeper

import (
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// A hold is read as it was written.
func TestHoldRecords(t *testing.T) {
	f := &records{all: map[Record]string{}}
	if got, ok := HoldOf(f); ok || got != (Hold{}) {
		t.Errorf("without a record: %+v, %v", got, ok)
	}
	for _, want := range []Hold{
		{By: cluster.HeldByOwner}, {},
		{By: cluster.HeldByOwner | cluster.HeldByLeveling, Until: 7, For: cluster.TaskID{Job: 3, Stage: 1, Index: 2}},
		{By: cluster.HeldByLeveling, Until: 7},
	} {
		if err := f.Put(HoldRecord, want); err != nil {
			t.Fatal(err)
		}
		if got, ok := HoldOf(f); got != want || ok != (want.By != 0) {
			t.Errorf("%+v is read as %+v, %v", want, got, ok)
		}
	}
}

// An order to page out that comes just before the record of the last one is removed keeps its record: otherwise the
// next order would leave the container stopped for ever.
func TestPageOutKeepsItsRecord(t *testing.T) {
	k := play(t, new(cgroup.Group), new(cgroup.Group))
	c := k.add(new(cgroup.Group), cluster.Envelope{})
	c.outing.moving = true // No goroutine moves its memory in this test.
	k.wantOut(c, true)
	if err := k.endRecord(c); err != nil || !c.Records.Has(OutRecord) {
		t.Errorf("the record is gone: %v", err)
	}
	k.wantOut(c, false)
	if err := k.endRecord(c); err != nil || c.Records.Has(OutRecord) {
		t.Errorf("the record is left: %v", err)
	}
}

// The bound on a disk shows in what is known of a container's stillness, until its end.
func TestStoodBound(t *testing.T) {
	c := NewContainer(Setup{Group: new(cgroup.Group)})
	s := stance{disk: cgroup.DiskLimit{Device: "8:0", Rate: cgroup.At(5)}}
	c.stood.note(&s, c.Group)
	if _, bound := c.Stood(); bound != 5 {
		t.Errorf("bound %d", bound)
	}
	s.disk.Rate = cgroup.Unlimited()
	c.stood.note(&s, c.Group)
	if _, bound := c.Stood(); bound != 0 {
		t.Errorf("bound %d after its end", bound)
	}
}
