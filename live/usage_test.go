package live

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/usage"
	"github.com/bellows-rm/bellows/live/retention"
)

// used returns a usage of n seconds, alternately with and without a core.
func used(n int) usage.Usage {
	var u usage.Usage
	for i := range n {
		u.Spans = append(u.Spans,
			usage.Span{Length: time.Second, Used: usage.Amounts{usage.CPU: int64(i%2) * 1000, usage.Memory: int64(i) << 20},
				Known: usage.SetOf(usage.CPU, usage.Memory)})
	}
	return u
}

// What a run used is known while it runs, and after its end from the store, also by the next Driver.
func TestUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		r.fake.usage = map[cluster.ContainerID]usage.Usage{}
		s := submission(1)
		s.Job.MaxAttempts = 2
		id := r.submit(s)
		first := r.order(cluster.Start)
		if got, err := r.Usage(t.Context(), id, 0); err != nil || len(got) != 0 {
			t.Errorf("before the start: %v, %+v", err, got)
		}
		r.fake.launched(first)
		synctest.Wait()
		got, err := r.Usage(t.Context(), id, 0)
		if err != nil || len(got) != 1 || got[0].Missing != "it was not measured" || len(got[0].Spans) != 0 ||
			got[0].Mean.CPU != nil {
			t.Errorf("not measured: %v, %+v", err, got)
		}
		r.fake.usage[first.Container] = used(4)
		r.fake.ended(first.Container, cluster.Failed, 1)
		second := r.order(cluster.Start)
		delete(r.fake.usage, first.Container)
		r.fake.launched(second)
		synctest.Wait()
		r.fake.usage[second.Container] = used(10)
		check := func(when string) {
			t.Helper()
			got, err := r.Usage(t.Context(), id, 3)
			if err != nil || len(got) != 2 {
				t.Fatalf("%s: %v, %+v", when, err, got)
			}
			a, b := got[0], got[1]
			if a.Run != 1 || a.Missing != "" || a.MeasuredSeconds != 4 || *a.Mean.CPU != 500 || *a.Peak.CPU != 1000 ||
				a.Mean.Read != nil || a.Outcome != cluster.Failed {
				t.Errorf("%s: first run %+v", when, a)
			}
			if b.Run != 2 || b.Missing != "" || b.MeasuredSeconds != 10 || *b.Peak.Memory != 9<<20 || len(b.Spans) > 3 ||
				b.Spans[1].FromSeconds != b.Spans[0].LengthSeconds {
				t.Errorf("%s: second run %+v", when, b)
			}
		}
		check("while it runs")
		r.fake.ended(second.Container, cluster.Succeeded, 0)
		r.wait(id)
		synctest.Wait()
		r.fake.usage = nil
		check("after its end")
		r.end()
		r.fake = newFake()
		r.open()
		r.start(fifo(t))
		synctest.Wait()
		check("after a restart")
		r.end()
	})
}

// A run that is reported again after a crash is stored then; a long one is thinned, and thinned more when it is old.
func TestUsageIsThinned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, dir: t.TempDir(), fake: newFake(), keep: &retention.Rule{For: 1000 * time.Hour}}
		r.open()
		r.start(fifo(t))
		defer r.end()
		r.fake.usage = map[cluster.ContainerID]usage.Usage{}
		id := r.submit(submission(1))
		o := r.order(cluster.Start)
		r.fake.launched(o)
		r.fake.usage[o.Container] = used(5 * usage.SpansStored)
		r.fake.ended(o.Container, cluster.Succeeded, 0)
		r.wait(id)
		synctest.Wait()
		spans := func() int {
			t.Helper()
			got, err := r.Usage(t.Context(), id, 0)
			if err != nil || len(got) != 1 || got[0].MeasuredSeconds != 5*usage.SpansStored {
				t.Fatalf("%v: %+v", err, got)
			}
			return len(got[0].Spans)
		}
		if n := spans(); n != usage.SpansStored {
			t.Errorf("%d spans are stored", n)
		}
		time.Sleep(23 * time.Hour)
		synctest.Wait()
		if n := spans(); n != usage.SpansStored {
			t.Errorf("after 23 hours there are %d spans", n)
		}
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if n := spans(); n != usage.SpansOld {
			t.Errorf("after a day there are %d spans", n)
		}
	})
}

// On a full disk what a run used is not stored: the reserved space is for its end.
func TestUsageOnAFullDisk(t *testing.T) {
	d := &Driver{backend: &fake{usage: map[cluster.ContainerID]usage.Usage{{Run: 1}: used(1)}},
		log: slog.New(slog.DiscardHandler)}
	d.runShort()
	if got := d.measured([]cluster.ContainerID{{Run: 1}}); got != nil {
		t.Errorf("on a full disk: %+v", got)
	}
	if !strings.Contains(d.health.short.Error(), "without what they used over time") {
		t.Error(d.health.short)
	}
}
