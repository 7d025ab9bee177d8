package top

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/door/client"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/live/api"
)

// poolKeys says what the keys do while a pool is shown.
var poolKeys = []string{
	"↑ ↓ j k, page keys, Home End   select an executor",
	"Enter e   explain the number of executors, or stop that;  [ ]   scroll",
	"p r       pause, resume the job of the selected executor",
	"K         kill that job; y confirms",
	"s S       sort by the next column; the other way round",
	"h ?       help;  Ctrl-L  draw anew;  Ctrl-Z  stop;  q  quit",
}

// Explain explains a pool, in a sentence or a list of clauses a line.
type Explain func(*api.PoolDetail) []string

// poolState is what is known of a pool, and what the user wants to see of it. It changes by what is given to its
// methods alone.
type poolState struct {
	frame
	order
	explain Explain

	pool     *api.PoolDetail // the newest
	rows     []api.PoolExecutor
	selected int // the number of an executor
	at       int // its index in rows
	doomed   api.PoolExecutor
	pane     *pane // nil: closed
}

// ShowPool shows a pool on the terminal of a command until the user quits. ask returns what is known of it.
func ShowPool(cmd *cobra.Command, client *client.Client, explain Explain,
	ask func(context.Context) (api.PoolDetail, error)) error {
	s := &poolState{explain: explain}
	return show(cmd, "pool top", client, s, func(ctx context.Context) watched { return s.watching(ctx, ask) })
}

// poolPace is the time between two looks at a pool.
const poolPace = time.Second

// watching returns what the state is to see, until ctx ends or the pool is gone.
func (s *poolState) watching(ctx context.Context, ask func(context.Context) (api.PoolDetail, error)) watched {
	return func(yield func(func() bool, error) bool) {
		for reached := false; ; {
			d, err := ask(ctx)
			tell := func() bool { s.see(&d); return false }
			if err == nil {
				reached = true
			} else if why := err; reached && ctx.Err() == nil && api.KindOf(err) == api.Unavailable {
				tell, err = func() bool { s.lose(why); return false }, nil
			}
			if !yield(tell, cmp.Or(ctx.Err(), err)) || err != nil {
				return
			}
			select {
			case <-time.After(poolPace):
			case <-ctx.Done():
			}
		}
	}
}

// see takes in what is known of the pool.
func (s *poolState) see(d *api.PoolDetail) {
	s.reach("")
	s.pool = d
}

// settle brings the rows up to date, and keeps the selected one selected.
func (s *poolState) settle() {
	if s.pool == nil {
		return
	}
	s.rows = slices.Clone(s.pool.Members)
	executorTable.sort(s.rows, s.order, func(a, b *api.PoolExecutor) int {
		return cmp.Compare(a.Executor, b.Executor)
	})
	at := slices.IndexFunc(s.rows, func(e api.PoolExecutor) bool { return e.Executor == s.selected })
	if at < 0 {
		at = max(0, min(s.at, len(s.rows)-1))
	}
	s.choose(at)
	if s.pane != nil {
		s.pane.lines = s.explain(s.pool)
	}
}

// choose selects a row.
func (s *poolState) choose(at int) {
	if s.at, s.selected = at, 0; at < len(s.rows) {
		s.selected = s.rows[at].Executor
	}
}

// current returns the selected row; nil if there is none.
func (s *poolState) current() *api.PoolExecutor {
	if s.at >= len(s.rows) {
		return nil
	}
	return &s.rows[s.at]
}

// hear takes in the answer to a request.
func (s *poolState) hear(a *answer) { s.heard(a) }

// press takes in a key. It returns whether the user wants to quit.
func (s *poolState) press(k terminal.Key) (quit bool) {
	if k == terminal.KeyInterrupt {
		return true
	}
	switch s.mode {
	case confirming:
		if s.mode = browsing; k == 'y' || k == 'Y' {
			s.ask(killing, subject{job: s.doomed.Job})
		} else {
			s.say(plain, "job %d: not killed", s.doomed.Job)
		}
	case helping:
		s.inHelp(k, poolKeys)
	default:
		return s.browse(k)
	}
	return false
}

// browse takes in a key while the tables are shown.
func (s *poolState) browse(k terminal.Key) (quit bool) {
	if to, ok := moved(k, s.at, len(s.rows), s.lines/2); ok {
		s.choose(to)
		return false
	}
	switch k {
	case 'q':
		return true
	case 'e', terminal.KeyEnter:
		s.pane = s.pane.toggled()
	case terminal.KeyEscape:
		s.pane = nil
	case '[', ']':
		s.pane.scrollBy(k == ']')
	case 'p', 'r', 'K':
		s.command(k)
	case 's':
		s.order = executorTable.next(s.order)
	case 'S':
		s.reversed = !s.reversed
	case 'h', '?':
		s.mode, s.scroll = helping, 0
	}
	return false
}

// command takes in a key that orders something about the job that the selected executor is.
func (s *poolState) command(k terminal.Key) {
	e := s.current()
	switch {
	case e == nil:
	case e.Job == 0:
		s.say(warning, "executor %d has no job: it has ended, or has not been submitted", e.Executor)
	case k == 'p':
		s.ask(pausing, subject{job: e.Job})
	case k == 'r':
		s.ask(resuming, subject{job: e.Job})
	default:
		s.mode, s.doomed = confirming, *e
	}
}

// executorStates are the states of executors in the order in which rows are sorted by them.
var executorStates = []api.ExecutorState{api.ExecutorAttached, api.ExecutorAssigned, api.ExecutorParked,
	api.ExecutorRegistered, api.ExecutorStarting,
	api.ExecutorQueued, api.ExecutorDraining, api.ExecutorExpired, api.ExecutorLost}
