package server

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
)

// However many requests of one user wait, that of another user is next.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all turns
		contended := make(chan struct{}, 1)
		order := make(chan uint32, 100)
		let := make(chan struct{})
		request := func(uid uint32) {
			done, err := all.take(t.Context(), uid)
			if err != nil {
				return
			}
			defer done()
			contended <- struct{}{}
			order <- uid
			<-let
			<-contended
		}
		for range 50 {
			go request(1000)
		}
		synctest.Wait()
		go request(2000)
		synctest.Wait()
		for range 51 {
			let <- struct{}{}
			synctest.Wait()
		}
		if first, second := <-order, <-order; first != 1000 || second != 2000 {
			t.Errorf("users %d and %d came first", first, second)
		}
		if len(all.of) != 0 {
			t.Errorf("%d users are remembered", len(all.of))
		}
		done, err := all.take(t.Context(), 1000)
		if err != nil {
			t.Fatal(err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := all.take(gone, 1000); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller who left: %v", err)
		}
		done()
		if len(all.of) != 0 {
			t.Errorf("%d users are remembered", len(all.of))
		}
	})
}

// One ordinary user has half of the places at most, root and the daemon's user all.
func TestPlaces(t *testing.T) {
	p := newPlaces(4, 500)
	enter := func(uid uint32, want int) {
		t.Helper()
		if got := p.enter(uid); got != want {
			t.Errorf("user %d: %d, want %d", uid, got, want)
		}
	}
	enter(1000, 0)
	enter(1000, 0)
	enter(1000, 2)
	enter(2000, 0)
	enter(500, 0)
	enter(0, 4)
	p.leave(2000)
	enter(1000, 2)
	enter(500, 0)
	for _, uid := range []uint32{500, 500, 1000, 1000} {
		p.leave(uid)
	}
	for range 4 {
		enter(0, 0)
	}
	enter(0, 4)
}

// One user who explains all the time, over every connection there may be, does not keep another user waiting.
func TestExplainingTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &slowToExplain{fake: newFake(), let: make(chan struct{}), asked: make(chan cluster.JobID, 100)}
		f.jobs[1], f.jobs[2] = api.Job{ID: 1, UID: 1000, Owner: "ada"}, api.Job{ID: 2, UID: 2000, Owner: "bob"}
		s := &Server{driver: f}
		ask := func(uid uint32, id cluster.JobID) {
			ctx := context.WithValue(t.Context(), callerKey{}, &caller{Credentials: cluster.Credentials{UID: uid}})
			if _, err := s.explain(ctx, id); err != nil {
				t.Error(err)
			}
		}
		for range 50 {
			go ask(1000, 1)
		}
		synctest.Wait()
		go ask(2000, 2)
		synctest.Wait()
		if first, second := <-f.asked, <-f.asked; first != 1 || second != 2 {
			t.Errorf("asked about jobs %d and %d first", first, second)
		}
		close(f.let)
		synctest.Wait()
	})
}

// slowToExplain is a Driver that explains when it is let.
type slowToExplain struct {
	*fake
	let   chan struct{}
	asked chan cluster.JobID
}

func (f *slowToExplain) Explain(ctx context.Context, id cluster.JobID) (api.Explanation, error) {
	f.asked <- id
	<-f.let
	return f.fake.Explain(ctx, id)
}

// count returns how many places are taken.
func (p *places) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}
