package jobfile

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/bellows-rm/bellows/resource"
)

// field is a field of a struct as people write it. The struct is the only description: its tag yaml names the field.
// Its tag form gives the notation where the type does not: name for a text that is a name; otherwise the description of
// a valid text. The tags least and most bound numbers. A whole number requires most; least of a duration is 1 ns unless
// the tag is 0.
//
// A vector has a field for each kind of resource, and an embedded struct has its own. Fields of other types, such as lists of stages, are
// special: the caller that reads the struct reads them.
type field struct {
	name, form  string
	least, most int64
	kind        resource.Kind // of an amount
	index       []int         // of the field in the struct; for a vector, also of the component
	special     bool
}

var (
	amountType   = reflect.TypeFor[resource.Amount]()
	durationType = reflect.TypeFor[time.Duration]()
	vectorType   = reflect.TypeFor[resource.Vector]()
	textType     = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// fieldsOf returns the fields of a struct that have a tag yaml, in the order of the struct.
func fieldsOf(t reflect.Type) []field {
	var all []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, written := f.Tag.Lookup("yaml")
		switch {
		case !written:
		case f.Type == vectorType:
			for k := range resource.NumKinds {
				all = append(all, field{name: k.Field(), kind: k, index: []int{i, int(k)}})
			}
		case f.Anonymous:
			for _, inner := range fieldsOf(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				all = append(all, inner)
			}
		default:
			// An amount that is not part of a vector is memory.
			one := field{name: name, form: f.Tag.Get("form"), kind: resource.Memory, index: []int{i}, least: 1}
			for tag, to := range map[string]*int64{"least": &one.least, "most": &one.most} {
				if text := f.Tag.Get(tag); text != "" {
					*to, _ = strconv.ParseInt(text, 10, 64)
				}
			}
			one.special = !isPlain(f.Type, one.form)
			all = append(all, one)
		}
	}
	return all
}

// isPlain reports whether this file reads and writes values of a type. The form of a list of texts describes its
// elements.
func isPlain(t reflect.Type, form string) bool {
	switch t.Kind() {
	case reflect.Int, reflect.Int64, reflect.Bool, reflect.String:
		return true
	case reflect.Slice:
		return t.Elem().Kind() == reflect.String && form != ""
	}
	return reflect.PointerTo(t).Implements(textType)
}

// names returns the names of fields.
func names(fields []field) []string {
	all := make([]string, len(fields))
	for i := range fields {
		all[i] = fields[i].name
	}
	return all
}

// of returns the value of f in a struct.
func (f *field) of(in reflect.Value) reflect.Value {
	for _, i := range f.index {
		if in.Kind() == reflect.Array {
			in = in.Index(i)
		} else {
			in = in.Field(i)
		}
	}
	return in
}

// read reads the fields that are not special.
func (m *mapping) read(into any, fields []field) {
	v := reflect.ValueOf(into).Elem()
	for i := range fields {
		if f := &fields[i]; m.has(f.name) && !f.special {
			m.readField(f.of(v), f)
		}
	}
}

func (m *mapping) readField(v reflect.Value, f *field) {
	text, isText := m.scalar(f.name)
	switch {
	case v.Type() == amountType:
		v.SetInt(int64(m.amount(f.name, f.kind)))
	case v.Type() == durationType:
		v.SetInt(int64(m.duration(f.name, time.Duration(f.least))))
	case reflect.PointerTo(v.Type()).Implements(textType):
		if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil || text == "" {
			m.fail(f.name, "must be %s", f.form)
		}
	case v.Kind() == reflect.Int, v.Kind() == reflect.Int64:
		v.SetInt(int64(m.whole(f.name, int(f.least), int(f.most), 0)))
	case v.Kind() == reflect.Bool:
		v.SetBool(m.flag(f.name))
	case v.Kind() == reflect.Slice:
		v.Set(reflect.ValueOf(m.texts(f.name, f.form)))
	case f.form == "name":
		v.SetString(m.name(f.name))
	case !isText || text == "":
		m.fail(f.name, "must be %s", f.form)
	default:
		v.SetString(text)
	}
}

// writer builds a YAML mapping, field by field.
type writer struct {
	node *yaml.Node
	err  error
}

func newWriter(style yaml.Style) *writer {
	return &writer{node: &yaml.Node{Kind: yaml.MappingNode, Style: style}}
}

// put adds a field with a value of any type that package yaml writes. style is the style of the value; in flow style it
// is on one line.
func (w *writer) put(name string, value any, style yaml.Style) {
	n, isNode := value.(*yaml.Node)
	if !isNode {
		n = &yaml.Node{}
		if err := n.Encode(value); err != nil && w.err == nil {
			w.err = fmt.Errorf("%s: %w", name, err)
		}
		n.Style |= style
	}
	w.node.Content = append(w.node.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, n)
}

// write adds the non-zero fields of a struct. It calls special for each special field, unless special is nil.
func (w *writer) write(from any, fields []field, special func(name string)) {
	v := reflect.ValueOf(from).Elem()
	for i := range fields {
		f := &fields[i]
		value := f.of(v)
		switch {
		case f.special:
			special(f.name)
		case value.IsZero():
		case value.Kind() == reflect.Slice:
			w.put(f.name, value.Interface(), yaml.FlowStyle)
		default:
			w.put(f.name, textOf(value, f), 0)
		}
	}
}

// textOf returns a value as people write it.
func textOf(v reflect.Value, f *field) any {
	switch value := v.Interface().(type) {
	case resource.Amount:
		return f.kind.FormatExact(value)
	case time.Duration:
		return value.String()
	case fmt.Stringer:
		return value.String()
	default:
		return value
	}
}
