package drive_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/engine"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/drive"
)

// handler keeps what a loop hands to it.
type handler struct {
	next   timeline.Time
	due    []timeline.Time
	starts []cluster.TaskID
	broke  error
}

func (h *handler) Due(now timeline.Time) timeline.Time {
	if h.next <= now {
		h.due, h.next = append(h.due, now), timeline.Never
	}
	return h.next
}

func (h *handler) Took(_ timeline.Time, decisions []cluster.Decision) {
	for i := range decisions {
		if decisions[i].Kind == cluster.Start {
			h.starts = append(h.starts, decisions[i].Task)
		}
	}
}

func (h *handler) Broke(err error) { h.broke = err }

// begin starts a loop, which ends with the test.
func begin(t *testing.T, p policy.Policy, h *handler) *drive.Loop {
	l := drive.NewLoop(engine.New(p, nil), h)
	go l.Run()
	t.Cleanup(l.End)
	return l
}

func fifo(t *testing.T) policy.Policy {
	t.Helper()
	p, err := policy.New("fifo", nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Events that arrive together are one step, and what the handler waits for comes at its time.
func TestLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{next: timeline.Never}
		l := begin(t, fifo(t), h)
		need := resource.Of(1000, resource.GB)
		err := l.Do(t.Context(), func() {
			l.Event(cluster.Event{Kind: cluster.NodeJoined, NewNode: &cluster.Node{Name: "n", Capacity: need}})
			l.Event(cluster.Event{Kind: cluster.Synced})
			l.Event(cluster.Event{Kind: cluster.JobSubmitted,
				NewJob: &cluster.Job{ID: 1, Stages: []cluster.Stage{{Tasks: 2, Ideal: need}}}})
			h.next = l.Now().Add(time.Minute)
		})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(h.starts) != 1 || l.Engine().Steps() != 1 || h.broke != nil {
			t.Errorf("%d steps, started %v, %v", l.Engine().Steps(), h.starts, h.broke)
		}
		began := l.Now()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(h.due) != 1 || h.due[0] != began.Add(time.Minute) {
			t.Errorf("due at %v, want a minute after %v", h.due, began)
		}
	})
}

// A bug of a policy, of a call or of the handler ends the decisions, and nothing else.
func TestLoopSurvives(t *testing.T) {
	for name, does := range map[string]func(l *drive.Loop){
		"policy": func(l *drive.Loop) { l.Event(cluster.Event{Kind: cluster.Synced}) },
		"event":  func(l *drive.Loop) { l.Event(cluster.Event{Kind: cluster.NodeLeft, Node: 7}) },
		"call":   func(*drive.Loop) { panic("broken") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &handler{next: timeline.Never}
				l := begin(t, broken{}, h)
				if err := l.Do(t.Context(), func() { does(l) }); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if h.broke == nil || name != "event" && !strings.Contains(h.broke.Error(), "panic: broken") {
					t.Errorf("the handler knows %v", h.broke)
				}
				steps := l.Engine().Steps()
				if err := l.Do(t.Context(), func() { l.Event(cluster.Event{Kind: cluster.Woken}) }); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				if l.Engine().Steps() != steps {
					t.Error("the engine decides after a bug")
				}
			})
		})
	}
}

// A call after the end is refused.
func TestLoopEnds(t *testing.T) {
	l := drive.NewLoop(engine.New(fifo(t), nil), &handler{next: timeline.Never})
	go l.Run()
	l.End()
	if err := l.Do(t.Context(), func() {}); !errors.Is(err, drive.ErrEnded) {
		t.Error(err)
	}
}
