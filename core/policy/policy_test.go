package policy

import (
	"testing"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// A policy that starts tasks one by one refuses a job whose tasks must start together, instead of starting half of
// them.
func TestTogetherIsRefused(t *testing.T) {
	b := book.NewBook(nil)
	if err := b.Enter(0,
		&cluster.Event{Kind: cluster.NodeJoined,
			NewNode: &cluster.Node{Name: "n", Capacity: resource.Of(resource.Core, resource.GiB)}}); err != nil {
		t.Fatal(err)
	}
	j := &cluster.Job{ID: 1, Name: "j",
		Stages: []cluster.Stage{{Name: "s", Tasks: 1, Together: true, Ideal: resource.Of(resource.Core, resource.GiB)}}}
	for _, name := range Names() {
		p, err := New(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = CheckRuns(p, b.Snapshot(), j)
		if want := `job "j" stage "s" together: policy ` + name +
			` cannot start the tasks of a stage together`; !p.Traits().Together && (err == nil || err.Error() != want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
