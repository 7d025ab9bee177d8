package live

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
)

// expectReady fails the test unless the Driver serves, or says why it does not.
func (r *rig) expectReady(why string) {
	r.t.Helper()
	switch err := r.Ready(); {
	case why == "" && err != nil:
		r.t.Errorf("it does not serve: %v", err)
	case why != "" && (api.KindOf(err) != api.Unavailable || !strings.Contains(err.Error(), why)):
		r.t.Errorf("the error is %v, want %q", err, why)
	}
}

func TestReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, dir: t.TempDir(), fake: newFake()}
		joined, synced := <-r.fake.events, <-r.fake.events
		r.fake.events <- joined
		r.open()
		r.start(fifo(t))
		r.expectReady("the containers of an earlier daemon are being found")
		r.fake.events <- synced
		synctest.Wait()
		r.expectReady("")
		for why, set := range map[string]func(){
			"going down":  func() { r.health.draining = true },
			"a policy":    func() { r.health.broken = api.Errorf(api.Internal, "a policy took an impossible decision") },
			"the answers": func() { r.health.broken, r.health.draining = api.Errorf(api.Internal, "the answers stop"), true },
		} {
			if err := r.do(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			r.expectReady(why)
			if err := r.do(t.Context(), func() { r.health.draining, r.health.broken = false, nil }); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			r.expectReady("")
		}
		r.end()
		r.expectReady("going down")
	})
}

// A store that cannot be written says so until it can be written again.
func TestNotReadyWithoutAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		r.submit(submission(1))
		o := r.order(cluster.Start)
		if err := r.store.Close(); err != nil {
			t.Fatal(err)
		}
		r.fake.launched(o)
		synctest.Wait()
		r.expectReady("the store")
		if m := r.Metrics(); m.WriteFailures == 0 {
			t.Error("no failure to write was counted")
		}
		if err := r.Driver.Close(); err != nil {
			t.Log(err)
		}
	})
}

func TestNotReadyWhileTheEngineHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHangsRig(t, nil)
		synctest.Wait()
		r.expectReady("")
		r.submitHanging()
		time.Sleep(time.Second)
		r.expectReady("the engine has not answered for 7s")
		if m := r.Metrics(); m.Hangs != 1 {
			t.Errorf("%d hangs were counted", m.Hangs)
		}
		r.policy.letGo <- struct{}{}
		time.Sleep(2 * time.Second)
		r.expectReady("")
	})
}

// Right after a full disk was the answer, the daemon is not ready, whoever has tried to write, and for as long as
// there is no space.
func TestNotReadyOnAFullDisk(t *testing.T) {
	for name, write := range map[string]func(*rig) error{
		"submission": func(r *rig) error {
			s := submission(1)
			s.Env = []string{"BIG=" + strings.Repeat("x", 100_000)}
			_, err := r.Submit(r.t.Context(), s)
			return err
		},
		"submissions": func(r *rig) error {
			s := submission(1)
			s.Env = []string{"BIG=" + strings.Repeat("x", 100_000)}
			_, _, err := r.SubmitAll(r.t.Context(), user, Key{}, func(yield func(Submission, error) bool) { yield(s, nil) })
			return err
		},
		"profile": func(r *rig) error {
			return r.store.PutProfile(r.t.Context(), store.Profile{UID: 7, Name: "a",
				Measured: api.Measured{IdealMemory: 10, MinMemory: 1,
					Args: []string{strings.Repeat("x", 100_000)}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := smallDisk(t, "64m")
			synctest.Test(t, func(t *testing.T) {
				r := &rig{t: t, dir: dir, fake: newFake()}
				r.open()
				r.start(fifo(t))
				defer r.end()
				synctest.Wait()
				r.expectReady("")
				empty := fill(t, dir)
				if err := write(r); !store.IsFull(err) {
					t.Errorf("written with %v", err)
				}
				r.expectReady("its disk is full: free some space")
				if s, err := r.Status(t.Context()); name != "profile" &&
					(err != nil || !strings.Contains(s.Trouble, "its disk is full")) {
					t.Errorf("status %+v, %v", s, err)
				}
				empty()
				time.Sleep(2 * retryAfter)
				r.expectReady("")
			})
		})
	}
}
