package view

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
)

const mib = int64(resource.MiB)

// What runs taught can be named as a profile: it gives memory for their peak, over all ways in which they went.
func TestProfileOfWhatRunsTaught(t *testing.T) {
	uses := func(bytes ...int64) (v api.LearnedVariant) {
		v.DurationSeconds = 2
		for _, b := range bytes {
			v.Phases = append(v.Phases, api.ForecastPhase{Memory: b})
		}
		return v
	}
	unmeasured := uses(500 * mib)
	unmeasured.Unknown = []string{resource.Memory.Field()}
	for _, c := range []struct {
		name  string
		all   []api.Learned
		stage string
		want  cluster.Profile
		ok    bool
	}{
		{"nothing", nil, "s", cluster.Profile{}, false},
		{"one stage", []api.Learned{{Variants: []api.LearnedVariant{uses(10*mib, 80*mib), uses(160 * mib)}}}, "s",
			cluster.Profile{Ideal: 180 * resource.MiB, Duration: 2 * time.Second}, true},
		{"the stage", []api.Learned{{Stage: "a", Variants: []api.LearnedVariant{uses(8 * mib)}},
			{Stage: "b", Variants: []api.LearnedVariant{uses(80 * mib)}}}, "b",
			cluster.Profile{Ideal: 90 * resource.MiB, Duration: 2 * time.Second}, true},
		{"no such stage", []api.Learned{{Stage: "a", Variants: []api.LearnedVariant{uses(8 * mib)}}}, "b", cluster.Profile{},
			false},
		{"memory not measured", []api.Learned{{Variants: []api.LearnedVariant{unmeasured}}}, "s",
			cluster.Profile{Duration: 2 * time.Second}, true},
	} {
		if got, ok := api.ProfileOf(c.all, c.stage); !reflect.DeepEqual(got, c.want) || ok != c.ok {
			t.Errorf("%s: %+v (%v), want %+v (%v)", c.name, got, ok, c.want, c.ok)
		}
	}
}

// A task that was killed for memory is told its limit, what earlier runs used, and what to do; so is one that failed
// with the heap that it got.
func TestRemedies(t *testing.T) {
	oom := api.Task{State: api.TaskEnded, Outcome: cluster.OutOfMemory, Exit: &cluster.Exit{Code: 137, OOMKills: 1},
		Grant: api.Grant{MemoryBytes: 64 * mib}}
	failed := api.Task{State: api.TaskEnded, Outcome: cluster.Failed, Exit: &cluster.Exit{Code: 1}, Why: "fits"}
	told := failed
	told.Why = "fits; java gets a heap of 51MiB, 0.8 of the 64MiB that its container may have"
	knows := api.Forecast{Phases: []api.ForecastPhase{{Memory: 10 * mib}, {Memory: 624 * mib}}}
	for _, c := range []struct {
		name     string
		class    cluster.Class
		args     string
		task     api.Task
		forecast api.Forecast
		want     string
	}{
		{"known", cluster.Regular, "sort", oom, knows,
			"Task 0.0.0 could use at most 64MiB, and earlier runs used up to 624MiB: give it --memory 702MiB, or --class " +
				"flex, so that its container grows."},
		{"unknown", cluster.Regular, "sort", oom, api.Forecast{},
			"Task 0.0.0 could use at most 64MiB and needed more: give it a larger --memory, or --class flex, so that its " +
				"container grows."},
		{"flex", cluster.Flex, "sort", oom, knows,
			"Task 0.0.0 needed more than the maximum of its container: a larger --max-memory lets it grow further."},
		{"jvm", cluster.Flex, "/usr/bin/java -jar a.jar", told, api.Forecast{},
			"If task 0.0.0 ran out of heap: java gets a heap of 51MiB, 0.8 of the 64MiB that its container may have; a " +
				"larger --max-memory raises it."},
		{"jvm with a heap", cluster.Flex, "java -Xmx1g -jar a.jar", failed, api.Forecast{}, ""},
		{"failed", cluster.Flex, "sort", failed, api.Forecast{}, ""},
	} {
		spec := cluster.Job{Class: c.class, Stages: []cluster.Stage{{Command: cluster.Command{Args: strings.Fields(c.args)}}}}
		if got := strings.Join(Remedies(&api.Job{Tasks: []api.Task{c.task}}, &spec, []api.Forecast{c.forecast}),
			" "); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
