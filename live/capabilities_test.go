package live

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
)

// orders is a policy that throttles, stops and resizes each task that runs, once.
type orders struct {
	policy.Policy
	done map[cluster.TaskID]bool
}

func (o *orders) Decide(now timeline.Time, p *book.Plan) {
	for _, t := range p.Nodes[0].Tasks {
		if t.Running && !o.done[t.ID] {
			o.done[t.ID] = true
			why := cluster.BecauseNodePressure(resource.Disk, 40e6, 100e6)
			p.Throttle(t, resource.Vector{}.With(resource.Disk, resource.MB), now.Add(time.Minute), why)
			p.SuspendUntil(t, now.Add(time.Second), cluster.TaskID{}, why)
			p.Resize(t, t.Grant.With(resource.CPU, 500), why)
		}
	}
	o.Policy.Decide(now, p)
}

// unable can do nothing but run programs and end them.
var unable = cluster.Capabilities{PrivateTmp: "pods share no folders",
	NoNetwork: "pods have a network", Input: "pods take no input", Files: "pods write no files here",
	Throttle: "pods are not throttled", Suspend: "pods are not stopped", PageOut: "pods are not paged out",
	Resize: "pods are not resized"}

// A backend that can only run programs and end them gets no order for more: the driver answers it, and views say why.
func TestOrdersBeyondTheBackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, dir: t.TempDir(), fake: newFake()}
		r.fake.can = unable
		r.open()
		r.start(&orders{fifo(t), map[cluster.TaskID]bool{}})
		defer r.end()
		id := r.submit(submission(1))
		o := r.order(cluster.Start)
		if o.Launch.Stdout != "" || o.Launch.Stderr != "" {
			t.Errorf("output goes to %q and %q", o.Launch.Stdout, o.Launch.Stderr)
		}
		r.fake.launched(o)
		synctest.Wait()
		r.noOrder()
		task := r.job(id).Tasks[0]
		if th := task.Throttle; th == nil || th.InForce || th.Failed != unable.Throttle {
			t.Errorf("throttle is shown as %+v", th)
		}
		if l := task.Leveled; l == nil || l.Failed != unable.Suspend || task.Suspended != nil {
			t.Errorf("the stop is shown as %+v, and the task stands still: %+v", l, task.Suspended)
		}
		if s := task.Resized; s == nil || s.InForce || s.Failed != unable.Resize || task.Grant.CPUMillicores != 1000 {
			t.Errorf("the change of the grant is shown as %+v, and the grant as %+v", s, task.Grant)
		}
		time.Sleep(2 * time.Second) // the stop ends by itself
		e, err := r.Explain(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"start done ", "throttle failed pods are not throttled", "suspend failed pods are not stopped",
			"resize failed pods are not resized", "resume done "}
		for i, d := range e.Decisions {
			if got := d.Kind.String() + " " + string(d.Answer) + " " + d.Detail; i >= len(want) || got != want[i] {
				t.Errorf("decision %d is shown as %q", i, got)
			}
		}
		r.noOrder()
		r.fake.ended(o.Container, cluster.Succeeded, 0)
		if j := r.wait(id); j.Status != cluster.StatusSucceeded {
			t.Errorf("the job ended as %s", j.Status)
		}
	})
}

// What the backend cannot do is refused when it is asked for, in one sentence with the field, its value and the reason.
func TestRequestsBeyondTheBackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, dir: t.TempDir(), fake: newFake()}
		r.fake.can = unable
		r.open()
		r.start(fifo(t))
		defer r.end()
		submit := func(change func(*Submission)) error {
			s := submission(1)
			change(&s)
			_, err := r.Submit(t.Context(), s)
			return err
		}
		check := func(err error, kind api.Kind, want string) {
			t.Helper()
			if err == nil || api.KindOf(err) != kind || err.Error() != want {
				t.Errorf("error is %v, want %s", err, want)
			}
		}
		check(submit(func(s *Submission) { s.Job.Stages[0].PrivateTmp = true }), api.Invalid,
			`job "sorts" stage "sort" private_tmp true: pods share no folders`)
		check(submit(func(s *Submission) { s.Job.Stages[0].NoNetwork = true }), api.Invalid,
			`job "sorts" stage "sort" no_network true: pods have a network`)
		check(submit(func(s *Submission) { s.Job.Stages[0].Stdin = "part1" }), api.Invalid,
			`job "sorts" stage "sort" stdin "part1": pods write no files here`)
		check(submit(func(s *Submission) { s.Input = true }), api.Invalid, `job "sorts" input: pods take no input`)

		id := r.submit(submission(2))
		o := r.order(cluster.Start)
		r.order(cluster.Start)
		r.fake.launched(o)
		synctest.Wait()
		check(r.Pause(t.Context(), user, id, cluster.TaskID{}, false), api.Invalid,
			"job 1 pause: must wait until none of its programs runs: pods are not stopped")
		check(r.Pause(t.Context(), user, id, o.Task, false), api.Invalid,
			"job 1 pause: must wait until none of its programs runs: pods are not stopped")
		_, err := r.Logs(t.Context(), id)
		check(err, api.Invalid, "job 1 output: pods write no files here")
		later := r.submit(submission(1))
		check(r.Pause(t.Context(), user, later, cluster.TaskID{}, true), api.Invalid,
			"job 2 page_out true: pods are not paged out")
		if err := r.Pause(t.Context(), user, later, cluster.TaskID{}, false); err != nil {
			t.Errorf("a job of which nothing runs: %v", err)
		}
		r.fake.ended(o.Container, cluster.Succeeded, 0)
		synctest.Wait()
		r.noOrder()
		if err := r.Resume(t.Context(), user, later, cluster.TaskID{}); err != nil {
			t.Error(err)
		}
		r.order(cluster.Start)
	})
}
