package pool

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"

	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/live/drive"
)

// MostMessage bounds one message, in bytes.
const MostMessage = 64 << 20

// Handler answers the messages of package executor for one pool. It does not check permissions: its caller does. The
// paths are those below that of the pool.
func (p *Pool) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /executors", func(w http.ResponseWriter, r *http.Request) {
		exchange(w, r, func(in *executor.Registration, _ []byte) (any, [][]byte, error) {
			lease, err := p.Register(r.Context(), *in)
			return lease, nil, err
		})
	})
	mux.HandleFunc("POST /executors/{executor}/next", func(w http.ResponseWriter, r *http.Request) {
		exchange(w, r, func(in *executor.Next, payload []byte) (any, [][]byte, error) {
			work, arguments, err := p.Next(r.Context(), number(r, "executor"), *in, payload)
			return work, [][]byte{arguments}, err
		})
	})
	mux.HandleFunc("POST /executors/{executor}/beat", func(w http.ResponseWriter, r *http.Request) {
		exchange(w, r, func(in *executor.Beat, _ []byte) (any, [][]byte, error) {
			out, err := p.Beat(r.Context(), number(r, "executor"), *in)
			return out, nil, err
		})
	})
	mux.HandleFunc("POST /applications", func(w http.ResponseWriter, r *http.Request) {
		exchange(w, r, func(in *executor.Enrolment, payload []byte) (any, [][]byte, error) {
			lease, err := p.Enrol(r.Context(), *in, payload)
			return lease, nil, err
		})
	})
	mux.HandleFunc("POST /applications/{application}/tasks", func(w http.ResponseWriter, r *http.Request) {
		exchange(w, r, func(in *executor.Growth, payload []byte) (any, [][]byte, error) {
			room, err := p.Grow(r.Context(), int64(number(r, "application")), *in, payload)
			return room, nil, err
		})
	})
	mux.HandleFunc("POST /applications/{application}/results", func(w http.ResponseWriter, r *http.Request) {
		exchange(w, r, func(in *executor.Collect, _ []byte) (any, [][]byte, error) {
			return p.Collect(r.Context(), int64(number(r, "application")), *in)
		})
	})
	mux.HandleFunc("DELETE /applications/{application}", func(w http.ResponseWriter, r *http.Request) {
		exchange(w, r, func(in *executor.Cancellation, _ []byte) (any, [][]byte, error) {
			id, why := int64(number(r, "application")), cmp.Or(in.Why, "it was requested")
			if in.Lease == "" {
				return struct{}{}, nil, p.Cancel(r.Context(), id, why)
			}
			return struct{}{}, nil, p.CancelLease(r.Context(), id, in.Lease, why)
		})
	})
	return mux
}

// number returns a number in the path; -1, which no executor and no application has, if the text is not a number.
func number(r *http.Request, name string) int {
	n, err := strconv.Atoi(r.PathValue(name))
	if err != nil {
		return -1
	}
	return n
}

// exchange reads a message, calls do with it, and writes what do returns as a message.
func exchange[In any](w http.ResponseWriter, r *http.Request,
	do func(in *In, payload []byte) (out any, payloads [][]byte, err error)) {
	in := new(In)
	payload, err := executor.Read(r.Body, MostMessage, r.ContentLength, in)
	if err != nil && (r.Method != http.MethodDelete || r.ContentLength != 0) {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out, payloads, err := do(in, payload)
	if err != nil {
		http.Error(w, err.Error(), statusOf(err))
		return
	}
	head, err := executor.Encode(out)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	size := len(head)
	for _, p := range payloads {
		size += len(p)
	}
	w.Header().Set("Content-Type", executor.MediaType)
	w.Header().Set("Content-Length", strconv.Itoa(size))
	_, _ = w.Write(head)
	for _, p := range payloads {
		_, _ = w.Write(p)
	}
}

// statusOf returns the HTTP status of an error.
func statusOf(err error) int {
	for kind, status := range map[error]int{ErrGone: http.StatusGone, ErrNotFound: http.StatusNotFound,
		ErrInvalid: http.StatusBadRequest, ErrFull: http.StatusTooManyRequests, ErrSecret: http.StatusForbidden,
		drive.ErrEnded: http.StatusServiceUnavailable} {
		if errors.Is(err, kind) {
			return status
		}
	}
	return http.StatusInternalServerError
}
