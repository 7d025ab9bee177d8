package live

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/cluster"
)

// slow is a Backend of many containers that takes as long as a real machine to read them.
type slow struct {
	*fake
	taken int // to be read only while no caller requests readings
}

func (s *slow) Readings() map[cluster.ContainerID]cluster.Reading {
	s.taken++
	time.Sleep(15 * time.Millisecond) // 30 containers at half a millisecond each
	return map[cluster.ContainerID]cluster.Reading{}
}

// However many callers request readings at once, containers are read at most ten times a second, and no caller gets
// older readings.
func TestReadingsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{fake: newFake()}
		r := &rig{t: t, dir: t.TempDir(), fake: s.fake}
		r.open()
		r.startOn(fifo(t), s)
		defer r.end()
		for range 50 {
			go func() {
				for range 20 {
					if _, err := r.Status(context.Background()); err != nil {
						t.Error(err)
					}
					time.Sleep(time.Millisecond)
				}
			}()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if s.taken < 1 || s.taken > 2 {
			t.Errorf("containers were read %d times within %v", s.taken, readingsLast)
		}
		before := s.taken
		for range 5 {
			time.Sleep(readingsLast)
			if _, err := r.Status(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if s.taken != before+5 {
			t.Errorf("containers were read %d times in 5 times %v", s.taken-before, readingsLast)
		}
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
