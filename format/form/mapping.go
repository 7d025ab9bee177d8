// Package form reads and writes YAML that people fill in: job files, cluster files and configuration files. A struct
// describes a form by the tags of its fields, and a Mapping reads fields that no struct describes. Errors say where a
// value stands, what it is, and what it must be.
package form

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/fault"
)

// Mapping reads the fields of one YAML mapping. It works on the nodes of package yaml, which know their lines. Decoding
// into structs would report errors in terms of Go types instead of valid values.
type Mapping struct {
	file   string
	Line   int
	Who    string // prefix of a field's name in an error, such as `job "x" stage "y" `
	fields map[string]*yaml.Node
	err    *error // the first error in the file, or a *fault.All; shared by all its mappings
}

// Open opens n, whose field names must be among known. who is the prefix of a field's name in an error; the first
// error is stored in err. If err is a *fault.All, all errors are added to it.
func Open(file, who string, n *yaml.Node, err *error, known ...string) *Mapping {
	m := &Mapping{file: file, Line: n.Line, Who: who, fields: map[string]*yaml.Node{}, err: err}
	if n.Kind != yaml.MappingNode {
		what := strings.TrimPrefix(strings.TrimSuffix(who, " ")+": ", ": ")
		m.FailAt(n.Line, "%s%s", what, mustBeMapping(n))
		return m
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := key.Value
		switch first, twice := m.fields[name]; {
		case key.Kind != yaml.ScalarNode || !slices.Contains(known, name):
			must, as := "one of "+strings.Join(known, ", "), strings.ReplaceAll(name, "-", "_") // as flags are written
			if slices.Contains(known, as) {
				must = as
			} else {
				must += fault.DidYouMean(as, known)
			}
			m.FailAt(key.Line, "%s%s: unknown field; must be %s", who, cluster.ClipLine(name), must)
		case twice:
			m.FailAt(key.Line, "%s%s: written twice, first in line %d", who, name, first.Line)
		}
		m.fields[name] = value
	}
	return m
}

func mustBeMapping(n *yaml.Node) string {
	return "must be a mapping of field names to values, but is " + Kind(n)
}

// Kind describes a value that is of the wrong kind.
func Kind(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		if len(n.Content) == 0 {
			return "an empty list"
		}
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "an alias, which is not part of the format"
	case n.Tag == "!!null":
		return "empty"
	}
	return strconv.Quote(cluster.Clip(n.Value))
}

// FailAt records an error at a line, unless there is one already and only the first is recorded.
func (m *Mapping) FailAt(line int, format string, operands ...any) {
	if all, ok := (*m.err).(*fault.All); ok {
		*all = append(*all, fault.At(m.file, line, format, operands...))
	} else if *m.err == nil {
		*m.err = fault.At(m.file, line, format, operands...)
	}
}

// Fail records what a field must be.
func (m *Mapping) Fail(name, must string, operands ...any) {
	must = fmt.Sprintf(must, operands...)
	n, given := m.fields[name]
	if !given {
		m.FailAt(m.Line, "%s%s is missing: %s", m.Who, name, must)
		return
	}
	value := Kind(n)
	if n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
		value = cluster.ClipLine(n.Value)
	}
	m.FailAt(n.Line, "%s%s %s: %s", m.Who, name, value, must)
}

// LineOf returns the line of a field; if the field is missing, that of the mapping.
func (m *Mapping) LineOf(name string) int {
	if n, given := m.fields[name]; given {
		return n.Line
	}
	return m.Line
}

// Has reports whether a field is present.
func (m *Mapping) Has(name string) bool { _, given := m.fields[name]; return given }

// Scalar returns the text of a field; ok is false if it is missing or not a text.
func (m *Mapping) Scalar(name string) (text string, ok bool) {
	n, given := m.fields[name]
	if !given || n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return "", false
	}
	return n.Value, true
}

// Name returns a name that people read: one line.
func (m *Mapping) Name(field string) string {
	text, ok := m.Scalar(field)
	if !ok || !cluster.IsName(text) {
		m.Fail(field, "must be a name of 1 to %d printable characters", cluster.LongestName)
	}
	return text
}

// Whole returns a whole number from least to most; otherwise if the field is missing.
func (m *Mapping) Whole(name string, least, most, otherwise int) int {
	if !m.Has(name) {
		return otherwise
	}
	text, _ := m.Scalar(name)
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		m.Fail(name, "must be a whole number from %d to %d", least, most)
		return least
	}
	return n
}

// Number returns a positive number from least to most.
func (m *Mapping) Number(name string, least, most float64) float64 {
	text, _ := m.Scalar(name)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v > 0 && v >= least && v <= most) {
		if least > 0 {
			m.Fail(name, "must be a number from %v to %v", least, most)
		} else {
			m.Fail(name, "must be a number above 0, at most %v", most)
		}
		return most
	}
	return v
}

// Seed returns the seed of random draws.
func (m *Mapping) Seed(name string) uint64 {
	text, _ := m.Scalar(name)
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		m.Fail(name, "must be a whole number from 0 on")
	}
	return n
}

// Choice returns one of several texts.
func (m *Mapping) Choice(name string, of []string) string {
	text, _ := m.Scalar(name)
	if !slices.Contains(of, text) {
		m.Fail(name, "must be one of %s", strings.Join(of, ", "))
	}
	return text
}

// Flag returns true or false.
func (m *Mapping) Flag(name string) bool {
	text, _ := m.Scalar(name)
	if m.Has(name) && text != "true" && text != "false" {
		m.Fail(name, "must be true or false")
	}
	return text == "true"
}

// Amount returns an amount of a resource from least, which is 0 or 1, to the most that one task may request. 0 needs
// no unit.
func (m *Mapping) Amount(name string, k resource.Kind, least resource.Amount) resource.Amount {
	text, ok := m.Scalar(name)
	if !ok {
		m.Fail(name, "must be from %s to %s", k.FormatExact(least), k.FormatExact(k.Most()))
		return least
	}
	a, err := k.Parse(text)
	switch {
	case text == "0" && least == 0:
		return 0
	case err != nil:
		// The parser's error begins with the value; the field's name is added here.
		_, why, _ := strings.Cut(err.Error(), " ")
		m.FailAt(m.fields[name].Line, "%s%s %s", m.Who, name, why)
	case a < least || a > k.Most():
		m.Fail(name, "must be from %s to %s", k.FormatExact(least), k.FormatExact(k.Most()))
	default:
		return a
	}
	return least
}

// Unknown returns the resources of which a field says "unknown", where that may be, and removes their fields, so that
// Read leaves their amounts 0.
func (m *Mapping) Unknown() (s resource.Kinds) {
	for k := range resource.NumKinds {
		if text, _ := m.Scalar(k.Field()); text == "unknown" && !k.Stated() {
			s |= resource.KindsOf(k)
			delete(m.fields, k.Field())
		}
	}
	return s
}

// Auto reports whether a field says "auto", and removes it then, so that it counts as left out.
func (m *Mapping) Auto(name string) bool {
	text, ok := m.Scalar(name)
	if ok = ok && text == "auto"; ok {
		delete(m.fields, name)
	}
	return ok
}

// Memory returns a positive amount of memory.
func (m *Mapping) Memory(name string) resource.Amount { return m.Amount(name, resource.Memory, 1) }

// Duration returns a duration of at least least, which is 0 or 1. 0 needs no unit.
func (m *Mapping) Duration(name string, least time.Duration) time.Duration {
	text, _ := m.Scalar(name)
	d, err := ParseDuration(text)
	switch {
	case text == "0" && least == 0:
		return 0
	case err != nil:
		m.Fail(name, "must be a duration with its unit, such as 90s, 1.5h or 250ms, up to %v", cluster.LongestTime)
	case d < least || d > cluster.LongestTime:
		m.Fail(name, "must be from %v to %v", least, cluster.LongestTime)
	default:
		return d
	}
	return least
}

// ParseDuration is time.ParseDuration without a bare 0: each number must have a unit.
func ParseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil && (text == "0" || text == "+0" || text == "-0") {
		return 0, fmt.Errorf("duration %q has no unit", text)
	}
	return d, err
}

// List returns the elements of a list, of which there must be at least one.
func (m *Mapping) List(name, of string) []*yaml.Node {
	n, given := m.fields[name]
	if !given || n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		m.Fail(name, "must be a list of at least one %s", of)
		return nil
	}
	return n.Content
}

// Names returns a list of names.
func (m *Mapping) Names(name string) []string {
	all := m.Texts(name, "name")
	for _, one := range all {
		if !cluster.IsName(one) {
			m.Fail(name, "each must be a name of 1 to %d printable characters, but one is %s", cluster.LongestName,
				cluster.ClipLine(one))
		}
	}
	return all
}

// Texts returns a list of texts.
func (m *Mapping) Texts(name, of string) []string {
	var all []string
	for _, n := range m.List(name, of) {
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			m.FailAt(n.Line, "%s%s: must be a list of texts, but one element is %s", m.Who, name, Kind(n))
			return nil
		}
		all = append(all, n.Value)
	}
	return all
}

// Node returns the value of a field, which must be present.
func (m *Mapping) Node(name string) *yaml.Node { return m.fields[name] }

// Failed reports whether there is an error.
func (m *Mapping) Failed() bool {
	if all, ok := (*m.err).(*fault.All); ok {
		return len(*all) > 0
	}
	return *m.err != nil
}

// Child opens a mapping that is a part of the value of a field. what names it in an error, after the names of m.
func (m *Mapping) Child(what string, n *yaml.Node, known ...string) *Mapping {
	return Open(m.file, m.Who+what+" ", n, m.err, known...)
}

// Open opens a field whose value is a mapping.
func (m *Mapping) Open(name string, known ...string) *Mapping {
	return m.Child(name, m.fields[name], known...)
}

// Fill reads a field, if it is present, whose value is a mapping of the fields of a struct. It returns nil if the
// field is missing. more are names of fields that the caller reads.
func (m *Mapping) Fill(name string, into any, more ...string) *Mapping {
	if !m.Has(name) {
		return nil
	}
	inner := m.Open(name, append(Names(into), more...)...)
	inner.Read(into)
	return inner
}
