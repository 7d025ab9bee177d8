package jobfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/fault"
	"github.com/bellows-rm/bellows/resource"
)

// mapping reads the fields of one YAML mapping. It works on the nodes of package yaml, which know their lines. Decoding
// into structs would report errors in terms of Go types instead of valid values.
type mapping struct {
	file   string
	line   int
	who    string // prefix of a field's name in an error, such as `job "x" stage "y" `
	fields map[string]*yaml.Node
	err    *error // the first error in the file; shared by all its mappings
}

// openMapping opens n, whose field names must be among known.
func openMapping(file, who string, n *yaml.Node, err *error, known ...string) *mapping {
	m := &mapping{file: file, line: n.Line, who: who, fields: map[string]*yaml.Node{}, err: err}
	if n.Kind != yaml.MappingNode {
		m.failAt(n.Line, "%s: must be a mapping of field names to values, but is %s", strings.TrimSuffix(who, " "), kindName(n))
		return m
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := key.Value
		switch first, twice := m.fields[name]; {
		case key.Kind != yaml.ScalarNode || !slices.Contains(known, name):
			m.failAt(key.Line, "%s%s: unknown field; must be one of %s", who, cluster.ClipLine(name), strings.Join(known, ", "))
		case twice:
			m.failAt(key.Line, "%s%s: written twice, first in line %d", who, name, first.Line)
		}
		m.fields[name] = value
	}
	return m
}

func kindName(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "an alias, which is not part of the format"
	case n.Tag == "!!null":
		return "empty"
	}
	return strconv.Quote(cluster.Clip(n.Value))
}

func (m *mapping) failAt(line int, format string, operands ...any) {
	if *m.err == nil {
		*m.err = fault.At(m.file, line, format, operands...)
	}
}

// fail records what a field must be.
func (m *mapping) fail(name, must string, operands ...any) {
	must = fmt.Sprintf(must, operands...)
	n, given := m.fields[name]
	if !given {
		m.failAt(m.line, "%s%s is missing: %s", m.who, name, must)
		return
	}
	value := kindName(n)
	if n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
		value = cluster.ClipLine(n.Value)
	}
	m.failAt(n.Line, "%s%s %s: %s", m.who, name, value, must)
}

// lineOf returns the line of a field; if the field is missing, that of the mapping.
func (m *mapping) lineOf(name string) int {
	if n, given := m.fields[name]; given {
		return n.Line
	}
	return m.line
}

// has reports whether a field is present.
func (m *mapping) has(name string) bool { _, given := m.fields[name]; return given }

// scalar returns the text of a field; ok is false if it is missing or not a text.
func (m *mapping) scalar(name string) (text string, ok bool) {
	n, given := m.fields[name]
	if !given || n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return "", false
	}
	return n.Value, true
}

// name returns a name that people read: one line.
func (m *mapping) name(field string) string {
	text, ok := m.scalar(field)
	if !ok || !cluster.IsName(text) {
		m.fail(field, "must be a name of 1 to %d printable characters", cluster.LongestName)
	}
	return text
}

// whole returns a whole number from least to most; otherwise if the field is missing.
func (m *mapping) whole(name string, least, most, otherwise int) int {
	if !m.has(name) {
		return otherwise
	}
	text, _ := m.scalar(name)
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		m.fail(name, "must be a whole number from %d to %d", least, most)
		return least
	}
	return n
}

// number returns a positive number from least to most.
func (m *mapping) number(name string, least, most float64) float64 {
	text, _ := m.scalar(name)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v > 0 && v >= least && v <= most) {
		if least > 0 {
			m.fail(name, "must be a number from %v to %v", least, most)
		} else {
			m.fail(name, "must be a number above 0, at most %v", most)
		}
		return most
	}
	return v
}

// flag returns true or false.
func (m *mapping) flag(name string) bool {
	text, _ := m.scalar(name)
	if m.has(name) && text != "true" && text != "false" {
		m.fail(name, "must be true or false")
	}
	return text == "true"
}

// amount returns a positive amount of a resource, which one task may request.
func (m *mapping) amount(name string, k resource.Kind) resource.Amount {
	text, ok := m.scalar(name)
	if !ok {
		m.fail(name, "must be from %s to %s", k.FormatExact(1), k.FormatExact(k.Most()))
		return 1
	}
	a, err := k.Parse(text)
	switch {
	case err != nil:
		// The parser's error begins with the value; the field's name is added here.
		_, why, _ := strings.Cut(err.Error(), " ")
		m.failAt(m.fields[name].Line, "%s%s %s", m.who, name, why)
	case a < 1 || a > k.Most():
		m.fail(name, "must be from %s to %s", k.FormatExact(1), k.FormatExact(k.Most()))
	default:
		return a
	}
	return 1
}

func (m *mapping) memory(name string) resource.Amount { return m.amount(name, resource.Memory) }

// duration returns a duration of at least least, which is 0 or 1.
func (m *mapping) duration(name string, least time.Duration) time.Duration {
	text, _ := m.scalar(name)
	d, err := parseDuration(text)
	switch {
	case err != nil:
		m.fail(name, "must be a duration with its unit, such as 90s, 1.5h or 250ms")
	case d < least || d > cluster.LongestTime:
		m.fail(name, "must be from %v to %v", least, cluster.LongestTime)
	default:
		return d
	}
	return least
}

// parseDuration is time.ParseDuration without a bare 0: each number must have a unit.
func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil && (text == "0" || text == "+0" || text == "-0") {
		return 0, fmt.Errorf("duration %q has no unit", text)
	}
	return d, err
}

// list returns the elements of a list, of which there must be at least one.
func (m *mapping) list(name, of string) []*yaml.Node {
	n, given := m.fields[name]
	if !given || n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		m.fail(name, "must be a list of at least one %s", of)
		return nil
	}
	return n.Content
}

// texts returns a list of texts.
func (m *mapping) texts(name, of string) []string {
	var all []string
	for _, n := range m.list(name, of) {
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			m.failAt(n.Line, "%s%s: must be a list of texts, but one element is %s", m.who, name, kindName(n))
			return nil
		}
		all = append(all, n.Value)
	}
	return all
}

// open opens a field whose value is a mapping.
func (m *mapping) open(name string, known ...string) *mapping {
	return openMapping(m.file, m.who+name+" ", m.fields[name], m.err, known...)
}
