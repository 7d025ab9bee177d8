package kept

import (
	"testing"
	"testing/synctest"
	"time"
)

// However long a value takes to make, up to a bound, it is replaced before it is too old: while callers come all the
// time, only the first waits, even if one takes three times as long as the one before.
func TestRecentIsReplacedInTime(t *testing.T) {
	for _, takes := range []time.Duration{0, time.Millisecond, 25 * time.Millisecond, 60 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			var r Recent[int]
			made := 0
			make := func() int {
				made++
				time.Sleep(takes * time.Duration(1+2*(made%2)))
				return made
			}
			get := func() (age, waited time.Duration) {
				begun := time.Now()
				_, at := r.Get(make)
				return time.Since(at), time.Since(begun)
			}
			get()
			for range 500 {
				time.Sleep(10 * time.Millisecond)
				if age, waited := get(); age > Old || waited > 0 {
					t.Errorf("it takes %v: %v old after a wait of %v", takes, age, waited)
				}
			}
			time.Sleep(Old) // until the last is made
		})
	}
}
