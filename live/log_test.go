package live

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/bellows-rm/bellows/core/cluster"
)

// The log at its default level says when a job was submitted, started and ended, what killed it, and why. A job whose
// tasks all succeeded has three lines, regardless of the number of its tasks.
func TestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		var text bytes.Buffer
		if err := r.do(t.Context(), func() { r.log = slog.New(slog.NewTextHandler(&text, nil)) }); err != nil {
			t.Fatal(err)
		}
		r.submit(submission(2))
		for range 2 {
			o := r.order(cluster.Start)
			r.fake.launched(o)
			r.fake.ended(o.Container, cluster.Succeeded, 0)
		}
		synctest.Wait() // for the end of the job, so that the next comes after it
		id := r.submit(submission(1))
		o := r.order(cluster.Start)
		r.fake.launched(o)
		synctest.Wait()
		if err := r.Cancel(t.Context(), cluster.Credentials{UID: 1000}, id); err != nil {
			t.Fatal(err)
		}
		r.fake.ended(r.order(cluster.Kill).Container, cluster.Killed, 143)
		synctest.Wait()
		var got []string
		if err := r.do(t.Context(), func() { got = strings.Split(strings.TrimSpace(text.String()), "\n") }); err != nil {
			t.Fatal(err)
		}
		want := []string{`msg="job submitted" job=1`, `msg="job started" job=1 container=1-0-0-1`,
			`msg="job ended" job=1 name=sorts status=succeeded`, `msg="job submitted" job=2`,
			`msg="job started" job=2 container=2-0-0-1`, `msg="job cancelled" job=2 by_uid=1000`,
			`msg="killing container" job=2 container=2-0-0-1 preempt=false reason=`,
			`msg="container ended" job=2 container=2-0-0-1 outcome=killed`,
			`msg="job ended" job=2 name=sorts status=cancelled`}
		if len(got) != len(want) {
			t.Fatalf("log is\n%s", strings.Join(got, "\n"))
		}
		for i := range want {
			if !strings.Contains(got[i], "level=INFO "+want[i]) {
				t.Errorf("line %d is %s, want %s", i, got[i], want[i])
			}
		}
	})
}

// The log says how many containers of an earlier daemon continue, and who paused a job.
func TestLogAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		id := r.submit(submission(2))
		first, second := r.order(cluster.Start), r.order(cluster.Start)
		r.fake.launched(first)
		r.fake.launched(second)
		synctest.Wait()
		r.end()
		r.fake = newFake(adopted(first), adopted(second))
		var text bytes.Buffer
		r.logTo = &text
		r.open()
		r.start(fifo(t))
		for _, task := range []cluster.TaskID{first.Task, {}} {
			if err := r.Pause(t.Context(), user, id, task, false); err != nil {
				t.Fatal(err)
			}
		}
		r.end()
		for _, want := range []string{`msg="containers of an earlier daemon continue" containers=2 jobs=1`,
			`msg="job paused" job=1 by_uid=2000 task=1.0.0`,
			`msg="suspending container" job=1 container=1-0-0-1 by=owner reason="paused by its owner"`,
			"msg=\"job paused\" job=1 by_uid=2000\n"} {
			if !strings.Contains(text.String(), "level=INFO "+want) {
				t.Errorf("no %q in\n%s", want, text.String())
			}
		}
	})
}

// adopted is the event of a running container that an order started.
func adopted(o cluster.Order) cluster.Event {
	return cluster.Event{Kind: cluster.TaskAdopted, Task: o.Task, Run: o.Container.Run, Grant: o.Grant, Launched: 1}
}
