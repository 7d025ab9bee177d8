package workload

import (
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

func generate(t *testing.T, d Distribution, o GenerateOptions) *Workload {
	t.Helper()
	w, err := Generate(d, o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestGenerateFollowsDistribution(t *testing.T) {
	for _, d := range []Distribution{Uniform, Exponential} {
		o := DefaultGenerateOptions(d)
		o.Jobs = 20_000
		w := generate(t, d, o)
		var tasks, memory, duration, arrivals sample
		for i := range w.Jobs {
			s := &w.Jobs[i].Stages[0]
			tasks.add(float64(s.Tasks))
			memory.add(float64(s.Ideal[resource.Memory]) / float64(resource.GB))
			duration.add(s.Duration.Seconds())
			arrivals.add(w.Jobs[i].Submitted.Seconds())
			if i > 0 && w.Jobs[i].Submitted < w.Jobs[i-1].Submitted {
				t.Fatalf("%v: job %d comes before the one above", d, i)
			}
			if s.Ideal[resource.Memory]%(100*resource.MB) != 0 || s.Duration%time.Second != 0 {
				t.Fatalf("%v: job %d is off the grain: %+v", d, i, s)
			}
		}
		check := func(name string, s sample, least, most float64, reachesMost bool) {
			t.Helper()
			if s.low != least || s.high > most || (s.high == most) != reachesMost {
				t.Errorf("%v %s: from %v to %v, want %v to %v", d, name, s.low, s.high, least, most)
			}
			// The mean of the uniform distribution is in the middle. The mean of the exponential distribution is at
			// about 1/ln(jobs) of the range, because the largest of n draws is about ln n.
			share := (s.mean() - least) / (most - least)
			if want := 0.5; d == Uniform && math.Abs(share-want) > 0.02 {
				t.Errorf("%v %s: mean at %.3f of the range, want %.3f", d, name, share, want)
			}
			if want := 1 / math.Log(s.n); d == Exponential && name != "arrivals" && math.Abs(share-want) > 0.04 {
				t.Errorf("%v %s: mean at %.3f of the range, want %.3f", d, name, share, want)
			}
		}
		check("tasks", tasks, float64(o.Tasks.Min), float64(o.Tasks.Max), d == Exponential)
		check("memory", memory, 1, 10, d == Exponential)
		check("duration", duration, o.Duration.Min.Seconds(), 500, d == Exponential)
		check("arrivals", arrivals, 0, 1000, false)
	}
}

type sample struct{ n, sum, low, high float64 }

func (s *sample) add(v float64) {
	if s.n == 0 {
		s.low, s.high = v, v
	}
	s.n, s.sum, s.low, s.high = s.n+1, s.sum+v, min(s.low, v), max(s.high, v)
}

func (s *sample) mean() float64 { return s.sum / s.n }

func TestGenerateIsReproducible(t *testing.T) {
	o := DefaultGenerateOptions(Exponential)
	a, b := generate(t, Exponential, o), generate(t, Exponential, o)
	if !reflect.DeepEqual(a, b) {
		t.Error("the same options gave two workloads")
	}
	o.Seed++
	if reflect.DeepEqual(a, generate(t, Exponential, o)) {
		t.Error("two seeds gave the same workload")
	}
	o.Seed--
	o.Memory = Range[resource.Amount]{resource.GB, resource.GB}
	c := generate(t, Exponential, o)
	for i := range a.Jobs {
		want, got := a.Jobs[i].Stages[0], c.Jobs[i].Stages[0]
		if got.Ideal[resource.Memory] != resource.GB {
			t.Fatalf("a range of one value gave %v", got.Ideal)
		}
		if got.Tasks != want.Tasks || got.Duration != want.Duration || a.Jobs[i].Submitted != c.Jobs[i].Submitted {
			t.Fatalf("job %d: another range of memory changed more than memory", i)
		}
	}
}

func TestGenerateRefuses(t *testing.T) {
	for _, c := range []struct {
		change func(*GenerateOptions)
		want   string
	}{
		{func(o *GenerateOptions) { o.Jobs = 0 }, "jobs 0: must be 1 to 1000000"},
		{func(o *GenerateOptions) { o.Tasks.Min = 0 }, "tasks 0:300: must be ascending, from 1 to 1073741824"},
		{func(o *GenerateOptions) { o.Memory.Min = -1 }, "task memory -1B:10GB: must be ascending, from 1B to 1000PB"},
		{func(o *GenerateOptions) { o.Duration.Max = 0 }, "task duration 1s:0s: must be ascending, from 1ms to 87600h0m0s"},
		{func(o *GenerateOptions) {
			o.Arrivals.Min = -time.Second
		}, "arrivals -1s:16m40s: must be ascending, from 0s to 87600h0m0s"},
	} {
		o := DefaultGenerateOptions(Uniform)
		c.change(&o)
		if _, err := Generate(Uniform, o); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
	if _, err := Generate(9, DefaultGenerateOptions(Uniform)); err == nil {
		t.Error("distribution 9 was taken")
	}
	if d, err := ParseDistribution("exponential"); err != nil || d != Exponential {
		t.Error(d, err)
	}
	if _, err := ParseDistribution("normal"); err == nil {
		t.Error("normal was taken")
	}
}

func TestParseRange(t *testing.T) {
	text := func(r any, err error) string { return fmt.Sprint(r, " ", err) }
	for _, c := range []struct{ got, want string }{
		{text(ParseTasks("1:300")), "{1 300} <nil>"},
		{text(ParseTasks("7:7")), "{7 7} <nil>"},
		{text(ParseTasks("7")), `{0 0} tasks "7": must be MIN:MAX`},
		{text(ParseTasks("x:7")), `{0 0} tasks "x:7": "x" is no whole number`},
		{text(ParseTasks("9:7")), `{9 7} tasks 9:7: must be ascending, from 1 to 1073741824`},
		{text(ParseTaskMemory("100MB:1GiB")), "{100000000 1073741824} <nil>"},
		{text(ParseTaskDuration("10s:5m")), "{10s 5m0s} <nil>"},
		{text(ParseTaskDuration("0:5m")), "{0s 5m0s} task duration 0s:5m0s: must be ascending, from 1ms to 87600h0m0s"},
		{text(ParseTaskDuration("1:5")),
			`{0s 0s} task duration "1:5": "1" is no duration with its unit, such as 90s, up to 87600h0m0s`},
		{text(ParseArrivals("0:1000s")), "{0s 16m40s} <nil>"},
		{text(ParseArrivals("-1s:1s")), "{-1s 1s} arrivals -1s:1s: must be ascending, from 0s to 87600h0m0s"},
	} {
		if c.got != c.want {
			t.Errorf("got  %s\nwant %s", c.got, c.want)
		}
	}
	if _, err := ParseTaskMemory("1:2"); err == nil {
		t.Error("memory without units was taken")
	}
}
