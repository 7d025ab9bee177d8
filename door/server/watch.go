package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/bellows-rm/bellows/live/api"
)

// Whoever watches gets an update at once, and then at most one per watchPace: what changes meanwhile is in the next
// one, each job once. Nothing is kept for a watcher between updates, and of an update at most inEvent jobs and tasks
// are written at a time.
const (
	watchPace     = 100 * time.Millisecond
	inEvent       = 1000
	heartbeat     = 15 * time.Second // a comment is sent when nothing was for so long
	watchPatience = 10 * time.Second // for the client to read an event; then the connection is closed
	machinePace   = time.Second      // between two events about the machine, for clients that want them
)

// events is a response body of server-sent events: see eventStream.
type events struct{ Body func(*eventStream) }

func (s *Server) watch(a *operations) {
	register(a, sizes, "GET", "/v1/watch", "watch",
		"Send the jobs that have not ended, and then what changes about them and their tasks, as server-sent events", 200,
		func(ctx context.Context, in *struct {
			From    int64 `query:"from" doc:"revision that the caller knows: what has changed since is sent instead of all; 0, and a revision that is too old, send all" minimum:"0"`
			Last    int64 `header:"Last-Event-ID" doc:"the same, as clients of server-sent events send it when they connect again; the greater one counts" minimum:"0"`
			Machine bool  `query:"machine" doc:"send, at first and then about every second, the state of the daemon and what the containers use, as an event machine"`
		}) (*events, error) {
			uid := callerOf(ctx).UID
			if most := s.watchers.enter(uid); most > 0 {
				return nil, api.Errorf(api.Unavailable,
					"watch: %d connections watch already, which is the most; try again later", most)
			}
			return &events{func(to *eventStream) {
				defer s.watchers.leave(uid)
				s.follow(ctx, &watching{eventStream: to, caller: callerOf(ctx), machine: in.Machine}, max(in.From, in.Last))
			}}, nil
		})
}

// watching is a client that watches.
type watching struct {
	*eventStream
	caller  *caller
	machine bool      // it wants to know about the machine, too
	due     time.Time // when it is to know that next
}

// wait is how long the client waits for changes until it gets something else.
func (w *watching) wait() time.Duration {
	if w.machine {
		return time.Until(w.due)
	}
	return heartbeat
}

// follow sends what has changed since a revision, or everything, and then what changes, until the client is gone or
// too slow, or the daemon ends.
func (s *Server) follow(ctx context.Context, to *watching, from int64) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.leaving, cancel)()
	for begun := false; ; begun = true {
		u, err := s.changes(ctx, to, from)
		switch {
		case err != nil:
			why := orEnded(ctx, errors.New("the daemon ends; connect again to the next")) // or the client is gone
			_ = to.send("dropped", 0, api.Dropped{Reason: why.Error()})
			return
		case begun && u.Snapshot:
			_ = to.send("dropped", 0,
				api.Dropped{Reason: "too slow: what has changed since the last event is not known any more; connect again"})
			return
		}
		events, err := s.updates.texts(to.caller, from, u)
		for _, text := range events {
			if err == nil {
				err = to.write(text)
			}
		}
		if err != nil {
			return
		}
		from = u.Revision
		select {
		case <-time.After(watchPace):
		case <-ctx.Done():
		}
	}
}

// changes waits for changes since a revision. Now and then it sends the state of the machine, if the client wants it,
// or a comment.
func (s *Server) changes(ctx context.Context, to *watching, from int64) (api.Update, error) {
	for ctx.Err() == nil {
		if err := s.sendMachine(ctx, to); err != nil {
			return api.Update{}, err
		}
		within, cancel := context.WithTimeout(ctx, to.wait())
		u, err := s.driver.Changes(within, from)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			return u, err
		}
		if to.machine {
			continue
		}
		if err := to.write([]byte(":\n\n")); err != nil {
			return u, err
		}
	}
	return api.Update{}, ctx.Err()
}

// sendMachine sends the state of the machine if that is due.
func (s *Server) sendMachine(ctx context.Context, to *watching) error {
	if !to.machine || time.Now().Before(to.due) {
		return nil
	}
	status, err := s.status(ctx)
	if err != nil {
		return err
	}
	tasks, at, _ := s.driver.Measured(ctx) // While the engine hangs there are none, and the status says so.
	to.due = nextMachine(time.Now())
	return to.send("machine", 0, api.Machine{Status: status, At: at, Tasks: each(tasks, to.caller.task)})
}

// nextMachine returns when the state of the machine is sent next: at the same time to all who want it, so that the
// containers are read once for all of them.
func nextMachine(now time.Time) time.Time {
	next := now.Add(machinePace / 2).Truncate(machinePace).Add(machinePace)
	return now.Add(next.Sub(now)) // by the clock that is never set, as now
}

// parts divides an update into parts of at most inEvent jobs and tasks. A job with many tasks is in several.
func parts(u api.Update) (all []api.Update) {
	part, room := api.Update{Revision: u.Revision, Snapshot: u.Snapshot}, inEvent
	for _, j := range u.Jobs {
		for left, first := j.Tasks, true; first || len(left) > 0; first = false {
			if room <= 0 {
				part.More = true
				all = append(all, part)
				part, room = api.Update{Revision: u.Revision}, inEvent
			}
			n := min(len(left), room)
			j.Tasks, left = left[:n:n], left[n:]
			part.Jobs = append(part.Jobs, j)
			room -= n + 1
		}
	}
	return append(all, part)
}

// eventStream sends server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html.
type eventStream struct {
	w  http.ResponseWriter
	to *http.ResponseController
}

// send sends an event; id 0 means none.
func (s *eventStream) send(kind string, id int64, data any) error {
	text, err := eventText(kind, id, data)
	if err != nil {
		return err
	}
	return s.write(text)
}

func eventText(kind string, id int64, data any) ([]byte, error) {
	var text bytes.Buffer
	fmt.Fprintf(&text, "event: %s\n", kind)
	if id != 0 {
		fmt.Fprintf(&text, "id: %d\n", id)
	}
	text.WriteString("data: ")
	if err := encode(&text, data); err != nil { // It ends the line.
		return nil, err
	}
	text.WriteByte('\n')
	return text.Bytes(), nil
}

// write writes a text. It fails if the client does not read it in time.
func (s *eventStream) write(text []byte) error {
	_ = s.to.SetWriteDeadline(time.Now().Add(watchPatience)) // Every connection supports it; recorders in tests may not.
	defer func() { _ = s.to.SetWriteDeadline(time.Time{}) }()
	if _, err := s.w.Write(text); err != nil {
		return err
	}
	return s.to.Flush()
}
