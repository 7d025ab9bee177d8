package board

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
)

// listed are the jobs of a list by a walk over all of its leaves.
func listed(t *testing.T, l List) (all []*Job) {
	t.Helper()
	for i := range l.leaves {
		f := &l.leaves[i]
		if len(f.jobs) == 0 || len(f.jobs) > leafSize {
			t.Fatalf("a leaf has %d jobs", len(f.jobs))
		}
		for _, j := range f.jobs {
			if j.revision > f.newest {
				t.Fatalf("job %d has revision %d, its leaf %d", j.ID, j.revision, f.newest)
			}
		}
		all = append(all, f.jobs...)
	}
	if len(all) != l.count || !slices.IsSortedFunc(all, func(a, b *Job) int { return int(a.ID - b.ID) }) {
		t.Fatalf("%d jobs, want %d that are sorted", len(all), l.count)
	}
	return all
}

// A list does what a map does, and lists before it stay as they were.
func TestJobList(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var l List
	want := map[cluster.JobID]*Job{}
	var last cluster.JobID
	add := func(id cluster.JobID, revision int64) {
		j := &Job{Job: api.Job{ID: id}, revision: revision}
		l, want[id] = l.with(j), j
	}
	for revision := int64(1); revision <= 4000; revision++ {
		before, was := l, listed(t, l)
		switch k := random.IntN(10); {
		case k < 5 || len(want) == 0:
			last += 1 + cluster.JobID(random.IntN(3))
			add(last, revision)
		case k < 7:
			add(was[random.IntN(len(was))].ID, revision)
		default:
			id := cluster.JobID(random.IntN(int(last) + 2)) // it may not be there
			if revision > 2000 && random.IntN(50) > 0 {
				id = was[random.IntN(len(was))].ID
			}
			l = l.without(id)
			delete(want, id)
		}
		if !slices.Equal(listed(t, before), was) {
			t.Fatalf("revision %d changed the list before", revision)
		}
		all := listed(t, l)
		if len(all) != len(want) {
			t.Fatalf("%d jobs, want %d", len(all), len(want))
		}
		from := max(0, revision-int64(random.IntN(20)))
		var newer []*Job
		for _, j := range all {
			if want[j.ID] != j || l.Job(j.ID) != j {
				t.Fatalf("job %d is another", j.ID)
			}
			if j.revision > from {
				newer = append(newer, j)
			}
		}
		if got := slices.Collect(l.Since(from)); !slices.Equal(got, newer) {
			t.Fatalf("%d jobs have changed since %d, want %d", len(got), from, len(newer))
		}
		if len(all) > 0 {
			at := random.IntN(len(all))
			if next := l.After(all[at].ID); next != all[(at+1)%len(all)] {
				t.Fatalf("job %d follows job %d", next.ID, all[at].ID)
			}
		}
		if l.Job(last+1) != nil || l.Job(0) != nil {
			t.Fatal("it has a job that was never added")
		}
	}
	for id := last + 1; id <= last+6400; id++ {
		add(id, 5000)
	}
	for id := cluster.JobID(0); id <= last+6400; id++ {
		if id%100 != 0 {
			l = l.without(id)
		}
	}
	if all := listed(t, l); len(l.leaves) > 2+8*len(all)/leafSize {
		t.Errorf("%d jobs of many are left, in %d leaves", len(all), len(l.leaves))
	}
}
