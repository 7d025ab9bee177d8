package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// progress shows, on one line of a terminal that is written over and over, how far long work is.
type progress struct {
	mu    sync.Mutex
	to    io.Writer
	names []string
	done  [][2]int
	begun time.Time
	shown time.Time
	wrote bool
}

// Work that is over in patience shows no progress; the line is written no more often than every pace.
const (
	patience = 2 * time.Second
	pace     = 200 * time.Millisecond
)

func newProgress(to io.Writer, names []string) *progress {
	return &progress{to: to, names: names, done: make([][2]int, len(names)), begun: time.Now()}
}

// set records that done of all parts of work i are done.
func (p *progress) set(i, done, all int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done[i] = [2]int{done, all}
	now := time.Now()
	if now.Sub(p.begun) < patience || now.Sub(p.shown) < pace {
		return
	}
	p.shown, p.wrote = now, true
	var parts []string
	for i, name := range p.names {
		if p.done[i][1] > 0 {
			parts = append(parts, fmt.Sprintf("%s %d/%d", name, p.done[i][0], p.done[i][1]))
		}
	}
	fmt.Fprintf(p.to, "\r\033[K%s", cut("jobs ended: "+strings.Join(parts, ", "), width-1))
}

// clear takes the line away.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wrote {
		fmt.Fprint(p.to, "\r\033[K")
	}
}
