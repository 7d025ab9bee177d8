package form

import (
	"encoding"
	"reflect"
	"strconv"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// field is a field of a struct as people write it. The struct is the only description: its tag yaml names the field.
// Its tag form gives the notation where the type does not: name for a text that is a name; a resource for an amount
// that is not one of memory; otherwise the description of a valid text. Numbers are positive, unless the tag least is
// 0; a number requires the tag most. A pointer is nil if the field is missing.
//
// A vector has a field for each kind of resource, and an embedded struct has its own. Fields of other types, such as
// lists of stages, are special: the caller that reads the struct reads them, and a test of the caller should compare
// what it reads with Special.
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
		case !written || name == "-":
		case f.Type == vectorType:
			for k := range resource.NumKinds {
				all = append(all, field{name: k.Field(), kind: k, index: []int{i, int(k)}, least: leastOf(f.Tag)})
			}
		case f.Anonymous:
			for _, inner := range fieldsOf(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				all = append(all, inner)
			}
		default:
			one := field{name: name, form: f.Tag.Get("form"), kind: resource.Memory, index: []int{i}, least: leastOf(f.Tag)}
			one.most, _ = strconv.ParseInt(f.Tag.Get("most"), 10, 64)
			for k := range resource.NumKinds {
				if one.form == k.Field() {
					one.kind = k
				}
			}
			one.special = !isPlain(f.Type, one.form)
			all = append(all, one)
		}
	}
	return all
}

// leastOf returns the least value of a number.
func leastOf(tag reflect.StructTag) int64 {
	if tag.Get("least") == "0" {
		return 0
	}
	return 1
}

// isPlain reports whether this file reads and writes values of a type. The form of a list of texts describes its
// elements.
func isPlain(t reflect.Type, form string) bool {
	switch t.Kind() {
	case reflect.Pointer:
		return isPlain(t.Elem(), form)
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64, reflect.Bool, reflect.String:
		return true
	case reflect.Slice:
		return t.Elem().Kind() == reflect.String && form != ""
	}
	return reflect.PointerTo(t).Implements(textType)
}

// Names returns the names of the fields of a struct, given a pointer to it, in their order.
func Names(of any) []string {
	var all []string
	for _, f := range fieldsOf(reflect.TypeOf(of).Elem()) {
		all = append(all, f.name)
	}
	return all
}

// Special returns the names of the fields of a struct, given a pointer to it, that Read leaves out.
func Special(of any) []string {
	var all []string
	for _, f := range fieldsOf(reflect.TypeOf(of).Elem()) {
		if f.special {
			all = append(all, f.name)
		}
	}
	return all
}

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

// Read reads the fields of a struct that are present, into a pointer to it. It leaves out special fields.
func (m *Mapping) Read(into any) {
	v := reflect.ValueOf(into).Elem()
	for _, f := range fieldsOf(v.Type()) {
		if !m.Has(f.name) || f.special {
			continue
		}
		to := f.of(v)
		if to.Kind() == reflect.Pointer {
			to.Set(reflect.New(to.Type().Elem()))
			to = to.Elem()
		}
		m.readField(to, &f)
	}
}

func (m *Mapping) readField(v reflect.Value, f *field) {
	text, isText := m.Scalar(f.name)
	switch {
	case v.Type() == amountType:
		v.SetInt(int64(m.Amount(f.name, f.kind, resource.Amount(f.least))))
	case v.Type() == durationType:
		v.SetInt(int64(m.Duration(f.name, time.Duration(f.least))))
	case reflect.PointerTo(v.Type()).Implements(textType):
		if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil || text == "" {
			m.Fail(f.name, "must be %s", f.form)
		}
	case v.Kind() == reflect.Int, v.Kind() == reflect.Int64:
		v.SetInt(int64(m.Whole(f.name, int(f.least), int(f.most), 0)))
	case v.Kind() == reflect.Uint64:
		v.SetUint(m.Seed(f.name))
	case v.Kind() == reflect.Float64:
		v.SetFloat(m.Number(f.name, 0, float64(f.most)))
	case v.Kind() == reflect.Bool:
		v.SetBool(m.Flag(f.name))
	case v.Kind() == reflect.Slice:
		v.Set(reflect.ValueOf(m.Texts(f.name, f.form)))
	case f.form == "name":
		v.SetString(m.Name(f.name))
	case !isText || text == "":
		m.Fail(f.name, "must be %s", f.form)
	default:
		v.SetString(text)
	}
}
