package live

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
)

// removeState removes the state directory of a running Driver: nothing can be recorded any more.
func (r *rig) removeState() {
	r.t.Helper()
	if err := os.RemoveAll(filepath.Join(r.dir, "events")); err != nil {
		r.t.Fatal(err)
	}
}

// A daemon whose state directory was removed reports that, accepts no jobs, and starts nothing.
func TestStoreThatWasRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		r.submit(submission(1))
		r.fake.launched(r.order(cluster.Start))
		synctest.Wait()
		r.removeState()
		if _, err := r.Submit(t.Context(), submission(1)); err == nil ||
			!strings.Contains(err.Error(), "was removed while bellows ran") {
			t.Errorf("submitted with %v", err)
		}
		if s, err := r.Status(t.Context()); err != nil || !strings.Contains(s.Trouble, "was removed while bellows ran") ||
			s.Jobs != 1 {
			t.Errorf("status %+v, %v", s, err)
		}
		synctest.Wait()
		r.noOrder()
	})
}

// Where recording fails, a kill reports what was done and what was not, and a forced shutdown does not wait for
// recording.
func TestEndWithoutRecording(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.store.Close()
		id := r.submit(submission(1))
		o := r.order(cluster.Start)
		r.fake.launched(o)
		synctest.Wait()
		r.removeState()
		if err := r.Cancel(t.Context(), user, id); err == nil ||
			!strings.HasPrefix(err.Error(),
				"job 1: its tasks are being killed and none starts again, but that cannot be recorded now: ") {
			t.Errorf("killed with %v", err)
		}
		if k := r.order(cluster.Kill); k.Container != o.Container {
			t.Errorf("order %+v", k)
		}
		begun := time.Now()
		if err := r.Shutdown(t.Context(), true); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > unrecordedWait+time.Second {
			t.Errorf("it took %v", took)
		}
		<-r.Done()
	})
}
