package top

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/internal/terminal"
	"github.com/bellows-rm/bellows/server"
)

// program shows the machine on a console, and does what the user wants. One goroutine has the state; it waits neither for the
// daemon nor for the terminal.
type program struct {
	client  *server.Client
	state   *state
	colours bool
	seen    chan server.Seen
	failed  chan error // the daemon cannot be watched
	answers chan answer
	panics  chan string // of the other goroutines
}

func newProgram(client *server.Client, s *state, colours bool) *program {
	return &program{client: client, state: s, colours: colours, seen: make(chan server.Seen), failed: make(chan error, 1),
		answers: make(chan answer), panics: make(chan string)}
}

// start does something in a goroutine. If it panics, the loop does, too: it gives the terminal back first.
func (p *program) start(ctx context.Context, do func()) {
	go func() {
		defer func() {
			if v := recover(); v != nil {
				select {
				case p.panics <- fmt.Sprintf("%v\n\n%s", v, debug.Stack()):
				case <-ctx.Done():
				}
			}
		}()
		do()
	}()
}

// watch passes on what the daemon sends.
func (p *program) watch(ctx context.Context) {
	for seen, err := range p.client.WatchMachine(ctx, 0) {
		if err != nil {
			p.failed <- err
			return
		}
		select {
		case p.seen <- seen:
		case <-ctx.Done():
		}
	}
}

// run shows the machine until the user quits. open takes the terminal over, once the daemon has answered.
func (p *program) run(ctx context.Context, open func() (*terminal.Console, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.start(ctx, func() { p.watch(ctx) })
	select {
	case seen := <-p.seen:
		p.state.now = time.Now()
		p.state.see(&seen)
	case err := <-p.failed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
	return p.show(ctx, open)
}

// show shows what is known, and what becomes known, on a console that it opens and closes.
func (p *program) show(ctx context.Context, open func() (*terminal.Console, error)) (err error) {
	console, err := open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, console.Close()) }() // after a panic, too
	return p.loop(ctx, console)
}

// loop shows the machine on a console until the user quits.
func (p *program) loop(ctx context.Context, console *terminal.Console) error {
	s := p.state
	clock := time.NewTicker(time.Second)
	defer clock.Stop()
	for afresh, more := true, false; ; { // more: of what is shown next
		if !more {
			columns, lines := console.Size()
			afresh = afresh || columns != s.columns || lines != s.lines
			s.columns, s.lines = columns, lines
			s.settle()
			console.Show(p.screen(), afresh)
		}
		for _, r := range s.take() {
			p.start(ctx, func() {
				select {
				case p.answers <- r.send(ctx, p.client):
				case <-ctx.Done():
				}
			})
		}
		afresh, more = false, false
		select {
		case k, here := <-console.Keys():
			if !here {
				return errors.New("the terminal is gone")
			}
			s.now = time.Now()
			afresh = k == terminal.KeyRedraw
			if k == terminal.KeySuspend {
				console.Suspend()
			} else if s.press(k) {
				return nil
			}
		case seen := <-p.seen:
			s.now = time.Now()
			more = s.see(&seen)
		case a := <-p.answers:
			s.now = time.Now()
			s.hear(&a)
		case <-clock.C:
			s.now = time.Now()
		case <-console.Resized():
			afresh = true
		case err := <-p.failed:
			return err
		case text := <-p.panics:
			panic(text)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// screen returns the lines of the screen for a terminal.
func (p *program) screen() []string {
	var lines []string
	for _, l := range p.state.view() {
		lines = append(lines, l.ansi(p.colours))
	}
	return lines
}

// once returns the head and the whole table as text. It takes a second: what cores do shows in a second measurement.
func once(ctx context.Context, client *server.Client, s *state) (string, error) {
	measured, complete := 0, false
	for seen, err := range client.WatchMachine(ctx, 0) {
		if err == nil {
			err = seen.Lost
		}
		if err != nil {
			return "", err
		}
		s.now = time.Now()
		more := s.see(&seen)
		complete = complete || seen.Update != nil && !more
		if seen.Machine != nil {
			measured++
		}
		if complete && measured > 1 {
			break
		}
	}
	s.settle()
	var text strings.Builder
	for _, l := range s.view() {
		text.WriteString(strings.TrimRight(l.text(), " ") + "\n")
	}
	return text.String(), nil
}
