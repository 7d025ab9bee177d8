package keeper

import (
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// A hold that was recorded before there was leveling, and one that a supervisor of then can read.
func TestHoldRecords(t *testing.T) {
	for text, want := range map[string]Hold{
		`{"by":"owner"}`: {By: cluster.HeldByOwner},
		`{"by":""}`:      {},
		`{"by":"owner","until_ns":7,"for":{"job":3,"stage":1,"index":2}}`: {By: cluster.HeldByOwner | cluster.HeldByLeveling, Until: 7, For: cluster.TaskID{Job: 3, Stage: 1, Index: 2}},
		`{"by":"","until_ns":7}`: {By: cluster.HeldByLeveling, Until: 7},
	} {
		f := &records{all: map[Record]string{HoldRecord: text}}
		got, ok := HoldOf(f)
		if got != want || ok != (want.By != 0) {
			t.Errorf("%s is read as %+v, %v", text, got, ok)
		}
		if err := putHold(f, want); err != nil {
			t.Fatal(err)
		}
		if written := f.all[HoldRecord]; written != text {
			t.Errorf("%+v is written as %s", want, written)
		}
	}
}

// An order to page out that comes just before the record of the last one is removed keeps its record: otherwise the next order would
// leave the container stopped for ever.
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
