package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// When a disk is pressed: several containers use it, it is busy all the time, and it gives well below its speed
// (Prophet, section III.B). Decision 40 has the recordings that these numbers are from.
const (
	// relievedFrom is a share of the speed. A disk that gives less than cluster.PressedBelow is short, and one that gives
	// at least this is not. What it gives in between changes nothing.
	relievedFrom = 0.65
	// busyFrom is the share of the time in which the disk has something to do, from which on it is busy.
	busyFrom = 0.9
	// waitFrom is the mean time of a request from which on the disk is late. A disk that serves many requests at once is
	// busy with a single one, and gives little for small ones; but it does not keep them waiting.
	waitFrom = 8 * time.Millisecond
	// crowd is how many containers have to use a disk. One container alone is hindered by no other.
	crowd = 2
	// inARow is how many samples in a row have to say the same.
	inARow = 3
	// pressedAgain is how long a disk that stays pressed is silent about it. A policy may then relieve it again.
	pressedAgain = 10 * time.Second
	// longestGap is the longest time between two samples that still say something together: the daemon was stopped, or
	// the machine slept.
	longestGap = 5 * sampling
)

// diskCounters are what a disk has done since the start of the machine.
type diskCounters struct {
	bytes    int64         // read and written
	requests int64         // completed
	waited   time.Duration // by requests, from their arrival to their completion, summed
	busy     time.Duration // with something to do
}

// beyond reports whether some counter is larger than that of c: they began anew in between.
func (d diskCounters) beyond(c diskCounters) bool {
	return d.bytes > c.bytes || d.requests > c.requests || d.waited > c.waited || d.busy > c.busy
}

// readDisk reads the counters of a disk from a file stat of the kernel (Documentation/block/stat.rst).
func readDisk(path string) (diskCounters, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return diskCounters{}, err
	}
	return parseDisk(string(text))
}

func parseDisk(text string) (diskCounters, error) {
	const sector = 512 // bytes, whatever the disk has
	const reads, sectorsRead, msRead, writes, sectorsWritten, msWritten, msBusy = 0, 2, 3, 4, 6, 7, 9
	var n [msBusy + 1]int64
	fields := strings.Fields(text)
	if len(fields) < len(n) {
		return diskCounters{}, fmt.Errorf("statistics of a disk: %q: too short", text)
	}
	for i := range n {
		var err error
		if n[i], err = strconv.ParseInt(fields[i], 10, 64); err != nil {
			return diskCounters{}, fmt.Errorf("statistics of a disk: field %d: %w", i+1, err)
		}
	}
	return diskCounters{bytes: sector * (n[sectorsRead] + n[sectorsWritten]), requests: n[reads] + n[writes],
		waited: time.Duration(n[msRead]+n[msWritten]) * time.Millisecond,
		busy:   time.Duration(n[msBusy]) * time.Millisecond}, nil
}

// diskUse says whether a container uses the disk. The mutex of its monitored guards it.
type diskUse struct {
	known    bool
	bytes    int64 // transferred, by the last sample
	lookedAt int64 // bytes when uses was called last
}

// take takes in what the container has transferred since it began. It reports whether that is more than it was before.
func (u *diskUse) take(bytes int64) (moved bool) {
	moved = bytes != u.bytes
	u.known, u.bytes = true, bytes
	return moved
}

// uses reports whether the container has transferred anything since the last call, or may have because the kernel
// does not count.
func (u *diskUse) uses() bool {
	moved := !u.known || u.bytes != u.lookedAt
	u.lookedAt = u.bytes
	return moved
}

// newPressure returns the pressure of the disk of the state directory; nil if it cannot be seen.
func (a *Agent) newPressure() *pressure {
	device, speed := deviceOf(a.dir), a.capacity[resource.Disk]
	if device == "" || speed == 0 {
		return nil
	}
	p := &pressure{stat: filepath.Join("/sys/dev/block", device, "stat"), speed: float64(speed)}
	if _, err := readDisk(p.stat); err != nil {
		a.log.Info("cannot find out whether the disk is pressed", "because", err)
		return nil
	}
	return p
}

// lookAtDisk takes a sample of the disk, and reports that it has come under pressure, still is, or is relieved.
func (a *Agent) lookAtDisk() {
	p := a.pressure
	if p == nil {
		return
	}
	c, err := readDisk(p.stat)
	if err != nil {
		a.log.Debug("cannot read the statistics of the disk", "error", err)
		return
	}
	gives, news := p.add(a.monitor.clock(), c, a.monitor.diskUsers())
	a.monitor.pressed.Store(gives > 0)
	if !news {
		return
	}
	if gives > 0 {
		a.log.Info("the disk is pressed", "gives", resource.FormatRate(gives), "of",
			resource.FormatRate(a.capacity[resource.Disk]))
	} else {
		a.log.Info("the disk is not pressed any more")
	}
	a.events.put(cluster.Event{Kind: cluster.NodePressed,
		Found: &cluster.Condition{Bound: resource.Vector{}.With(resource.Disk, gives)}})
}

// diskUsers returns how many containers have used the disk since the last call.
func (m *monitor) diskUsers() (n int) {
	for _, w := range m.each() {
		w.mu.Lock()
		if !w.ended && w.disk.uses() {
			n++
		}
		w.mu.Unlock()
	}
	return n
}

// pressure finds out from a sample per second whether a disk is pressed.
type pressure struct {
	stat  string  // the file of its statistics
	speed float64 // bytes per second

	sampled time.Duration // when the last sample was taken
	last    diskCounters
	rates   []float64 // bytes per second, of the last samples that say the same
	short   bool      // they say that the disk is short
	told    time.Duration
	gives   resource.Amount // bytes per second, as last reported; 0 while the disk is not pressed
}

// add takes in a sample: the counters of the disk at a time of a clock that neither jumps nor stops, and how many
// containers have used the disk since the sample before. It returns what the disk gives, 0 if it is not pressed; news
// says that this is to be reported.
func (p *pressure) add(now time.Duration, c diskCounters, users int) (gives resource.Amount, news bool) {
	passed, before := now-p.sampled, p.last
	first := p.sampled == 0
	p.sampled, p.last = now, c
	if first || passed <= 0 || passed > longestGap || before.beyond(c) {
		p.rates = p.rates[:0]
		return p.gives, false
	}
	rate := float64(c.bytes-before.bytes) / passed.Seconds()
	busy := float64(c.busy-before.busy) >= busyFrom*float64(passed)
	late := c.waited-before.waited >= waitFrom*time.Duration(c.requests-before.requests)
	contested := busy && late && users >= crowd
	short, relieved := contested && rate < cluster.PressedBelow*p.speed, !contested || rate >= relievedFrom*p.speed
	if !short && !relieved || short != p.short {
		p.rates = p.rates[:0]
	}
	if !short && !relieved {
		return p.gives, false
	}
	p.short = short
	p.rates = append(p.rates, rate)
	if len(p.rates) < inARow {
		return p.gives, false
	}
	p.rates = p.rates[len(p.rates)-inARow:]
	return p.conclude(now)
}

// conclude says whether the last samples, which agree, are to be reported.
func (p *pressure) conclude(now time.Duration) (gives resource.Amount, news bool) {
	switch {
	case !p.short:
		news, p.gives = p.gives != 0, 0
	case p.gives == 0 || now-p.told >= pressedAgain:
		sum := 0.0
		for _, rate := range p.rates {
			sum += rate
		}
		news, p.gives, p.told = true, max(1, resource.Amount(sum/float64(len(p.rates)))), now
	}
	return p.gives, news
}
