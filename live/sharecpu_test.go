package live

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/usage"
)

// A task may use all the CPU that its node has while others leave it, unless its most is stated. A program sizes itself
// by what is stated, and by its node if nothing is.
func TestMostCPUOfAJob(t *testing.T) {
	for _, c := range []struct{ cpu, most, grant, envelope, told resource.Amount }{
		{0, 0, 1000, 2000, 2000},
		{500, 0, 500, 2000, 500},
		{500, 800, 500, 800, 800},
		{500, 500, 500, 0, 500},
		{0, 300, 300, 0, 300},
		{0, 1500, 1000, 1500, 1500},
		{500, 9000, 500, 2000, 2000},
		{2000, 0, 2000, 2000, 2000},
	} {
		t.Run(fmt.Sprint(c.cpu, " ", c.most), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, fifo(t))
				s := submission(1)
				s.Job.Stages[0].Ideal[resource.CPU], s.Job.Stages[0].MaxCPU = c.cpu, c.most
				s.Job.Stages[0].Args = []string{"true", "{cpus:milli}"}
				s.Job.Stages[0].ReservedCPU = &cluster.ReservedCPU{Runs: 7} // which nobody can state
				id := r.submit(s)
				o := r.order(cluster.Start)
				if o.Grant[resource.CPU] != c.grant || o.Envelope.MostCPU != c.envelope ||
					o.Launch.Args[1] != fmt.Sprint(int64(c.told)) {
					t.Errorf("started with %v, %+v, %q", o.Grant, o.Envelope, o.Launch.Args)
				}
				if got := r.job(id).Stages[0].ReservedCPU; (got != nil) != (c.cpu == 0) || got != nil && got.Runs != 0 {
					t.Errorf("the evidence is %+v", got)
				}
				found := cluster.Event{Kind: cluster.TaskAdopted, Task: o.Task, Run: 1, Grant: o.Grant, Launched: 1,
					Found: &cluster.Condition{MostCPU: o.Envelope.MostCPU}}
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
				r.fake = newFake(found)
				r.start(fifo(t))
				defer r.end()
				synctest.Wait()
				most := c.envelope
				if most == c.grant {
					most = 0 // which is not shown
				}
				if got := r.job(id).Tasks[0].MostCPU; got != int64(most) {
					t.Errorf("after a restart it may use %d", got)
				}
			})
		})
	}
}

// waits is the usage of a program that waits: it uses 30 millicores for some seconds.
func waits(seconds int) (u usage.Usage) {
	for range seconds {
		u.Spans = append(u.Spans, usage.Span{Length: time.Second, Known: usage.SetOf(usage.CPU, usage.Memory, usage.Swap),
			Used: usage.Amounts{usage.CPU: 30, usage.Memory: 20 << 20}})
	}
	return u
}

// Programs that mostly wait do not each hold a core once a run of theirs has ended: jobs that wait start beside each
// other. What is stated stays, and so do the grants of tasks that run.
func TestCPUIsLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		r.fake.usage = map[cluster.ContainerID]usage.Usage{}
		unstated := func(name string) Submission {
			s := submission(1)
			s.Job.Name, s.Job.App = name, "waits"
			s.Job.Stages[0].Ideal = resource.Of(0, 20*resource.MiB)
			return s
		}
		var orders []cluster.Order
		var last cluster.JobID
		for i := range 8 {
			last = r.submit(unstated(fmt.Sprint("wait", i)))
		}
		stated := unstated("stated")
		stated.Job.Stages[0].Ideal[resource.CPU] = 1000
		says := r.submit(stated)
		for range 2 {
			o := r.order(cluster.Start)
			if o.Grant[resource.CPU] != 1000 {
				t.Errorf("nothing is known, and it starts with %v", o.Grant)
			}
			r.fake.launched(o)
			orders = append(orders, o)
		}
		synctest.Wait()
		if j := r.job(last); j.Waiting == "" {
			t.Error("a third core is there")
		}
		for i, started := range []int{1, 5} { // one starts before what its predecessor used is known
			r.fake.usage[orders[i].Container] = waits(20)
			r.fake.ended(orders[i].Container, cluster.Succeeded, 0)
			synctest.Wait()
			for range started {
				o := r.order(cluster.Start)
				if want := [...]resource.Amount{1000, 50}[i]; o.Grant[resource.CPU] != want {
					t.Errorf("after %d ends one starts with %v", i+1, o.Grant)
				}
				r.fake.launched(o)
			}
		}
		synctest.Wait()
		if s := r.job(last).Stages[0]; s.Ideal[resource.CPU] != 50 || s.ReservedCPU.String() != "1 run, 30m cores" {
			t.Errorf("%+v, %+v", s.Ideal, s.ReservedCPU)
		}
		if s := r.job(says).Stages[0]; s.Ideal[resource.CPU] != 1000 || s.ReservedCPU != nil {
			t.Errorf("what is stated became %+v, %+v", s.Ideal, s.ReservedCPU)
		}
		e, err := r.Explain(t.Context(), last)
		if err != nil || !strings.Contains(e.Job.Stages[0].ReservedCPUWords(), "reserves 50m cores: 1 run, 30m cores") {
			t.Errorf("%v: %q", err, e.Job.Stages[0].ReservedCPUWords())
		}
		log := r.EventLog()
		r.end()
		r.checkReplay(log)
	})
}

// In its first run, too, a program that waits lends its core, until it works again; what is stated is not lent.
func TestWhoWaitsLendsItsCore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, renews(t))
		r.fake.usage = map[cluster.ContainerID]usage.Usage{}
		begin := func(name string, cpu resource.Amount) (cluster.JobID, cluster.ContainerID) {
			s := submission(1)
			s.Job.Name, s.Job.App, s.Job.Stages[0].Ideal = name, name, resource.Of(cpu, 20*resource.MiB)
			id := r.submit(s)
			return id, cluster.ContainerID{Task: cluster.TaskID{Job: id}, Run: 1}
		}
		use := func(c cluster.ContainerID, u usage.Usage) {
			r.fake.measuring.Lock()
			r.fake.usage[c] = u
			r.fake.measuring.Unlock()
			time.Sleep(followEvery)
			synctest.Wait()
		}
		lends := func(id cluster.JobID, want bool) {
			t.Helper()
			if got := r.job(id).Tasks[0].Sized.Lends; got != want {
				t.Errorf("job %d lends its core: %v", id, got)
			}
		}
		stated, first := begin("stated", 1000)
		r.fake.launched(r.order(cluster.Start))
		waiting, second := begin("waits", 0)
		r.fake.launched(r.order(cluster.Start))
		third, _ := begin("third", 0)
		use(first, waits(20))
		lends(stated, false)
		if j := r.job(third); j.Status != cluster.StatusPending {
			t.Errorf("beside two cores that are stated or of use the third is %s", j.Status)
		}
		left := func(memory resource.Amount) {
			r.fake.events <- cluster.Event{Kind: cluster.NodeMemory, Held: resource.GiB - memory}
			synctest.Wait()
		}
		left(200 * resource.MiB)
		use(second, waits(6))
		lends(waiting, false)
		left(600 * resource.MiB)
		use(second, waits(11))
		lends(waiting, true)
		r.fake.launched(r.order(cluster.Start))
		synctest.Wait()
		fourth, _ := begin("fourth", 0)
		u := waits(30)
		u.Spans = append(u.Spans, spent(6, 900, 0))
		use(second, u)
		lends(waiting, false)
		if j := r.job(fourth); j.Status != cluster.StatusPending {
			t.Errorf("all cores are taken, and the fourth is %s", j.Status)
		}
		log := r.EventLog()
		r.end()
		replays(t, log)
	})
}
