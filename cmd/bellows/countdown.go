package main

import (
	"fmt"
	"io"
	"time"
)

// countdown shows, on one line of a terminal that is written over and over, how many runs are done and how long the rest
// takes at that pace. One goroutine uses it.
type countdown struct {
	to           io.Writer // nil: nothing is shown
	all          int
	begun, shown time.Time
	wrote        bool
}

func newCountdown(to io.Writer, all int, show bool) *countdown {
	if !show {
		to = nil
	}
	return &countdown{to: to, all: all, begun: time.Now()}
}

// set records that done runs are done.
func (c *countdown) set(done int) {
	now := time.Now()
	if c.to == nil || now.Sub(c.begun) < patience || now.Sub(c.shown) < pace {
		return
	}
	c.shown, c.wrote = now, true
	fmt.Fprintf(c.to, "\r\033[K%s", remaining(done, c.all, now.Sub(c.begun)))
}

// remaining says how far a sweep is after passed.
func remaining(done, all int, passed time.Duration) string {
	text := fmt.Sprintf("%d of %s done", done, count(all, "run"))
	if done > 0 && done < all {
		left := time.Duration(float64(passed) / float64(done) * float64(all-done))
		text += fmt.Sprintf(", about %v left", left.Round(time.Second))
	}
	return text
}

// clear takes the line away.
func (c *countdown) clear() {
	if c.wrote {
		fmt.Fprint(c.to, "\r\033[K")
	}
}
