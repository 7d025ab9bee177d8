package agent

import (
	"embed"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// second is what a disk of 100 MB/s does in a second, and what follows from it.
type second struct {
	mb, wait int64 // MB transferred; mean time of a request, ms
	busy     int64 // ms
	users    int
	says     string
}

// A disk is pressed after a few seconds in a row of little while busy, late and contested; it says so again while that
// lasts, and once when it is over.
func TestPressure(t *testing.T) {
	quiet := func(n int, s second) (all []second) {
		for range n {
			all = append(all, s)
		}
		return all
	}
	says := func(s second, text string) []second { s.says = text; return []second{s} }
	join := func(parts ...[]second) (all []second) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	short, between := second{mb: 30, wait: 20, busy: 1000, users: 3}, second{mb: 60, wait: 20, busy: 1000, users: 3}
	full, idle := second{mb: 80, wait: 20, busy: 1000, users: 3}, second{mb: 5, wait: 1, busy: 300, users: 3}
	begins := join(quiet(inARow-1, short), says(short, "30MB/s"))
	for name, all := range map[string][]second{
		"short":        begins,
		"briefly":      join(quiet(inARow-1, short), quiet(1, full), quiet(inARow-1, short)),
		"briefly less": join(quiet(inARow-1, short), quiet(1, between), quiet(inARow-1, short)),
		"in between":   quiet(20, between),
		"full":         quiet(20, full),
		"idle":         quiet(20, idle),
		"alone":        quiet(20, second{mb: 30, wait: 20, busy: 1000, users: 1}),
		"many at once": quiet(20, second{mb: 30, wait: 1, busy: 1000, users: 3}),
		"stuck":        join(quiet(inARow-1, second{busy: 1000, users: 2}), says(second{busy: 1000, users: 2}, "1B/s")),
		"relieved":     join(begins, quiet(inARow-1, full), says(full, "0B/s"), quiet(9, full)),
		"idle again":   join(begins, quiet(inARow-1, idle), says(idle, "0B/s"), quiet(9, idle)),
		"briefly full": join(begins, quiet(inARow-1, full), quiet(1, between), quiet(inARow-1, full)),
		"lasts": join(begins, quiet(int(pressedAgain/sampling)-1, short), says(short, "30MB/s"),
			quiet(int(pressedAgain/sampling)-1, short), says(short, "30MB/s")),
		"begins anew":     join(begins, quiet(inARow-1, idle), says(idle, "0B/s"), begins),
		"lasts unclearly": join(begins, quiet(5*int(pressedAgain/sampling), between)),
	} {
		t.Run(name, func(t *testing.T) {
			p := pressure{speed: 100e6}
			at, c := 100*sampling, diskCounters{bytes: 5e9, requests: 7, waited: time.Hour, busy: time.Hour}
			p.add(at, c, 0)
			for i, s := range all {
				at += sampling
				c.bytes += s.mb * 1e6
				c.requests += s.mb * 10
				c.waited += time.Duration(s.mb*10*s.wait) * time.Millisecond
				c.busy += time.Duration(s.busy) * time.Millisecond
				said := ""
				if gives, news := p.add(at, c, s.users); news {
					said = resource.FormatRate(gives)
				}
				if said != s.says {
					t.Errorf("after %d s it says %q, want %q", i+1, said, s.says)
				}
			}
		})
	}
}

// Samples that do not belong together say nothing: the machine slept, or its counters began anew.
func TestPressureAfterGaps(t *testing.T) {
	for name, jump := range map[string]func(at *time.Duration, c *diskCounters){
		"sleep":    func(at *time.Duration, _ *diskCounters) { *at += time.Hour },
		"counters": func(_ *time.Duration, c *diskCounters) { *c = diskCounters{} },
		"clock":    func(at *time.Duration, _ *diskCounters) { *at -= sampling },
	} {
		p := pressure{speed: 100e6}
		at, c := time.Hour, diskCounters{bytes: 1e9, busy: time.Hour}
		for i := range inARow + 1 {
			if i == inARow {
				jump(&at, &c)
			}
			if _, news := p.add(at, c, 2); news {
				t.Errorf("%s: pressed after %d samples", name, i+1)
			}
			at, c.busy = at+sampling, c.busy+sampling
		}
	}
}

// recordings are the fixtures of TestRecordedPressure. They are in the program, for guests, which have no other files.
//
//go:embed testdata/pressure
var recordings embed.FS

// What was recorded on disks, see the first line of each file, is pressed or not. With -record-pressure it is
// recorded anew, and judged by the next run.
func TestRecordedPressure(t *testing.T) {
	if *recordPressure {
		recordAll(t)
		return
	}
	for disk, want := range map[string]map[string]string{
		"arm":     {"read": "2 4 8 16", "random": "2 4 8 16"},
		"bounded": {}, // it loses nothing, wherever transfers are
		"own":     {}, // nor does it keep requests waiting
	} {
		text, err := recordings.ReadFile("testdata/pressure/" + disk)
		if err != nil {
			t.Fatal(err)
		}
		if got := pressedIn(t, disk, string(text)); !reflect.DeepEqual(got, want) {
			t.Errorf("disk %s is pressed with %v, want %v", disk, got, want)
		}
	}
}

// pressedIn returns with how many programs a recorded disk is pressed, for each way of using it.
func pressedIn(t *testing.T, disk, recording string) map[string]string {
	var p pressure
	var speed float64
	var users int
	name, pressed := "", map[string]string{}
	for line := range strings.Lines(recording) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "#":
		case "speed":
			if _, err := fmt.Sscan(rest, &speed); err != nil {
				t.Fatal(err)
			}
		case "case":
			if _, err := fmt.Sscan(rest, &name, &users); err != nil {
				t.Fatal(err)
			}
			p = pressure{speed: speed}
		default:
			var ms int64
			c, err := parseDisk(rest)
			if _, err2 := fmt.Sscan(word, &ms); err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			before := p
			gives, news := p.add(time.Duration(ms)*time.Millisecond, c, users)
			t.Logf("%s %s %d: %s", disk, name, users, p.describe(&before))
			if news && gives > 0 && before.gives == 0 {
				pressed[name] += fmt.Sprint(" ", users)
			}
		}
	}
	for how := range pressed {
		pressed[how] = strings.TrimSpace(pressed[how])
	}
	return pressed
}

// describe says what the last sample showed.
func (p *pressure) describe(before *pressure) string {
	passed, n := p.sampled-before.sampled, p.last.requests-before.last.requests
	if before.sampled == 0 {
		return "begins"
	}
	return fmt.Sprintf("%.2f of the speed, busy %.2f, %v a request",
		float64(p.last.bytes-before.last.bytes)/passed.Seconds()/p.speed,
		float64(p.last.busy-before.last.busy)/float64(passed), (p.last.waited-before.last.waited)/time.Duration(max(1, n)))
}

// The time in which the disk is pressed counts for a container that uses the disk then, also for the next daemon; a gap
// without samples does not count.
func TestPressedTimeIsCounted(t *testing.T) {
	b := newBench(t)
	o := b.order("sleep", "1000")
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	w := b.monitor.all[o.Container]
	w.mu.Lock()
	at := max(monotonic(), w.origin+w.log.Last()) + sampling
	at = w.origin + (at - w.origin).Round(time.Second) // samples are stored by the millisecond
	w.sample(at)
	for _, c := range []struct {
		what           string
		after          time.Duration
		pressed, moved bool
		want           time.Duration
	}{
		{"it transfers nothing", sampling, true, false, 0},
		{"it transfers something", sampling, true, true, sampling},
		{"a long time without samples", longestGap + sampling, true, true, sampling},
		{"the disk is not pressed", sampling, false, true, sampling},
		{"it is again", 2 * sampling, true, true, 3 * sampling},
	} {
		if !w.disk.known && !c.moved {
			continue // the kernel does not count
		}
		b.monitor.pressed.Store(c.pressed)
		if c.moved {
			w.disk.bytes-- // as if it had transferred one more since then
		}
		at += c.after
		if w.sample(at); w.log.Pressed() != c.want {
			t.Errorf("%s: hindered for %v, want %v", c.what, w.log.Pressed(), c.want)
		}
	}
	before := w.log.Pressed()
	w.write()
	w.mu.Unlock()
	b.reopen()
	if w := b.monitor.all[o.Container]; w.pressed != before || before == 0 {
		t.Errorf("the next daemon counts from %v, want %v", w.pressed, before)
	}
}
