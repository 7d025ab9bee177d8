package server

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/big"
	"net"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/door/server/openapi"
	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/node/input"
)

// operations are operations and the document that describes them. Both come from the same types.
type operations struct {
	mux     *http.ServeMux
	doc     openapi.Document
	schemas schemas
	bodies  bodyRoom
	guard   guard
	texts   *texts
}

func newOperations(title, version, description string, g guard) *operations {
	a := &operations{mux: http.NewServeMux(), schemas: schemas{map[string]*openapi.Schema{}, map[string]reflect.Type{}},
		bodies: newBodyRoom(), guard: g, texts: newTexts()}
	a.doc = openapi.Document{
		OpenAPI: "3.1.0",
		Info:    openapi.Info{Title: title, Version: version, Description: description},
		Paths:   map[string]openapi.Path{},
	}
	return a
}

// streamed is a response body that is sent while it is written.
type streamed struct{ Body func(io.Writer) }

// upgraded is a response after which the connection belongs to Body, which closes it.
type upgraded struct{ Body func(net.Conn) }

// does is what an operation does: see register.
type does[In, Out any] = func(context.Context, *In) (*Out, error)

// ofCaller is an operation that gets who calls.
func ofCaller[In, Out any](do func(context.Context, cluster.Credentials, *In) (*Out, error)) does[In, Out] {
	return func(ctx context.Context, in *In) (*Out, error) {
		caller, err := peer(ctx)
		if err != nil {
			return nil, err
		}
		return do(ctx, caller, in)
	}
}

// ofTask is an operation on a task.
func ofTask[In interface {
	id() (cluster.TaskID, error)
}, Out any](
	do func(context.Context, cluster.TaskID, *In) (*Out, error)) does[In, Out] {
	return func(ctx context.Context, in *In) (*Out, error) {
		id, err := (*in).id()
		if err != nil {
			return nil, err
		}
		return do(ctx, id, in)
	}
}

// register adds one operation. The fields of In are the parameters, tagged path, query or header, Body if the request
// has a body, JSON or a message, and Digest if the digest of JSON is needed. Out has a field Body: a value to write
// as JSON, a reply to a message, a stream, events, a function that takes the connection over, or nothing. Errors are
// answered as a Problem. who says who may call the operation, and what the answer shows them: see access.
func register[In, Out any](a *operations, who access, method, path, id, summary string, status int,
	do does[In, Out]) {
	in, out := reflect.TypeFor[In](), reflect.TypeFor[Out]()
	who.check(id, new(In), out)
	parameters, needs := parametersOf(in), who.needs(method, id)
	a.describe(method, path, status, in, out, &openapi.Operation{OperationID: id, Summary: summary,
		Description: who.words() + tokenWords(needs)})
	_, answers := out.FieldByName("Body")
	a.mux.HandleFunc(method+" "+path, func(w http.ResponseWriter, r *http.Request) {
		in := new(In)
		given := reflect.ValueOf(in).Elem()
		ctx, e := r.Context(), bind(r, parameters, given)
		if e == nil {
			var err error
			if ctx, err = a.guard.admit(ctx, who, needs, id, in); err != nil {
				e = said(err)
			}
		}
		body := given.FieldByName("Body")
		if coding := r.Header.Get("Content-Encoding"); e == nil && body.IsValid() && coding != "" && coding != "identity" {
			e = wrongFor(http.StatusUnsupportedMediaType, api.Invalid, "", "Content-Encoding",
				strconv.Quote(api.Clipped(coding)),
				"must be identity: a body cannot be compressed")
		}
		if later, ok := bodyReadLater(body); ok {
			later.read(r)
		} else if e == nil && body.IsValid() {
			var text []byte
			var done func()
			text, done, e = a.bodies.read(w, r, body.Addr().Interface())
			defer done()
			if len(text) >= smallBody { // Other large bodies wait meanwhile.
				ctx = live.Hurried(ctx)
			}
			if d := given.FieldByName("Digest"); d.IsValid() {
				d.Set(reflect.ValueOf(digestOf(id, text)))
			}
		}
		if e != nil {
			writeError(w, e)
			return
		}
		out, err := do(ctx, in)
		switch {
		case err != nil:
			writeError(w, said(orEnded(ctx, err)))
		case answers:
			answer := reflect.ValueOf(out).Elem().FieldByName("Body").Interface()
			if who == sizes {
				done, err := a.texts.answer(callerOf(ctx), answer, func(text []byte) {
					writeText(w, "application/json", status, text)
				})
				if err != nil {
					writeError(w, unwritable(err))
				}
				if done {
					return
				}
				answer = callerOf(ctx).cut(answer)
			}
			writeBody(w, status, answer)
		default:
			w.WriteHeader(status)
		}
	})
}

// bodyReadLater returns the body of a request if its operation reads it: see message.
func bodyReadLater(body reflect.Value) (later interface{ read(*http.Request) }, ok bool) {
	if body.IsValid() {
		later, ok = body.Addr().Interface().(interface{ read(*http.Request) })
	}
	return later, ok
}

// parameter is a field of a request that is set from its URL or its header.
type parameter struct {
	in, name string // in is path, query or header
	// least and most bound an integer; nil is no bound. values are those that a text may have; nil is any.
	least, most *int64
	values      []string
	pattern     *regexp.Regexp // of a text, which its operation checks; nil is any
	field       reflect.StructField
}

// parametersOf returns the fields of t, and of its embedded structs, that have a tag path, query or header.
func parametersOf(t reflect.Type) []parameter {
	var all []parameter
	for _, f := range reflect.VisibleFields(t) {
		p := parameter{field: f, pattern: patterns[f.Tag.Get("pattern")]}
		for _, p.in = range []string{"path", "query", "header"} {
			if p.name = f.Tag.Get(p.in); p.name != "" {
				break
			}
		}
		if p.name == "" {
			continue
		}
		if !slices.Contains([]reflect.Kind{reflect.String, reflect.Bool, reflect.Int, reflect.Int64}, f.Type.Kind()) {
			panic(fmt.Sprintf("server: parameter %s: there is no way to read a %s", p.name, f.Type))
		}
		for bound, into := range map[string]**int64{"minimum": &p.least, "maximum": &p.most} {
			if text, ok := f.Tag.Lookup(bound); ok {
				n, err := strconv.ParseInt(text, 10, 64)
				if err != nil {
					panic(fmt.Sprintf("server: %s of parameter %s: %v", bound, p.name, err))
				}
				*into = &n
			}
		}
		if text := f.Tag.Get("enum"); text != "" {
			p.values = strings.Split(text, ",")
		}
		all = append(all, p)
	}
	return all
}

// bind sets in, a struct, from a request. Unknown parameters are ignored. A parameter with an empty value counts as
// absent, unless it is part of the path. An empty text in a header is refused: it comes from a variable that its
// client forgot to set.
func bind(r *http.Request, parameters []parameter, in reflect.Value) *api.Error {
	query := r.URL.Query()
	for _, p := range parameters {
		text := query.Get(p.name)
		switch p.in {
		case "path":
			text = r.PathValue(p.name)
		case "header":
			text = r.Header.Get(p.name)
			if text == "" && p.field.Type.Kind() == reflect.String && len(r.Header.Values(p.name)) > 0 {
				return wrong(p.name, `""`, "must not be empty: a request without one has no header of this name")
			}
		}
		if text == "" && p.in != "path" {
			continue
		}
		if e := p.set(in.FieldByIndex(p.field.Index), text); e != nil {
			return e
		}
	}
	return nil
}

// set parses the value of a parameter into v; parametersOf admits the kinds that set supports.
func (p *parameter) set(v reflect.Value, text string) *api.Error {
	switch v.Kind() {
	case reflect.String:
		if p.values != nil && !slices.Contains(p.values, text) {
			return wrong(p.name, strconv.Quote(api.Clipped(text)), "must be one of %s", strings.Join(p.values, ", "))
		}
		v.SetString(text)
	case reflect.Bool:
		on, err := strconv.ParseBool(text)
		if err != nil {
			return wrong(p.name, strconv.Quote(text), "must be true or false")
		}
		v.SetBool(on)
	case reflect.Int, reflect.Int64:
		most := int64(1)<<(v.Type().Bits()-1) - 1
		least := -most - 1
		if p.least != nil {
			least = *p.least
		}
		if p.most != nil {
			most = *p.most
		}
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		switch {
		case err != nil && !isInteger(text):
			return wrong(p.name, strconv.Quote(text), "must be an integer")
		case err != nil, n < least, n > most:
			return wrong(p.name, text, "must be from %d to %d", least, most)
		}
		v.SetInt(n)
	}
	return nil
}

// isInteger returns whether a text is an integer of any size. The error of strconv does not say so: it calls
// "99999999999999999999\n" out of range.
func isInteger(text string) bool {
	_, ok := new(big.Int).SetString(text, 10)
	return ok
}

// writeBody answers with JSON, with a stream or with events.
func writeBody(w http.ResponseWriter, status int, body any) {
	if write, ok := body.(func(io.Writer)); ok {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.WriteHeader(status)
		write(w)
		return
	}
	if send, ok := body.(func(*eventStream)); ok {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		to := &eventStream{w, http.NewResponseController(w)}
		// The client knows that it watches, although nothing may change for long. send finds out if it is gone.
		_ = to.write(nil)
		send(to)
		return
	}
	if take, ok := body.(func(net.Conn)); ok {
		switchOver(w, take)
		return
	}
	if r, ok := body.(interface{ write(http.ResponseWriter) }); ok {
		r.write(w)
		return
	}
	writeJSON(w, "application/json", status, body)
}

// writeJSON answers with JSON of a media type.
func writeJSON(w http.ResponseWriter, kind string, status int, body any) {
	var text bytes.Buffer
	if err := encode(&text, body); err != nil {
		writeError(w, unwritable(err))
		return
	}
	writeText(w, kind, status, text.Bytes())
}

// writeText answers with a text of a media type.
func writeText(w http.ResponseWriter, kind string, status int, text []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(text))) // A long answer would be in chunks otherwise.
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

func unwritable(err error) *api.Error {
	return api.Errorf(api.Internal, "write the answer as JSON: %v", err)
}

// switchOver hands over the connection of a request. Package http may have read more than the request: take reads
// that first.
func switchOver(w http.ResponseWriter, take func(net.Conn)) {
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Upgrade", input.Protocol)
	w.WriteHeader(http.StatusSwitchingProtocols)
	c, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // The connection broke: no error can be sent.
	}
	_ = c.SetDeadline(time.Time{})
	take(&readAhead{c, buffered.Reader})
}

// readAhead is a connection of which a part has been read already.
type readAhead struct {
	net.Conn
	reader *bufio.Reader
}

// Read implements net.Conn.
func (c *readAhead) Read(b []byte) (int, error) { return c.reader.Read(b) }

// writeError answers with a Problem.
func writeError(w http.ResponseWriter, e *api.Error) {
	if wait := api.RetryAfter(e); wait > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(int64(math.Ceil(wait.Seconds())), 10))
	}
	if answer, ok := w.(*answering); ok {
		answer.failed = e.Kind
	}
	writeJSON(w, problemType, statusOf(e), problemOf(e))
}

// describe adds an operation to the document.
func (a *operations) describe(method, path string, status int, in, out reflect.Type, o *openapi.Operation) {
	for _, p := range parametersOf(in) {
		o.Parameters = append(o.Parameters, a.parameter(p))
	}
	if body, ok := in.FieldByName("Body"); ok {
		content, required := a.contentOf(body.Type), true
		if line, ok := lineOf(body.Type); ok {
			o.Description += aboutMessages
			required = line != reflect.TypeFor[executor.Cancellation]()
		}
		o.RequestBody = &openapi.RequestBody{Required: required, Content: content}
	}
	done := openapi.Response{Description: http.StatusText(status)}
	if body, ok := out.FieldByName("Body"); ok {
		switch out {
		case reflect.TypeFor[upgraded]():
		case reflect.TypeFor[streamed]():
			// Without a schema, generated clients in Python answer None.
			binary := &openapi.Schema{Type: openapi.Types{"string"}, Format: "binary"}
			done.Content = openapi.Content{"application/octet-stream": {Schema: binary}}
		case reflect.TypeFor[events]():
			a.schemas.of(reflect.TypeFor[api.Update]())
			a.schemas.of(reflect.TypeFor[api.Machine]())
			a.schemas.of(reflect.TypeFor[api.Dropped]())
			done.Description = "Events update, whose data is an Update, on request machine, whose data is a Machine, " +
				"and at last dropped, whose data is a Dropped"
			done.Content = openapi.Content{"text/event-stream": {}}
		default:
			done.Content = a.contentOf(body.Type)
		}
	}
	problem := openapi.Content{problemType: {Schema: a.schemas.of(reflect.TypeFor[Problem]())}}
	o.Responses = map[string]openapi.Response{
		strconv.Itoa(status): done, "default": {Description: "Error", Content: problem}}
	if a.doc.Paths[path] == nil {
		a.doc.Paths[path] = openapi.Path{}
	}
	a.doc.Paths[path][strings.ToLower(method)] = o
}

// contentOf describes a body of JSON, or a message.
func (a *operations) contentOf(t reflect.Type) openapi.Content {
	if line, ok := lineOf(t); ok {
		return openapi.Content{executor.MediaType: {Schema: a.schemas.of(line)}}
	}
	return openapi.Content{"application/json": {Schema: a.schemas.of(t)}}
}

func (a *operations) parameter(p parameter) openapi.Parameter {
	s := a.schemas.of(p.field.Type)
	s.Minimum = cmp.Or(p.least, s.Minimum)
	s.Maximum = cmp.Or(p.most, s.Maximum)
	s.Enum = p.values
	if p.pattern != nil {
		s.Pattern = p.pattern.String()
	}
	if example := p.field.Tag.Get("example"); example != "" {
		s.Examples = []string{example}
	}
	return openapi.Parameter{
		Name: p.name, In: p.in, Required: p.in == "path", AllowEmptyValue: p.in == "query",
		Description: p.field.Tag.Get("doc"),
		Schema:      s,
	}
}

// document returns the description of everything registered, as JSON.
func (a *operations) document() []byte {
	token := openapi.SecurityScheme{Type: "http", Scheme: "bearer",
		Description: "Over the network every request needs a token; over the socket none does."}
	a.doc.Components = openapi.Components{Schemas: a.schemas.named,
		SecuritySchemes: map[string]openapi.SecurityScheme{"token": token}}
	a.doc.Security = []map[string][]string{{}, {"token": {}}}
	text, err := json.Marshal(a.doc)
	if err != nil {
		panic(fmt.Sprintf("server: describe the API: %v", err))
	}
	return text
}
