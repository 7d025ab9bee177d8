package board

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
)

// A board that has forgotten ends of jobs says so: whoever knows only an earlier revision begins anew.
func TestBoardForgetsEnds(t *testing.T) {
	b := First(3, 0, 0)
	var revisions []int64
	for id := range cluster.JobID(3 * mostLeft) {
		e := b.Edit()
		j := &Job{Job: api.Job{ID: id + 1, Ended: true}, revision: e.next, replaced: make(chan struct{})}
		e.Drop(j, nil)
		next := e.Board
		b = &next
		revisions = append(revisions, b.revision)
	}
	if len(b.left) != mostLeft || b.leftSize != mostLeft {
		t.Errorf("the ends of %d jobs are kept, want %d", len(b.left), mostLeft)
	}
	for back, snapshot := range map[int]bool{1: false, mostLeft - 1: false, mostLeft: false, mostLeft + 1: true,
		3*mostLeft - 1: true} {
		from := revisions[len(revisions)-1-back]
		u, news := b.Changes(from, 0)
		if !news || u.Snapshot != snapshot || u.Revision != b.revision || !snapshot && len(u.Jobs) != back || snapshot &&
			len(u.Jobs) != 0 {
			t.Errorf("%d revisions back: a snapshot (%v), %d jobs", back, u.Snapshot, len(u.Jobs))
		}
	}
	for _, from := range []int64{0, 1, First(3, 0, 0).revision - 1, First(4, 0, 0).revision, b.revision + 1} {
		if u, news := b.Changes(from, 0); !news || !u.Snapshot {
			t.Errorf("from revision %d: no snapshot", from)
		}
	}
}

// BenchmarkPublish measures what it costs to show on a board that one of many jobs has changed, and to find out what
// has changed since the board before.
func BenchmarkPublish(b *testing.B) {
	for _, jobs := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("jobs=%d", jobs), func(b *testing.B) {
			e := First(1, 0, 0).Edit()
			for id := range cluster.JobID(jobs) {
				e.Show(&Job{Job: api.Job{ID: id + 1}, revision: e.next, replaced: make(chan struct{})}, nil)
			}
			now := e.Board
			random := rand.New(rand.NewPCG(1, 5))
			b.ReportAllocs()
			for b.Loop() {
				e := now.Edit()
				was := e.Jobs.Job(cluster.JobID(1 + random.IntN(jobs)))
				next := *was
				next.revision = e.next
				e.Show(&next, was)
				now = e.Board
				if u, news := now.Changes(now.revision-1, 0); !news || len(u.Jobs) == 0 {
					b.Fatal("nothing has changed")
				}
			}
		})
	}
}
