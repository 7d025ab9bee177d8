package profiling

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/profiler"
)

// measuredSample is a measurement at a size in MiB, with repeats in seconds.
func measuredSample(mebibytes int64, seconds ...float64) profile.Sample {
	s := profile.Sample{Memory: resource.Amount(mebibytes) * resource.MiB, SpilledKnown: true}
	for _, x := range seconds {
		s.Repeats = append(s.Repeats, time.Duration(x*1e9))
	}
	s.Duration = profile.Fastest(s.Repeats)
	return s
}

func learned(t rapid.TB, res *profiler.Result) *profileReport {
	t.Helper()
	r, err := learn("p", []string{"p"}, &profiler.Plan{}, res, profile.Program{Buffer: profile.WholeMemory})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestStoredModelIsFaithful: no size, fitted or held out, contradicts the model that is stored.
func TestStoredModelIsFaithful(t *testing.T) {
	check := func(t rapid.TB, res *profiler.Result) *profileReport {
		r := learned(t, res)
		for _, s := range append(res.Fitted, res.HeldOut...) {
			if got := r.Model.Duration(s.Memory); s.Contradicts(got) {
				t.Fatalf("%s says %v with %s, measured %v", r.Model.Kind, got, resource.FormatMemory(s.Memory), s.Repeats)
			}
		}
		return r
	}
	rapid.Check(t, func(t *rapid.T) {
		res := &profiler.Result{}
		memory := int64(8)
		for i := range rapid.IntRange(2, 9).Draw(t, "sizes") {
			memory += rapid.Int64Range(1, 500).Draw(t, "step")
			s := measuredSample(memory, rapid.SliceOfN(rapid.Float64Range(0.1, 60), 1, 3).Draw(t, "seconds")...)
			s.Spilled = resource.Amount(rapid.Int64Range(0, 100).Draw(t, "spilled")) * resource.MiB
			if i >= 2 && rapid.Bool().Draw(t, "held out") {
				res.HeldOut = append(res.HeldOut, s)
			} else {
				res.Fitted = append(res.Fitted, s)
			}
		}
		check(t, res)
	})
	// A cliff that only a held-out size shows.
	r := check(t, &profiler.Result{
		Fitted: []profile.Sample{measuredSample(60, 60.0, 60.5), measuredSample(75, 10.7, 10.8),
			measuredSample(300, 4.2, 4.3)},
		HeldOut: []profile.Sample{measuredSample(67, 57.0, 57.2), measuredSample(150, 6.9, 7.0)},
	})
	var text bytes.Buffer
	if err := r.print(&text); err != nil || r.Reached == nil || *r.Reached ||
		!strings.Contains(text.String(), "fitted to all 5 sizes") {
		t.Errorf("%v: must say that the goal is missed and all sizes are fitted to:\n%s", err, &text)
	}
}

// TestNoiseIsRefused: repeats that differ by 194 to 342 % give no model, least of all a flat one.
func TestNoiseIsRefused(t *testing.T) {
	res := &profiler.Result{
		Fitted:  []profile.Sample{measuredSample(64, 1.2, 3.4, 5.3), measuredSample(256, 1.1, 3.0, 4.1)},
		HeldOut: []profile.Sample{measuredSample(128, 1.1, 2.9, 3.3)},
		Beside:  map[resource.Amount]profiler.Beside{64 * resource.MiB: {CPU: 1100 * time.Millisecond, Others: 1700}},
	}
	r := learned(t, res)
	err := r.refusal()
	if err == nil {
		t.Fatal("stored")
	}
	const want = "with 64MiB the middle one of 3 is 183% slower than the fastest (1.20s to 5.30s; CPU time 1.10s; " +
		"others kept up to 1.7 cores busy), and 15% is the most"
	if !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want it to say %q", err, want)
	}
	var text bytes.Buffer
	if err := r.print(&text); err != nil || r.Reached != nil ||
		!strings.Contains(strings.ReplaceAll(text.String(), "\n  ", " "), "is not judged: repeats differ too much") {
		t.Errorf("%v: must not judge:\n%s", err, &text)
	}
	// One slow run of three is no noise, and the noise of a single run is unknown.
	for _, s := range []profile.Sample{measuredSample(64, 1.2, 1.3, 5.3), measuredSample(64, 1.2)} {
		r := learned(t, &profiler.Result{Fitted: []profile.Sample{s, measuredSample(256, 1.1, 1.1)}})
		if err := r.refusal(); err != nil {
			t.Errorf("%v: %v", s.Repeats, err)
		}
	}
}

// TestTooFewSizesSaysWhatToDo: the error names the sizes that failed and what else to try.
func TestTooFewSizesSaysWhatToDo(t *testing.T) {
	res := &profiler.Result{Fitted: []profile.Sample{measuredSample(64, 1)},
		Failed: []profiler.Failure{{Memory: 16 * resource.MiB, Why: "the kernel killed it for memory"},
			{Memory: 32 * resource.MiB, Why: "exit status 1: no room"}}}
	plan := &profiler.Plan{Fitted: []resource.Amount{16 * resource.MiB, 32 * resource.MiB, 64 * resource.MiB}}
	const want = "the program works at 1 of 3 sizes, and a model needs two; it fails with 16MiB, 32MiB (with " +
		"32MiB: exit status 1: no room): " +
		"give larger --sizes, or --max-memory instead, and the smallest that works is searched"
	if _, err := learn("p", nil, plan, res, profile.Program{Buffer: profile.WholeMemory}); err == nil ||
		err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}
