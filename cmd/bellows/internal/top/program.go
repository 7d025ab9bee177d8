package top

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/terminal"
)

// screen is what a program shows. It changes by what is given to its methods, and by what was watched, alone.
type screen interface {
	base() *frame
	settle()
	view() []line
	press(terminal.Key) (quit bool)
	hear(*answer)
}

// watched yields functions, each of which tells the screen what was seen, and returns whether more follows that is to
// be shown together.
type watched = iter.Seq2[func() (more bool), error]

// program shows a screen on a console, and does what the user wants. One goroutine has the state; it waits neither
// for the daemon nor for the terminal.
type program struct {
	client  *client.Client
	screen  screen
	watched watched
	colours bool
	seen    chan func() (more bool)
	failed  chan error // the daemon cannot be watched
	answers chan answer
	panics  chan string // of the other goroutines
}

func newProgram(client *client.Client, s screen, watched watched, colours bool) *program {
	return &program{client: client, screen: s, watched: watched, colours: colours, seen: make(chan func() bool),
		failed: make(chan error, 1), answers: make(chan answer), panics: make(chan string)}
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
	for seen, err := range p.watched {
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
		p.screen.base().now = time.Now()
		seen()
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
	s, f := p.screen, p.screen.base()
	clock := time.NewTicker(time.Second)
	defer clock.Stop()
	for afresh, more := true, false; ; { // more: of what is shown next
		if !more {
			columns, lines := console.Size()
			afresh = afresh || columns != f.columns || lines != f.lines
			f.columns, f.lines = columns, lines
			s.settle()
			console.Show(p.drawn(), afresh)
		}
		for _, r := range f.take() {
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
			f.now = time.Now()
			afresh = k == terminal.KeyRedraw
			if k == terminal.KeySuspend {
				console.Suspend()
			} else if s.press(k) {
				return nil
			}
		case seen := <-p.seen:
			f.now = time.Now()
			more = seen()
		case a := <-p.answers:
			f.now = time.Now()
			s.hear(&a)
		case <-clock.C:
			f.now = time.Now()
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

// drawn returns the lines of the screen for a terminal.
func (p *program) drawn() []string {
	var lines []string
	for _, l := range p.screen.view() {
		lines = append(lines, l.ansi(p.colours))
	}
	return lines
}

// watching returns what a state is to see, until ctx ends.
func (s *state) watching(ctx context.Context, client *client.Client) watched {
	return func(yield func(func() bool, error) bool) {
		for seen, err := range client.WatchMachine(ctx, 0) {
			if !yield(func() bool { return s.see(&seen) }, err) {
				return
			}
		}
	}
}

// once returns the head and the whole table as text. It takes a second: what cores do shows in a second measurement.
func once(ctx context.Context, client *client.Client, s *state) (string, error) {
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
