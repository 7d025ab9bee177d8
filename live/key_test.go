package live

import (
	"crypto/sha256"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/retention"
	"github.com/bellows-rm/bellows/live/store"
)

func keyed(text, body string) Submission {
	s := submission(1)
	s.Key = Key{Text: text, Digest: sha256.Sum256([]byte(body))}
	return s
}

// A submission with a key is carried out once: while it runs, after a restart, and when the job has been removed, for
// a day. Another submission with the key is refused, and another user's key is another key.
func TestKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		first := r.submit(keyed("a", "one"))
		again := func(when string) {
			t.Helper()
			if id, err := r.Submit(t.Context(), keyed("a", "one")); err != nil || id != first {
				t.Errorf("%s: job %d, %v, want %d", when, id, err, first)
			}
			if _, err := r.Submit(t.Context(), keyed("a", "two")); api.KindOf(err) != api.KeyReused ||
				!strings.HasPrefix(err.Error(), `idempotency key "a": belongs to another request, which arrived at `) {
				t.Errorf("%s: another request: %v", when, err)
			}
		}
		again("at once")
		// What is wrong with it now does not matter.
		broken := keyed("a", "one")
		broken.Dir = "relative"
		if id := r.submit(broken); id != first {
			t.Errorf("job %d", id)
		}
		other := keyed("a", "two")
		other.Caller.UID, other.Caller.User = 3000, "bob"
		if id := r.submit(other); id != first+1 {
			t.Errorf("the first job of another user with the key is %d", id)
		}
		if id := r.submit(submission(1)); id != first+2 {
			t.Errorf("a job without a key is %d", id)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		r.fake = newFake()
		r.start(fifo(t))
		again("after a restart")
		o := r.order(cluster.Start)
		r.fake.launched(o)
		if err := r.Cancel(t.Context(), user, first); err != nil {
			t.Fatal(err)
		}
		r.fake.ended(o.Container, cluster.Killed, 143)
		r.wait(first)
		time.Sleep(time.Hour)
		if p, err := r.Prune(t.Context(), retention.Rule{}, false); err != nil || len(p.Jobs) != 1 {
			t.Errorf("%+v, %v", p, err)
		}
		again("after the job was removed")
		time.Sleep(store.KeyLife)
		synctest.Wait()
		if id := r.submit(keyed("a", "two")); id != first+3 {
			t.Errorf("after a day the job is %d", id)
		}
	})
}

// Keys that count no more are removed within the hour, and when many have been added.
func TestKeysArePruned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		r.submit(keyed("old", "one"))
		stored := func(at time.Duration) bool {
			t.Helper()
			k, err := r.store.Key(t.Context(), &store.Key{UID: user.UID, User: user.User, Text: "old", At: r.now().Add(-at)})
			if err != nil {
				t.Fatal(err)
			}
			return k != nil
		}
		if !stored(0) {
			t.Error("it is not there")
		}
		time.Sleep(store.KeyLife + retention.Every)
		synctest.Wait()
		if stored(store.KeyLife) {
			t.Error("it is there after a day and an hour")
		}
		time.Sleep(retention.Every / 2)
		r.submit(keyed("old", "one"))
		time.Sleep(store.KeyLife + time.Minute)
		if !stored(store.KeyLife / 2) {
			t.Error("it was removed before the next hour")
		}
		for range retention.KeysBetween - 1 {
			r.keeping.KeyAdded()
		}
		r.submit(keyed("new", "one"))
		synctest.Wait()
		if stored(store.KeyLife / 2) {
			t.Error("it is there after many others were added")
		}
	})
}
