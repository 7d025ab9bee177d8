package learn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/store"
)

var user = cluster.Credentials{UID: 1000, User: "somebody"}

// waiting are jobs that wait, of any application.
type waiting struct {
	jobs    []store.Request
	revised []cluster.Job
}

func (w *waiting) Apps(context.Context) ([]App, error)              { return nil, nil }
func (w *waiting) Of(context.Context, App) ([]store.Request, error) { return w.jobs, nil }
func (w *waiting) Revise(_ context.Context, revised []cluster.Job) {
	w.revised = append(w.revised, revised...)
}
func (w *waiting) MostMemory() resource.Amount { return 0 }
func newLearner(t *testing.T, w *waiting) (*Learner, *store.Store) {
	t.Helper()
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return New(s, slog.New(slog.DiscardHandler), func() timeline.Time { return 1 }, w), s
}

// Of each user the applications stay that ran last.
func TestForget(t *testing.T) {
	l, s := newLearner(t, &waiting{})
	for i := range AppsKept + 3 {
		a := store.App{UID: user.UID, User: user.User, Name: fmt.Sprint("once-", i), Learned: json.RawMessage("{}"),
			LearnedAt: timeline.Time(i)}
		if err := s.PutLearned(t.Context(), a, store.Lessons{}); err != nil {
			t.Fatal(err)
		}
	}
	known := func() int {
		apps, err := s.Apps(t.Context(), user.UID, user.User)
		if err != nil {
			t.Fatal(err)
		}
		return len(apps)
	}
	r := rounds{Learner: l, taught: AppsBeyond - 1}
	if r.forget(t.Context()); known() != AppsKept+3 {
		t.Errorf("%d applications are known, want all", known())
	}
	r.taught++
	if r.forget(t.Context()); known() != AppsKept || r.taught != 0 {
		t.Errorf("%d applications are known, want %d", known(), AppsKept)
	}
	if _, err := s.App(t.Context(), user.UID, user.User, "once-2"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the third application: %v", err)
	}
}

// More histories than are kept in memory are read from the store again, and what they taught is the same.
func TestManyHistories(t *testing.T) {
	job := func(app string) cluster.Job {
		return cluster.Job{Owner: user.User, App: app,
			Stages: []cluster.Stage{{Tasks: 1, Ideal: resource.Of(1000, resource.GB)}}}
	}
	w := &waiting{}
	l, _ := newLearner(t, w)
	for i := range mostHistories + 10 {
		name := fmt.Sprint("app-", i)
		h := &profile.History{}
		r := profile.Run{Ended: 1, Phases: []cluster.Phase{{Duration: time.Duration(i+1) * time.Second,
			Demand: resource.Of(700, 100*resource.MiB)}}}
		if _, err := h.Observe(profile.App{Name: name}, r); err != nil {
			t.Fatal(err)
		}
		j := job(name)
		w.jobs = []store.Request{{Job: j, Untimed: profile.Untimed(&j)}}
		if _, err := l.Import(t.Context(), user, h); err != nil {
			t.Fatal(err)
		}
	}
	if len(l.known) != mostHistories || len(w.revised) != mostHistories+10 {
		t.Errorf("%d histories in memory, %d jobs revised", len(l.known), len(w.revised))
	}
	for i := range mostHistories + 10 {
		j := job(fmt.Sprint("app-", i))
		err := l.Forecast(t.Context(), user, &j, profile.Untimed(&j))
		if got, want := j.Stages[0].Duration, time.Duration(i+1)*time.Second; err != nil || got != want ||
			w.revised[i].Stages[0].Duration != want {
			t.Errorf("application %d: %v, forecast %v, revised to %v, want %v", i, err, got, w.revised[i].Stages[0].Duration,
				want)
		}
	}
}
