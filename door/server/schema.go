package server

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/door/server/openapi"
	"github.com/bellows-rm/bellows/live/api"
)

// standsFor is a type whose JSON is that of another type.
type standsFor interface{ described() reflect.Type }

// schemas describe the JSON that package encoding/json makes of Go types, as JSON Schema 2020-12. Schemas of structs
// have names, by which other schemas refer to them.
type schemas struct {
	named map[string]*openapi.Schema
	types map[string]reflect.Type // by name
}

var (
	timeType       = reflect.TypeFor[time.Time]()
	rawType        = reflect.TypeFor[json.RawMessage]()
	textMarshaler  = reflect.TypeFor[encoding.TextMarshaler]()
	valueMarshaler = reflect.TypeFor[json.Marshaler]()
)

// of returns the schema of t. A pointer has the schema of its target, because null pointers are left out of the JSON.
func (s schemas) of(t reflect.Type) *openapi.Schema {
	if other, ok := reflect.Zero(t).Interface().(standsFor); ok {
		t = other.described()
	}
	switch {
	case t == timeType:
		return &openapi.Schema{Type: openapi.Types{"string"}, Format: "date-time"}
	case t == rawType:
		return &openapi.Schema{} // any JSON
	case t.Implements(valueMarshaler) || reflect.PointerTo(t).Implements(valueMarshaler):
		panic(fmt.Sprintf("server: schema of %s: only its MarshalJSON knows", t))
	case t == reflect.TypeFor[api.Kind]():
		return &openapi.Schema{Type: openapi.Types{"string"}, Examples: api.KindNames()}
	case t.Implements(textMarshaler):
		return &openapi.Schema{Type: openapi.Types{"string"}}
	}
	made := &openapi.Schema{Type: openapi.Types{jsonType(t)}}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Int, reflect.Int64:
		made.Format = "int64"
	case reflect.Int32:
		made.Format = "int32"
	case reflect.Uint32:
		made.Minimum, made.Maximum = new(int64(0)), new(int64(math.MaxUint32))
	case reflect.Float64:
		made.Format = "double"
	case reflect.Slice:
		made.Type = openapi.Types{"array", "null"}
		made.Items = s.of(t.Elem())
	case reflect.Array:
		made.Items = s.of(t.Elem())
	case reflect.Map:
		made.AdditionalProperties = s.of(t.Elem())
	case reflect.Struct:
		return s.object(t)
	}
	return made
}

// jsonType returns the JSON type of values of t.
func jsonType(t reflect.Type) string {
	if t.Implements(textMarshaler) {
		return "string"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return jsonType(t.Elem())
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return "integer"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.String:
		return "string"
	case reflect.Slice, reflect.Array:
		return "array"
	case reflect.Map, reflect.Struct:
		return "object"
	}
	panic(fmt.Sprintf("server: schema of %s: not a type that the API has", t))
}

// object returns a reference to the schema of a struct. The tag doc of a field describes it. enum lists all its
// values, in requests; examples those that an answer has today: later daemons may have more.
func (s schemas) object(t reflect.Type) *openapi.Schema {
	if t.NumField() == 0 {
		return &openapi.Schema{Type: openapi.Types{"object"}}
	}
	name := t.Name()
	ref := &openapi.Schema{Ref: "#/components/schemas/" + name}
	if of, known := s.types[name]; known {
		if of != t {
			panic(fmt.Sprintf("server: schema of %s: %s has its name", t, of))
		}
		return ref
	}
	s.types[name] = t
	made := &openapi.Schema{Type: openapi.Types{"object"}, Properties: map[string]*openapi.Schema{}}
	s.named[name] = made
	for _, f := range jsonFields(t) {
		name, required := jsonField(f)
		if made.Properties[name] != nil {
			panic(fmt.Sprintf("server: schema of %s: two fields have the name %s", t, name))
		}
		made.Properties[name] = s.field(f)
		if required {
			made.Required = append(made.Required, name)
		}
	}
	return ref
}

// jsonField returns the name of a field in JSON, "" if it has none, and whether JSON always has it.
func jsonField(f reflect.StructField) (name string, required bool) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	switch {
	case f.Anonymous && name == "", !f.IsExported(), name == "-":
		return "", false
	case name == "":
		name = f.Name
	}
	return name, !strings.Contains(options, "omit")
}

// jsonFields returns the fields that the JSON of a struct has: its own, and those of embedded structs that it does
// not hide by a field with the same names. reflect.VisibleFields does not know that the JSON has no field for an
// embedded struct, which hides nothing there.
func jsonFields(t reflect.Type) (all []reflect.StructField) {
	own := map[string]string{} // names in Go, by those in the JSON
	for f := range t.Fields() {
		if name, _ := jsonField(f); name != "" {
			own[name] = f.Name
		}
	}
	for f := range t.Fields() {
		if name, _ := jsonField(f); name != "" {
			all = append(all, f)
		} else if f.Anonymous && f.Tag.Get("json") == "" {
			for _, inner := range jsonFields(f.Type) {
				if name, _ := jsonField(inner); own[name] != inner.Name {
					all = append(all, inner)
				}
			}
		}
	}
	return all
}

func (s schemas) field(f reflect.StructField) *openapi.Schema {
	made := s.of(f.Type)
	made.Description = f.Tag.Get("doc")
	if values := valuesIn(f, "enum"); values != nil {
		made.Enum = values
	}
	if values := valuesIn(f, "examples"); values != nil {
		made.Examples = values
	}
	return made
}

// valuesIn returns the values of a tag, between which are commas; nil if the field has no such tag.
func valuesIn(f reflect.StructField, tag string) []string {
	if text := f.Tag.Get(tag); text != "" {
		return strings.Split(text, ",")
	}
	return nil
}
