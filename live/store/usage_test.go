package store

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/usage"
)

// steps returns a usage of n spans, no two of which are alike.
func steps(n int) usage.Usage {
	var u usage.Usage
	for i := range n {
		u.Spans = append(u.Spans,
			usage.Span{Length: time.Second, Used: usage.Amounts{usage.CPU: int64(i * 10), usage.Memory: int64(i%3) << 20},
				Known: usage.SetOf(usage.CPU, usage.Memory)})
	}
	return u
}

// withRuns stores a job with runs of its first task, and returns their containers.
func withRuns(t *testing.T, s *Store, runs int) (cluster.JobID, []cluster.ContainerID) {
	t.Helper()
	id, err := s.AddJob(t.Context(), sample("measured"))
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	var containers []cluster.ContainerID
	for run := range runs {
		c := cluster.ContainerID{Task: cluster.TaskID{Job: id}, Run: run + 1}
		containers = append(containers, c)
		b.Tasks = append(b.Tasks, Task{Container: c, UID: 7, Node: "n"})
	}
	if err := s.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return id, containers
}

// all returns the usage of a job, the run that ended last first.
func all(ctx context.Context, s *Store, id cluster.JobID) (out []Usage, err error) {
	err = s.Usage(ctx, id, func(u Usage) error {
		out = append(out, u)
		return nil
	})
	return out, err
}

func TestUsage(t *testing.T) {
	s := open(t, t.TempDir())
	id, runs := withRuns(t, s, 3)
	want := []Usage{{Container: runs[2], Ended: 6, Usage: steps(1), Missing: "the first hour"},
		{Container: runs[0], Ended: 5, Usage: steps(4)}}
	stranger := Usage{Container: cluster.ContainerID{Task: cluster.TaskID{Job: id + 1}, Run: 1}, Usage: steps(1)}
	if err := s.Write(t.Context(), Batch{Usage: append(want, stranger)}); err != nil {
		t.Fatal(err)
	}
	// A run that is reported again, as after a crash, keeps what it has; and the run may be written again.
	again := Batch{Usage: []Usage{{Container: runs[0], Ended: 9, Usage: steps(2)}},
		Tasks: []Task{{Container: runs[0], UID: 7, Node: "n", Ended: 9}}}
	if err := s.Write(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if got, err := all(t.Context(), s, id); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v: %+v", err, got)
	}
	if got, err := all(t.Context(), s, id+1); err != nil || len(got) != 0 {
		t.Errorf("of no job: %v, %+v", err, got)
	}
	// It goes with its job.
	if err := s.Write(t.Context(),
		Batch{Jobs: map[cluster.JobID]JobState{id: {Status: cluster.StatusSucceeded, Ended: true}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(t.Context(), []cluster.JobID{id}); err != nil {
		t.Fatal(err)
	}
	if got, err := all(t.Context(), s, id); err != nil || len(got) != 0 {
		t.Errorf("after the removal of its job: %v, %+v", err, got)
	}
}

// Old runs are thinned, a few at a time, and only once. What this program cannot read stays, and says so.
func TestThinUsage(t *testing.T) {
	s := open(t, t.TempDir())
	id, runs := withRuns(t, s, 5)
	var b Batch
	for i, c := range runs {
		b.Usage = append(b.Usage, Usage{Container: c, Ended: 10, Usage: steps(100)})
		if i == 3 {
			b.Usage[i].Ended = 20
		}
	}
	if err := s.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.Exec("UPDATE usage SET body = x'63' WHERE run = 5"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{2, 2, 0} {
		if n, err := s.ThinUsage(t.Context(), 15, 8, 2); err != nil || n != want {
			t.Errorf("thinned %d, %v; want %d", n, err, want)
		}
	}
	got, err := all(t.Context(), s, id)
	if err != nil || len(got) != 5 {
		t.Fatal(err, got)
	}
	for i, want := range []int{100, 0, 8, 8, 8} { // runs 4, 5, 3, 2, 1
		if n := len(got[i].Usage.Spans); n != want {
			t.Errorf("run %d has %d spans, want %d", got[i].Container.Run, n, want)
		}
	}
	if cpu, _ := got[2].Usage.Total(usage.CPU); cpu != 49_500 {
		t.Errorf("thinning changed the total to %d", cpu)
	}
	if !strings.Contains(got[1].Missing, "format has version 99") {
		t.Errorf("of another version: %q", got[1].Missing)
	}
}
