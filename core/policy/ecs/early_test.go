package ecs

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// mapsAndReduce has a job at 40s: of two maps one has ended, and one runs until 60s. Its reduce shuffles from 40s on,
// until 70s, or until 50s if the shuffle is brief. Another stage lasts until 160s.
func mapsAndReduce(t *testing.T, shuffle string) *table {
	s := newTable(t, 16)
	reduce := phasesOf(1, shuffle+":500m:read 20s:2", 0)
	reduce.StartShare = 0.5
	j := s.submit(1, phasesOf(2, "20s:1 20s:2"), phasesOf(1, "160s:200m"), reduce)
	maps := s.startAt(j, 0, 0, timeline.Seconds(20))
	s.start(j, 1, 1)
	if j.Ready(2) {
		t.Error("the reduce may start before the first map has ended")
	}
	s.enter(timeline.Seconds(40), cluster.Event{Kind: cluster.TaskEnded, Task: maps[0].ID, Outcome: cluster.Succeeded})
	s.startAt(j, 2, timeline.Seconds(40))
	return s
}

// Equations 11 and 13: the work after the shuffle of a reduce comes after the set of its maps. Equation 12: the shuffle
// does not stop, whatever the phase is called. Maps may end as late as the shuffle leaves them time.
func TestReduceComesAfterItsMaps(t *testing.T) {
	now := timeline.Seconds(40)
	for _, c := range []struct {
		shuffle   string
		intervals int // of the shuffle
		work      int
		mapsFloat time.Duration
		runs      [2]string // of the maps and of the reduce
		want      string
		ready     int // where the maps are in no set
	}{
		// The map ends at 60s, and the shuffle at 70s: nothing waits. The map moves, and the reduce with it.
		{"30s", 3, 5, 80 * time.Second, [2]string{"..xx", "xxx.xx"}, "0 40s-1m0s", 2},
		// The reduce waits from 50s on until the map has ended; then it stops for 10s.
		{"10s", 1, 3, 80 * time.Second, [2]string{".xx", "x...xx"}, "0 40s-50s, 2 1m10s-1m20s", 2},
	} {
		s := mapsAndReduce(t, c.shuffle)
		e := withSettings(t, "ecs.short", "false")
		q := e.question(now, s.book.Snapshot(), s.node())
		at := func(stage int32) int {
			return slices.IndexFunc(q.groups, func(g group) bool { return g.stage == stage })
		}
		maps, reduces := at(0), at(2)
		if maps < 0 || reduces < 0 {
			t.Fatalf("shuffle of %s: groups %+v", c.shuffle, q.groups)
		}
		set := q.problem.Sets[reduces]
		if !slices.Equal(set.After, []int{maps}) || set.Shuffle != c.intervals || len(set.Demand) != c.work ||
			set.Ready != 0 {
			t.Errorf("shuffle of %s: the reduce is %+v, and the maps are set %d", c.shuffle, set, maps)
		}
		if f := q.groups[maps].float; f != c.mapsFloat {
			t.Errorf("shuffle of %s: the map may end %v late", c.shuffle, f)
		}
		runs := make([][]bool, len(q.groups))
		for i := range runs {
			runs[i] = make([]bool, len(q.problem.Fixed))
			for k := range q.problem.Sets[i].Demand {
				runs[i][k] = true
			}
		}
		for i, text := range map[int]string{maps: c.runs[0], reduces: c.runs[1]} {
			clear(runs[i])
			for k, run := range text {
				runs[i][k] = run == 'x'
			}
		}
		if _, err := q.problem.Cost(runs); err != nil {
			t.Errorf("shuffle of %s: %v", c.shuffle, err)
		}
		got := ""
		for _, shift := range q.shifts(runs) {
			if got != "" {
				got += ", "
			}
			got += fmt.Sprintf("%d %v-%v", shift.Task.Stage, shift.From, shift.To)
		}
		if got != c.want {
			t.Errorf("shuffle of %s: shifts are %q, want %q", c.shuffle, got, c.want)
		}
		// Where the maps are in no set, the reduce comes after them all the same.
		e = withSettings(t, "ecs.short", "false", "ecs.sets", "1")
		q = e.question(now, s.book.Snapshot(), s.node())
		for i := range q.groups {
			if set := q.problem.Sets[i]; q.groups[i].stage == 2 && set.Ready != c.ready {
				t.Errorf("shuffle of %s: without a set of its maps the reduce is %+v", c.shuffle, set)
			}
		}
	}
}

// What a node will demand is known with the wait of a reduce: two cores from the end of the map on, and not before.
func TestDemandOfReduceThatWaits(t *testing.T) {
	s := mapsAndReduce(t, "10s")
	var d demands
	d.look(timeline.Seconds(40), s.book.Snapshot(), s.node(), nil)
	for at, want := range map[float64]int64{45: 2700, 55: 2200, 65: 2200, 85: 200} {
		if spare := d.spare.At(timeline.Seconds(at)); 16000-int64(spare[0]) != want {
			t.Errorf("at %v s the tasks demand %d millicores, want %d", at, 16000-int64(spare[0]), want)
		}
	}
}
