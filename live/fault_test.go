package live

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/bellows-rm/bellows/core/cluster"
)

// A container whose record cannot be read is shown as trouble of the daemon, and of its job.
func TestRecordThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		id, other := r.submit(submission(1)), r.submit(submission(1))
		a, b := r.order(cluster.Start), r.order(cluster.Start)
		r.fake.launched(a)
		r.fake.launched(b)
		synctest.Wait()
		const words = "a record of container 1-0-0-1 cannot be read since 10:32:00"
		r.fake.troubles = map[cluster.ContainerID]string{a.Container: words}
		if s, err := r.Status(t.Context()); err != nil || s.Trouble != words {
			t.Errorf("status %+v, %v", s, err)
		}
		if e, err := r.Explain(t.Context(), id); err != nil || !strings.HasSuffix(e.Why, " But "+words+".") {
			t.Errorf("explained %q, %v", e.Why, err)
		}
		if e, err := r.Explain(t.Context(), other); err != nil || strings.Contains(e.Why, "cannot be read") {
			t.Errorf("explained %q, %v", e.Why, err)
		}
		r.fake.troubles[b.Container] = "another"
		if s, err := r.Status(t.Context()); err != nil || s.Trouble != words+"; so it is with 2 containers" {
			t.Errorf("status %+v, %v", s, err)
		}
	})
}

// While the inventory is incomplete, a kill reaches the containers of its job: what became of them may be what is
// missing.
func TestKillBeforeTheInventory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		id := r.submit(submission(1))
		o := r.order(cluster.Start)
		r.fake.launched(o)
		synctest.Wait()
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		full := newFake(cluster.Event{Kind: cluster.TaskEnded, Task: o.Task, Run: 1, Outcome: cluster.Killed,
			Detail: "killed"})
		r.fake = newFake()
		for len(r.fake.events) > 0 {
			<-r.fake.events
		}
		r.start(fifo(t))
		killed := make(chan error)
		go func() { killed <- r.Cancel(t.Context(), user, id) }()
		if k := r.order(cluster.Kill); k.Container != o.Container {
			t.Errorf("order %+v", k)
		}
		for len(full.events) > 0 {
			r.fake.events <- <-full.events
		}
		if err := <-killed; err != nil {
			t.Error(err)
		}
		if j := r.wait(id); j.Status != cluster.StatusCancelled {
			t.Errorf("job %+v", j)
		}
	})
}

// A kill decides what a preemption does not: how a task ended of which the record cannot be read.
func TestKillOfWhatIsPreempted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &preempter{Policy: fifo(t)})
		defer r.end()
		first := r.submit(submission(1))
		o := r.order(cluster.Start)
		r.fake.launched(o)
		synctest.Wait()
		r.submit(submission(1))
		r.order(cluster.Kill)
		r.fake.launched(r.order(cluster.Start))
		synctest.Wait()
		r.fake.troubles = map[cluster.ContainerID]string{o.Container: "cannot be read"}
		if err := r.Cancel(t.Context(), user, first); err != nil {
			t.Fatal(err)
		}
		if k := r.order(cluster.Kill); k.Preempt || k.Container != o.Container {
			t.Errorf("order %+v", k)
		}
	})
}
