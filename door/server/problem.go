package server

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/live/api"
)

// problemType is the media type of a Problem.
const problemType = "application/problem+json"

// Problem is the answer to a request that failed: the members of RFC 9457, without a type, and what bellows adds.
// Code and message are all that Client reads.
type Problem struct {
	Title   string   `json:"title" doc:"the phrase of the HTTP status"`
	Status  int      `json:"status" doc:"the HTTP status"`
	Detail  string   `json:"detail" doc:"one sentence for people"`
	Kind    api.Kind `json:"code" doc:"kind of the error, for programs; later daemons may have more kinds"`
	Message string   `json:"message" doc:"the same as detail"`
	Index   *int     `json:"index,omitempty" doc:"which of several jobs is wrong, counted from 0; omitted if the request is not of several jobs, or if none of them alone is wrong"`
	Field   string   `json:"field,omitempty" doc:"what is wrong: a parameter, a header, or a field of the job in the words of job files, such as stages[0].max_memory; omitted if it is not one field"`
	Value   string   `json:"value,omitempty" doc:"the value of the field, as people write it"`
	Limit   string   `json:"limit,omitempty" doc:"what the value must be"`
}

// problemOf returns the answer that has an error. Its texts are of one line each, even if they quote a part of the
// request.
func problemOf(e *api.Error) *Problem {
	status, said := statusOf(e), cluster.Printable(e.Message)
	p := &Problem{Title: http.StatusText(status), Status: status, Detail: said, Kind: e.Kind, Message: said}
	if w, ok := errors.AsType[*cluster.WrongField](e); ok {
		p.Field, p.Value, p.Limit = cluster.Printable(w.Path()), cluster.Printable(w.Value), cluster.Printable(w.Must)
	}
	if over, ok := errors.AsType[*cluster.Excess](e); ok {
		p.Field, p.Value, p.Limit = "quota "+over.Kind.String(), over.Kind.Format(over.Taken), over.Limit()
	}
	if of, ok := errors.AsType[*live.OfJob](e); ok {
		p.Index = &of.Index
	}
	return p
}

// statusOf returns the HTTP status of an error: that of its kind, unless it has one of its own.
func statusOf(e *api.Error) int {
	if w, ok := errors.AsType[*wrongValue](e); ok && w.status != 0 {
		return w.status
	}
	return e.Kind.Status()
}

// wrongValue is the error of a part of a request that is no field of a job: its method, a parameter, a header, or the
// body.
type wrongValue struct {
	status int    // of HTTP; 0 is that of the kind
	where  string // before the name, in the sentence
	cluster.WrongField
}

func (w *wrongValue) Error() string { return w.where + w.Named(w.Field) }

// Unwrap lets errors.As find the WrongField.
func (w *wrongValue) Unwrap() error { return &w.WrongField }

// wrong returns the error of a parameter, a header, or the body. An empty value says nothing.
func wrong(field, value, must string, operands ...any) *api.Error {
	return wrongIn("", field, value, must, operands...)
}

// wrongIn is wrong with words before the name of the field.
func wrongIn(where, field, value, must string, operands ...any) *api.Error {
	return wrongFor(0, api.Invalid, where, field, value, must, operands...)
}

// wrongFor is wrongIn with an HTTP status of its own, 0 for that of the kind, and with another kind.
func wrongFor(status int, kind api.Kind, where, field, value, must string, operands ...any) *api.Error {
	w := cluster.WrongField{Stage: -1, Field: field, Value: value, Must: fmt.Sprintf(must, operands...)}
	return api.Errorf(kind, "%w", &wrongValue{status, where, w})
}
