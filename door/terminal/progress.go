package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Progress shows, on one line of a terminal that it overwrites, how much of long work is done and how long the rest
// takes at that pace. A nil Progress shows nothing. Its methods may be called from several goroutines.
type Progress struct {
	mu    sync.Mutex
	lines io.Writer // for lines that stay
	to    io.Writer // the terminal; nil: no progress is shown
	title string
	parts []part // in the order in which they began
	begun time.Time
	shown time.Time
	wrote bool
}

// part is a part of the work.
type part struct {
	name             string
	first, done, all int // first is how many were done when the part began
	begun            time.Time
}

// Work that takes less than Patience shows no progress; the line is written at most once per Pace.
const (
	Patience = 2 * time.Second
	Pace     = 200 * time.Millisecond
)

// NewProgress returns a display that begins its line with title. It shows no progress unless w is a terminal.
func NewProgress(w io.Writer, title string) *Progress {
	p := &Progress{lines: w, title: title, begun: time.Now()}
	if Is(w) {
		p.to = w
	}
	return p
}

// Say prints a line that stays, above the progress.
func (p *Progress) Say(line string) {
	if p == nil {
		return
	}
	p.Clear()
	fmt.Fprintln(p.lines, line)
}

// Set records that done of all items of the named part of the work are done; all is above 0. The name is empty if the
// work has one part.
func (p *Progress) Set(name string, done, all int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.part(name, done, now).done = done
	p.part(name, done, now).all = all
	p.show(now, func() string { return p.text(now) })
}

// Show shows a text instead of the progress.
func (p *Progress) Show(text string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.show(time.Now(), func() string { return p.title + ": " + text })
}

// Clear removes the line.
func (p *Progress) Clear() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wrote {
		fmt.Fprint(p.to, "\r\033[K")
		p.wrote = false
	}
}

// part returns the named part; a new part begins now.
func (p *Progress) part(name string, first int, now time.Time) *part {
	for i := range p.parts {
		if p.parts[i].name == name {
			return &p.parts[i]
		}
	}
	p.parts = append(p.parts, part{name: name, first: first, begun: now})
	return &p.parts[len(p.parts)-1]
}

// show writes the line, unless it is too early.
func (p *Progress) show(now time.Time, text func() string) {
	if p.to == nil || now.Sub(p.begun) < Patience || now.Sub(p.shown) < Pace {
		return
	}
	p.shown, p.wrote = now, true
	fmt.Fprintf(p.to, "\r\033[K%s", Cut(text(), Width-1))
}

// text names the parts that are not done, each with its progress, and the time until all are done.
func (p *Progress) text(now time.Time) string {
	var words []string
	var left time.Duration
	for i := range p.parts {
		of := &p.parts[i]
		if of.done == of.all && i+1 < len(p.parts) {
			continue
		}
		words = append(words, strings.TrimSpace(fmt.Sprintf("%s %d/%d", of.name, of.done, of.all)))
		if fresh := of.done - of.first; fresh > 0 {
			left = max(left, time.Duration(float64(now.Sub(of.begun))/float64(fresh)*float64(of.all-of.done)))
		}
	}
	if left > 0 {
		words = append(words, fmt.Sprintf("about %v left", left.Round(time.Second)))
	}
	return p.title + ": " + strings.Join(words, ", ")
}

// Is reports whether w is a terminal.
func Is(w io.Writer) bool {
	f, ok := w.(interface{ Fd() uintptr })
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
