package agent

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/keeper"
)

// Of orders about all fields of what is wanted of a container, which come faster than they are carried out, each is
// answered once. Those about one field are answered in their order, and the last one counts. A size that cannot be had
// changes nothing of the rest.
func TestFieldsAreAnsweredByThemselves(t *testing.T) {
	h := newHeld(t)
	var open [cluster.NumWantFields][]cluster.DecisionID
	var all []cluster.Order
	order := func(d cluster.Decision) {
		h.last++
		o := h.start
		o.Decision, o.Launch = d, nil
		o.ID, o.Task = h.last, h.start.Task
		f, _ := o.Kind.Sets()
		open[f] = append(open[f], o.ID)
		all = append(all, o)
	}
	until := now().Add(time.Minute)
	for i := range resource.Amount(4) {
		order(cluster.Decision{Kind: cluster.Suspend, By: cluster.HeldByOwner})
		order(cluster.Decision{Kind: cluster.Throttle, Bound: resource.Vector{}.With(resource.Disk, (i+1)*resource.MiB),
			At: until})
		order(cluster.Decision{Kind: cluster.Resume})
		order(cluster.Decision{Kind: cluster.Resize, Grant: grantOf(0, i)})
	}
	order(cluster.Decision{Kind: cluster.Suspend, By: cluster.HeldByOwner})
	h.Apply(all)
	newest := [cluster.NumWantFields]cluster.EventKind{cluster.WantSize: cluster.DecisionFailed,
		cluster.WantHold: cluster.DecisionDone, cluster.WantBound: cluster.DecisionDone}
	for range all {
		e := h.nextOf(cluster.DecisionDone, cluster.DecisionFailed, cluster.DecisionSuperseded)
		f := slices.IndexFunc(open[:], func(ids []cluster.DecisionID) bool { return slices.Index(ids, e.Decision) == 0 })
		if f < 0 {
			t.Fatalf("%+v, open are %v", e, open)
		}
		if open[f] = open[f][1:]; len(open[f]) == 0 && e.Kind != newest[f] {
			t.Errorf("%+v is the answer to the last order about field %d", e, f)
		}
	}
	h.stands(true)
	record := h.c.recorded(t)
	record.Device = ""
	want := keeper.Record{Hold: cluster.Hold{By: cluster.HeldByOwner},
		Bound: cluster.Bound{Most: resource.Vector{}.With(resource.Disk, 4*resource.MiB), Until: until}}
	if record != want {
		t.Errorf("recorded is %+v, want %+v", record, want)
	}
	h.hold(0)
	h.next(cluster.DecisionDone)
	h.stands(false)
}

// What is wanted of a container can change, and end, on a full disk, too; what was not wanted before cannot begin.
func TestWantOnAFullDisk(t *testing.T) {
	b := onSmallDisk(t, "512k")
	h := newHeldOn(b, cluster.Envelope{})
	until := now().Add(time.Hour)
	h.level(cluster.HeldByOwner, until)
	h.next(cluster.DecisionDone)
	ballast := b.fillDisk()
	wants := func(o cluster.Hold, kind cluster.EventKind) {
		t.Helper()
		if e := h.nextOf(cluster.DecisionDone, cluster.DecisionFailed); e.Kind != kind {
			t.Errorf("%s: %s", e.Kind, e.Detail)
		}
		h.stands(o.By != 0)
		if is := h.c.recorded(t).Hold; is != o {
			t.Errorf("recorded is %+v, want %+v", is, o)
		}
	}
	h.hold(cluster.HeldByOwner) // shorter than the record before
	wants(cluster.Hold{By: cluster.HeldByOwner}, cluster.DecisionDone)
	h.level(0, until)
	wants(cluster.Hold{By: cluster.HeldByLeveling, Until: until, For: cluster.TaskID{Job: 7}}, cluster.DecisionDone)
	h.hold(0)
	wants(cluster.Hold{}, cluster.DecisionDone)
	b.fillDisk() // also what the record took
	h.hold(cluster.HeldByOwner)
	wants(cluster.Hold{}, cluster.DecisionFailed)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	h.hold(cluster.HeldByOwner)
	wants(cluster.Hold{By: cluster.HeldByOwner}, cluster.DecisionDone)
}
