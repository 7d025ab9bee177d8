package live

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
)

// What recurs is what the submitter says, or the name of the profile, or what name and command give; the engine and
// views have it. Where a forecast comes from is not for the submitter to say.
func TestAppOfAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		for _, c := range []struct {
			app, want string
			derived   bool
		}{{"", "sorts: sort *.txt", true}, {"mine", "mine", false}} {
			s := submission(1)
			s.Job.Name, s.Job.App, s.Job.Deadline = "sorts", c.app, 5*time.Minute
			s.Job.Stages[0].Args = []string{"sort", "big-7.txt"}
			s.Job.Stages[0].Phases = []cluster.Phase{{Duration: time.Second}}
			s.Job.Stages[0].Told = cluster.Provenance{Model: "made up", Samples: 7}
			id, err := r.Submit(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			j, err := r.Job(t.Context(), id, false)
			if err != nil || j.App != c.want || j.AppDerived != c.derived || j.DeadlineSeconds != 300 ||
				j.Stages[0].Told != (cluster.Provenance{}) || len(j.Stages[0].Phases) != 1 {
				t.Errorf("%v %+v", err, j)
			}
			if state := r.Driver.jobs[id].state; state.App != c.want || state.Deadline != 5*time.Minute {
				t.Errorf("the engine has app %q, deadline %v", state.App, state.Deadline)
			}
		}
	})
}
