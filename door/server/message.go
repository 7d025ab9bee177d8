package server

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/pool"
)

// message is the body of a request in the form of package executor: a line of JSON, which is a T, and bytes that
// belong to it. The operation reads it itself, so that the bytes are never copied and a request that waits does not
// keep others from being read.
type message[T any] struct{ request *http.Request }

// reply is the body of an answer of the same form.
type reply[T any] func(w http.ResponseWriter)

// messaged is a message or a reply.
type messaged interface{ line() reflect.Type }

func (message[T]) line() reflect.Type { return reflect.TypeFor[T]() }
func (reply[T]) line() reflect.Type   { return reflect.TypeFor[T]() }

// read keeps the request, whose body is read later.
func (m *message[T]) read(r *http.Request) { m.request = r }

// write writes the answer.
func (f reply[T]) write(w http.ResponseWriter) { f(w) }

// lineOf returns the type of the line of a message; ok is false if values of t are not messages.
func lineOf(t reflect.Type) (line reflect.Type, ok bool) {
	m, ok := reflect.Zero(t).Interface().(messaged)
	if !ok {
		return nil, false
	}
	return m.line(), true
}

// aboutMessages says in the document of the API what a message is.
const aboutMessages = " Request and answer are messages: an object of JSON of the stated type in one line, a " +
	"line feed, and then the bytes whose number the object says."

// sender is who sends a message.
type sender uint8

const (
	fromApplication sender = iota
	waitsForResults        // an application, whose request waits
	fromExecutor
)

// relay passes a message to a pool, and what the pool answers back.
func relay[Out any](ctx context.Context, s *Server, to *PoolPath, r *http.Request, from sender) (*body[reply[Out]],
	error) {
	ref, err := s.refOf(ctx, to)
	if err != nil {
		return nil, err
	}
	h, err := s.pools.Handler(ref)
	if err != nil {
		return nil, err
	}
	below := &url.URL{Path: belowPool(r.URL.Path, to.Pool)}
	return &body[reply[Out]]{func(w http.ResponseWriter) {
		if err := s.exchange(ctx, w, r, below, h, from); err != nil {
			writeError(w, said(orEnded(ctx, err)))
		}
	}}, nil
}

// errLeaving answers whoever waits when the daemon ends: the next daemon answers the same message.
var errLeaving = api.Errorf(api.Unavailable, "the daemon ends: send the same message to the next")

// exchange lets a pool answer a message. The error is the answer if there is one. A message that waits is answered at
// once when the daemon ends.
func (s *Server) exchange(ctx context.Context, w http.ResponseWriter, r *http.Request, below *url.URL, h http.Handler,
	from sender) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.leaving, cancel)()
	uid := callerOf(ctx).UID
	if from == waitsForResults {
		if most := s.watchers.enter(uid); most > 0 {
			return api.Errorf(api.Unavailable,
				"applications: %d connections watch or wait for results already, which is the most; try again later", most)
		}
		defer s.watchers.leave(uid)
	}
	received, err := s.messageRoom.receive(ctx, w, r, uid)
	if err != nil {
		return err
	}
	defer received.free()
	passed := r.WithContext(ctx)
	passed.URL, passed.Body = below, received
	answer := &refusable{ResponseWriter: w}
	h.ServeHTTP(answer, passed)
	switch {
	case answer.refused == 0:
		if c, _ := ctx.Value(connectionKey{}).(*connection); c != nil && from == fromExecutor {
			c.excuse()
		}
		return nil
	case s.leaving.Err() != nil:
		return errLeaving
	case ctx.Err() != nil && answer.refused >= http.StatusInternalServerError:
		return context.Cause(ctx)
	}
	return api.Errorf(api.KindOfStatus(answer.refused), "%s", strings.TrimSpace(answer.why.String()))
}

// refusable is the answer of a pool. It keeps a refusal, which is a status and a text, and passes on every other
// answer.
type refusable struct {
	http.ResponseWriter
	begun   bool // its status was written
	refused int  // the status; 0 if the answer is no refusal
	why     bytes.Buffer
}

func (w *refusable) WriteHeader(status int) {
	if w.begun = true; status < http.StatusBadRequest {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.refused = status
	for _, name := range []string{"Content-Type", "X-Content-Type-Options"} { // of the text
		w.Header().Del(name)
	}
}

func (w *refusable) Write(p []byte) (int, error) {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	if w.refused != 0 {
		return w.why.Write(p)
	}
	return w.ResponseWriter.Write(p)
}

// The bounds of messages that arrive at the same time, if they are larger than smallBody.
const (
	mostArriving = 4 * pool.MostMessage // bytes of all users
	messageRate  = 4 << 20              // bytes a second at which a message must arrive, after bodyTime
)

// messageRoom bounds the bytes of large messages that are arriving, so that many at once do not fill the memory. An
// ordinary user has at most the room of the largest message, and the messages of a user take turns for it: a slow
// sender does not block others.
type messageRoom struct {
	daemon uint32 // the daemon's user, who has all of it, as root
	users  turns

	mu     sync.Mutex
	taken  int64
	of     map[uint32]int64
	change chan struct{} // closed, and replaced, when room has become free
}

func newMessageRoom(daemon uint32) *messageRoom {
	return &messageRoom{daemon: daemon, of: map[uint32]int64{}, change: make(chan struct{})}
}

// take takes room for some bytes, at once or not at all. change is closed when there may be room.
func (m *messageRoom) take(uid uint32, bytes int64) (ok bool, change <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	share := int64(mostArriving)
	if uid != 0 && uid != m.daemon {
		share = pool.MostMessage
	}
	if m.taken+bytes > mostArriving || m.of[uid]+bytes > share {
		return false, m.change
	}
	m.taken += bytes
	m.of[uid] += bytes
	return true, nil
}

// give gives room back.
func (m *messageRoom) give(uid uint32, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken -= bytes
	if m.of[uid] -= bytes; m.of[uid] == 0 {
		delete(m.of, uid)
	}
	close(m.change)
	m.change = make(chan struct{})
}

// await takes room for some bytes as soon as there is.
func (m *messageRoom) await(ctx context.Context, uid uint32, bytes int64) error {
	within, cancel := context.WithTimeout(ctx, bodyTurn)
	defer cancel()
	done, err := m.users.take(within, uid)
	if err == nil {
		defer done()
	}
	for err == nil {
		ok, change := m.take(uid, bytes)
		if ok {
			return nil
		}
		select {
		case <-change:
		case <-within.Done():
			err = within.Err()
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return api.Errorf(api.Unavailable,
		"message of %d bytes: other messages have been arriving for %v: try again later", bytes, bodyTurn)
}

// arriving is the body of a message. Once it has arrived, it takes no room, and has no deadline. If it has not when
// the pool has answered, the deadline stays, because package http still reads the rest of the body.
type arriving struct {
	io.ReadCloser
	connection *http.ResponseController
	free       func() // may be called several times
}

func (a *arriving) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err == io.EOF {
		_ = a.connection.SetReadDeadline(time.Time{})
		a.free()
	}
	return n, err
}

// receive returns the body of a message when there is room for it.
func (m *messageRoom) receive(ctx context.Context, w http.ResponseWriter, r *http.Request, uid uint32) (*arriving,
	error) {
	size := r.ContentLength
	if size < 0 || size > pool.MostMessage {
		size = pool.MostMessage
	}
	free := func() {}
	if size > smallBody {
		if err := m.await(ctx, uid, size); err != nil {
			return nil, err
		}
		free = sync.OnceFunc(func() { m.give(uid, size) })
	}
	connection := http.NewResponseController(w)
	// every connection supports it; recorders in tests may not
	_ = connection.SetReadDeadline(time.Now().Add(bodyTime + time.Duration(size)*time.Second/messageRate))
	return &arriving{r.Body, connection, free}, nil
}
