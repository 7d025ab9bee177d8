package admission

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
)

// A quota of submissions lets as many in within any minute, and says how long the next has to wait.
func TestPace(t *testing.T) {
	g := New(&cluster.Quotas{Users: map[string]cluster.Limits{"ada": {cluster.QuotaSubmissions: {Most: 3}}}})
	start := timeline.Time(time.Hour)
	g.Begin(start, []store.Submitted{{User: "ada", At: start.Add(-10 * time.Second)}})
	one := []*cluster.Job{{Name: "j", Owner: "ada"}}
	for i := range 2 {
		if over, _ := g.Enter(start.Add(time.Duration(i)*time.Second), one); over != nil {
			t.Fatalf("submission %d is refused: %v", i, over)
		}
	}
	over, wait := g.Enter(start.Add(5*time.Second), one)
	if over == nil || wait != 45*time.Second {
		t.Errorf("%v, to wait for %v", over, wait)
	}
	if err := TooFast(one[0], over, wait); api.KindOf(err) != api.OverQuota || api.RetryAfter(err) != wait {
		t.Errorf("%v", err)
	}
	if over, _ := g.Enter(start.Add(50*time.Second), one); over != nil {
		t.Errorf("after the wait: %v", over)
	}
	if n := g.Submissions(cluster.Party{Name: "ada"}, start.Add(50*time.Second)); n != 3 {
		t.Errorf("%d submissions count", n)
	}
}

// Who waits for other quotas is told of them once, and only if they are others.
func TestSet(t *testing.T) {
	g := New(nil)
	if !g.Rules().None() || g.Set(&cluster.Quotas{}) {
		t.Error("no quotas differ from none")
	}
	if !g.Set(&cluster.Quotas{Users: map[string]cluster.Limits{"ada": {}}}) || !g.Set(nil) {
		t.Error("other quotas are the same")
	}
	select {
	case <-g.Changed():
	default:
		t.Error("nobody is told")
	}
	select {
	case <-g.Changed():
		t.Error("it is told twice")
	default:
	}
}
