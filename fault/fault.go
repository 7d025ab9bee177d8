// Package fault describes what is wrong with a file, and where. A reader of files that people or other programs wrote
// returns a *Fault for an error that they can correct, and any other error if the file could not be read.
package fault

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/bellows-rm/bellows/cluster"
)

// Fault is a mistake in a file. Its text is one sentence that begins with FILE:LINE.
type Fault struct {
	File string
	Line int // counted from 1; 0 is the file as a whole
	What string
}

// At returns a fault of a line, counted from 1; line 0 is the file as a whole.
func At(file string, line int, format string, operands ...any) *Fault {
	return &Fault{File: file, Line: line, What: fmt.Sprintf(format, operands...)}
}

func (f *Fault) Error() string { // it may quote arbitrary content of a file
	if f.Line == 0 {
		return cluster.Printable(f.File + ": " + f.What)
	}
	return cluster.Printable(fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.What))
}

// Is reports whether err says that the content of a file is wrong, as opposed to that the file could not be read.
func Is(err error) bool {
	var f *Fault
	return errors.As(err, &f)
}

// DecodeLine decodes a line that contains exactly one JSON value. A field that into lacks is an error.
func DecodeLine(text []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("must be one value in a line, but more follows")
	}
	return nil
}

// OfJSON describes an error of package json in terms of the file.
func OfJSON(err error) string {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return fmt.Sprintf("%s: must not be a %s", cluster.Clip(FieldPath(wrong.Field)), wrong.Value)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "must be a JSON object, but the line ends within it"
	}
	return cluster.Clip(strings.TrimPrefix(err.Error(), "json: "))
}

// FieldPath converts the path of a field in an error of package json to the path in the JSON, without the Go names of
// embedded structs.
func FieldPath(path string) string {
	parts := strings.Split(path, ".")
	return strings.Join(slices.DeleteFunc(parts, func(name string) bool { return name != "" && 'A' <= name[0] && name[0] <= 'Z' }), ".")
}
