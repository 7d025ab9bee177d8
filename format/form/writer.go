package form

import (
	"fmt"
	"reflect"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/bellows-rm/bellows/core/resource"
)

// Writer builds a YAML mapping, field by field.
type Writer struct {
	Node *yaml.Node
	Err  error // the first error
}

// NewWriter returns a writer of a mapping in a style: in flow style it is on one line.
func NewWriter(style yaml.Style) *Writer {
	return &Writer{Node: &yaml.Node{Kind: yaml.MappingNode, Style: style}}
}

// Put adds a field with a value of any type that package yaml writes. style is the style of the value; in flow style it
// is on one line.
func (w *Writer) Put(name string, value any, style yaml.Style) {
	n, isNode := value.(*yaml.Node)
	if !isNode {
		n = &yaml.Node{}
		if err := n.Encode(value); err != nil && w.Err == nil {
			w.Err = fmt.Errorf("%s: %w", name, err)
		}
		n.Style |= style
	}
	w.Node.Content = append(w.Node.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, n)
}

// Write adds the non-zero fields of a struct, given a pointer to it. It calls special for each special field, unless
// special is nil.
func (w *Writer) Write(from any, special func(name string)) {
	v := reflect.ValueOf(from).Elem()
	for _, f := range fieldsOf(v.Type()) {
		value := f.of(v)
		switch {
		case f.special:
			special(f.name)
		case value.IsZero():
		case value.Kind() == reflect.Slice:
			w.Put(f.name, value.Interface(), yaml.FlowStyle)
		default:
			w.Put(f.name, textOf(value, &f), 0)
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
