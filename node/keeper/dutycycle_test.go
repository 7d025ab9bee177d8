package keeper

import (
	"testing"
	"time"
)

// run lets programs that transfer the given number of bytes per second while they run go through a cycle. It returns
// their rate, the longest time for which they stood still, and the shortest breath, 0 if there was none.
func (d *dutyCycle) run(eager float64, long time.Duration) (rate float64, longest, breath time.Duration) {
	begun := time.Now()
	d.looked = begun
	now, moved, total := begun, 0.0, 0.0
	var still, breathed time.Duration
	for now.Sub(begun) < long {
		does, wait := d.next(now, int64(moved))
		now, moved = now.Add(wait), 0
		if does == dutyStand {
			still += wait
			longest = max(longest, still)
		} else {
			still = 0
			moved = eager * wait.Seconds()
			total += moved
		}
		if does == dutyBreathe {
			breathed += wait
		} else if breathed > 0 {
			if breath == 0 || breathed < breath {
				breath = breathed
			}
			breathed = 0
		}
	}
	return total / long.Seconds(), longest, breath
}

// Over time, programs transfer what the rate allows, however eager they are, and as much as they want below it.
// Heartbeats come first: then they may transfer more.
func TestDutyCycle(t *testing.T) {
	const mb = 1e6
	for _, c := range []struct {
		name             string
		rate, eager      float64
		longest, breath  time.Duration
		least, most      float64
		still, breathing time.Duration // 0: not at all
	}{
		{"eager", 10 * mb, 1000 * mb, 0, 0, 9.9 * mb, 10.1 * mb, 1100 * time.Millisecond, 0},
		{"a little over", 10 * mb, 12 * mb, 0, 0, 9.9 * mb, 10.1 * mb, 10 * time.Millisecond, 0},
		{"within", 10 * mb, 9 * mb, 0, 0, 9 * mb, 9 * mb, 0, 0},
		{"idle", 10 * mb, 0, 0, 0, 0, 0, 0, 0},
		{"slow", 1, 1000 * mb, 0, 0, 0, 1.1 * mb, time.Minute, 0},
		{"heartbeats", mb, 100 * mb, 250 * time.Millisecond, 50 * time.Millisecond, 10 * mb, 20 * mb,
			250 * time.Millisecond, 50 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := dutyCycle{rate: c.rate, longest: c.longest, breath: c.breath}
			rate, still, breath := d.run(c.eager, 20*time.Second)
			if rate < c.least*0.999 || rate > c.most*1.001+1 || still > c.still || (still > 0) != (c.still > 0) ||
				breath != c.breathing {
				t.Errorf("%.3g bytes per second, want %.3g to %.3g; still for %v, want at most %v; breaths of %v, want %v", rate,
					c.least, c.most, still, c.still, breath, c.breathing)
			}
		})
	}
}

// What programs did not transfer is not saved up for long.
func TestDutyCycleAfterRest(t *testing.T) {
	begun := time.Now()
	d := dutyCycle{rate: 1e6, looked: begun}
	if does, _ := d.next(begun.Add(time.Hour), 0); does != dutyRun {
		t.Errorf("after an idle hour they %v", does)
	}
	if does, wait := d.next(begun.Add(time.Hour), 1.1e6); does != dutyStand || wait != time.Second {
		t.Errorf("after 1.1 MB at once they %v for %v, want to stand still for 1s", does, wait)
	}
}
