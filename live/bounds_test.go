package live

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
)

// A job beyond a bound is rejected before any of it is stored, so that it cannot return at the next start.
func TestWhatIsBeyondABoundIsNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		yarnME, err := policy.New("yarn-me", nil)
		if err != nil {
			t.Fatal(err)
		}
		r := newRig(t, yarnME)
		defer r.end()
		elastic := func(s *Submission, ideal resource.Amount) {
			stage := &s.Job.Stages[0]
			stage.Ideal[resource.Memory], stage.MinMemory, stage.Duration = ideal, 64*resource.MiB, 10*time.Second
			stage.Elasticity = cluster.Elasticity{Kind: cluster.Step, Factor: 1.5}
		}
		for _, c := range []struct {
			change func(*Submission)
			want   string
		}{
			{func(s *Submission) { elastic(s, 8000*1024*resource.TiB) }, "memory 8000PiB: must be at most 1000PB"},
			{func(s *Submission) { elastic(s, math.MaxInt64) }, "must be at most 1000PB"},
			{func(s *Submission) { s.Job.Stages[0].Tasks, s.Job.Stages[0].Ideal = 1<<30, resource.Of(0, 1) },
				"must be at least"},
			{func(s *Submission) { s.Job.Stages[0].Tasks = cluster.MostRunTasks + 1 }, "tasks 100001: must be at most 100000"},
			{func(s *Submission) { s.Job.Class, s.Job.Stages[0].HeartbeatTimeout = cluster.Flex, 1 },
				"heartbeat_timeout 1ns: must be at least 2s"},
			{func(s *Submission) { s.Job.Name = "a\x1b[2J" }, `job name "a\x1b[2J": must be`},
		} {
			s := submission(1)
			c.change(&s)
			if _, err := r.Submit(t.Context(), s); api.KindOf(err) != api.Invalid || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v: %v", c.want, api.KindOf(err), err)
			}
		}
		if stored, err := r.store.OpenJobs(t.Context()); err != nil || len(stored) != 0 {
			t.Errorf("%d jobs are stored, %v", len(stored), err)
		}
		// The daemon still decides, and at the edge of a bound it decides at once.
		s := submission(1)
		elastic(&s, resource.MostMemory)
		r.submit(s)
		if o := r.order(cluster.Start); o.Grant[resource.Memory] > resource.GiB {
			t.Errorf("granted %v", o.Grant)
		}
	})
}

// A job that was stored before a bound existed keeps running, with the nearest value within the bound.
func TestOldRecordsAreBroughtIntoBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, dir: t.TempDir(), fake: newFake()}
		r.open()
		s := submission(1)
		request := store.Request{Job: s.Job, As: user, Dir: s.Dir}
		huge := request
		huge.Job.Stages = []cluster.Stage{{Name: "huge", Tasks: 1, Ideal: resource.Of(1000, math.MaxInt64)}}
		request.Job.Class = cluster.Flex
		request.Job.Stages[0].HeartbeatTimeout = 1
		for _, q := range []store.Request{huge, request} {
			if _, err := r.store.AddJob(t.Context(),
				store.Job{Request: q, State: store.JobState{Status: cluster.StatusPending}}); err != nil {
				t.Fatal(err)
			}
		}
		srjf, err := policy.New("srjf", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.start(srjf)
		defer r.end()
		o := r.order(cluster.Start)
		if o.Task.Job != 2 || o.Envelope.HeartbeatTimeout != cluster.LeastHeartbeatTimeout {
			t.Errorf("started %v with a time-out of %v", o.Task, o.Envelope.HeartbeatTimeout)
		}
		if j := r.job(1); j.Ended {
			t.Errorf("job 1 is %+v", j)
		}
	})
}
