package live

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
)

// Containers of jobs that the store has lost run on. They are shown to be there, an operator can end them, and
// numbers of jobs are never used again.
func TestContainersOfALostStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, dir: dir, fake: newFake()}
		r.open()
		r.start(fifo(t))
		old := r.submit(submission(2))
		a, b := r.order(cluster.Start), r.order(cluster.Start)
		r.fake.launched(a)
		r.fake.launched(b)
		synctest.Wait()
		r.end()
		lose(t, dir)
		var found []cluster.Event
		for _, o := range []cluster.Order{a, b} {
			found = append(found, cluster.Event{Kind: cluster.TaskAdopted, Task: o.Task, Run: 1, Grant: o.Grant, Launched: 1})
		}
		done := cluster.Event{Kind: cluster.TaskEnded, Task: cluster.TaskID{Job: 2}, Run: 1, Outcome: cluster.Succeeded,
			Exit: &cluster.Exit{}}
		r.fake = newFake(append(found, done)...)
		r.open()
		r.start(fifo(t))
		synctest.Wait()
		r.noOrder() // nothing is killed
		if s, err := r.Status(t.Context()); err != nil ||
			!strings.Contains(s.Trouble,
				"containers of jobs 1, which the store does not know, run on, and their records are in "+dir+"/containers") {
			t.Errorf("status %+v %v", s, err)
		}
		if err := r.Ready(); err != nil {
			t.Error(err)
		}
		id := r.submit(submission(1))
		if id <= 2 {
			t.Errorf("number %d is used again", id)
		}
		r.fake.launched(r.order(cluster.Start))
		if err := r.Shutdown(t.Context(), false); api.KindOf(err) != api.Conflict {
			t.Errorf("shut down with %v", err)
		}
		if err := r.Cancel(t.Context(), cluster.Credentials{}, old); err != nil {
			t.Error(err)
		}
		for range 2 {
			k := r.order(cluster.Kill)
			r.fake.ended(k.Container, cluster.Killed, 143)
		}
		synctest.Wait()
		if s, err := r.Status(t.Context()); err != nil || s.Trouble != "" || !r.fake.forgotten[a.Container] ||
			!r.fake.forgotten[cluster.ContainerID{Task: done.Task, Run: 1}] {
			t.Errorf("status %+v %v, forgotten %v", s, err, r.fake.forgotten)
		}
		if err := r.Cancel(t.Context(), cluster.Credentials{}, old); api.KindOf(err) != api.NotFound {
			t.Errorf("killed again: %v", err)
		}
		r.end()
	})
}

// lose removes a store, and lets the next one be accepted.
func lose(t *testing.T, dir string) {
	t.Helper()
	for _, ending := range []string{"", "-wal", "-shm"} {
		if err := os.RemoveAll(filepath.Join(dir, store.File+ending)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.Accept(dir); err != nil {
		t.Fatal(err)
	}
}

// A forced shutdown ends containers of jobs that the store does not know, and waits for them.
func TestShutdownOfALostStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := cluster.ContainerID{Task: cluster.TaskID{Job: 7, Index: 3}, Run: 2}
		r := &rig{t: t, dir: t.TempDir(), fake: newFake(cluster.Event{Kind: cluster.TaskAdopted, Task: id.Task, Run: id.Run})}
		r.open()
		r.start(fifo(t))
		defer r.store.Close()
		down := make(chan error)
		go func() { down <- r.Shutdown(t.Context(), true) }()
		if k := r.order(cluster.Kill); k.Container != id {
			t.Errorf("killed %v", k.Container)
		}
		select {
		case err := <-down:
			t.Errorf("shut down with %v before the end", err)
		default:
		}
		r.fake.ended(id, cluster.Killed, 143)
		if err := <-down; err != nil || !r.fake.forgotten[id] {
			t.Error(err, r.fake.forgotten)
		}
	})
}

// What an earlier state of the store does not know of a job that has not ended goes on, and no run writes into the
// output of another.
func TestContainersOfAnEarlierStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, dir: dir, fake: newFake()}
		r.open()
		s := submission(3)
		s.Job.Owner, s.Job.MaxAttempts = user.User, 1
		id, err := r.store.AddJob(t.Context(), store.Job{Request: store.Request{Job: s.Job, As: user, Dir: "/work"},
			State: store.JobState{Status: cluster.StatusPending}})
		if err != nil {
			t.Fatal(err)
		}
		task := func(i int32) cluster.TaskID { return cluster.TaskID{Job: id, Index: i} }
		logs := filepath.Join(dir, "logs", "1")
		if err := os.MkdirAll(logs, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"1-0-2-1.out", "1-0-2-2.out"} { // of runs whose ends were recorded, and are forgotten
			if err := os.WriteFile(filepath.Join(logs, name), []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r.fake = newFake(
			cluster.Event{Kind: cluster.TaskAdopted, Task: task(0), Run: 2, Grant: resource.Of(1000, 400*resource.MiB),
				Launched: 1},
			cluster.Event{Kind: cluster.TaskEnded, Task: task(1), Run: 1, Outcome: cluster.Succeeded,
				Exit: &cluster.Exit{Started: 1, Ended: 2}})
		r.start(fifo(t))
		o := r.order(cluster.Start)
		if o.Task != task(2) || o.Container.Run != 3 {
			t.Errorf("started %v", o.Container)
		}
		r.fake.launched(o)
		r.fake.ended(o.Container, cluster.Succeeded, 0)
		r.fake.ended(cluster.ContainerID{Task: task(0), Run: 2}, cluster.Succeeded, 0)
		if j := r.wait(id); j.Status != cluster.StatusSucceeded {
			t.Errorf("job %+v", j)
		}
		r.noOrder()
		r.end()
	})
}
