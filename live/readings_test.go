package live

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/kept"
)

// slowReading is the time for 30 containers at half a millisecond each.
const slowReading = 15 * time.Millisecond

// slow is a Backend of many containers that takes as long as a real machine to read them.
type slow struct {
	*fake
	taken int // to be read only while no caller requests readings
}

func (s *slow) Readings() map[cluster.ContainerID]cluster.Reading {
	s.taken++
	time.Sleep(slowReading)
	return map[cluster.ContainerID]cluster.Reading{}
}

// However many callers request readings at once, containers are read at most ten times a second and for at most a
// twentieth of the time, no caller gets readings older than half a second, and none waits while there are younger
// ones.
func TestReadingsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{fake: newFake()}
		r := &rig{t: t, dir: t.TempDir(), fake: s.fake}
		r.open()
		r.startOn(fifo(t), s)
		defer r.end()
		ask := func() (age, waited time.Duration) {
			begun := time.Now()
			_, at, err := r.Measured(t.Context())
			if err != nil {
				t.Error(err)
			}
			return time.Since(at), time.Since(begun)
		}
		const lasts = 10 * time.Second
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				ask() // waits for the first readings
				for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(time.Millisecond) {
					if age, waited := ask(); age > kept.Old || waited > 0 {
						t.Errorf("readings %v old after a wait of %v", age, waited)
					}
				}
			})
		}
		all.Wait()
		synctest.Wait()
		if most := int(lasts/kept.Part/slowReading) + 1; s.taken > most || s.taken < most-2 {
			t.Errorf("containers were read %d times in %v, which took %v each; want %d", s.taken, lasts, slowReading, most)
		}
		before := s.taken
		for range 5 {
			time.Sleep(time.Second)
			if age, _ := ask(); age > 0 {
				t.Errorf("readings are %v old for a caller who comes once a second", age)
			}
		}
		if s.taken != before+5 {
			t.Errorf("containers were read %d times for 5 callers", s.taken-before)
		}
	})
}

// Measured are the tasks that have a container, each with what it uses, and when that was read. Containers of others,
// of earlier runs and of tasks that have ended do not count.
func TestMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		r.submit(submission(2))
		first, second := r.order(cluster.Start), r.order(cluster.Start)
		r.fake.launched(first)
		r.fake.launched(second)
		earlier, other := second.Container, cluster.ContainerID{Task: cluster.TaskID{Job: 99}, Run: 1}
		earlier.Run = 7
		r.fake.readings = map[cluster.ContainerID]cluster.Reading{second.Container: {Swap: new(int64(7))},
			first.Container: {Swap: new(int64(5))}, earlier: {}, other: {}}
		synctest.Wait()
		tasks, at, err := r.Measured(t.Context())
		if err != nil || !at.Equal(time.Now()) || len(tasks) != 2 || tasks[0].Task != first.Task ||
			*tasks[0].Usage.Swap != 5 || tasks[1].Task != second.Task || *tasks[1].Usage.Swap != 7 {
			t.Errorf("at %v: %+v, %v", at, tasks, err)
		}
		r.fake.ended(first.Container, cluster.Succeeded, 0)
		synctest.Wait()
		time.Sleep(kept.Old + 1)
		if tasks, _, err := r.Measured(t.Context()); err != nil || len(tasks) != 1 || tasks[0].Task != second.Task {
			t.Errorf("after the end of a task: %+v, %v", tasks, err)
		}
		r.fake.ended(second.Container, cluster.Succeeded, 0)
	})
}

// Status costs at most ten readings of all containers per second.
func BenchmarkStatus(b *testing.B) {
	s := &slow{fake: newFake()}
	r := &rig{t: b, dir: b.TempDir(), fake: s.fake}
	r.open()
	r.startOn(fifo(b), s)
	defer r.end()
	b.Run("shared", func(b *testing.B) {
		for b.Loop() {
			if _, err := r.Status(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read anew", func(b *testing.B) {
		for b.Loop() {
			s.Readings()
		}
	})
}
