package keeper

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// While the kernel takes its time, one request is under way, and the newest one follows.
func TestNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n newest
		var running, most, times, last atomic.Int64
		request := func(i int64) {
			n.do(func() {
				most.Store(max(most.Load(), running.Add(1)))
				time.Sleep(time.Second)
				times.Add(1)
				last.Store(i)
				running.Add(-1)
			})
		}
		for i := range int64(1000) {
			go request(i)
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if most.Load() != 1 || times.Load() != 2 || last.Load() != 999 {
			t.Errorf("%d at once, %d in all, the last is %d", most.Load(), times.Load(), last.Load())
		}
		request(1000)
		if times.Load() != 3 || last.Load() != 1000 {
			t.Errorf("afterwards %d in all, the last is %d", times.Load(), last.Load())
		}
	})
}
