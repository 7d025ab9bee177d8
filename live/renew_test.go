package live

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/core/usage"
)

// usedMiB is usage for some seconds each: of so many MiB.
func usedMiB(phases ...[2]int) (u usage.Usage) {
	known := usage.SetOf(usage.CPU, usage.Memory, usage.Swap)
	for _, p := range phases {
		for range p[0] {
			u.Spans = append(u.Spans, usage.Span{Length: time.Second, Known: known,
				Used: usage.Amounts{usage.CPU: 1000, usage.Memory: int64(p[1]) << 20}})
		}
	}
	return u
}

func renews(t *testing.T) policy.Policy {
	t.Helper()
	p, err := policy.New("bellows", renewing)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var renewing = map[string]string{"bellows.renew": "on"}

// replays checks that an event log of such a policy, told to another engine, gives the same decisions.
func replays(t *testing.T, log string) {
	t.Helper()
	header, records := readLog(t, log)
	header.Settings = renewing
	if at, ok := replay(t, header, records); !ok {
		t.Errorf("the replay differs at record %d", at)
	}
}

// What is reserved for a task that has used most of its memory early is given back while it runs, and the next job
// starts with that. Its limit, and what its program was told, stay. Whenever the daemon is killed meanwhile, the next
// one goes on: nothing is given back that is held, and nothing is lost or reserved twice.
func TestReservationsAreRenewed(t *testing.T) {
	for _, killed := range []string{"never", "before the order", "before the answer", "after the answer"} {
		t.Run(killed, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { renewsWhenKilled(t, killed) })
		})
	}
}

func renewsWhenKilled(t *testing.T, killed string) {
	r := newRig(t, renews(t))
	r.fake.usage = map[cluster.ContainerID]usage.Usage{}
	build := func(app string) Submission {
		s := undecided(800 * resource.MiB)
		s.Job.App, s.Job.Stages[0].Ideal[resource.CPU] = app, 500
		return s
	}
	launch := func(s Submission) cluster.Order {
		t.Helper()
		r.submit(s)
		o := r.order(cluster.Start)
		r.fake.events <- cluster.Event{Kind: cluster.DecisionDone, Task: o.Task, Run: o.Container.Run, Decision: o.ID,
			Launched: timeline.Time(time.Now().UnixNano())}
		synctest.Wait()
		return o
	}
	for range 4 {
		r.endUsing(launch(build("early")), usedMiB([2]int{30, 600}, [2]int{300, 40}))
		r.endUsing(launch(build("other")), usedMiB([2]int{60, 500}))
	}
	o := launch(build("early"))
	began := timeline.Time(time.Now().UnixNano())
	if got := o.Grant[resource.Memory]; got < 600*resource.MiB || got > 700*resource.MiB {
		t.Fatalf("at first %v is granted", o.Grant)
	}
	uses := func(u usage.Usage) {
		r.fake.measuring.Lock()
		defer r.fake.measuring.Unlock()
		r.fake.usage[o.Container] = u
	}
	waits := r.submit(build("other"))
	uses(usedMiB([2]int{25, 600}))
	time.Sleep(25 * time.Second)
	synctest.Wait()
	if j := r.job(waits); j.Status != cluster.StatusPending {
		t.Fatalf("beside %v the other job is %s", o.Grant, j.Status)
	}
	restart := func(grant resource.Vector, before resource.Vector, why cluster.Reason) {
		t.Helper()
		log := r.EventLog()
		if err := r.Driver.Close(); err != nil {
			t.Fatal(err)
		}
		replays(t, log)
		used := r.fake.usage
		found := cluster.Condition{MostCPU: o.Envelope.MostCPU, ByPhase: o.ByPhase, Was: before, Why: why}
		r.fake = newFake(cluster.Event{Kind: cluster.TaskAdopted, Task: o.Task, Run: 1, Grant: grant, Launched: began,
			Found: &found})
		r.fake.usage = used
		r.start(renews(t))
		synctest.Wait()
	}
	if killed == "before the order" {
		restart(o.Grant, resource.Vector{}, cluster.Reason{})
	}
	uses(usedMiB([2]int{30, 600}, [2]int{9, 40}))
	time.Sleep(14 * time.Second)
	give := r.order(cluster.Resize)
	if killed == "before the answer" { // the order was lost with the daemon
		restart(o.Grant, resource.Vector{}, cluster.Reason{})
		uses(usedMiB([2]int{30, 600}, [2]int{19, 40}))
		time.Sleep(10 * time.Second)
		give = r.order(cluster.Resize)
	}
	if got := give.Grant[resource.Memory]; got < 45*resource.MiB || got > 60*resource.MiB ||
		give.Container != o.Container || give.Envelope.Max != o.Envelope.Max {
		t.Fatalf("renewed to %v in %+v", give.Grant, give.Envelope)
	}
	r.hears(give, cluster.DecisionDone, "")
	if killed == "after the answer" {
		restart(give.Grant, o.Grant, give.Reason)
	}
	next := r.order(cluster.Start)
	if next.Task.Job != waits {
		t.Errorf("then job %d starts", next.Task.Job)
	}
	r.fake.launched(next)
	synctest.Wait()
	e, err := r.Explain(t.Context(), o.Task.Job)
	want := fmt.Sprintf("reserves %s: the rest of the run needs ", resource.FormatMemory(give.Grant[resource.Memory]))
	if why := e.Tasks[0].Renewed.Why; err != nil || !strings.HasPrefix(why, want) ||
		!strings.HasSuffix(why, "by 4 runs") || e.Tasks[0].Resized.Why != why {
		t.Errorf("%v: explained by %+v", err, e.Tasks[0].Renewed)
	}
	// It holds more than it should, where no memory is free for a larger reservation until the other job has ended. From
	// then on nothing is given back.
	uses(usedMiB([2]int{30, 600}, [2]int{40, 40}, [2]int{20, 500}))
	time.Sleep(20 * time.Second)
	synctest.Wait()
	r.endUsing(next, usedMiB([2]int{60, 500}))
	time.Sleep(10 * time.Second)
	take := r.order(cluster.Resize)
	if got := take.Grant[resource.Memory]; got < 500*resource.MiB || got > 600*resource.MiB ||
		take.Envelope.Min > o.Grant[resource.Memory] {
		t.Errorf("raised to %v in %+v", take.Grant, take.Envelope)
	}
	r.hears(take, cluster.DecisionDone, "")
	for _, holds := range []int{40, 500, 40} {
		uses(usedMiB([2]int{30, 600}, [2]int{60, holds}))
		time.Sleep(time.Minute)
		synctest.Wait()
	}
	r.endUsing(o, usedMiB([2]int{30, 600}, [2]int{300, 40}))
	log := r.EventLog()
	r.end()
	replays(t, log)
}
