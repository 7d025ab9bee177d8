package top

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/internal/testterminal"
	"github.com/bellows-rm/bellows/live/api"
)

// onTerminal shows the canned machine on a terminal, without a daemon, and returns how that ends.
func onTerminal(t *testing.T, x *testterminal.Terminal, ctx context.Context) (p *program, ended chan any) {
	t.Helper()
	p, ended = newProgram(nil, cannedState(80, 24), nil, true), make(chan any, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				ended <- v
			}
		}()
		ended <- p.show(ctx, func() (*terminal.Console, error) { return terminal.OpenConsole(x.File, x.File) })
	}()
	return p, ended
}

// The screen has the size of the terminal, follows it, and shows what comes; at the end the terminal is as before,
// however it ends.
func TestOnATerminal(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for how, end := range map[string]struct {
		do   func(*program, *testterminal.Terminal)
		want func(v any) bool
	}{
		"q":      {func(_ *program, x *testterminal.Terminal) { x.Type("q") }, func(v any) bool { return v == nil }},
		"Ctrl-C": {func(_ *program, x *testterminal.Terminal) { x.Type("\x03") }, func(v any) bool { return v == nil }},
		"the daemon": {func(p *program, _ *testterminal.Terminal) { p.failed <- errors.New("refused") },
			func(v any) bool { err, ok := v.(error); return ok && err.Error() == "refused" }},
		// There is no client: to ask it for anything is a panic in another goroutine.
		"a panic": {func(_ *program, x *testterminal.Terminal) {
			x.Type("p")
		}, func(v any) bool { text, ok := v.(string); return ok && strings.Contains(text, "nil pointer") }},
	} {
		x := testterminal.Open(t, 80, 24)
		before := x.Settings()
		p, ended := onTerminal(t, x, ctx)
		x.Await("bellows +healthy.* 1 +ada +sort ")
		if cell := x.Cells()[0][0]; cell.Style != "1" || x.Untouched() {
			t.Errorf("the first cell is %+v", cell)
		}
		p.seen <- func() bool {
			return p.screen.(*state).see(&client.Seen{Update: &api.Update{Revision: 6,
				Jobs: []api.Job{jobOf(77, "newest", "ada", cluster.StatusPending, 1, gib)}}})
		}
		x.Await("77 +ada +newest")
		x.Resize(40, 10)
		x.Until("has ten lines", func(screen string) bool {
			_, at := x.Line("job 1 is running")
			return at == 9
		})
		x.Resize(80, 24)
		x.Await("h help +q quit")
		x.Type("/sor")
		x.Await("show what contains: sor")
		x.Type("\r")
		x.Await("1 of 1 jobs +with /sor")
		x.Type("\x1b") // alone: the key Escape
		x.Await("1 of 15 jobs")
		end.do(p, x)
		if v := <-ended; !end.want(v) {
			t.Errorf("ended by %s: %v", how, v)
		}
		x.Until("is as before", func(string) bool { return x.Untouched() })
		if x.Settings() != before {
			t.Errorf("ended by %s: the settings are %+v, and were %+v", how, x.Settings(), before)
		}
	}
	x := testterminal.Open(t, 80, 24)
	before := x.Settings()
	_, ended := onTerminal(t, x, ctx)
	x.Await("healthy")
	cancel()
	if err, ok := (<-ended).(error); !ok || !errors.Is(err, context.Canceled) || x.Settings() != before {
		t.Errorf("ended by a signal: %v", err)
	}
	x.Until("is as before", func(string) bool { return x.Untouched() })
}
