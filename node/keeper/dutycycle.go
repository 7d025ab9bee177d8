package keeper

import "time"

// dutyCycle keeps the programs of a container within a rate by stopping them part of the time, where the kernel does
// not bound their transfers. They may transfer what the rate allows since the cycle began; when they have transferred
// more, they are stopped until they are within the rate again.
type dutyCycle struct {
	rate   float64   // bytes per second
	credit float64   // bytes that they may transfer; below 0 they have transferred too many
	looked time.Time // when next was called last
	speed  float64   // bytes per second while they ran last; infinite at first
	// longest is how long they may be stopped at a time before they run for a breath; 0 is no limit.
	longest, breath time.Duration
	since           time.Time // when they were last stopped; zero while they run
	breathes        time.Time // until when they run regardless of the rate
}

const (
	// dutyLook is the longest time between two looks at what running programs transfer, dutySoon the shortest: programs
	// that would have used up their credit before are looked at earlier.
	dutyLook = 10 * time.Millisecond
	dutySoon = time.Millisecond
	// dutyBurst is how much they may save up: what the rate allows in this time.
	dutyBurst = 100 * time.Millisecond
	// dutyStill is the longest time between two looks at stopped programs.
	dutyStill = time.Second
)

// duty is what programs do until the next look.
type duty uint8

const (
	dutyRun duty = iota
	dutyStand
	dutyBreathe // run, even if other parties have stopped them
)

// next takes in that the programs have transferred some bytes since the last look, and says what they do from now on,
// and when to look again.
func (d *dutyCycle) next(now time.Time, moved int64) (does duty, wait time.Duration) {
	passed := now.Sub(d.looked).Seconds()
	d.credit = min(d.credit+d.rate*passed-float64(moved), d.rate*dutyBurst.Seconds())
	if d.looked = now; d.since.IsZero() && passed > 0 {
		d.speed = float64(moved) / passed
	}
	switch {
	case now.Before(d.breathes):
		return dutyBreathe, d.breathes.Sub(now)
	case d.credit >= 0:
		d.since = time.Time{}
		if d.credit < d.speed*dutyLook.Seconds() {
			return dutyRun, max(dutySoon, time.Duration(d.credit/d.speed*float64(time.Second)))
		}
		return dutyRun, dutyLook
	case d.since.IsZero():
		d.since = now
	}
	wait = max(time.Millisecond, time.Duration(min(-d.credit/d.rate, dutyStill.Seconds())*float64(time.Second)))
	if d.longest == 0 {
		return dutyStand, wait
	}
	left := d.longest - now.Sub(d.since)
	if left <= 0 {
		d.since, d.breathes = time.Time{}, now.Add(d.breath)
		return dutyBreathe, d.breath
	}
	return dutyStand, min(wait, left)
}
