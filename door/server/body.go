package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/format/fault"
	"github.com/bellows-rm/bellows/live/api"
)

// The limits of a request's body, if it has none of its own. A job with the environment of its submitter is some 10
// KiB.
const (
	maxBody    = 8 << 20  // bytes
	smallBody  = 64 << 10 // bytes; a larger body waits for its turn
	mostValues = 200_000  // JSON values; an empty object of three bytes can take some hundred bytes of memory
	bodyTime   = 5 * time.Second
	bodyTurn   = 30 * time.Second // how long a large body waits for its turn
)

// bodyLimits are the largest sizes of a body. limited is a body with other limits than usual.
type (
	bodyLimits struct {
		bytes  int64
		values int // JSON values
	}
	limited interface{ limits() bodyLimits }
	// complete is a body that has all fields that the document requires. Of other bodies a field that is missing has its
	// zero value.
	complete interface{ complete() }
)

// bodyRoom lets one large body at a time be read, decoded and processed, so that many large bodies at once do not fill
// the memory. Users take turns. Small bodies do not wait.
type bodyRoom struct {
	taken chan struct{} // has an element while a large body is in work
	users *turns
}

func newBodyRoom() bodyRoom { return bodyRoom{make(chan struct{}, 1), &turns{}} }

// read decodes the JSON of a request into a variable, and returns its text. done is never nil; the caller calls it
// when it no longer needs the variable.
func (b bodyRoom) read(w http.ResponseWriter, r *http.Request, into any) (text []byte, done func(), e *api.Error) {
	done = func() {}
	if stated := r.Header.Get("Content-Type"); stated != "" {
		kind, _, err := mime.ParseMediaType(stated)
		if err != nil || kind != "application/json" && !strings.HasSuffix(kind, "+json") {
			return nil, done, wrong("Content-Type", strconv.Quote(stated), "must be application/json")
		}
	}
	most := bodyLimits{maxBody, mostValues}
	if own, ok := into.(limited); ok {
		most = own.limits()
	}
	body := http.MaxBytesReader(w, r.Body, most.bytes)
	text, e = receive(w, io.LimitReader(body, smallBody), nil)
	if e == nil && len(text) == smallBody {
		if done, e = b.enter(r); e != nil {
			return nil, done, e
		}
		text, e = receive(w, body, text)
	}
	if e == nil {
		e = decode(text, into, most.values)
	}
	return text, done, e
}

// enter waits until a large body may be read. done is never nil.
func (b bodyRoom) enter(r *http.Request) (done func(), e *api.Error) {
	ctx, cancel := context.WithTimeout(r.Context(), bodyTurn)
	defer cancel()
	from, _ := ctx.Value(peerKey{}).(cluster.Credentials)
	next, err := b.users.take(ctx, from.UID)
	if err == nil {
		select {
		case b.taken <- struct{}{}:
			return func() { <-b.taken; next() }, nil
		case <-ctx.Done():
			next()
		}
	}
	if err := r.Context().Err(); err != nil {
		return func() {}, api.Errorf(api.Unavailable, "request body: %v", err)
	}
	return func() {}, api.Errorf(api.Unavailable,
		"request body: other bodies of more than %d bytes have been in work for %v; try again later", smallBody, bodyTurn)
}

// receive appends the body to text as it arrives.
func receive(w http.ResponseWriter, body io.Reader, text []byte) ([]byte, *api.Error) {
	// After an error the deadline stays, because package http still reads the rest of the body before it answers.
	connection := http.NewResponseController(w)
	_ = connection.SetReadDeadline(time.Now().Add(bodyTime)) // every connection supports it; recorders in tests may not
	into := bytes.NewBuffer(text)
	_, err := into.ReadFrom(body)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, wrong("request body", "", "must be at most %d bytes", large.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, wrong("request body", "", "must arrive within %v", bodyTime)
	case err != nil:
		return nil, api.Errorf(api.Internal, "read the request body: %v", err)
	}
	_ = connection.SetReadDeadline(time.Time{})
	return into.Bytes(), nil
}

// decode decodes JSON of at most most values into a variable.
func decode(text []byte, into any, most int) *api.Error {
	if len(text) == 0 {
		return wrong("request body", "", "must be JSON, but is empty")
	}
	if n := countValues(text); n > most {
		return wrong("request body", "", "must hold at most %d values, but holds %d", most, n)
	}
	if bytes.Equal(bytes.TrimSpace(text), []byte("null")) { // which package json takes for an empty value
		return wrong("request body", "", "must be a JSON %s, but is null", jsonType(reflect.TypeOf(into)))
	}
	var other *json.UnmarshalTypeError
	switch err := json.Unmarshal(text, into); {
	case errors.As(err, &other):
		where, field := "", "request body"
		if other.Field != "" {
			where, field = "request body, field ", fault.FieldPath(other.Field)
		}
		return wrongIn(where, field, "", "must be of type %s, but is a JSON %s", jsonType(other.Type),
			api.Clipped(other.Value))
	case err != nil:
		return wrong("request body", "", "%s", api.Clipped(err.Error()))
	}
	if _, ok := into.(complete); ok {
		if field := missing(text, reflect.TypeOf(into)); field != "" {
			return wrongIn("request body, field ", field, "", "must be stated")
		}
	}
	return nil
}

// missing returns the path of a field that the document requires and that a JSON text of a type lacks or has as null,
// or "".
func missing(text []byte, of reflect.Type) string {
	if of.Kind() == reflect.Pointer {
		return missing(text, of.Elem())
	}
	var has map[string]json.RawMessage
	if jsonType(of) != "object" || of.Kind() != reflect.Struct || json.Unmarshal(text, &has) != nil {
		return ""
	}
	for _, f := range jsonFields(of) {
		name, required := jsonField(f)
		value, stated := has[name]
		switch {
		case !stated && !required:
		case !stated, string(value) == "null" && jsonType(f.Type) != "array": // only a list may be null
			return name
		default:
			if within := missing(value, f.Type); within != "" {
				return name + "." + within
			}
		}
	}
	return ""
}

// countValues counts the values in a JSON text: one, plus one for each comma, plus one for each list or object opened.
func countValues(text []byte) int {
	n, quoted := 1, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == '[' || c == '{'):
			n++
		}
	}
	return n
}
