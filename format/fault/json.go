package fault

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/bellows-rm/bellows/core/cluster"
)

// DecodeLine decodes a line that contains exactly one JSON value. A field that into lacks is an error.
func DecodeLine(text []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		if strings.HasPrefix(err.Error(), "json: unknown field ") {
			if unknown := findUnknown(text, reflect.TypeOf(into), ""); unknown != nil {
				return unknown
			}
		}
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("must be one value in a line, but more follows")
	}
	return nil
}

// OfJSON describes an error of package json, or of DecodeLine, in terms of the file.
func OfJSON(err error) string {
	if unknown, ok := errors.AsType[*unknownField](err); ok {
		return unknown.Error()
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return fmt.Sprintf("%s: must not be a %s", cluster.Clip(FieldPath(wrong.Field)), wrong.Value)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "must be a JSON object, but the line ends within it"
	}
	if errors.Is(err, io.EOF) {
		return "must be a JSON object, but the line is empty"
	}
	return cluster.Clip(strings.TrimPrefix(err.Error(), "json: "))
}

// FieldPath converts the path of a field in an error of package json to the path in the JSON, without the Go names of
// embedded structs.
func FieldPath(path string) string {
	parts := strings.Split(path, ".")
	return strings.Join(slices.DeleteFunc(parts, func(name string) bool {
		return name != "" && 'A' <= name[0] && name[0] <= 'Z'
	}), ".")
}

// unknownField is the first field of a JSON value that its type lacks.
type unknownField struct {
	path  string   // of the field, such as "stages[0].foo"
	known []string // names of the fields that may stand there
}

func (u *unknownField) Error() string {
	name := u.path[strings.LastIndexByte(u.path, '.')+1:]
	return fmt.Sprintf("%s: unknown field; must be one of %s%s", cluster.Clip(u.path), strings.Join(u.known, ", "),
		DidYouMean(name, u.known))
}

// findUnknown returns the first unknown field of a valid JSON value of type t at a path; nil if there is none. What a
// type decodes itself is not searched.
func findUnknown(text []byte, t reflect.Type, path string) (found *unknownField) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	own := reflect.PointerTo(t)
	if own.Implements(reflect.TypeFor[json.Unmarshaler]()) || own.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return nil
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		var parts []json.RawMessage
		if json.Unmarshal(text, &parts) != nil {
			return nil
		}
		for i := 0; i < len(parts) && found == nil; i++ {
			found = findUnknown(parts[i], t.Elem(), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.Struct:
		names, types := jsonFields(t)
		dec := json.NewDecoder(bytes.NewReader(text))
		if open, err := dec.Token(); err != nil || open != json.Delim('{') {
			return nil
		}
		for found == nil && dec.More() {
			var value json.RawMessage
			name, err := dec.Token()
			if err != nil || dec.Decode(&value) != nil {
				return nil
			}
			field := strings.TrimPrefix(fmt.Sprint(path, ".", name), ".")
			at := slices.IndexFunc(names, func(known string) bool { return strings.EqualFold(known, fmt.Sprint(name)) })
			if at < 0 {
				return &unknownField{field, names}
			}
			found = findUnknown(value, types[at], field)
		}
	}
	return found
}

// Names returns the names of the fields of a struct, to which v points, in JSON.
func Names(v any) []string {
	names, _ := jsonFields(reflect.TypeOf(v).Elem())
	return names
}

// jsonFields returns the names of the fields of a struct in JSON, and their types.
func jsonFields(t reflect.Type) (names []string, types []reflect.Type) {
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported() || name == "-" || f.Anonymous && name == "":
			continue
		case name == "":
			name = f.Name
		}
		names, types = append(names, name), append(types, f.Type)
	}
	return names, types
}
