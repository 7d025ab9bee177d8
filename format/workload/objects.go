package workload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/format/fault"
)

// objectReader reads a sequence of JSON objects and knows the line of each field, which package json does not report.
type objectReader struct {
	file string
	data []byte
	dec  *json.Decoder

	// Invariant: line is that of data[at].
	at, line int
}

// object is a JSON object whose values have not been decoded.
type object struct {
	line   int
	fields map[string]field
	names  []string // in the order of the file
}

type field struct {
	line int
	raw  json.RawMessage
	list []object // instead of raw, where a list of objects was requested
}

func newObjectReader(file string, data []byte) *objectReader {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	return &objectReader{file: file, data: data, dec: json.NewDecoder(bytes.NewReader(data)), line: 1}
}

// here returns the line of the last token. Offsets only grow, so that all calls together scan data once.
func (r *objectReader) here() int {
	to := min(int(r.dec.InputOffset()), len(r.data))
	r.line += bytes.Count(r.data[r.at:to], []byte{'\n'})
	r.at = to
	return r.line
}

func (r *objectReader) fault(line int, format string, operands ...any) error {
	return fault.At(r.file, line, format, operands...)
}

// broken describes an error of package json that occurred while reading what.
func (r *objectReader) broken(what string, err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		end := 1 + bytes.Count(bytes.TrimRight(r.data, "\n"), []byte{'\n'})
		return r.fault(end, "%s: the file is truncated: it ends inside an object", what)
	case errors.As(err, &syntax):
		line := r.here()
		// The offset of a syntax error counts from the start of the input; white space may precede it.
		if off := int(syntax.Offset); off > r.at && off <= len(r.data) {
			line += bytes.Count(r.data[r.at:off-1], []byte{'\n'})
		}
		return r.fault(line, "%s: must be JSON, but found an %v", what, syntax)
	}
	return r.fault(r.here(), "%s: must be JSON: %v", what, err)
}

// next returns the next object; io.EOF if there is none. The value of the field named list is read as a list of
// objects.
func (r *objectReader) next(list string) (object, error) {
	tok, err := r.dec.Token()
	if err == io.EOF {
		return object{}, io.EOF
	}
	if err != nil {
		return object{}, r.broken("job", err)
	}
	if tok != json.Delim('{') {
		return object{}, r.fault(r.here(), "job: must be a JSON object, but found %s", cluster.Clip(fmt.Sprint(tok)))
	}
	return r.rest(list)
}

// rest reads an object whose opening brace has been read.
func (r *objectReader) rest(list string) (object, error) {
	o := object{line: r.here(), fields: map[string]field{}}
	for r.dec.More() {
		tok, err := r.dec.Token()
		if err != nil {
			return o, r.broken("field", err)
		}
		name, _ := tok.(string) // the decoder accepts only strings here
		f := field{line: r.here()}
		if first, twice := o.fields[name]; twice {
			return o, r.fault(f.line, "%s: written twice, first in line %d", cluster.Clip(name), first.line)
		}
		if name == list {
			f.list, err = r.list(name)
		} else if err = r.dec.Decode(&f.raw); err != nil {
			err = r.broken(cluster.Clip(name), err)
		}
		if err != nil {
			return o, err
		}
		o.fields[name] = f
		o.names = append(o.names, name)
	}
	if _, err := r.dec.Token(); err != nil {
		return o, r.broken("object", err)
	}
	return o, nil
}

func (r *objectReader) list(name string) ([]object, error) {
	tok, err := r.dec.Token()
	if err != nil {
		return nil, r.broken(name, err)
	}
	if tok != json.Delim('[') {
		return nil, r.fault(r.here(), "%s: must be a list of objects, but found %s", name, cluster.Clip(fmt.Sprint(tok)))
	}
	var all []object
	for r.dec.More() {
		tok, err := r.dec.Token()
		if err != nil {
			return nil, r.broken(name, err)
		}
		if tok != json.Delim('{') {
			return nil, r.fault(r.here(), "%s: must be a list of objects, but found %s", name, cluster.Clip(fmt.Sprint(tok)))
		}
		o, err := r.rest("")
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	if _, err := r.dec.Token(); err != nil {
		return nil, r.broken(name, err)
	}
	return all, nil
}
