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
	held := oom
	held.Exit = &cluster.Exit{Code: 137, OOMKills: 1, Held: 300 * resource.MiB}
	bounded := oom
	bounded.Exit = &cluster.Exit{Code: 137, OOMKills: 1, Held: 90 * resource.MiB, Quota: 100 * resource.MiB}
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
			"Task 0.0.0 outgrew the stated 64MiB: leave --memory out, or state more; earlier runs needed 624MiB."},
		{"unknown", cluster.Regular, "sort", oom, api.Forecast{},
			"Task 0.0.0 outgrew the stated 64MiB: leave --memory out, or state more."},
		{"flex", cluster.Flex, "sort", oom, knows,
			"Task 0.0.0 needed more memory than its node could give; earlier runs needed 624MiB."},
		{"flex that held less", cluster.Flex, "sort", held, api.Forecast{},
			"Task 0.0.0 needed more than the 300MiB that it held, and its node could give no more."},
		{"flex at the quota of its user", cluster.Flex, "sort", bounded, api.Forecast{},
			"Task 0.0.0 needed more than the 90MiB that it held, and the memory quota of its user, 100MiB, was used up: an " +
				"operator can raise it; `bellows quota` shows all quotas."},
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

// The remedy names the limit that was stated, in the words with which it was.
func TestRemediesNameTheLimit(t *testing.T) {
	task := api.Task{State: api.TaskEnded, Outcome: cluster.OutOfMemory, Exit: &cluster.Exit{Held: 590 * resource.MiB},
		Grant: api.Grant{MemoryBytes: 64 * mib}}
	for reserve, want := range map[cluster.ReserveBy]string{
		cluster.ReserveLearned: "Task 0.0.0 outgrew the stated 600MiB: leave --memory out, or state more.",
		cluster.ReserveStated:  "Task 0.0.0 outgrew its maximum of 600MiB: leave --max-memory out, or state more.",
	} {
		spec := cluster.Job{Class: cluster.Flex, Reserve: reserve, Stages: []cluster.Stage{{MaxMemory: 600 * resource.MiB}}}
		got := Remedies(&api.Job{Tasks: []api.Task{task}}, &spec, make([]api.Forecast, 1))
		if len(got) != 1 || got[0] != want {
			t.Errorf("%v: %q, want %q", reserve, got, want)
		}
	}
}

// A job that waits is told what lets it start, unless its reason says it.
func TestAwaits(t *testing.T) {
	for why, want := range map[cluster.Reason]string{
		cluster.BecauseNoRoom(resource.Of(1000, resource.GiB)): "It starts when enough tasks have ended; a job that " +
			"requests less may start earlier.",
		cluster.BecauseOverQuota(true, cluster.QuotaMemory, 1, 2): "It starts when other tasks of its queue have ended, " +
			"or an operator has raised the quota; `bellows quota` shows all quotas.",
		cluster.BecauseDependsOnStage(1): "",
		{}:                               "",
	} {
		if got := strings.Join(Awaits(why), "|"); got != want {
			t.Errorf("%s: %q, want %q", why.Words(nil), got, want)
		}
	}
}
