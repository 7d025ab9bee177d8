package live

import (
	"bytes"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/engine"
	"github.com/bellows-rm/bellows/format/eventlog"
	"github.com/bellows-rm/bellows/live/api"
)

// What is present is enough to bring another engine to where the driver's is, and asking changes nothing. It can be
// written and read.
func TestPresent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		s := submission(3)
		s.Job.Stages[0].Duration = time.Minute
		id := r.submit(s)
		r.fake.launched(r.order(cluster.Start))
		r.fake.launched(r.order(cluster.Start))
		synctest.Wait()
		time.Sleep(20 * time.Second)
		before := r.job(id)

		p, owners, err := r.Present(t.Context(), submission(1))
		if err != nil {
			t.Fatal(err)
		}
		if p.Job.ID != id+1 || p.Job.Submitted != p.Now || len(p.Job.Stages[0].Args) > 0 ||
			owners[id] != (api.Owner{UID: 2000, Name: "ada"}) || p.Header.Policy != "fifo" {
			t.Errorf("%+v, %v", p, owners)
		}
		if jobs, err := r.Jobs(t.Context()); err != nil || len(jobs) != 1 || !reflect.DeepEqual(r.job(id), before) {
			t.Errorf("%v %+v", err, jobs)
		}
		r.noOrder()

		var text bytes.Buffer
		if err := p.Write(&text); err != nil {
			t.Fatal(err)
		}
		if p, err = eventlog.ReadPresent(&text, "present"); err != nil {
			t.Fatal(err)
		}
		e := engine.New(fifo(t), p.Header.Configure)
		if decisions, err := e.Step(p.Now, p.Found...); err != nil || len(decisions) > 0 {
			t.Fatalf("%v %+v", err, decisions)
		}
		j, _ := e.Snapshot().Job(id)
		if j.Progress[0].Running != 2 || j.Progress[0].Pending != 1 {
			t.Errorf("%+v", j.Progress)
		}
		for _, task := range j.Tasks {
			if end, ok := e.Snapshot().EstimatedEnd(task, p.Now); !ok || end.Sub(p.Now) != 40*time.Second {
				t.Errorf("task %s should end in %v", task.ID, end.Sub(p.Now))
			}
		}
	})
}

// What cannot be submitted cannot be planned, either.
func TestPresentOfAWrongJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		s := submission(0)
		_, _, err := r.Present(t.Context(), s)
		if _, want := r.Submit(t.Context(), s); api.KindOf(err) != api.Invalid || want == nil || err.Error() != want.Error() {
			t.Errorf("%v, want %v", err, want)
		}
	})
}
