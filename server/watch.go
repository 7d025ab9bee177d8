package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/bellows-rm/bellows/live"
)

// Whoever watches gets an update at once, and then at most one per watchPace: what changes meanwhile is in the next one, each job
// once. Nothing is kept for a watcher between updates, and of an update at most inEvent jobs and tasks are written at a time.
const (
	watchPace     = 100 * time.Millisecond
	inEvent       = 1000
	heartbeat     = 15 * time.Second // a comment is sent when nothing was for so long
	watchPatience = 10 * time.Second // for the client to read an event; then the connection is closed
)

// events is a response body of server-sent events: see eventStream.
type events struct{ Body func(*eventStream) }

// Dropped is the data of the last event of a watch that the server ends.
type Dropped struct {
	Reason string `json:"reason"`
}

func (s *Server) watch(a *api) {
	register(a, sizes, "GET", "/v1/watch", "watch", "Send the jobs that have not ended, and then what changes about them and their tasks, as server-sent events", 200,
		func(ctx context.Context, in *struct {
			From int64 `query:"from" doc:"revision that the caller knows: what has changed since is sent instead of all; 0, and a revision that is too old, send all" minimum:"0"`
			Last int64 `header:"Last-Event-ID" doc:"the same, as clients of server-sent events send it when they connect again; the greater one counts" minimum:"0"`
		}) (*events, error) {
			uid := callerOf(ctx).UID
			if most := s.watchers.enter(uid); most > 0 {
				return nil, live.Errorf(live.Unavailable, "watch: %d connections watch already, which is the most; try again later", most)
			}
			return &events{func(to *eventStream) {
				defer s.watchers.leave(uid)
				s.follow(ctx, to, max(in.From, in.Last))
			}}, nil
		})
}

// follow sends what has changed since a revision, or everything, and then what changes, until the client is gone or too slow, or
// the daemon ends.
func (s *Server) follow(ctx context.Context, to *eventStream, from int64) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.leaving, cancel)()
	caller := callerOf(ctx)
	for begun := false; ; begun = true {
		u, err := s.changes(ctx, to, from)
		switch {
		case err != nil:
			why := orEnded(ctx, errors.New("the daemon ends; connect again to the next")) // or the client is gone
			_ = to.send("dropped", 0, Dropped{why.Error()})
			return
		case begun && u.Snapshot:
			_ = to.send("dropped", 0, Dropped{"too slow: what has changed since the last event is not known any more; connect again"})
			return
		}
		for _, part := range parts(u) {
			part.Jobs = caller.jobs(part.Jobs)
			id := part.Revision
			if part.More {
				id = 0 // Whoever has only this part does not know the revision.
			}
			if to.send("update", id, part) != nil {
				return
			}
		}
		from = u.Revision
		select {
		case <-time.After(watchPace):
		case <-ctx.Done():
		}
	}
}

// changes waits for changes since a revision, and sends a comment now and then.
func (s *Server) changes(ctx context.Context, to *eventStream, from int64) (live.Update, error) {
	for ctx.Err() == nil {
		within, cancel := context.WithTimeout(ctx, heartbeat)
		u, err := s.driver.Changes(within, from)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			return u, err
		}
		if err := to.write([]byte(":\n\n")); err != nil {
			return u, err
		}
	}
	return live.Update{}, ctx.Err()
}

// parts divides an update into parts of at most inEvent jobs and tasks. A job with many tasks is in several.
func parts(u live.Update) (all []live.Update) {
	part, room := live.Update{Revision: u.Revision, Snapshot: u.Snapshot}, inEvent
	for _, j := range u.Jobs {
		for left, first := j.Tasks, true; first || len(left) > 0; first = false {
			if room <= 0 {
				part.More = true
				all = append(all, part)
				part, room = live.Update{Revision: u.Revision}, inEvent
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

// send sends an event; id 0 is none.
func (s *eventStream) send(kind string, id int64, data any) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "event: %s\n", kind)
	if id != 0 {
		fmt.Fprintf(&text, "id: %d\n", id)
	}
	text.WriteString("data: ")
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(data); err != nil { // It ends the line.
		return err
	}
	text.WriteByte('\n')
	return s.write(text.Bytes())
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
